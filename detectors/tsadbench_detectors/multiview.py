"""Combines statistics of a row over all sensors, each on the scale of held-out normal rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, ClassVar, Self

import numpy as np
from scipy.linalg import eigh, inv, solve

from tsadbench import DataError
from tsadbench.base import Detector, FloatArray, Ge, Le, Recording, Traits, Tune, detector, trailing_mean
from tsadbench_detectors.own_start import without_beginning
from tsadbench_detectors.standardise import Standardiser
from tsadbench_detectors.window_covariance import shrunk_covariance

# The quantile of the held-out rows' statistics by which statistics are divided.
_QUANTILE = 0.99
# Neighbours in time resemble each other: a judge does not see these rows around the block that it judges.
_GAP = 30
# With fewer training rows, a block leaves too few to learn from: the rows are judged by what was fitted on them.
_FEWEST_ROWS = 100
VIEWS = ("level", "distance", "residual", "forecast")
# Rows that a forecast sees; share of the variance that the minor components hold, as in `T2Q`.
_N_PAST, _MINOR_SHARE = 3, 0.15
# The z-score of a sensor that moves for the first time.
_FIRST_MOVE = 10.0
# Lower bounds of variances, scales and eigenvalues: exact relations leave only rounding.
_LEAST_VARIANCE, _LEAST_SCALE, _LEAST_EIGENVALUE = 1e-6, 1e-6, 1e-9
# The adaptive variant: rows of a recording's beginning, and of the stretches into which training recordings are cut.
_BEGINNING, _STRETCH = 60, 1_000
_ROWS_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """Views of a row, fitted to normal rows; all but *level* leave out sensors that are constant over these."""

    standardiser: Standardiser
    precision: FloatArray  # [n_varying, n_varying], of the shrunk covariance
    minor: FloatArray  # [n_varying, n_minor]: the principal components without the major ones
    window_mean: FloatArray  # [4 * n_varying] of windows of four rows, the oldest first
    errors: FloatArray  # [4 * n_varying, n_varying]: map a window, less its mean, to the scaled forecast errors

    @classmethod
    def of(cls, series: Sequence[FloatArray]) -> Self:
        """Learn from series of raw values [n_rows, n_sensors], in which at least one sensor varies."""
        standardiser = Standardiser.of_rows(np.concatenate(series))
        z = [standardiser.varying_z_scores(values) for values in series]
        covariance = _moments(z, 1)[1]
        variances, components = eigh(covariance)  # ascending
        minor = components[:, np.cumsum(variances) <= _MINOR_SHARE * variances.sum()]
        # A window of copies is better than none.
        windows = [rows for rows in z if len(rows) > _N_PAST] or [_padded(rows) for rows in z]
        mean, covariance_4 = _moments(windows, _N_PAST + 1)
        past, row = slice(0, -len(covariance)), slice(-len(covariance), None)
        forecast = solve(covariance_4[past, past], covariance_4[past, row], assume_a="pos")
        left = np.diag(covariance_4[row, row] - covariance_4[row, past] @ forecast)
        errors = np.concatenate([-forecast, np.eye(len(left))]) / np.sqrt(np.maximum(left, _LEAST_VARIANCE))
        return cls(standardiser, inv(covariance), np.ascontiguousarray(minor), mean, errors)

    def squares(self, values: FloatArray, views: Iterable[str]) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield each view's squared statistic [n_rows] of raw values, and weights to split it [n_rows, n_sensors]."""
        z = self.standardiser.varying_z_scores(values)
        for view in views:
            if view == "level":
                whole = self._z_scores(values) ** 2
                largest = whole.max(axis=1)
                yield largest, np.where(whole == largest[:, None], whole, 0.0)
                continue
            if view == "distance":
                found = z @ self.precision
                total, parts = (z * found).sum(axis=1), found**2 / np.diag(self.precision)
            elif view == "residual":
                found = (z @ self.minor @ self.minor.T) ** 2
                total, parts = found.sum(axis=1), found / np.maximum((self.minor**2).sum(axis=1), _LEAST_VARIANCE)
            else:
                padded, by_row = _padded(z), np.split(self.errors, _N_PAST + 1)
                found = np.tile(-self.window_mean @ self.errors, (len(z), 1))
                for row, of_row in enumerate(by_row):
                    found += padded[row : row + len(z)] @ of_row
                parts = found**2
                total = parts.sum(axis=1)
            yield total, self.standardiser.with_constant_sensors(parts)

    def _z_scores(self, values: FloatArray) -> FloatArray:
        """Return z-scores; a sensor that is constant over the training rows has 0 there, and 10 wherever it is not."""
        z, constant = self.standardiser.z_scores(values), ~self.standardiser.varies
        # A comparison with the mean to the last bit would call rounding a move.
        still = np.isclose(values[:, constant], self.standardiser.mean[constant], rtol=1e-9, atol=0.0)
        z[:, constant] = np.where(still, 0.0, _FIRST_MOVE)
        return z


