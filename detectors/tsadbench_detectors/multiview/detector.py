"""Combines several statistics of a row, each converted to a tail probability on held-out normal rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, ClassVar

import numpy as np
from scipy.special import logsumexp

from tsadbench import DataError
from tsadbench.base import (
    BoolArray,
    Choice,
    Detector,
    FloatArray,
    Ge,
    Gt,
    Le,
    Lt,
    Recording,
    Traits,
    detector,
    trailing_mean,
)
from tsadbench_detectors.multiview.panel import Panel, Piece, others, pieces
from tsadbench_detectors.multiview.tails import Tails
from tsadbench_detectors.multiview.views import VIEWS
from tsadbench_detectors.standardise import Standardiser

# Neighbours in time resemble each other: a panel does not see these rows around the block that it judges.
_GAP = 30
# With fewer training rows, what a block leaves says nothing: the one panel judges the rows that it was fitted on.
_FEWEST_ROWS = 100
# Tails are learned from at most this number of rows.
_MOST_ROWS = 100_000
# Of tails, in standard deviations or nats.
_LEAST_SCALE = 0.01
# Evidence below the truncation counts by this factor, so that rows in which no view has a say keep an order.
_TIE = 1e-3
# The adaptive variant: rows of a recording's beginning, and of the stretches of training rows that have one each.
_BEGINNING = 60
_STRETCH = 1_000


@detector
class MultiView(Detector):
    """Looks at a row in several ways, and scores how rarely unseen normal rows look as unusual as this one.

    *level* is how far each sensor is from its mean; *range*, how far the row is outside the box of the training rows;
    *relation*, each sensor against the other sensors' last five rows; *forecast*, each sensor against its forecast from
    the ten rows before and the others' forecast errors; *movement*, how much each sensor moved within 16 rows, too much
    or too little.

    Each statistic of each sensor becomes a tail probability. The training rows are cut into blocks; views that are
    fitted on the other blocks judge each block, and the distribution of these statistics is the scale. A view that does
    not carry over to unseen rows, such as a range on a plant that drifts, has a heavy tail and loses its say.

    The score is minus the decimal logarithm of a tail probability: of the normal rows one in a thousand is above 3.
    Training scores are those of the held-out blocks. Contributions split the score: by view in proportion to its
    evidence, and within a view among the sensors.

    Parameters
    ----------
    views
        Names of the views, joined by ``+``.
    truncation
        A view with a larger tail probability has no say; above 0 and at most 1 (= Fisher's method).
    accumulation
        Rows over which evidence is averaged in addition to the row's own, up to 1024; 1: the row alone.
    least_shape
        Lower bound of the tails' gamma, except of the last tail, that of the score; at least 0 and below 1.
    blocks
        Held-out blocks of the training rows, 2 to 100; or 1: the views judge the rows that they were fitted on.
    adaptive
        Whether the mean of a recording's first 60 rows is taken for normal there. It is for plants whose operating
        point moves between recordings, and assumes that recordings begin normal.

    Notes
    -----
    Equations
        With ``e = -ln p`` the evidence of a statistic: over the sensors of a view ``ln mean exp e`` (to first order the
        Cauchy combination of Liu and Xie), again as a tail probability; over the views
        ``sum max(0, e - ln(1 / truncation)) + e / 1000`` (the soft truncation of Zhang et al., and an order of the rows
        that it leaves at 0); then ``E(t) + E_m(t) / 2``, E the evidence of that sum and E_m that of its mean over the
        last rows; then the tail probability of this. Tails are empirical up to the .98 quantile (with few rows, down to
        the .90 one) and generalised Pareto beyond.
    Differences
        The method is this project's; `docs/studies/own-detector.md` tells how it was chosen, without labels.
    Defaults
        By planted faults and held-out normal rows of eight data sets; see that page.

    References
    ----------
    Y. Liu, J. Xie, Cauchy combination test, Journal of the American Statistical Association 115(529), 2020; H. Zhang,
    T. Tong, J. Landers, Z. Wu, TFisher: a powerful truncation and weighting procedure for combining p-values, Annals of
    Applied Statistics 14(1), 2020.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(2_000, 3))
    >>> detector = MultiView().fit(rows)
    >>> broken = rows[:100].copy()
    >>> broken[50:, 1] += 8
    >>> bool(detector.score(broken)[60:].min() > 3 > detector.score(rows[:50]).mean())
    True
    """

    traits: ClassVar[Traits] = Traits(family="statistics", paper="tsadbench")

    views: str = "level+range+relation+forecast+movement"
    truncation: Annotated[float, Gt(0), Le(1), Choice((0.01, 0.1, 1.0))] = 0.1
    accumulation: Annotated[int, Ge(1), Le(1024), Choice((1, 4, 16))] = 4
    least_shape: Annotated[float, Ge(0), Lt(1)] = 0.1
    blocks: Annotated[int, Ge(1), Le(100)] = 5
    adaptive: bool = False

    def declared_traits(self) -> Traits:  # noqa: D102
        return replace(self.traits, memory=None if self.adaptive else self._memory)

    def _check(self, sensors: tuple[str, ...]) -> None:  # noqa: ARG002
        names, known = self.views.split("+"), [name for name in VIEWS if name != "graph" or self.traits.needs_prior]
        different = len(set(names)) == len(names) and set(names) <= set(known)
        self._require(different, "views", f"different ones of {', '.join(known)}, joined by +")

    def _neighbours(self, sensors: tuple[str, ...]) -> BoolArray:
        """Return which sensors the view *graph* compares [n_sensors, n_sensors]."""
        return np.zeros((len(sensors), len(sensors)), dtype=np.bool_)

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        series = self._series(recordings)
        Standardiser.of_rows(np.concatenate(series)).require_variation(type(self).__name__)
        names, neighbours = self.views.split("+"), self._neighbours(recordings[0].sensors)
        self.lengths_ = [len(values) for values in series]
        self.panel_ = Panel.of(names, series, neighbours)
        n_blocks = self.blocks if sum(self.lengths_) >= _FEWEST_ROWS else 1
        # One panel for each block of the training rows: it has not seen the block.
        rests = (others(series, n_blocks, block, _GAP) for block in range(n_blocks))
        self.judges_ = [Panel.of(names, rest, neighbours) if _vary(rest) else self.panel_ for rest in rests]
        self._learn_tails(list(self._judged(self.judges_, series, _MOST_ROWS)))

    def _learn_tails(self, judged: Sequence[tuple[Piece, Sequence[FloatArray]]]) -> None:
        """Learn the scale of each statistic, of each view, of their sum and of what is accumulated."""
        self.tails_, of_views = [], []
        for of_view in zip(*(statistics for _, statistics in judged), strict=True):
            rows = np.concatenate(of_view)
            single = Tails.of(rows, self.least_shape, _LEAST_SCALE)
            whole = _over_sensors(single.evidence_of(rows))
            view = Tails.of(whole, self.least_shape, _LEAST_SCALE)
            self.tails_.append((single, view))
            of_views.append(view.evidence_of(whole))
        total = self._over_views(of_views)
        # Pieces of one recording may follow one another; where they do not, a mean begins again.
        ends = np.cumsum([piece.stop - piece.start for piece, _ in judged])
        gaps = [
            end
            for end, ((before, _), (after, _)) in zip(ends, pairwise(judged), strict=False)
            if (before.recording, before.stop) != (after.recording, after.start)
        ]
        smooth = np.concatenate([trailing_mean(run, self.accumulation) for run in np.split(total, gaps)])
        both = np.column_stack([total, smooth])
        self.sum_tails_ = Tails.of(both, self.least_shape, _LEAST_SCALE)
        self.tail_ = Tails.of(self._accumulated(both))

    def _score(self, recording: Recording) -> FloatArray:
        judged = self._judged([self.panel_], [self._values(recording)])
        return self._from_total(np.concatenate([self._total(statistics) for _, statistics in judged]))

    def _training_scores(self, recordings: tuple[Recording, ...]) -> list[FloatArray]:
        series = self._series(recordings)
        if [len(values) for values in series] != self.lengths_:
            raise DataError(f"{type(self).__name__}.training_scores: expected the recordings that fit was given")
        totals: list[list[FloatArray]] = [[] for _ in series]
        for piece, statistics in self._judged(self.judges_, series):
            totals[piece.recording].append(self._total(statistics))
        scores = np.concatenate([self._from_total(np.concatenate(total)) for total in totals])
        return np.split(scores, np.cumsum([recording.n_rows for recording in recordings])[:-1])

    def _contributions(self, recording: Recording) -> FloatArray:
        values = self._values(recording)
        shares = [
            self._shares(values[piece.start : piece.stop], statistics)
            for piece, statistics in self._judged([self.panel_], [values])
        ]
        return np.concatenate(shares) * self._score(recording)[:, None]

    def _judged(
        self, panels: Sequence[Panel], series: Sequence[FloatArray], at_most: int | None = None
    ) -> Iterator[tuple[Piece, list[FloatArray]]]:
        """Yield pieces of series, each with the statistics of its panel's views [n_rows, n_statistics]."""
        lengths = [len(values) for values in series]
        for piece in pieces(lengths, len(panels), self._memory, at_most):
            values = series[piece.recording][piece.first : piece.stop]
            context = piece.start - piece.first
            yield piece, [rows[context:] for rows in panels[piece.panel].statistics(values)]

    def _total(self, statistics: Sequence[FloatArray]) -> FloatArray:
        """Return the sum over views [n_rows] for the statistics of each."""
        return self._over_views(
            [
                view.evidence_of(_over_sensors(single.evidence_of(rows)))
                for rows, (single, view) in zip(statistics, self.tails_, strict=True)
            ]
        )

    def _over_views(self, evidence: Sequence[FloatArray]) -> FloatArray:
        """Return the sum over views [n_rows] of the evidence of each [n_rows, 1]."""
        return np.asarray(self._truncated(np.concatenate(evidence, axis=1)).sum(axis=1))

    def _truncated(self, evidence: FloatArray) -> FloatArray:
        return np.asarray(np.maximum(evidence + np.log(self.truncation), 0.0) + _TIE * evidence)

    def _from_total(self, total: FloatArray) -> FloatArray:
        """Return scores [n_rows] for the sums of a whole recording."""
        both = np.column_stack([total, trailing_mean(total, self.accumulation)])
        return np.asarray(self.tail_.evidence_of(self._accumulated(both))[:, 0] / np.log(10.0))

    def _accumulated(self, sums: FloatArray) -> FloatArray:
        """Return ``E(t) + E_m(t) / 2`` [n_rows, 1] of sums and their means [n_rows, 2]; at accumulation 1 ``E(t)``."""
        evidence = self.sum_tails_.evidence_of(sums)
        return evidence[:, :1] if self.accumulation == 1 else evidence[:, :1] + evidence[:, 1:] / 2

    def _shares(self, values: FloatArray, statistics: Sequence[FloatArray]) -> FloatArray:
        """Return each sensor's share [n_rows, n_sensors] in the score of rows, given the statistics of the views."""
        weights: FloatArray = np.zeros(values.shape)
        varies = self.panel_.standardiser.varies
        for rows, (single, whole), (view, z) in zip(statistics, self.tails_, self.panel_.seen(values), strict=True):
            evidence = single.evidence_of(rows)
            shares = view.shares(z)
            if shares is None:
                # A sensor that is constant over the training rows has no part in most views, but has columns.
                shares = _shares_in_mean(evidence, len(varies)) * varies
            weights += self._truncated(whole.evidence_of(_over_sensors(evidence))) * shares
        total = weights.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(weights, total, out=np.full_like(weights, 1 / weights.shape[1]), where=total > 0))

    def _values(self, recording: Recording) -> FloatArray:
        """Return the values to score [n_rows, n_sensors]; the adaptive variant takes away the beginning's mean."""
        return without_beginning(recording.values) if self.adaptive else recording.values

    def _series(self, recordings: Sequence[Recording]) -> list[FloatArray]:
        """Return the values to learn from, [n_rows, n_sensors] each.

        The adaptive variant learns from stretches of training recordings as if each were a recording, so that it
        knows how far normal rows drift away from a beginning.
        """
        if not self.adaptive:
            return [recording.values for recording in recordings]
        return [
            without_beginning(recording.values[start : start + _STRETCH])
            for recording in recordings
            for start in range(0, recording.n_rows, _STRETCH)
        ]

    @property
    def _memory(self) -> int:
        """Rows before a row that its score depends on, if the beginning of its recording has no part in it."""
        # Asked for traits, it may not have been checked: an unknown view adds nothing.
        longest = max((VIEWS[name].memory for name in self.views.split("+") if name in VIEWS), default=0)
        return longest + self.accumulation - 1


