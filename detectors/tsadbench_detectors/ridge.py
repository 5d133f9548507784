"""Floor: how far a row lies from its linear forecast."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar

import numpy as np
from scipy.linalg import solve

from tsadbench import DataError
from tsadbench.base import FloatArray, Ge, Gt, Lt, Recording, Traits, detector, trailing_windows
from tsadbench_detectors.averaged_floor import AveragedFloor
from tsadbench_detectors.rows import by_blocks
from tsadbench_detectors.standardise import Standardiser

# A block of windows is copied: this many windows of 11 rows and 50 sensors take 9 MiB.
_WINDOWS_AT_ONCE = 2_048


@detector
class Ridge(AveragedFloor):
    """Euclidean length of the difference between a row, in z-scores, and its forecast from the ``lags`` rows before it.

    All sensors of those rows forecast all sensors of the next. It is fitted on the training rows with ``lags`` rows
    before them in their recording. In scoring, rows before a recording's first are taken to be equal to the first.
    Training scores are in-sample. A sensor that is constant over the training rows counts in its own unit
    (`Standardiser`). Contributions are the squared differences; the score is the root of their sum. Both are averaged
    over the last ``mean`` rows.

    Parameters
    ----------
    lags
        Rows that a forecast sees, at least 1.
    penalty
        Weight of the squared coefficients, above 0.

    Notes
    -----
    Equations
        ``W, b`` minimise ``sum_t |z(t) - W x(t) - b|^2 + penalty |W|^2``; ``s(t) = |z(t) - W x(t) - b|`` with x(t) the
        ``lags`` rows before t.
    Differences
        Ridge regression itself is the paper's; to score its forecast error is this project's idea.
    Defaults
        lags = 10, as many rows as the other floors average over; penalty = 1 in z-scores. Neither was tuned.

    References
    ----------
    A. E. Hoerl and R. W. Kennard, Ridge regression: biased estimation for nonorthogonal problems, Technometrics 12(1),
    1970.

    Examples
    --------
    >>> rows = np.tile([0.0, 1.0], 50)[:, None]
    >>> detector = Ridge(lags=1).fit(rows)
    >>> detector.score(np.array([[0.0], [1.0], [0.0], [0.0]])).round(1)
    array([2., 0., 0., 2.])
    """

    traits: ClassVar[Traits] = Traits(family="floor", floor=True, paper="Hoerl and Kennard, Technometrics 12(1), 1970")

    lags: Annotated[int, Ge(1)] = 10
    penalty: Annotated[float, Gt(0), Lt(float("inf"))] = 1.0

    @property
    def _n_past(self) -> int:
        return self.lags

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        longest = max(recording.n_rows for recording in recordings)
        if longest <= self.lags:
            raise DataError(
                f"Ridge: expected a training recording of at least {self.lags + 1} rows (lags + 1), the longest has "
                f"{longest}; train on more rows or make lags smaller"
            )
        self.standardiser_ = Standardiser.of(recordings)
        n_sensors = recordings[0].n_sensors
        n_past = self.lags * n_sensors
        # Moments of x and z about 0: z-scores are small, so the moments about the mean lose little precision.
        products, sums, n_windows = np.zeros((n_past, n_past + n_sensors)), np.zeros(n_past + n_sensors), 0
        for windows in self._windows(recordings):
            products += windows[:, :n_past].T @ windows
            sums += windows.sum(axis=0)
            n_windows += len(windows)
        means = sums / n_windows
        products -= n_windows * np.outer(means[:n_past], means)
        penalised = products[:, :n_past] + self.penalty * np.eye(n_past)
        self.weights_ = np.asarray(solve(penalised, products[:, n_past:], assume_a="pos"), dtype=np.float64)
        self.intercept_ = means[n_past:] - means[:n_past] @ self.weights_

    def _windows(self, recordings: Sequence[Recording]) -> Iterator[FloatArray]:
        """Yield blocks of all training rows with their past, [n_windows, (lags + 1) * n_sensors], oldest row first."""
        for recording in recordings:
            for start in range(0, recording.n_rows - self.lags, _WINDOWS_AT_ONCE):
                rows = self.standardiser_.z_scores(recording.values[start : start + _WINDOWS_AT_ONCE + self.lags])
                windows = trailing_windows(rows, self.lags + 1)[self.lags :]
                yield windows.reshape(len(windows), -1)

    def _by_sensor(self, rows: FloatArray) -> FloatArray:
        windows = trailing_windows(self.standardiser_.z_scores(rows), self.lags + 1)
        return by_blocks(self._squares, windows, at_once=_WINDOWS_AT_ONCE)

    def _squares(self, windows: FloatArray) -> FloatArray:
        """Return the squared differences of the windows' last rows, [n_windows, n_sensors]."""
        past = windows[:, :-1].reshape(len(windows), -1)
        squares: FloatArray = (windows[:, -1] - past @ self.weights_ - self.intercept_) ** 2
        return squares
