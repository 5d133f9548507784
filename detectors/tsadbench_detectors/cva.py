"""Canonical variate analysis: the directions of the past that predict the future, and the rest of the past."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np
from scipy.linalg import eigh, svd
from scipy.optimize import brentq
from scipy.special import ndtr

from tsadbench import DataError
from tsadbench.base import Cheap, Choice, FloatArray, Ge, Lt, Recording, Traits, Tune, detector, trailing_windows
from tsadbench_detectors.control_limits import Smoothing, TwoCharts
from tsadbench_detectors.standardise import Standardiser
from tsadbench_detectors.t2 import NEGLIGIBLE_VARIANCE
from tsadbench_detectors.window_covariance import shrunk_covariance

_PAPERS_STATES = 25
# Training rows have a variance of about 1 along every state. A limit below this one is rounding.
_SMALLEST_LIMIT = 1e-6


@detector
class CVA(TwoCharts):
    """Scores how unusual the recent past is, in the directions that predict the future (T2) or in all others (Q).

    Canonical variate analysis finds the linear combinations of the last ``past`` rows that correlate most with
    combinations of the ``future`` rows after them: the states of a linear dynamic system. T-squared is the squared
    length of the states, Q that of the rest of the past, once the past is scaled so that training rows vary alike in
    all directions. The larger counts, each divided by its limit, so that a score above 1 is an alarm.

    It learns from stretches of ``past + future`` rows within a recording. In scoring, copies of a recording's first
    row precede it. Sensors that are constant over the training rows are left out.

    Contributions split a row's larger statistic ``p' M p``, before smoothing and divided by its limit, into
    ``p_i (M p)_i``, summed over a sensor's past rows. They sum to the row's own score and may be negative.

    Parameters
    ----------
    past
        Rows of the past, with the row that is scored as the last; at least 1.
    future
        Rows of the future, at least 1; used in training only.
    states
        Number of states, at least 1 and at most the sensors times the smaller of ``past`` and ``future``. None: the
        paper's 25, or half as many as the past has values if that is less.
    confidence
        Confidence of both control limits, at least 0.5 and below 1.
    smoothing
        Rows of the trailing median over both statistics, before the larger is taken; 1: none.

    Notes
    -----
    Equations
        With p and f the centred z-scores of past and future, S their covariances, and ``H = S_ff^-1/2 S_fp S_pp^-1/2 =
        U D V'``: the diagonal of D are the canonical correlations, ``x = V_r' S_pp^-1/2 p`` the states (V_r: the first
        r columns of V), ``e = (I - V_r V_r') S_pp^-1/2 p`` the residuals; ``T2 = x'x``, ``Q = e'e``. The score is
        ``max(T2 / T2_limit, Q / Q_limit)``. Each limit is the quantile at ``confidence`` of a kernel density estimate
        of the training rows' values (Gaussian kernels of width ``1.06 s n^-1/5``, s the standard deviation of the n
        values).
    Differences
        In the paper the past of row t ends with row t - 1, here with row t, so that a row's score sees the row itself.
        The paper inverts the sample covariances, whose inverse does not exist or is noise with few rows, many sensors
        or collinear ones; here the covariance of past and future together is shrunk towards a multiple of the identity
        by Ledoit and Wolf's formula. A row that breaks an exact collinearity scores high, but not without bound. The
        paper watches two charts; here the larger statistic counts.
    Defaults
        ``past``, ``future``, ``states`` and ``confidence`` are the paper's: 15, 15, 25 (chosen where the canonical
        correlations fall) and 99 %. With up to three sensors there are fewer states, so that Q keeps some directions.

    References
    ----------
    W. E. Larimore, System identification, reduced-order filtering and modeling via canonical variate analysis, American
    Control Conference, 1983; C. Ruiz-Carcel, Y. Cao, D. Mba, L. Lao and R. T. Samuel, Statistical process monitoring of
    a multiphase flow facility, Control Engineering Practice 42, 2015. The shrinkage: O. Ledoit and M. Wolf, A
    well-conditioned estimator for large-dimensional covariance matrices, Journal of Multivariate Analysis 88(2), 2004.
    """

    traits: ClassVar[Traits] = Traits(
        family="statistics", paper="Ruiz-Carcel et al., Control Engineering Practice 42, 2015"
    )

    past: Annotated[int, Ge(1), Tune(2, 30, log=True), Cheap(5)] = 15
    future: Annotated[int, Ge(1), Tune(2, 30, log=True), Cheap(5)] = 15
    states: Annotated[int | None, Ge(1)] = None
    confidence: Annotated[float, Ge(0.5), Lt(1), Choice((0.95, 0.99, 0.999))] = 0.99
    smoothing: Smoothing = 1

    def declared_traits(self) -> Traits:  # noqa: D102
        return replace(self.traits, memory=self.past - 1 + self.smoothing - 1)

    def _check(self, sensors: tuple[str, ...]) -> None:
        most = min(self.past, self.future) * len(sensors)
        few_enough = self.states is None or self.states <= most
        self._require(few_enough, "states", f"at most {most}, the sensors times the smaller of past and future")

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        self.standardiser_ = Standardiser.of(recordings)
        self.standardiser_.require_variation("CVA")
        length = self.past + self.future
        n_stretches = sum(max(0, recording.n_rows - length + 1) for recording in recordings)
        if n_stretches < 2:
            raise DataError(
                f"CVA: expected at least 2 stretches of {length} training rows (past + future) within a recording, "
                f"found {n_stretches}; train on longer recordings or make past or future smaller"
            )
        z = [self.standardiser_.varying_z_scores(recording.values) for recording in recordings]
        mean, covariance = shrunk_covariance([rows for rows in z if len(rows) >= length], length)
        if np.trace(covariance) <= NEGLIGIBLE_VARIANCE:
            raise DataError(
                f"CVA: expected stretches of {length} training rows (past + future) that differ, found {n_stretches} "
                f"equal ones; train on more rows"
            )
        n_past = self.past * z[0].shape[1]
        self.past_mean_ = mean[:n_past]
        scale_past = _inverse_root(covariance[:n_past, :n_past])
        scale_future = _inverse_root(covariance[n_past:, n_past:])
        correlations, variates = svd(scale_future @ covariance[n_past:, :n_past] @ scale_past)[1:]
        self.correlations_ = np.asarray(correlations)
        states = max(1, min(_PAPERS_STATES, n_past // 2)) if self.states is None else int(self.states)
        self.n_states_ = min(states, len(self.correlations_))
        # V's columns beyond the states give the residuals in fewer coordinates, with the same Q.
        self.variates_ = np.ascontiguousarray(scale_past @ np.asarray(variates).T)
        self.limits_ = np.ones(2)  # until the statistics of the training rows are known
        full = [self._statistics(recording)[self.past - 1 :] for recording in recordings]
        t2, q = np.concatenate(full).T
        q_limit = _kernel_density_limit(q, self.confidence) if self.n_states_ < n_past else np.inf
        self.limits_ = np.maximum([_kernel_density_limit(t2, self.confidence), q_limit], _SMALLEST_LIMIT)

    def _training_facts(self) -> Mapping[str, float]:
        return {"states": self.n_states_}

    def _inputs(self, recording: Recording) -> FloatArray:
        """Return the past of every row, [n_rows, past, n_varying], the oldest row first; a view."""
        return trailing_windows(self.standardiser_.varying_z_scores(recording.values), self.past)

    def _split(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        p = rows.reshape(len(rows), -1) - self.past_mean_
        states, residuals = np.split(self.variates_, [self.n_states_], axis=1)
        t2, q = (
            (p * (p @ part @ part.T)).reshape(rows.shape).sum(axis=1) / limit
            for part, limit in zip((states, residuals), self.limits_, strict=True)
        )
        return t2, q


def _inverse_root(covariance: FloatArray) -> FloatArray:
    """Return the symmetric inverse square root; variances are at least 1e-12 of the largest."""
    variances, vectors = eigh(covariance)
    variances = np.maximum(variances, NEGLIGIBLE_VARIANCE * variances[-1])
    root: FloatArray = (vectors / np.sqrt(variances)) @ vectors.T
    return root


def _kernel_density_limit(values: FloatArray, confidence: float) -> float:
    """Return the quantile at ``confidence`` of the kernel density estimate of values."""
    largest = float(values.max())
    if np.ptp(values) <= 1e-9 * largest:  # no width
        return largest
    width = float(values.std(ddof=1)) * (0.75 * len(values)) ** -0.2  # 1.06 s n^-1/5
    top = largest + 10 * width
    return float(brentq(lambda limit: float(ndtr((limit - values) / width).mean()) - confidence, 0.0, top))
