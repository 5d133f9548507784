"""The outside of the box: passes recordings in, takes scores out, and ends the process whatever happens."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tsadbench.base.recording import Recording
from tsadbench.base.score_checks import checked_scores
from tsadbench.base.training_facts import Fact, checked_facts
from tsadbench.errors import ContractError, ModelFileError
from tsadbench.sandbox.boxed_process import BoxedProcess, Costs
from tsadbench.sandbox.construction import Construction
from tsadbench.sandbox.crossing import Crossing
from tsadbench.sandbox.framing import packed
from tsadbench.sandbox.launch import Launcher, Process
from tsadbench.sandbox.limits import BoxFailure, Limits
from tsadbench.sandbox.meter import Meter
from tsadbench.sandbox.replies import MAX_REPLY_BYTES, Constructed, Done, Fitted, HeldOutLoss, Imported, Learned
from tsadbench.sandbox.wire import Array, Header, receive_header
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.progress import Listener
from tsadbench.utils.text import one_line

# struct ucred of Linux: process, user, group.
_CREDENTIALS = struct.Struct("3i")
_KEPT_BY_FORKS = ("launcher", "box")


class Box(BoxedProcess):
    """A detector in a process of its own: construct, fit, training scores, then one unlabelled recording at a time.

    Used as a context manager; leaving it ends the process. Every call raises `BoxFailure` if the detector breaks its
    contract, raises an error, dies, or exceeds a limit.

    Parameters
    ----------
    construction
        The detector to be constructed inside.
    threads
        Number of threads that its libraries may use.
    crossing
        The disguise of what enters; None: a new one, in which sensors keep their names.
    limits
        The trial's limits.
    listener
        Receives the detector's progress reports.
    forbidden
        Folders in which it may open nothing.
    launcher
        Starts the process; None: this system's default.
    """

    def __init__(
        self,
        construction: Construction,
        *,
        threads: int,
        crossing: Crossing | None = None,
        limits: Limits | None = None,
        listener: Listener | None = None,
        forbidden: Sequence[Path] = (),
        launcher: Launcher | None = None,
    ) -> None:
        super().__init__(
            construction.source.class_name,
            threads=threads,
            limits=limits,
            listener=listener,
            forbidden=forbidden,
            modules=construction.source.modules,
            gpu=construction.on_gpu,
            launcher=launcher,
        )
        self._crossing = crossing or Crossing(None)
        self._train: tuple[Recording, ...] = ()
        try:
            header: Header = {"kind": "construct", **self._surroundings}
            reply, _ = self._ask(header, [self._disguised(construction)], expected=Constructed)
            self.offers_contributions = reply.offers_contributions
            self.scores_training_itself = reply.scores_training_itself
        except BaseException:
            self.close()
            raise

    def fit(self, recordings: tuple[Recording, ...]) -> dict[str, Fact]:
        """Fit the detector on the training recordings; return what it states about that (`Detector.training_facts`)."""
        self._train = recordings
        opaque = [self._crossing.recording(recording, "train") for recording in recordings]
        reply, _ = self._ask(*packed("fit", opaque), expected=Fitted)
        self.costs.fit_seconds += self._seconds
        self.costs.fit_cpu_seconds += self._cpu_seconds
        with self._contract():
            return checked_facts(reply.training_facts, f"{self._name}.training_facts")

    def set_parameters(self, construction: Construction, names: Sequence[str]) -> None:
        """Change parameters of the fitted detector that its fit does not depend on; scoring costs start anew.

        Parameters
        ----------
        construction
            How to construct the detector as it should be.
        names
            The parameters that may change.
        """
        header: Header = {"kind": "set_parameters", "parameters": list(names)}
        self._ask(header, [self._disguised(construction)], expected=Done)
        self.costs = replace(self.costs, score_seconds=0.0, score_cpu_seconds=0.0, rows_scored=0)

    def training_scores(self) -> tuple[FloatArray, ...]:
        """Return one array [n_rows] of scores for each training recording."""
        shapes = [(recording.n_rows,) for recording in self._train]
        _, scores = self._ask({"kind": "training_scores"}, expected=Done, shapes=shapes)
        self._count_scoring(sum(recording.n_rows for recording in self._train))
        pairs = zip(scores, self._train, strict=True)
        return tuple(self._checked(array, (recording.n_rows,), "training_scores") for array, recording in pairs)

    def score(self, recording: Recording) -> FloatArray:
        """Return the scores [n_rows] of one unlabelled recording."""
        opaque = self._crossing.recording(recording, "score")
        scores = self._scored(opaque)
        self._count_scoring(recording.n_rows)
        return scores

    def score_again(self, recording: Recording, purpose: str, start: int = 0, stop: int | None = None) -> FloatArray:
        """Return the scores of some rows of a recording, under an id and a clock for this purpose; they cost nothing.

        Parameters
        ----------
        recording, purpose, start, stop
            As for `Crossing.recording`.
        """
        return self._scored(self._crossing.recording(recording, purpose, start, stop))

    def contributions(self, recording: Recording) -> FloatArray:
        """Return each sensor's contribution [n_rows, n_sensors] to the scores of one unlabelled recording."""
        opaque = self._crossing.recording(recording, "score")
        _, arrays = self._ask(*packed("contributions", [opaque]), expected=Done, shapes=[recording.values.shape])
        return self._checked(arrays[0], recording.values.shape, "contributions")

    def held_out_loss(self, recordings: Sequence[Recording], first: int) -> float:
        """Return the fitted detector's loss on normal recordings that it was not fitted on, from row ``first`` on."""
        opaque = [self._crossing.recording(recording, "held out") for recording in recordings]
        header, arrays = packed("held_out_loss", opaque)
        return self._ask({**header, "first": first}, arrays, expected=HeldOutLoss)[0].loss

    def imported(self) -> dict[str, frozenset[str]]:
        """Return the top-level packages that its process has loaded by itself, and for each the packages that did so.

        What the server had loaded from which it was forked, and the standard library, are left out.
        """
        reply, _ = self._ask({"kind": "imported"}, expected=Imported)
        return {package: frozenset(importers) for package, importers in reply.importers.items()}

    def learned(self, *, estimators: bool = True) -> dict[str, bytes]:
        """Return the fitted detector as the parts of a model file, by name.

        Parameters
        ----------
        estimators
            Whether it may hold scikit-learn's estimators, which take seconds to write.

        Raises
        ------
        ModelFileError
            If it cannot be kept in a file.
        """
        reply, contents = self._exchange({"kind": "learned", "estimators": estimators}, (), Learned, ())
        if reply.refused is not None:
            raise ModelFileError(one_line(reply.refused))
        return {name: content.tobytes() for name, content in zip(reply.parts, contents, strict=True)}

    def restore(self, parts: Mapping[str, bytes]) -> None:
        """Restore what another box of the same construction had `learned`."""
        contents = [np.frombuffer(content, dtype=np.uint8) for content in parts.values()]
        self._ask({"kind": "restore", "parts": list(parts)}, contents, expected=Done)

    def fork(self) -> Box:
        """Return a copy of the box whose process is a fork of this one's; only on Linux.

        The two share memory that the detector mapped to be shared: ask the copy for nothing before the last answer
        of this box is there. It ends with this box.
        """
        ours, theirs = socket.socketpair()
        ours.settimeout(self._process.sock.gettimeout())
        # The kernel adds to what arrives which process sent it, by its id out here.
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        with theirs:
            self._ask({"kind": "fork"}, expected=Done, passed=theirs.fileno())
        return _Fork(self, ours, self._sender(ours))

    def _sender(self, sock: socket.socket) -> int:
        """Return the id of the process that has written into a socket."""
        while True:
            self._watch()
            with contextlib.suppress(TimeoutError):
                _, ancillary, _, _ = sock.recvmsg(1, socket.CMSG_SPACE(_CREDENTIALS.size), socket.MSG_PEEK)
                if not ancillary:
                    raise BoxFailure("error", f"{self._name}: a fork of its process ended at once")
                pid, _, _ = _CREDENTIALS.unpack(ancillary[0][2])
                return int(pid)

    def _scored(self, opaque: Recording) -> FloatArray:
        _, scores = self._ask(*packed("score", [opaque]), expected=Done, shapes=[(opaque.n_rows,)])
        return self._checked(scores[0], (opaque.n_rows,), "score")

    def _disguised(self, construction: Construction) -> Array:
        """Return a construction as bytes, its sensors renamed."""
        texts = {name: str(text) for name, text in self._crossing.arguments(construction.texts).items()}
        disguised = replace(construction, texts=texts, arguments=self._crossing.arguments(construction.arguments))
        return np.frombuffer(disguised.dumps(), dtype=np.uint8)

    def _restored(self, text: str) -> str:
        """Return a text from inside with the recordings' and the sensors' own names."""
        return self._crossing.restored(text)

    def _count_scoring(self, n_rows: int) -> None:
        self.costs.score_seconds += self._seconds
        self.costs.score_cpu_seconds += self._cpu_seconds
        self.costs.rows_scored += n_rows

    def _checked(self, array: FloatArray, shape: tuple[int, ...], call: str) -> FloatArray:
        with self._contract():
            return checked_scores(array, shape, f"{self._name}.{call}")

    @staticmethod
    @contextmanager
    def _contract() -> Iterator[None]:
        """Make a broken contract the failure of the box."""
        try:
            yield
        except ContractError as error:
            raise BoxFailure("invalid", str(error)) from error


@dataclass(frozen=True, slots=True)
class _ForkedProcess(Process):
    """A fork of a box's process; its folder belongs to that."""

    def end(self) -> int:
        """Close the socket and kill it: who asks for its exit code has not made it end."""
        self.sock.close()
        self.kill()
        return 1


class _Fork(Box):
    """A box whose process is a fork of another's."""

    def __init__(self, origin: Box, sock: socket.socket, pid: int) -> None:
        vars(self).update(vars(origin))
        self.costs, self._listener = Costs(), None
        self._process = _ForkedProcess(pid, sock, *(getattr(origin._process, name) for name in _KEPT_BY_FORKS))
        self._log = os.fdopen(os.dup(origin._log.fileno()), "rb")
        self._watch, self._meter = self._limits.watch(pid, self._log), Meter(pid)
        origin._watch.forked.add(pid)
        try:
            receive_header(sock, self._watch, max_bytes=MAX_REPLY_BYTES)  # it answers the request for it too
        except (OSError, EOFError) as error:
            self.close()
            raise BoxFailure("error", f"{self._name}: a fork of its process does not answer") from error