def without_beginning(values: FloatArray) -> FloatArray:
    """Return values [n_rows, n_sensors] less their mean over the first 60 rows; before, over the rows so far.

    Examples
    --------
    >>> without_beginning(np.array([[4.0], [6.0], [5.0]])).ravel().tolist()
    [0.0, 1.0, 0.0]
    """
    moved = values - values[:1]  # less the first row, a constant sensor is 0 without rounding
    sums = np.cumsum(moved[:_BEGINNING], axis=0)
    means = sums / np.arange(1, len(sums) + 1)[:, None]
    moved[:_BEGINNING] -= means
    moved[_BEGINNING:] -= means[-1]
    return moved


def _vary(series: Sequence[FloatArray]) -> bool:
    """Whether a sensor varies over some series."""
    return bool(series) and bool(Standardiser.of_rows(np.concatenate(series)).varies.any())


def _over_sensors(evidence: FloatArray) -> FloatArray:
    """Return ``ln mean exp`` [n_rows, 1] of the evidence of a view's statistics [n_rows, n_statistics]."""
    return np.asarray(logsumexp(evidence, axis=1, keepdims=True) - np.log(evidence.shape[1]))


def _shares_in_mean(evidence: FloatArray, n_sensors: int) -> FloatArray:
    """Return what each sensor has of ``mean exp`` of the evidence [n_rows, n_statistics], [n_rows, n_sensors]."""
    likelihood = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    of_sensor: FloatArray = likelihood.reshape(len(evidence), -1, n_sensors).sum(axis=1)
    return np.asarray(of_sensor / of_sensor.sum(axis=1, keepdims=True))