def _moments(series: Sequence[FloatArray], length: int) -> tuple[FloatArray, FloatArray]:
    """Return mean and shrunk covariance of windows; the covariance of equal windows is invertible too."""
    mean, covariance = shrunk_covariance(series, length)
    covariance[np.diag_indices(len(covariance))] += _LEAST_EIGENVALUE
    return mean, covariance


def _padded(z: FloatArray) -> FloatArray:
    """Return rows preceded by copies of the first one: the past from which the first rows are forecast."""
    return np.concatenate([np.repeat(z[:1], _N_PAST, axis=0), z])


@detector
class MultiView(Detector):
    """Adds up several statistics of a row, each on a scale taken from normal rows that it was not fitted on.

    *level* is the largest z-score; *distance*, the Mahalanobis distance to the training mean; *residual*, the distance
    to the major principal components; *forecast*, the length of the errors of a linear forecast from three rows, each
    sensor's in its standard deviations. Each looks at all sensors together, at a single row and at the last ``mean``
    rows: faults are often shifts of several sensors that last.

    The training rows are cut into blocks, and views that are fitted on the other blocks judge each block. A view that
    does not carry over to unseen rows has large statistics there and so counts little. Training scores are those of the
    held-out blocks. Contributions split the score in proportion to how much correcting only that sensor would reduce
    the squares of the scaled statistics (reconstruction-based contributions).

    Parameters
    ----------
    views
        Names of the views, joined by ``+``.
    mean
        Rows over which each squared statistic is averaged; the row's own value counts as well. At least 1.
    blocks
        Held-out blocks of the training rows, 2 to 100; or 1: the views judge the rows that they were fitted on.
    adaptive
        Whether the mean of a recording's first 60 rows is taken for normal there. It is for plants whose operating
        point moves between recordings, and assumes that recordings begin normal.

    Notes
    -----
    Equations
        ``score(t) = sum over views v, m in {1, mean} of ln(1 + a_vm(t) / Q_vm)`` with ``a_vm(t)^2`` the mean of the
        view's squared statistic over the last m rows, and Q_vm the .99 quantile of a_vm over held-out normal rows.
        Covariances are shrunk by Ledoit and Wolf's formula.
    Differences
        The method is this project's; `docs/studies/multiview.md` says how it was chosen, and what was known from
        labels.
    Defaults
        mean = 10, as for the floors. blocks = 5. Neither was tuned.

    References
    ----------
    O. Ledoit and M. Wolf, A well-conditioned estimator for large-dimensional covariance matrices, Journal of
    Multivariate Analysis 88(2), 2004; C. F. Alcala and S. J. Qin, Reconstruction-based contribution for process
    monitoring, Automatica 45(7), 2009.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(2_000, 3))
    >>> detector = MultiView().fit(rows)
    >>> broken = rows[:100].copy()
    >>> broken[50:, 1] += 8
    >>> bool(detector.score(broken)[50:].min() > detector.score(rows[100:]).max())
    True
    """

    traits: ClassVar[Traits] = Traits(family="statistics", paper="tsadbench")

    views: str = "level+distance+residual+forecast"
    mean: Annotated[int, Ge(1), Tune(1, 30, log=True)] = 10
    blocks: Annotated[int, Ge(1), Le(100)] = 5
    adaptive: bool = False

    def declared_traits(self) -> Traits:  # noqa: D102
        return replace(self.traits, memory=None if self.adaptive else self._n_past)

    def _check(self, sensors: tuple[str, ...]) -> None:  # noqa: ARG002
        different = len(set(self._names)) == len(self._names) and set(self._names) <= set(VIEWS)
        self._require(different, "views", f"different ones of {', '.join(VIEWS)}, joined by +")

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        series = self._series(recordings)
        Standardiser.of_rows(np.concatenate(series)).require_variation("MultiView")
        self.lengths_ = [len(values) for values in series]
        self.panel_ = Panel.of(series)
        n_blocks = self.blocks if sum(self.lengths_) >= _FEWEST_ROWS else 1
        rests = (others(series, n_blocks, block) for block in range(n_blocks))
        self.judges_ = [Panel.of(rest) if _vary(rest) else self.panel_ for rest in rests]
        held_out = np.concatenate(self._judged(self.judges_, series))
        self.scale_ = np.maximum(np.quantile(held_out, _QUANTILE, axis=0), _LEAST_SCALE)

    def _score(self, recording: Recording) -> FloatArray:
        return self._summed(self._judged([self.panel_], self._values([recording])))[0]

    def _training_scores(self, recordings: tuple[Recording, ...]) -> list[FloatArray]:
        series = self._series(recordings)
        if [len(values) for values in series] != self.lengths_:
            raise DataError("MultiView.training_scores: expected the recordings that fit was given")
        scores = np.concatenate(self._summed(self._judged(self.judges_, series)))
        return np.split(scores, np.cumsum([recording.n_rows for recording in recordings])[:-1])

    def _contributions(self, recording: Recording) -> FloatArray:
        (values,) = self._values([recording])
        weights, scales = np.zeros(values.shape), iter(self.scale_)
        for total, parts in self.panel_.squares(values, self._names):
            for rows in (1, self.mean):
                # A statistic within its usual range says nothing about a sensor: squares let the others decide.
                size = np.maximum(trailing_mean(total, rows), 0.0) / next(scales) ** 2
                weights += _split(size, trailing_mean(parts, rows))
        return _split(self._score(recording), weights)

    def _judged(self, panels: Sequence[Panel], series: Sequence[FloatArray]) -> list[FloatArray]:
        """Return the statistics of each series' rows [n_rows, 2 * n_views], each block of rows judged by its panel."""
        origins = np.cumsum([0, *(len(values) for values in series)])
        borders = _borders(int(origins[-1]), len(panels))
        found = []
        for values, origin in zip(series, origins, strict=False):
            cuts = {0, len(values), *range(0, len(values), _ROWS_AT_ONCE)}
            cuts |= {int(border - origin) for border in borders if origin < border < origin + len(values)}
            parts = []
            for start, stop in pairwise(sorted(cuts)):
                panel = panels[int(np.searchsorted(borders, origin + start, side="right")) - 1]
                first = max(0, start - self._n_past)
                squares = [total for total, _ in panel.squares(values[first:stop], self._names)]
                means = [trailing_mean(one, rows) for one in squares for rows in (1, self.mean)]
                parts.append(_root(np.column_stack(means))[start - first :])
            found.append(np.concatenate(parts))
        return found

    def _summed(self, statistics: Iterable[FloatArray]) -> list[FloatArray]:
        """Return each recording's scores [n_rows] from its statistics."""
        return [np.log1p(rows / self.scale_).sum(axis=1) for rows in statistics]

    def _values(self, recordings: Iterable[Recording]) -> list[FloatArray]:
        """Return the values to judge [n_rows, n_sensors]; the adaptive variant takes away the beginning's mean."""
        values = [recording.values for recording in recordings]
        return [without_beginning(rows, _BEGINNING) for rows in values] if self.adaptive else values

    def _series(self, recordings: Sequence[Recording]) -> list[FloatArray]:
        """Return the values to learn from, [n_rows, n_sensors] each.

        The adaptive variant learns from stretches of the recordings as if each were a recording, so that it knows how
        far normal rows drift away from a beginning.
        """
        if not self.adaptive:
            return self._values(recordings)
        return self._values(
            recording.rows(start, min(start + _STRETCH, recording.n_rows), id=f"{recording.id}[{start}:]")
            for recording in recordings
            for start in range(0, recording.n_rows, _STRETCH)
        )

    @property
    def _names(self) -> list[str]:
        return self.views.split("+")

    @property
    def _n_past(self) -> int:
        """Number of earlier rows on which a row's score depends, if not ``adaptive``."""
        return _N_PAST * ("forecast" in self._names) + self.mean - 1


