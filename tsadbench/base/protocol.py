"""The protocol's contract: who is trained on what and what is scored; then thresholds and metrics.

A protocol never touches a detector: the trial takes its episodes to the box and brings the scores back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from tsadbench.base.dataset import Dataset, Labels
from tsadbench.base.recording import Recording
from tsadbench.utils.arrays import FloatArray

ThresholdStatus: TypeAlias = Literal["ok", "clamped", "quantile", "degenerate", "fixed"]


@dataclass(frozen=True, slots=True)
class Episode:
    """One fit: the recordings that train a detector, and those that it then scores.

    Parameters
    ----------
    id
        Unique in its protocol and data set.
    train, test
        Recordings, without labels.
    """

    id: str
    train: tuple[Recording, ...]
    test: tuple[Recording, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """What a detector gave for one episode.

    Parameters
    ----------
    episode
        The episode.
    train, test
        One array [n_rows] of scores for each of its training and test recordings.
    fixed_threshold
        A floor's own threshold, which takes the place of the protocol's.
    """

    episode: Episode
    train: tuple[FloatArray, ...]
    test: tuple[FloatArray, ...]
    fixed_threshold: float | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a test recording's rows lie in what an episode had scored, and which of them count.

    Parameters
    ----------
    recording
        Id of the data set's test recording.
    scored
        Place in ``episode.test`` of the scored recording that holds its rows.
    start
        That recording's row at which its rows begin.
    evaluated
        Those of its own rows that are evaluated.
    """

    recording: str
    scored: int
    start: int
    evaluated: slice


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A threshold with the diagnostics of how it was found; a row is flagged where score > value.

    Parameters
    ----------
    value
        The threshold, in units of the score.
    method
        "pot" (Peaks-over-Threshold) or "fixed" (a floor's own).
    status
        "ok"; "clamped": the shape parameter lies at a bound; "quantile": too few distinct excesses, the empirical
        quantile was taken; "degenerate": no excess, the largest score was taken; "fixed".
    t, level, q
        Initial threshold, the quantile level it was taken at, the risk (rate of false alarms a row).
    n, excesses
        How many scores there were, how many of them lie above t.
    gamma, sigma
        Shape and scale of the generalised Pareto distribution; None where none was fitted.
    log_likelihood
        Of the excesses under that distribution.
    endpoint
        The largest score that the distribution allows; None where it has no end.
    """

    value: float
    method: Literal["pot", "fixed"]
    status: ThresholdStatus
    t: float | None = None
    level: float | None = None
    q: float | None = None
    n: int | None = None
    excesses: int | None = None
    gamma: float | None = None
    sigma: float | None = None
    log_likelihood: float | None = None
    endpoint: float | None = None


@dataclass(frozen=True, slots=True)
class EpisodeThreshold:
    """The threshold of one episode's fitted detector."""

    episode: str
    threshold: Threshold


@dataclass(frozen=True, slots=True)
class SplitJudgement:
    """What the judge found on one split.

    Parameters
    ----------
    metrics
        By name, in the protocol's order; None where undefined.
    n_rows, n_anomalous
        Evaluated rows, and those of them that are anomalous.
    coverage
        Share of the evaluated rows that the detector scored.
    """

    metrics: Mapping[str, float | None]
    n_rows: int
    n_anomalous: int
    coverage: float


@dataclass(frozen=True, slots=True)
class Judgement:
    """Thresholds of all episodes, and what they and the scores are worth on every split.

    Parameters
    ----------
    thresholds
        One an episode.
    splits
        What the judge found, by split.
    notes
        What every table of this protocol has to say about its rows.
    """

    thresholds: tuple[EpisodeThreshold, ...]
    splits: Mapping[str, SplitJudgement]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Metric:
    """What tables need to know of a metric.

    Parameters
    ----------
    name
        In machine-readable output.
    title
        In tables.
    better
        Whether a higher or a lower value is better; None where neither is (a share of flagged rows).
    oracle
        Whether it uses the test labels to choose a threshold, which no user can.
    """

    name: str
    title: str
    better: Literal["higher", "lower"] | None = "higher"
    oracle: bool = False


class Protocol(ABC):
    """Says who is trained on what and what is scored, and judges the scores. Its methods are pure functions.

    A subclass's constructor takes keyword-only parameters with defaults and stores them under their names.
    """

    metrics: ClassVar[tuple[Metric, ...]]
    summary: ClassVar[str]

    @abstractmethod
    def episodes(self, dataset: Dataset) -> Iterator[Episode]:
        """Yield every fit of a trial: training recordings and the recordings to be scored, without labels."""

    @abstractmethod
    def judge(self, scored: Sequence[Scored], labels: Labels) -> Judgement:
        """Return thresholds and metrics for the scores of all episodes.

        Raises
        ------
        ContractError
            If nothing at all was scored.
        """

    @abstractmethod
    def places(self, episode: Episode, n_rows: Mapping[str, int]) -> Iterator[Place]:
        """Yield where the test recordings lie that an episode has scored: what reports need to show them one by one.

        Parameters
        ----------
        episode
            One of `episodes`.
        n_rows
            Rows of each of the data set's test recordings, by id, in its order.
        """

    @abstractmethod
    def calibration(self, n_rows: int) -> slice:
        """Return the rows whose scores set the threshold, of a training recording of so many rows."""

    @abstractmethod
    def threshold(self, scored: Scored) -> Threshold:
        """Return the threshold of one fit, from its training scores alone.

        Raises
        ------
        ContractError
            If no training row that the threshold needs has a score.
        """

    def check(self) -> None:
        """Raise a UsageError where a parameter is out of range."""
