"""The outside of the box: passes recordings in, takes scores out, and ends the process whatever happens."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np

from tsadbench.base.recording import Recording
from tsadbench.base.score_checks import checked_scores
from tsadbench.base.training_facts import Fact, checked_facts
from tsadbench.errors import ContractError, ModelFileError
from tsadbench.sandbox.construction import Construction
from tsadbench.sandbox.framing import packed
from tsadbench.sandbox.launch import Launcher, default_launcher, import_path
from tsadbench.sandbox.limits import BoxFailure, Limits
from tsadbench.sandbox.wire import Array, BrokenFrameError, Header, receive, send
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.progress import Listener

_POLL_SECONDS = 0.1
# A log longer than twice this is cut: its beginning and its end are kept.
_KEPT_LOG_BYTES = 2**19


@dataclass(slots=True)
class Costs:
    """What a detector has used so far: seconds of its own work, and the box's largest resident size.

    Seconds are wall-clock time; CPU seconds are those of all threads of the process together. ``rows_scored`` are the
    training and test rows that were scored in ``score_seconds``.
    """

    fit_seconds: float = 0.0
    score_seconds: float = 0.0
    fit_cpu_seconds: float = 0.0
    score_cpu_seconds: float = 0.0
    peak_memory_mib: float = 0.0
    rows_scored: int = 0

    def add(self, other: Costs) -> None:
        """Add the costs of another box of the same trial."""
        self.fit_seconds += other.fit_seconds
        self.score_seconds += other.score_seconds
        self.fit_cpu_seconds += other.fit_cpu_seconds
        self.score_cpu_seconds += other.score_cpu_seconds
        self.peak_memory_mib = max(self.peak_memory_mib, other.peak_memory_mib)
        self.rows_scored += other.rows_scored


class Box:
    """A detector in a process of its own: construct, fit, training scores, then one unlabelled recording at a time.

    Used as a context manager; leaving it ends the process. Every call raises `BoxFailure` if the detector breaks its
    contract, raises an error, dies, or exceeds a limit.

    Parameters
    ----------
    construction
        The detector to be constructed inside.
    threads
        Number of threads that its libraries may use.
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
        limits: Limits | None = None,
        listener: Listener | None = None,
        forbidden: Sequence[Path] = (),
        launcher: Launcher | None = None,
    ) -> None:
        self.costs = Costs()
        self._name = construction.cls.__name__
        self._listener = listener
        self._train: tuple[Recording, ...] = ()
        self._n_scored = 0
        self._log: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the box
        self._directory = tempfile.TemporaryDirectory(prefix="tsadbench-box-", ignore_cleanup_errors=True)
        self._process = (launcher or default_launcher()).start(self._log.fileno())
        self._process.sock.settimeout(_POLL_SECONDS)
        self._watch = (limits or Limits()).watch(self._process.pid, self._log)
        try:
            header: Header = {
                "kind": "construct",
                "threads": threads,
                "path": import_path(),
                "directory": self._subfolder("empty"),
                "temporary": self._subfolder("temporary"),
                "forbidden": [str(folder.resolve()) for folder in forbidden],
            }
            reply, _ = self._ask(header, [np.frombuffer(construction.dumps(), dtype=np.uint8)])
            self.offers_contributions = bool(reply["offers_contributions"])
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def fit(self, recordings: tuple[Recording, ...]) -> dict[str, Fact]:
        """Fit the detector on the training recordings; return what it states about that (`Detector.training_facts`)."""
        self._train = recordings
        opaque = [_opaque(recording, f"train-{i}") for i, recording in enumerate(recordings)]
        reply, _ = self._ask(*packed("fit", opaque))
        self.costs.fit_seconds += reply["seconds"]
        self.costs.fit_cpu_seconds += reply["cpu_seconds"]
        with self._contract():
            return checked_facts(reply["training_facts"], f"{self._name}.training_facts")

    def set_parameters(self, variant: Construction) -> None:
        """Change parameters of the fitted detector that its fit does not depend on; scoring costs start anew.

        Parameters
        ----------
        variant
            The detector's class, and the arguments to be changed.
        """
        self._ask({"kind": "set_parameters"}, [np.frombuffer(variant.dumps(), dtype=np.uint8)])
        self.costs = replace(self.costs, score_seconds=0.0, score_cpu_seconds=0.0, rows_scored=0)

    def training_scores(self) -> tuple[FloatArray, ...]:
        """Return one array [n_rows] of scores for each training recording."""
        n_rows = sum(recording.n_rows for recording in self._train)
        reply, scores = self._ask({"kind": "training_scores"}, max_values=n_rows)
        self._count_scoring(reply, n_rows)
        if len(scores) != len(self._train):
            raise BoxFailure("invalid", f"{self._name}.training_scores: one array per training recording was expected")
        pairs = zip(scores, self._train, strict=True)
        return tuple(self._checked(array, (recording.n_rows,), "training_scores") for array, recording in pairs)

    def score(self, recording: Recording) -> FloatArray:
        """Return the scores [n_rows] of one unlabelled recording."""
        self._n_scored += 1
        reply, scores = self._ask(*self._anonymous("score", recording), max_values=recording.n_rows)
        self._count_scoring(reply, recording.n_rows)
        return self._checked(scores[0], (recording.n_rows,), "score")

    def contributions(self, recording: Recording) -> FloatArray:
        """Return each sensor's contribution [n_rows, n_sensors] to the scores of one unlabelled recording."""
        _, arrays = self._ask(*self._anonymous("contributions", recording), max_values=recording.values.size)
        return self._checked(arrays[0], recording.values.shape, "contributions")

    def held_out_loss(self, recordings: Sequence[Recording], first: int) -> float:
        """Return the fitted detector's loss on normal recordings that it was not fitted on, from row ``first`` on."""
        opaque = [_opaque(recording, f"held-out-{i}") for i, recording in enumerate(recordings)]
        header, arrays = packed("held_out_loss", opaque)
        reply, _ = self._ask({**header, "first": first}, arrays)
        return float(reply["loss"])

    def learned(self) -> dict[str, bytes]:
        """Return the fitted detector as the parts of a model file, by name.

        Raises
        ------
        ModelFileError
            If it cannot be kept in a file.
        """
        reply, contents = self._exchange({"kind": "learned"}, (), max_bytes=None)
        if "refused" in reply:
            raise ModelFileError(reply["refused"])
        return {name: content.tobytes() for name, content in zip(reply["parts"], contents, strict=True)}

    def log(self) -> str:
        """Return what the detector wrote to standard output and error, without the middle if it is long."""
        size = self._log.seek(0, 2)
        self._log.seek(0)
        if size <= 2 * _KEPT_LOG_BYTES:
            return self._log.read().decode(errors="replace")
        head = self._log.read(_KEPT_LOG_BYTES)
        self._log.seek(-_KEPT_LOG_BYTES, 2)
        left_out = f"\n... {size - 2 * _KEPT_LOG_BYTES} bytes left out ...\n"
        return head.decode(errors="replace") + left_out + self._log.read().decode(errors="replace")

    def close(self) -> None:
        """End the process and all its descendants, and remove its working directory."""
        if self._process.sock.fileno() >= 0:
            self._process.kill()
            self._process.end()
        self._log.close()
        self._directory.cleanup()

    def _subfolder(self, name: str) -> str:
        folder = Path(self._directory.name) / name
        folder.mkdir()
        return str(folder)

    def _anonymous(self, kind: str, recording: Recording) -> tuple[Header, list[Array]]:
        """Return the frame of a test recording: its number replaces an id that may give labels away."""
        return packed(kind, [_opaque(recording, f"recording-{self._n_scored}")])

    def _ask(
        self, header: Header, arrays: Sequence[Array] = (), *, max_values: int = 0
    ) -> tuple[Header, list[FloatArray]]:
        reply, results = self._exchange(header, arrays, max_bytes=8 * max_values)
        return reply, [array.astype(np.float64, copy=False) for array in results]

    def _exchange(
        self, header: Header, arrays: Sequence[Array], *, max_bytes: int | None
    ) -> tuple[Header, list[Array]]:
        try:
            send(self._process.sock, header, arrays, self._watch)
            while True:
                reply, results = receive(self._process.sock, max_bytes=max_bytes, tick=self._watch)
                if reply.get("kind") != "progress":
                    break
                if self._listener is not None:
                    self._listener(int(reply["done"]), int(reply["total"]), str(reply["note"]))
        except BrokenFrameError as error:
            raise BoxFailure("invalid", f"{self._name} wrote into the box's channel: {error}") from error
        except (OSError, EOFError) as error:
            raise self._death() from error
        finally:
            self.costs.peak_memory_mib = max(self.costs.peak_memory_mib, self._watch.peak_memory_mib)
        if reply.get("kind") == "failure":
            raise BoxFailure(reply["status"], reply["reason"], reply["traceback"])
        self.costs.peak_memory_mib = max(self.costs.peak_memory_mib, float(reply["peak_memory_mib"]))
        return reply, results

    def _count_scoring(self, reply: Header, n_rows: int) -> None:
        self.costs.score_seconds += reply["seconds"]
        self.costs.score_cpu_seconds += reply["cpu_seconds"]
        self.costs.rows_scored += n_rows

    def _death(self) -> BoxFailure:
        """Return the failure of a process that ended without being asked to."""
        code = self._process.end()
        if code < 0:
            return BoxFailure("killed", f"its process was ended by {signal.Signals(-code).name}")
        return BoxFailure("error", f"its process ended itself with exit code {code}")

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


def _opaque(recording: Recording, id: str) -> Recording:  # noqa: A002 - the field's name
    """Return the recording under another id, its time counted from its own start."""
    start = None if recording.time is None else recording.time - recording.time[0]
    return Recording(id=id, values=recording.values, sensors=recording.sensors, time=start)