def others(series: Sequence[FloatArray], n_blocks: int, block: int) -> list[FloatArray]:
    """Return the rows that are neither in a block nor within 30 rows of it, as separate series."""
    borders = _borders(sum(map(len, series)), n_blocks)
    kept, origin = [], 0
    for values in series:
        before, after = borders[block] - _GAP - origin, borders[block + 1] + _GAP - origin
        kept += [values[: max(0, before)], values[max(0, after) :]] if after > 0 else [values]
        origin += len(values)
    return [values for values in kept if len(values) > 1]


def _borders(n_rows: int, n_blocks: int) -> list[int]:
    """Return the first rows of equal blocks, and the number of rows."""
    return [n_rows * number // n_blocks for number in range(n_blocks + 1)]


def _vary(series: Sequence[FloatArray]) -> bool:
    """Return whether a sensor varies over some series."""
    return bool(series) and bool(Standardiser.of_rows(np.concatenate(series)).varies.any())


def _split(sizes: FloatArray, weights: FloatArray) -> FloatArray:
    """Return sizes [n_rows], split in proportion to weights [n_rows, n_sensors]; evenly where all are 0."""
    total = weights.sum(axis=1, keepdims=True)
    even = np.full_like(weights, 1 / weights.shape[1])
    return np.asarray(sizes[:, None] * np.divide(weights, total, out=even, where=total > 0))


def _root(squares: FloatArray) -> FloatArray:
    """Return square roots; what rounding makes negative is 0."""
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))
