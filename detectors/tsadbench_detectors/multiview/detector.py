"""Several views of a row, each on the scale of how rarely normal rows that it was not fitted on look like that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from scipy.special import logsumexp

from tsadbench import DataError
from tsadbench.base import Choice, Detector, FloatArray, Recording, Space, Traits
from tsadbench_detectors.multiview.accumulation import mean_of_last
from tsadbench_detectors.multiview.beginning import STRETCH, without_beginning
from tsadbench_detectors.multiview.panel import Learner, Panel, Piece, blocks_of, others, pieces, standardiser_of
from tsadbench_detectors.multiview.tails import Tails
from tsadbench_detectors.multiview.views import VIEWS, View

# Neighbours in time resemble each other: a panel does not see these rows around the block that it judges.
_GAP = 30
# With fewer training rows, what a block leaves says nothing: the one panel judges the rows that it was fitted on.
_FEWEST_ROWS = 100
# With what lies before them, a few arrays of so many rows of 50 sensors fit the cache.
_ROWS_AT_ONCE = 8_192
# Tails are learned from at most so many rows.
_MOST_ROWS = 100_000
# Of tails, in standard deviations or nats.
_LEAST_SCALE = 0.01
# What truncation takes away counts by this factor, so that rows of which no view has a say keep an order.
_TIE = 1e-3
_MOST_BLOCKS = 100
_MOST_ACCUMULATED = 1_024


class MultiView(Detector):
    """Looks at a row in several ways, and scores how rarely unseen normal rows look as unusual as this one.

    *level* is how far each sensor is from its mean; *range*, how far the row is outside the box of the training rows;
    *relation*, each sensor against the other sensors' last five rows, its own past left out; *forecast*, each sensor
    against its forecast from the ten rows before and the others' forecast errors; *movement*, how much each sensor
    moved within 16 rows, too much or too little.

    What is large for one of them is small for another, so each statistic of each sensor is turned into a tail
    probability. The training rows are cut into blocks; each is judged by views that are fitted on the other blocks, and
    the distribution of these statistics is the scale. A view that does not carry over to rows it has not seen, such as
    a range on a plant that drifts, has a heavy tail and loses its say by this alone.

    The score is minus the decimal logarithm of a tail probability: of the normal rows one in a thousand is above 3.
    Training scores are those of the held-out blocks.

    Contributions split the score: by view in proportion to its evidence, and within a view among the sensors.

    Parameters
    ----------
    views
        Names of the views, joined by ``+``.
    truncation
        A view with a larger tail probability has no say; above 0 and at most 1 (= Fisher's method).
    accumulation
        Rows over which evidence is averaged beside the row's own, a power of two up to 1024; 1: the row alone.
    least_shape
        The tails' gamma is at least this, but for the last one, of the score; at least 0 and below 1.
    blocks
        Held-out blocks of the training rows, 2 to 100; or 1: the views judge the rows that they were fitted on.
    adaptive
        Whether what the first 60 rows of a recording have as mean is taken for normal there. It is for plants whose
        operating point moves between recordings, and assumes that recordings begin normal.

    Notes
    -----
    Equations
        With ``e = -ln p`` the evidence of a statistic: over the sensors of a view ``ln mean exp e`` (to first order the
        Cauchy combination of Liu and Xie), again as a tail probability; over the views
        ``sum max(0, e - ln(1 / truncation)) + e / 1000`` (the soft truncation of Zhang et al., and what orders the rows
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

    def __init__(
        self,
        *,
        views: str = "level+range+relation+forecast+movement",
        truncation: float = 0.1,
        accumulation: int = 4,
        least_shape: float = 0.1,
        blocks: int = 5,
        adaptive: bool = False,
    ) -> None:
        self.views = views
        self.truncation = truncation
        self.accumulation = accumulation
        self.least_shape = least_shape
        self.blocks = blocks
        self.adaptive = adaptive

    def declared_traits(self) -> Traits:  # noqa: D102
        return replace(self.traits, memory=None if self.adaptive else self._memory)

    @classmethod
    def search_space(cls) -> Mapping[str, Space]:  # noqa: D102
        return {"truncation": Choice((0.01, 0.1, 1.0)), "accumulation": Choice((1, 4, 16))}

    def _check(self, sensors: tuple[str, ...]) -> None:  # noqa: ARG002
        known = [name for name, view in VIEWS.items() if self.traits.needs_prior or not view.needs_prior]
        names = self._names if isinstance(self.views, str) else ("",)
        different = len(set(names)) == len(names) and set(names) <= set(known)
        self._require(different, "views", f"different ones of {', '.join(known)}, joined by +")
        share, shape = self.truncation, self.least_shape
        self._require(isinstance(share, Real) and 0 < share <= 1, "truncation", "a number above 0 and at most 1")
        power = isinstance(self.accumulation, Integral) and 1 <= self.accumulation <= _MOST_ACCUMULATED
        power = power and int(self.accumulation).bit_count() == 1
        self._require(power, "accumulation", f"a power of two from 1 to {_MOST_ACCUMULATED}")
        self._require(isinstance(shape, Real) and 0 <= shape < 1, "least_shape", "a number from 0 to below 1")
        possible = isinstance(self.blocks, Integral) and 1 <= self.blocks <= _MOST_BLOCKS
        self._require(possible, "blocks", f"an integer from 1 to {_MOST_BLOCKS}")
        self._require(isinstance(self.adaptive, bool), "adaptive", "True or False")

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        series = self._series(recordings)
        lengths = [len(values) for values in series]
        name = type(self).__name__
        if max(lengths) < 2:
            raise DataError(f"{name}: expected a training recording of at least 2 rows, found 1; train on more rows")
        standardiser_of(series).require_variation(name)
        self.lengths_ = lengths
        learners = self._learners(recordings[0].sensors)
        self.panel_ = Panel.of(learners, series)
        n_blocks = int(self.blocks) if sum(lengths) >= _FEWEST_ROWS else 1
        borders = blocks_of(lengths, n_blocks)
        # One panel for each block of the training rows: it has not seen the block.
        rest = (others(series, borders, block, _GAP) for block in range(n_blocks if n_blocks > 1 else 0))
        judges = tuple(Panel.of(learners, kept) if _vary(kept) else self.panel_ for kept in rest)
        self.judges_ = judges or (self.panel_,)
        self._learn_tails(series, list(pieces(lengths, n_blocks, self._memory, _MOST_ROWS)))

    def _learners(self, sensors: tuple[str, ...]) -> dict[str, Learner]:  # noqa: ARG002
        """Return what fits each view."""
        return {name: _learner(VIEWS[name]) for name in self._names}

    def _learn_tails(self, series: Sequence[FloatArray], judged: Sequence[Piece]) -> None:
        """Learn the scale of each statistic, of each view, of their sum and of what is accumulated."""
        statistics = list(zip(*(tuple(self._held_out(series, piece)) for piece in judged), strict=True))
        self.tails_, evidence = [], []
        for of_view in statistics:
            rows = np.concatenate(of_view)
            single = Tails.of(rows, self.least_shape, _LEAST_SCALE)
            whole = _over_sensors(single.evidence_of(rows))
            view = Tails.of(whole[:, None], self.least_shape, _LEAST_SCALE)
            self.tails_.append((single, view))
            evidence.append(view.evidence_of(whole[:, None]))
        total = self._over_views(evidence)
        # Pieces of one recording may follow one another; where they do not, a mean begins anew.
        parts = np.split(total, np.cumsum([piece.stop - piece.start for piece in judged])[:-1])
        smooth = np.concatenate([mean_of_last(part, int(self.accumulation)) for part in _joined(parts, judged)])
        both = np.column_stack([total, smooth])
        self.sum_tails_ = Tails.of(both, self.least_shape, _LEAST_SCALE)
        self.tail_ = Tails.of(self._accumulated(self.sum_tails_.evidence_of(both))[:, None])

    def _score(self, recording: Recording) -> FloatArray:
        return self._from_total(self._totals(self.panel_, self._values(recording), 0))

    def _training_scores(self, recordings: tuple[Recording, ...]) -> list[FloatArray]:
        series = self._series(recordings)
        lengths = [len(values) for values in series]
        if lengths != self.lengths_:
            raise DataError(
                f"{type(self).__name__}.training_scores: expected the recordings that fit was given, "
                f"{sum(self.lengths_)} rows, found {sum(lengths)}"
            )
        totals: list[list[FloatArray]] = [[] for _ in series]
        for piece in pieces(lengths, len(self.judges_), self._memory):
            values = series[piece.recording][piece.first : piece.stop]
            totals[piece.recording].append(self._totals(self.judges_[piece.panel], values, piece.start - piece.first))
        scores = np.concatenate([self._from_total(np.concatenate(total)) for total in totals])
        return np.split(scores, np.cumsum([recording.n_rows for recording in recordings])[:-1])

    def _contributions(self, recording: Recording) -> FloatArray:
        shares, totals = [], []
        for block, context in self._blocks(self._values(recording), 0):
            evidence = list(self._evidence(self.panel_, block, context))
            shares.append(self._shares(block[context:], evidence))
            totals.append(self._over_views([of_view for _, of_view in evidence]))
        contributions = np.concatenate(shares)
        contributions *= self._from_total(np.concatenate(totals))[:, None]
        return contributions

    def _shares(self, values: FloatArray, evidence: Sequence[tuple[FloatArray, FloatArray]]) -> FloatArray:
        """Return each sensor's share [n_rows, n_sensors] in the score of rows, given the evidence of the views."""
        weights: FloatArray = np.zeros(values.shape)
        varies = self.panel_.standardiser.varies
        for (view, z), (of_statistics, of_view) in zip(self.panel_.seen(values), evidence, strict=True):
            shares = view.shares(z)
            if shares is None:
                # A sensor that is constant over the training rows has no part in most views, but has columns.
                shares = _shares_in_mean(of_statistics, len(varies)) * varies
            weights += self._added(of_view) * shares
        total = weights.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(weights, total, out=np.full_like(weights, 1 / weights.shape[1]), where=total > 0))

    def _held_out(self, series: Sequence[FloatArray], piece: Piece) -> Iterator[FloatArray]:
        """Yield each view's statistics of a piece of the training rows, by the panel that has not seen them."""
        values = series[piece.recording][piece.first : piece.stop]
        for statistics in self.judges_[piece.panel].statistics(values):
            yield statistics[piece.start - piece.first :]

    def _totals(self, panel: Panel, values: FloatArray, context: int) -> FloatArray:
        """Return the sum over views [n_rows] of the rows after the first ``context``."""
        return np.concatenate(
            [
                self._over_views([of_view for _, of_view in self._evidence(panel, block, before)])
                for block, before in self._blocks(values, context)
            ]
        )

    def _blocks(self, values: FloatArray, context: int) -> Iterator[tuple[FloatArray, int]]:
        """Yield blocks of the rows after the first ``context``: each behind its context, and how many rows that has."""
        for start in range(context, len(values), _ROWS_AT_ONCE):
            first = max(0, start - self._memory)
            yield values[first : start + _ROWS_AT_ONCE], start - first

    def _evidence(self, panel: Panel, values: FloatArray, context: int) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield the evidence of each view's statistics [n_rows, n_statistics], and of the view itself [n_rows, 1]."""
        for rows, (single, whole) in zip(panel.statistics(values), self.tails_, strict=True):
            evidence = single.evidence_of(rows[context:])
            yield evidence, whole.evidence_of(_over_sensors(evidence)[:, None])

    def _added(self, evidence: FloatArray) -> FloatArray:
        """Return what views add to the sum, of the same shape."""
        return np.asarray(np.maximum(evidence + np.log(self.truncation), 0.0) + _TIE * evidence)

    def _over_views(self, evidence: Sequence[FloatArray]) -> FloatArray:
        """Return the sum over views [n_rows] of the evidence of each [n_rows, 1]."""
        return np.asarray(self._added(np.concatenate(evidence, axis=1)).sum(axis=1))

    def _from_total(self, total: FloatArray) -> FloatArray:
        """Return scores [n_rows] for the sums of a whole recording."""
        both = np.column_stack([total, mean_of_last(total, int(self.accumulation))])
        evidence = self._accumulated(self.sum_tails_.evidence_of(both))
        return np.asarray(self.tail_.evidence_of(evidence[:, None])[:, 0] / np.log(10.0))

    def _accumulated(self, evidence: FloatArray) -> FloatArray:
        """Return the row's own evidence and half of what was accumulated, [n_rows]; without accumulation its own."""
        return evidence[:, 0] if self.accumulation == 1 else evidence[:, 0] + evidence[:, 1] / 2

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
            without_beginning(recording.values[start : start + STRETCH])
            for recording in recordings
            for start in range(0, recording.n_rows, STRETCH)
        ]

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(self.views.split("+"))

    @property
    def _memory(self) -> int:
        """Rows before a row that its score depends on, if the beginning of its recording has no part in it."""
        # Asked for traits, it may not have been checked: an unknown view adds nothing.
        longest = max((VIEWS[name].memory for name in self._names if name in VIEWS), default=0)
        return longest + int(self.accumulation) - 1


