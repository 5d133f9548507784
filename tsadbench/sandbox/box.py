"""The harness's side of the box: sends recordings, receives scores, and always ends the process."""

from __future__ import annotations

import contextlib
import copy
import os
import pickle
import platform
import secrets
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from tsadbench.base.detector import Traits
from tsadbench.base.recording import Recording
from tsadbench.base.scores import checked_scores
from tsadbench.base.training_facts import Fact, checked_facts
from tsadbench.errors import ContractError, ModelFileError
from tsadbench.sandbox import wire
from tsadbench.sandbox.construction import Construction, pickled
from tsadbench.sandbox.crossing import Crossing
from tsadbench.sandbox.limits import BoxFailure, Limits, Watch
from tsadbench.sandbox.seal.walls import plan_walls
from tsadbench.sandbox.server import Process, Server, default_server, import_path
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.progress import Listener
from tsadbench.utils.text import one_line, printable

_POLL_SECONDS = 0.1
# Seconds between progress reports: no more often than a person can read them.
_REPORT_SECONDS = 0.05
# Only the end of a longer log is kept.
_KEPT_LOG_BYTES = 2**20


@dataclass(slots=True)
class Costs:
    """What a detector has used so far, measured from outside.

    Seconds are wall-clock time between a request and its answer; CPU seconds cover all threads and child processes.
    ``peak_memory_mib`` is the largest resident size, ``rows_scored`` the rows that were scored in ``score_seconds``.
    """

    fit_seconds: float = 0.0
    score_seconds: float = 0.0
    fit_cpu_seconds: float = 0.0
    score_cpu_seconds: float = 0.0
    peak_memory_mib: float = 0.0
    rows_scored: int = 0

    def add(self, other: Costs) -> None:
        """Add the costs of another box of the same trial."""
        peak = max(self.peak_memory_mib, other.peak_memory_mib)
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))
        self.peak_memory_mib = peak


