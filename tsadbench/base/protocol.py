"""The protocol's contract: what is trained on and what is scored, then thresholds and metrics.

A protocol never touches a detector: the trial takes its episodes to the box and brings the scores back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, TypeAlias

from annotated_types import Interval

from tsadbench.base.dataset import Dataset, Labels
from tsadbench.base.recording import Recording
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.text import LabelText

ThresholdStatus: TypeAlias = Literal["ok", "clamped", "quantile", "degenerate", "fixed"]
# Ranges are checked where records are read: within them, no sum over the rows of a table overflows.
Count: TypeAlias = Annotated[int, Interval(ge=0, le=10**15)]
Metrics: TypeAlias = Mapping[LabelText, Annotated[float, Interval(ge=-1e15, le=1e15)] | None]


@dataclass(frozen=True, slots=True)
class Episode:
    """One fit: the recordings that train a detector, and those that it then scores, without labels.

    ``id`` is unique in its protocol and data set. ``calibration`` are normal recordings kept from training, on whose
    scores the threshold is found; empty: the training recordings.
    """

    id: str
    train: tuple[Recording, ...]
    test: tuple[Recording, ...]
    calibration: tuple[Recording, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """The scores of one episode: an array [n_rows] for each of its training, test and calibration recordings.

    ``fixed_threshold`` is a floor's own threshold, used instead of the protocol's.
    """

    episode: Episode
    train: tuple[FloatArray, ...]
    test: tuple[FloatArray, ...]
    fixed_threshold: float | None = None
    calibration: tuple[FloatArray, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Locates a test recording's rows in an episode's scores, and says which of them count.

    They begin at row ``start`` of ``episode.test[scored]``; ``evaluated`` counts from the recording's own first row.
    """

    recording: str
    scored: int
    start: int
    evaluated: slice


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A threshold with diagnostics of how it was found; a row is flagged if score > value.

    ``method`` is "pot" (Peaks-over-Threshold) or "fixed" (a floor's own). ``status`` is "ok"; "clamped": the shape lies
    at a bound; "quantile": too few distinct excesses, so the empirical quantile was used; "degenerate": no excess, so
    the largest score was used; "fixed". ``t``, ``level`` and ``q`` are the initial threshold, its quantile level and
    the risk (rate of false alarms per row); ``n`` and ``excesses`` the numbers of scores, and of those above t. Of the
    generalised Pareto distribution, if one was fitted, ``gamma`` and ``sigma`` are shape and scale, ``log_likelihood``
    that of the excesses, ``endpoint`` the largest score that it allows; None if it is unbounded.
    """

    value: float
    method: Literal["pot", "fixed"]
    status: ThresholdStatus
    t: float | None = None
    level: float | None = None
    q: float | None = None
    n: Count | None = None
    excesses: Count | None = None
    gamma: float | None = None
    sigma: float | None = None
    log_likelihood: float | None = None
    endpoint: float | None = None


@dataclass(frozen=True, slots=True)
class EpisodeThreshold:
    """The threshold of one episode's fitted detector."""

    episode: LabelText
    threshold: Threshold


@dataclass(frozen=True, slots=True)
class SplitJudgement:
    """The metrics of one split: by name, in the protocol's order, None if undefined.

    ``n_rows`` and ``n_anomalous`` count evaluated rows, and the anomalous ones among them; ``coverage`` is the share of
    the evaluated rows that the detector scored. If each of several ``entities`` has its own model, these are their
    metrics, and ``metrics`` their means, where defined.
    """

    metrics: Metrics
    n_rows: Count
    n_anomalous: Count
    coverage: Annotated[float, Interval(ge=0.0, le=1.0)]
    entities: Mapping[LabelText, Metrics] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Thresholds of all episodes, metrics of every split, and remarks that every table prints about its rows."""

    thresholds: tuple[EpisodeThreshold, ...]
    splits: Mapping[str, SplitJudgement]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Metric:
    """How tables name and rank a metric: ``name`` in machine-readable output, ``title`` in tables.

    ``better`` is None if neither a higher nor a lower value is better (a share of flagged rows). An ``oracle`` uses the
    test labels to choose a threshold, which no user can do.
    """

    name: str
    title: str
    better: Literal["higher", "lower"] | None = "higher"
    oracle: bool = False


class Protocol(ABC):
    """Decides what is trained on and what is scored, and judges the scores. Its methods are pure functions.

    A subclass's constructor takes keyword-only parameters with defaults and stores them under their names. Its
    ``version`` grows whenever its rules give other numbers for the same scores: results of two versions are never
    compared.
    """

    version: ClassVar[int] = 1
    metrics: ClassVar[tuple[Metric, ...]]
    summary: ClassVar[str]

    @abstractmethod
    def episodes(self, dataset: Dataset) -> Iterator[Episode]:
        """Yield every fit of a trial: training recordings and the recordings to be scored, without labels."""

    @abstractmethod
    def judge(self, scored: Sequence[Scored], labels: Labels) -> Judgement:
        """Return thresholds and metrics for the scores of all episodes; a ContractError if no row was scored."""

    @abstractmethod
    def places(self, episode: Episode, n_rows: Mapping[str, int]) -> Iterator[Place]:
        """Yield where an episode's scores of each test recording lie, so that reports can show recordings one by one.

        ``n_rows`` is the number of rows of each of the data set's test recordings, by id, in its order.
        """

    @abstractmethod
    def calibration_rows(self, n_rows: int) -> slice:
        """Return which rows' scores set the threshold, of a normal recording with ``n_rows`` rows."""

    @abstractmethod
    def threshold(self, scored: Scored) -> Threshold:
        """Return the threshold of one fit, from its `calibration_scores`; a ContractError if too few rows have one."""

    def calibration_scores(self, scored: Scored) -> tuple[FloatArray, ...]:
        """Return the scores that set the threshold of one fit, an array a recording, NaN where a row has none."""
        return tuple(scores[self.calibration_rows(len(scores))] for scores in scored.calibration or scored.train)

    def check(self) -> None:
        """Raise a UsageError if a parameter is out of range."""
