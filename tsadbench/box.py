"""The box: the only place where a detector runs. Training rows go in, training scores come out, then test rows.

Through the box's own channels no label and, before fit ends, no test row can reach a detector; the recordings that
it sees have opaque ids and a time that starts at 0.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from threadpoolctl import threadpool_limits

from tsadbench.arrays import FloatArray
from tsadbench.progress import Listener, listening
from tsadbench.recording import Recording

if TYPE_CHECKING:
    from tsadbench.detector import Detector

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Construction:
    """How to construct a detector: its class and its constructor's arguments."""

    cls: type[Detector]
    arguments: Mapping[str, object]


@dataclass(slots=True)
class Costs:
    """What a detector has used so far: wall-clock seconds, and the largest resident size of its process."""

    fit_seconds: float = 0.0
    score_seconds: float = 0.0
    peak_memory_mib: float = 0.0


class Box:
    """A detector behind a wall: construct, fit, training scores, then one unlabelled recording at a time.

    Parameters
    ----------
    construction
        The detector to be constructed inside.
    threads
        How many threads its libraries may use.
    listener
        Receives the detector's progress reports.
    """

    def __init__(self, construction: Construction, *, threads: int, listener: Listener | None = None) -> None:
        self.costs = Costs()
        self._listener = listener or _nobody
        self._threads = threads
        self._train: tuple[Recording, ...] = ()
        self._n_scored = 0
        self._detector = construction.cls(**construction.arguments)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.costs.peak_memory_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    def fit(self, recordings: tuple[Recording, ...]) -> None:
        """Hand in the training recordings; returns when the detector is fitted."""
        self._train = tuple(_opaque(recording, f"train-{i}") for i, recording in enumerate(recordings))
        with listening(self._listener):
            self.costs.fit_seconds += self._timed(lambda: self._detector.fit(self._train))[1]

    def training_scores(self) -> tuple[FloatArray, ...]:
        """Return one array [n_rows] of scores for each training recording."""
        scores, seconds = self._timed(lambda: self._detector.training_scores(self._train))
        self.costs.score_seconds += seconds
        return tuple(scores)

    def score(self, recording: Recording) -> FloatArray:
        """Return the scores [n_rows] of one unlabelled recording."""
        unknown = _opaque(recording, f"recording-{self._n_scored}")
        self._n_scored += 1
        scores, seconds = self._timed(lambda: self._detector.score(unknown))
        self.costs.score_seconds += seconds
        return scores

    def _timed(self, work: Callable[[], T]) -> tuple[T, float]:
        with limited_threads(self._threads):
            start = time.perf_counter()
            result = work()
            return result, time.perf_counter() - start


@contextmanager
def limited_threads(threads: int) -> Iterator[None]:
    """Let BLAS, OpenMP and torch use this many threads inside the block."""
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch else 0
    if torch:
        torch.set_num_threads(threads)
    try:
        with threadpool_limits(limits=threads):
            yield
    finally:
        if torch:
            torch.set_num_threads(before)


def _opaque(recording: Recording, id: str) -> Recording:  # noqa: A002 - the field's name
    start = None if recording.time is None else recording.time - recording.time[0]
    return Recording(id=id, values=recording.values, sensors=recording.sensors, time=start)


def _nobody(done: int, total: int, note: str) -> None:
    """Listen to nothing."""
