"""Dynamic principal component analysis: T-squared and Q of rows together with the rows before them."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar

from tsadbench import DataError
from tsadbench.base import FloatArray, Ge, Recording, Traits, Tune, detector, trailing_windows
from tsadbench_detectors.standardise import Standardiser
from tsadbench_detectors.t2_q import T2Q


@detector
class DynamicPCA(T2Q):
    """Scores how far a row and the ``lags`` rows before it lie within, or from, their common principal components.

    T-squared and Q (`T2Q`) are computed on rows that are extended by the rows before them. The components then contain
    a linear vector autoregression, and a row that does not follow from its past leaves them.

    It learns from rows that have all their lags in their recording. In scoring, copies of a recording's first row
    precede it. Sensors that are constant over the training rows are left out.

    Contributions are those of `T2Q`; a sensor's are summed over the row and its lags.

    Parameters
    ----------
    lags
        Number of earlier rows that extend a row, at least 1.
    variance, confidence, smoothing
        As for `T2Q`.

    Notes
    -----
    Equations
        With z the z-scores of the extended row ``[x_{t-lags}, ..., x_t]``, P the first k eigenvectors of their
        covariance and L their variances: ``T2 = z' P L^-1 P' z``, ``Q = |z - P P' z|^2``; the score is
        ``max(T2 / T2_limit, Q / Q_limit)``, with the limits of `T2Q`.
    Differences
        The paper finds the number of lags by counting linear relations that one more lag reveals; here it is a
        parameter. The paper finds k by parallel analysis (against the variances of random numbers); here it is that of
        `T2Q`, so that the two differ in the lags alone. The paper watches two charts; here the larger statistic counts.
        Extended rows overlap, so both limits are exceeded somewhat more often than ``confidence`` says.
    Defaults
        ``lags``: 2, with which the method is run on the Tennessee Eastman process. ``variance`` and ``confidence`` are
        those of `T2Q`.

    References
    ----------
    W. Ku, R. H. Storer and C. Georgakis, Disturbance detection and isolation by dynamic principal component analysis,
    Chemometrics and Intelligent Laboratory Systems 30(1), 1995.
    """

    traits: ClassVar[Traits] = Traits(
        family="statistics",
        paper="Ku, Storer and Georgakis, Chemometrics and Intelligent Laboratory Systems 30(1), 1995",
    )

    lags: Annotated[int, Ge(1), Tune(1, 10, log=True)] = 2

    def declared_traits(self) -> Traits:  # noqa: D102
        return replace(self.traits, memory=self.lags + self.smoothing - 1)

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        Standardiser.of(recordings).require_variation("DynamicPCA")
        n_extended = sum(max(0, recording.n_rows - self.lags) for recording in recordings)
        if n_extended < 2:
            raise DataError(
                f"DynamicPCA: expected at least 2 training rows that have {self.lags} rows before them in their "
                f"recording (lags), found {n_extended}; train on longer recordings or make lags smaller"
            )
        long_enough = [recording for recording in recordings if recording.n_rows > self.lags]
        super()._fit(tuple(self._extended(one).rows(self.lags, one.n_rows) for one in long_enough))

    def _score(self, recording: Recording) -> FloatArray:
        return super()._score(self._extended(recording))

    def _contributions(self, recording: Recording) -> FloatArray:
        by_column = super()._contributions(self._extended(recording))
        by_sensor: FloatArray = by_column.reshape(recording.n_rows, self.lags + 1, -1).sum(axis=1)
        return by_sensor

    def _extended(self, recording: Recording) -> Recording:
        """Return the rows with their lags, [n_rows, (lags + 1) * n_sensors], oldest first."""
        windows = trailing_windows(recording.values, self.lags + 1)
        sensors = tuple(f"{name}, lag {lag}" for lag in range(self.lags, -1, -1) for name in recording.sensors)
        return Recording(id=recording.id, values=windows.reshape(len(windows), -1), sensors=sensors)