def _learner(view: type[View]) -> Learner:
    return lambda series, _: view.of(series)


def _vary(series: Sequence[FloatArray]) -> bool:
    """Whether a sensor varies over some series."""
    return bool(series) and bool(standardiser_of(series).varies.any())


def _over_sensors(evidence: FloatArray) -> FloatArray:
    """Return ``ln mean exp`` [n_rows] of the evidence of a view's statistics [n_rows, n_statistics]."""
    if evidence.shape[1] == 1:
        return evidence[:, 0]
    return np.asarray(logsumexp(evidence, axis=1) - np.log(evidence.shape[1]))


def _shares_in_mean(evidence: FloatArray, n_sensors: int) -> FloatArray:
    """Return what each sensor has of ``mean exp`` of the evidence [n_rows, n_statistics], [n_rows, n_sensors]."""
    likelihood = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    of_sensor: FloatArray = likelihood.reshape(len(evidence), -1, n_sensors).sum(axis=1)
    return np.asarray(of_sensor / of_sensor.sum(axis=1, keepdims=True))


def _joined(parts: Sequence[FloatArray], judged: Sequence[Piece]) -> Iterator[FloatArray]:
    """Yield parts joined that follow one another within a recording."""
    run: list[FloatArray] = []
    for number, part in enumerate(parts):
        follows = number > 0 and (judged[number - 1].recording, judged[number - 1].stop) == (
            judged[number].recording,
            judged[number].start,
        )
        if run and not follows:
            yield np.concatenate(run)
            run = []
        run.append(part)
    yield np.concatenate(run)
