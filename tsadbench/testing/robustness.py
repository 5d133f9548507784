"""Checks that it survives what real data contain."""

from __future__ import annotations

import numpy as np

from tsadbench.base.recording import Recording
from tsadbench.testing import synthetic
from tsadbench.testing.check import Failed, Group, Skipped
from tsadbench.testing.detector_under_test import DetectorUnderTest
from tsadbench.utils.arrays import FloatArray

group = Group("robustness")


@group.check("large-numbers", "Sensors with large offsets and tiny or huge spreads get finite scores.")
def large_numbers(subject: DetectorUnderTest) -> None:
    """Fit and score rows with offsets of a million and spreads from 1e-3 to 1e4."""
    factors, offsets = np.array([1e-3, 1.0, 1e4, 1e3]), np.array([1e6, -1e6, 0.0, 1e5])
    _fit_and_score(subject, lambda values: values * factors + offsets)


@group.check("constant-sensor", "A sensor that never moves in training, and moves in the test, does no harm.")
def constant_sensor(subject: DetectorUnderTest) -> None:
    """Hold one sensor still in the training rows."""

    def still(values: FloatArray) -> FloatArray:
        values[:, 1] = 7.0
        return values

    train = [synthetic.changed(recording, still) for recording in subject.train()]
    _require_scored(subject, train, subject.test())
    _require_scored(subject, train, synthetic.changed(subject.test(), still))


@group.check("duplicate-sensor", "Two identical sensors do no harm.")
def duplicate_sensor(subject: DetectorUnderTest) -> None:
    """Make one sensor repeat another."""

    def repeat(values: FloatArray) -> FloatArray:
        values[:, 1] = values[:, 0]
        return values

    _fit_and_score(subject, repeat)


@group.check("single-sensor", "One sensor alone is enough.", declinable=True)
def single_sensor(subject: DetectorUnderTest) -> None:
    """Leave all sensors out but one."""
    if subject.traits.needs_prior:
        raise Skipped("it needs a prior: couplings between sensors")

    def first(recording: Recording) -> Recording:
        return synthetic.recording(recording.values[:, :1], recording.id, recording.sensors[:1])

    _require_scored(subject, [first(recording) for recording in subject.train()], first(subject.test()))


@group.check("units", "A fault is found equally well if all sensors are given in units a million times larger.")
def units(subject: DetectorUnderTest) -> None:
    """Fit and score rows times 1e-6."""
    if subject.constant:
        raise Skipped("its scores are constant anyway")
    faulty, labels = synthetic.with_fault(subject.test(), 120, 160)

    def auroc(factor: float) -> float:
        train = [synthetic.changed(recording, lambda values: values * factor) for recording in subject.train()]
        scores = subject.make().fit(train).score(synthetic.changed(faulty, lambda values: values * factor))
        return synthetic.auroc(scores, labels)

    usual, small = auroc(1.0), auroc(1e-6)
    if usual - small > 0.1:
        raise Failed("the fault is lost in other units", auroc=usual, auroc_in_other_units=small)


@group.check("rounding", "Values rounded to seven digits get nearly the same scores.", "scores")
def rounding(subject: DetectorUnderTest) -> None:
    """Score float32 values."""
    if subject.constant:
        raise Skipped("its scores are constant anyway")
    expected = subject.score(subject.test())
    rounded = synthetic.changed(subject.test(), lambda values: values.astype(np.float32).astype(np.float64))
    moved = float(np.nanmedian(np.abs(subject.score(rounded) - expected)))
    if moved > 0.05 * float(np.nanstd(expected)):
        raise Failed("scores depend on the last bits of values", typical_difference=moved)


@group.check("no-time", "Recordings without time are scored too: some protocols have none.")
def no_time(subject: DetectorUnderTest) -> None:
    """Fit and score without time."""

    def timeless(recording: Recording) -> Recording:
        return Recording(recording.id, recording.values, recording.sensors)

    _require_scored(subject, [timeless(recording) for recording in subject.train()], timeless(subject.test()))


@group.check("short-recordings", "Recordings shorter than a window are accepted, even if all scores are NaN.")
def short_recordings(subject: DetectorUnderTest) -> None:
    """Score recordings of one row and of lengths around the warm-up."""
    detector = subject.fitted
    for n_rows in sorted({1, 2, max(1, subject.reach - 1), max(1, subject.reach), subject.reach + 1}):
        try:
            detector.score(subject.test(n_rows=n_rows))
        except Exception as error:
            raise Failed(f"a recording of {n_rows} rows: {type(error).__name__}: {error}", n_rows=n_rows) from error


def _fit_and_score(subject: DetectorUnderTest, change: synthetic.Change) -> None:
    train = [synthetic.changed(recording, change) for recording in subject.train()]
    _require_scored(subject, train, synthetic.changed(subject.test(), change))


def _require_scored(subject: DetectorUnderTest, train: list[Recording], test: Recording) -> None:
    missing = np.isnan(subject.make().fit(train).score(test)) & ~np.isnan(subject.score(subject.test()))
    if missing.any():
        raise Failed("rows that normally have a score have none", first_row=int(missing.argmax()))