class Box(contextlib.AbstractContextManager["Box"]):
    """A detector in a separate process: construct, fit, training scores, then one unlabelled recording at a time.

    Used as a context manager; leaving it ends the process. Every call raises `BoxFailure` if the detector breaks its
    contract, raises an error, dies, or exceeds a limit.

    ``crossing`` disguises what enters (None: a new one, in which sensors keep their names). ``listener`` receives the
    detector's progress reports. The detector may open nothing in ``forbidden`` folders. A box that does not
    ``construct`` the detector only answers questions (`answer`).
    """

    def __init__(
        self,
        construction: Construction,
        *,
        threads: int = 1,
        crossing: Crossing | None = None,
        limits: Limits | None = None,
        listener: Listener | None = None,
        forbidden: Sequence[Path] = (),
        server: Server | None = None,
        construct: bool = True,
    ) -> None:
        self.costs = Costs()
        self._name, self._target = construction.source.class_name, construction.source.target
        self._crossing = crossing or Crossing(None)
        self._listener = listener
        self._next_report = 0.0
        self._train: tuple[Recording, ...] = ()
        self._seconds = self._cpu_seconds = 0.0  # of the last request
        self._limits = limits or Limits()
        self._log: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the box
        modules, gpu = construction.source.modules, construction.device != "cpu"
        walls = plan_walls(import_path(), forbidden=forbidden, modules=modules, gpu=gpu)
        self.may_fork = sys.platform == "linux" and threads == 1 and not gpu
        self._process: Process = (server or default_server()).start(self._log.fileno(), walls, threads)
        self._process.sock.settimeout(_POLL_SECONDS)
        # "sealed" by the kernel, or "guarded" by an audit hook and the reason.
        self.seal, self.seal_reason = self._process.status.seal, self._process.status.reason
        try:
            if self._limits.sealed_only and self.seal != "sealed":
                where = f"its box on {platform.node()} would be guarded, not sealed (--require-seal)"
                raise BoxFailure("error", f"{where}: {self.seal_reason}")
            self._watch = Watch(self._limits, self._process.pid, self._log, self._process.room)
            if construct:
                reply, _ = self._ask("construct", self._disguised(construction))
                self.offers_contributions = reply.offers_contributions
                self.scores_training_itself = reply.scores_training_itself
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process and all its descendants, and remove its working directory."""
        if self._process.sock.fileno() >= 0:
            self._process.kill()
            self._process.end()
        self._log.close()

    def log(self) -> str:
        """Return the end of what the detector wrote to standard output and error."""
        left_out = max(0, self._log.seek(0, 2) - _KEPT_LOG_BYTES)
        self._log.seek(left_out)
        text = (f"... {left_out} bytes left out ...\n" if left_out else "") + self._log.read().decode(errors="replace")
        return printable(self._crossing.restored(text), lines=True)

    def fit(self, recordings: tuple[Recording, ...]) -> dict[str, Fact]:
        """Fit the detector on the training recordings; return its facts about the fit (`Detector.training_facts`)."""
        self._train = recordings
        opaque = [self._crossing.recording(recording, "train") for recording in recordings]
        reply, _ = self._ask("fit", *opaque)
        self.costs.fit_seconds += self._seconds
        self.costs.fit_cpu_seconds += self._cpu_seconds
        try:
            return checked_facts(reply.training_facts, f"{self._name}.training_facts")
        except ContractError as error:
            raise BoxFailure("invalid", str(error)) from error

    def set_parameters(self, construction: Construction, names: Sequence[str]) -> None:
        """Set the scoring parameters of this construction; scoring costs start again at 0."""
        self._ask("set_parameters", self._disguised(construction), tuple(names))
        self.costs = replace(self.costs, score_seconds=0.0, score_cpu_seconds=0.0, rows_scored=0)

    def training_scores(self) -> tuple[FloatArray, ...]:
        """Return one array [n_rows] of scores for each training recording."""
        shapes = [(recording.n_rows,) for recording in self._train]
        scores = self._scores("training_scores", shapes=shapes)
        self._count_scoring(sum(recording.n_rows for recording in self._train))
        return tuple(scores)

    def score(self, recording: Recording) -> FloatArray:
        """Return the scores [n_rows] of one unlabelled recording."""
        scores = self.score_again(recording, "score")
        self._count_scoring(recording.n_rows)
        return scores

    def score_again(self, recording: Recording, purpose: str, start: int = 0, stop: int | None = None) -> FloatArray:
        """Return the scores of some rows under a new id and clock; the time is not charged to the detector."""
        opaque = self._crossing.recording(recording, purpose, start, stop)
        return self._scores("score", opaque, shapes=[(opaque.n_rows,)])[0]

    def contributions(self, recording: Recording) -> FloatArray:
        """Return each sensor's contribution [n_rows, n_sensors] to the scores of one unlabelled recording."""
        opaque = self._crossing.recording(recording, "score")
        return self._scores("contributions", opaque, shapes=[recording.values.shape])[0]

    def held_out_loss(self, recordings: Sequence[Recording], first: int) -> float:
        """Return the loss on held-out normal recordings, ignoring rows before ``first``."""
        opaque = [self._crossing.recording(recording, "held out") for recording in recordings]
        return self._ask("held_out_loss", opaque, first)[0].loss

    def learned(self, *, estimators: bool = True) -> dict[str, bytes]:
        """Return the fitted detector as the parts of a model file, by name; a ModelFileError if that is not possible.

        ``estimators`` allows scikit-learn estimators, which take seconds to write.
        """
        reply, contents = self._ask("learned", estimators, shapes=None)
        if reply.refused is not None:
            raise ModelFileError(one_line(reply.text))
        return {name: content.tobytes() for name, content in zip(reply.parts, contents, strict=True)}

    def restore(self, parts: Mapping[str, bytes], kept: Sequence[str] = (), threads: int | None = None) -> Traits:
        """Restore what another box has `learned`; return traits that limit how far its scores reach.

        Its parameters replace the construction's, except those ``kept``; ``threads`` are for detectors that fit again.
        """
        found, _ = self._ask("restore", dict(parts), tuple(kept), threads)
        return Traits(
            look_ahead=found.look_ahead, memory=found.memory, adaptive=found.adaptive, leaky=printable(found.leaky)
        )

    def answer(self, question: Callable[..., object], arguments: tuple[object, ...], limits: Limits) -> wire.Done:
        """Call a function in the detector's process, with separate limits; return the answer."""
        self._watch = Watch(limits, self._process.pid, self._log, self._process.room)
        return self._ask("question", question, arguments)[0]

    def parts(self, question: Callable[..., object], *arguments: object) -> dict[str, bytes]:
        """Call a function in the box that returns bytes by name."""
        reply, contents = self._ask("parts", question, arguments, shapes=None)
        return {name: content.tobytes() for name, content in zip(reply.parts, contents, strict=True)}

    def fork(self) -> Box:
        """Return a copy of the box whose process is a fork of this one's, if it `may_fork`.

        Both share the detector's shared memory maps, so use the copy only after the last answer. It ends with this box.
        """
        ours, theirs = socket.socketpair()
        ours.settimeout(_POLL_SECONDS)
        with theirs:
            pid = self._ask("fork", passed=theirs.fileno())[0].pid
        # Check the pid that the detector's process reports, because that process is killed at the end.
        if pid not in self._watch.pids():
            raise BoxFailure("error", f"{self._name}: a fork of its process ended at once")
        forked = copy.copy(self)
        forked.costs, forked._listener = Costs(), None
        forked._process = replace(self._process, pid=pid, sock=ours, server=None)
        forked._log = os.fdopen(os.dup(self._log.fileno()), "rb")
        forked._watch = Watch(self._limits, forked._process.pid, forked._log, origin=self._watch)
        try:  # the fork answers this request, too
            wire.receive_header(ours, forked._watch, max_bytes=wire.MAX_REPLY_BYTES)
        except (OSError, EOFError) as error:
            forked.close()
            raise BoxFailure("error", f"{self._name}: a fork of its process does not answer") from error
        return forked

    def _ask(
        self,
        kind: str,
        *arguments: object,
        shapes: Sequence[tuple[int, ...]] | None = (),
        passed: int | None = None,
    ) -> tuple[wire.Done, list[wire.Array]]:
        """Send a request, with ``passed`` as a file descriptor; return the answer, or raise a `BoxFailure`."""
        header = {"kind": kind, "request": secrets.token_hex(8)}
        apart: list[pickle.PickleBuffer] = []
        content = pickled(arguments, f"the arguments of {self._target}", apart.append)
        arrays = [np.frombuffer(one, dtype=np.uint8) for one in (memoryview(content), *(one.raw() for one in apart))]
        # Count CPU time from the first byte: work can begin before the last one has arrived.
        cpu_start = self._watch.cpu_seconds()
        try:
            wire.send(self._process.sock, header, arrays, self._watch)
            if passed is not None:
                socket.send_fds(self._process.sock, [b"f"], [passed])
            start = time.perf_counter()
            reply, results = self._reply(header["request"], shapes)
            # Wait for the whole answer: sending the header early must save no time.
            self._seconds = time.perf_counter() - start
            self._cpu_seconds = self._watch.cpu_seconds() - cpu_start
        except wire.BrokenFrameError as error:
            raise BoxFailure("error", f"{self._name} wrote into the box's channel: {error}") from error
        except (OSError, EOFError) as error:
            raise self._death() from error
        finally:
            self.costs.peak_memory_mib = max(self.costs.peak_memory_mib, self._watch.read_peak())
        return reply, results

    def _reply(self, mark: str, shapes: Sequence[tuple[int, ...]] | None) -> tuple[wire.Done, list[wire.Array]]:
        """Pass on progress reports until the answer to a request arrives; return the answer."""
        latest: wire.Progress | None = None
        while True:
            header, kinds = wire.receive_header(self._process.sock, self._watch, max_bytes=wire.MAX_REPLY_BYTES)
            reply = wire.read_reply(mark, shapes, header, kinds)
            latest = reply if isinstance(reply, wire.Progress) else latest
            # Throttle reports, since a detector may report at every row; always pass on the last one.
            if self._listener and latest and (reply is not latest or time.monotonic() >= self._next_report):
                self._next_report = time.monotonic() + _REPORT_SECONDS
                self._listener(latest.done, latest.total, one_line(self._crossing.restored(latest.note)))
                latest = None
            if isinstance(reply, wire.Failure):
                restored = self._crossing.restored
                reason, trace = restored(reply.reason), restored(reply.traceback)
                raise BoxFailure(reply.status, reason, trace, forbidden=reply.forbidden)
            if not isinstance(reply, wire.Progress):
                return reply, wire.receive_arrays(self._process.sock, kinds, self._watch)

    def _death(self) -> BoxFailure:
        """Return the failure for a process that ended unasked."""
        code = self._process.end()
        if code < 0:
            # Most real-time signals have no name.
            names = {one.value: one.name for one in signal.Signals}
            return BoxFailure("killed", f"its process was ended by {names.get(-code, f'signal {-code}')}")
        return BoxFailure("error", f"its process ended with exit code {code}")

    def _disguised(self, construction: Construction) -> Construction:
        """Return a construction with its sensors renamed."""
        texts = {name: str(text) for name, text in self._crossing.arguments(construction.texts).items()}
        return replace(construction, texts=texts, arguments=self._crossing.arguments(construction.arguments))

    def _count_scoring(self, n_rows: int) -> None:
        self.costs.score_seconds += self._seconds
        self.costs.score_cpu_seconds += self._cpu_seconds
        self.costs.rows_scored += n_rows

    def _scores(self, kind: str, *arguments: object, shapes: Sequence[tuple[int, ...]]) -> list[FloatArray]:
        """Return the checked scores of an answer."""
        _, answered = self._ask(kind, *arguments, shapes=shapes)
        call = f"{self._name}.{kind}"
        try:
            scores = [one.astype(np.float64, copy=False) for one in answered]
            return [checked_scores(one, shape, call) for one, shape in zip(scores, shapes, strict=True)]
        except ContractError as error:
            raise BoxFailure("invalid", str(error)) from error
