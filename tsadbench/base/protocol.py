"""The protocol's contract: select the rows for training and scoring, then judge scores.

A protocol never touches a detector: the trial takes its episodes to the box and brings the scores back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np
from annotated_types import Interval

from tsadbench.base.dataset import Dataset, Labels
from tsadbench.base.recording import Recording
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.text import LabelText

ThresholdStatus: TypeAlias = Literal["ok", "clamped", "quantile", "degenerate", "fixed"]
# Ranges are checked when records are read, so that sums over a table's rows cannot overflow.
Count: TypeAlias = Annotated[int, Interval(ge=0, le=10**15)]
Metrics: TypeAlias = Mapping[LabelText, Annotated[float, Interval(ge=-1e15, le=1e15)] | None]


@dataclass(frozen=True, slots=True)
class Episode:
    """One fit: the recordings that train a detector, and those that it scores afterwards, without labels.

    ``id`` is unique in its protocol and data set. ``calibration`` are held-out normal recordings whose scores set
    the threshold; empty: the training recordings.
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
    """Locates a test recording's rows in an episode's scores, and marks those that count.

    The rows begin at row ``start`` of ``episode.test[scored]``; ``evaluated`` counts from the recording's first row.
    """

    recording: str
    scored: int
    start: int
    evaluated: slice


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A threshold with diagnostics; `Protocol.limits` says which rows it flags.

    ``method`` is "pot" (Peaks-over-Threshold), "dspot" (of scores minus their recent mean) or "fixed" (a floor's own).
    ``status`` is "ok"; "clamped": the shape is at a bound; "quantile": too few distinct excesses, or too
    many ties, so the empirical quantile was used; "degenerate": no excess, so the largest score was used; "fixed".
    ``t``, ``level`` and ``q`` are the initial threshold, its quantile level and the risk; ``n`` counts the scores,
    ``excesses`` those above t. Of a fitted generalised Pareto distribution, ``gamma`` and ``sigma`` are shape and
    scale, ``log_likelihood`` is that of the excesses, and ``endpoint`` the largest possible score, None if unbounded.
    """

    value: float
    method: Literal["pot", "dspot", "fixed"]
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
    the evaluated rows that the detector scored. If each of several entities has its own model, ``entities`` holds
    their metrics, and ``metrics`` the means of those defined.
    """

    metrics: Metrics
    n_rows: Count
    n_anomalous: Count
    coverage: Annotated[float, Interval(ge=0.0, le=1.0)]
    entities: Mapping[LabelText, Metrics] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Thresholds of all episodes, metrics of every split, and remarks for tables."""

    thresholds: tuple[EpisodeThreshold, ...]
    splits: Mapping[str, SplitJudgement]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Metric:
    """How tables name and rank a metric: ``name`` in machine-readable output, ``title`` in tables.

    ``better`` is None for metrics without a better direction (a share of flagged rows). An ``oracle`` chooses its
    threshold by the test labels, which users cannot do.
    """

    name: str
    title: str
    better: Literal["higher", "lower"] | None = "higher"
    oracle: bool = False


class Protocol(ABC):
    """Selects the rows for training and scoring, and judges the scores. Its methods are pure functions.

    A subclass's constructor takes keyword-only parameters with defaults and stores them under their names. Its
    ``version`` grows when new rules change a result for the same scores: results of two versions are never compared.
    """

    version: ClassVar[int] = 1
    metrics: ClassVar[tuple[Metric, ...]]
    summary: ClassVar[str]

    @abstractmethod
    def episodes(self, dataset: Dataset) -> Iterator[Episode]:
        """Yield every fit of a trial: training recordings and the recordings to be scored, without labels."""

    @abstractmethod
    def judge(self, scored: Sequence[Scored], labels: Labels) -> Judgement:
        """Return thresholds and metrics for the scores of all episodes; a ContractError if there is no score."""

    @abstractmethod
    def places(self, episode: Episode, n_rows: Mapping[str, int]) -> Iterator[Place]:
        """Yield where each test recording is in an episode's scores; ``n_rows`` are the recordings' lengths, by id."""

    @abstractmethod
    def calibration_rows(self, n_rows: int) -> slice:
        """Return which rows of a normal recording with ``n_rows`` rows set the threshold."""

    @abstractmethod
    def find_threshold(self, scored: Scored) -> Threshold:
        """Return the threshold of one fit, from its `calibration_scores`; a ContractError if too few scores exist."""

    def limits(self, scored: Scored, threshold: Threshold) -> tuple[FloatArray, ...]:
        """Return the limit that each score must exceed for its row to be flagged, [n_rows] per test recording."""
        return tuple(np.full(len(scores), threshold.value) for scores in scored.test)

    def calibration_scores(self, scored: Scored) -> tuple[FloatArray, ...]:
        """Return the scores that set the threshold of one fit, an array per recording, NaN for missing scores."""
        return tuple(scores[self.calibration_rows(len(scores))] for scores in scored.calibration or scored.train)

    def check(self) -> None:
        """Raise a UsageError if a parameter is out of range."""
