"""pumploop: a simulated water-pump loop that ships with the package, for machines without any other data.

An inverter feeds a motor, the motor drives a centrifugal pump, the pump pushes water from a tank through a valve before
it and a valve after it, and back. Eight sensors, named as in SKAB; one row a second (`pump_physics` has the equations,
`pump_sessions` what happens). Everything is drawn from seeds, one a session, and takes part of a second.

Because it is simulated, the truth is known: every test recording is simulated twice, with its fault and without, from
the same draws. A row is anomalous while the fault lasts, and after it until the loop is back where it would have been:
until every sensor, without noise, stays within `TOLERANCE` of the twin run (`labels_of`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from pydantic import NonNegativeInt

from tsadbench.base.dataset import Cause, DataOptions, Dataset, LabelledDataset, Labels
from tsadbench.base.prior import Prior
from tsadbench.base.recording import Recording
from tsadbench.datasets.pump_physics import NOMINAL_VOLTAGE, SENSORS, Fault, Loop
from tsadbench.datasets.pump_sessions import (
    FAULTS,
    FIRST_SENSORS,
    NOISE,
    SIZES,
    WARM_UP,
    Course,
    faulty_courses,
    sound_courses,
)
from tsadbench.utils.arrays import BoolArray, FloatArray, mask_runs, read_only

# How far a sensor may be from the twin run where the loop counts as back: what three noise deviations hide.
TOLERANCE = 3 * NOISE
CITATION = "Simulated by tsadbench (tsadbench.datasets.pumploop); no real plant stands behind it."
_DATASETS = Path(__file__).parent


def load(options: DataOptions, *, seed: NonNegativeInt | None = None) -> LabelledDataset:  # noqa: ARG001 - no files
    """Return pumploop: 9,000 normal rows to train on, nine test sessions in which each of nine faults occurs once.

    Splits: ``overall``, one for each fault, one for each size. The same numbers on every machine: they are rounded as
    sensors round. Another seed draws another plant, called ``pumploop[seed=N]``, which no detector can have seen.
    """
    # NumPy pads short entropy with zeros: without the ones, seeds 0 and 1 would share draws with pumploop itself.
    key = () if seed is None else (seed, 1, 1)
    name = "pumploop" if seed is None else f"pumploop[seed={seed}]"
    training, test, labels = series(key)
    courses = faulty_courses(key)
    splits = _splits(courses)
    dataset = Dataset(
        name=name,
        train=training,
        test=test,
        splits=splits,
        sessions={course.id: course.session for course in (*sound_courses(key), *courses)},
        description=(_DATASETS / "pumploop.description.md").read_text(encoding="utf-8"),
        prior=Prior.load(_DATASETS / "pumploop.prior.json", origin="pumploop"),
        citation=CITATION,
        licence="MIT",
    )
    causes = {course.id: _causes(course, labels[course.id]) for course in courses}
    return LabelledDataset(dataset, Labels(rows=labels, splits=splits, causes=causes))


_Series: TypeAlias = tuple[tuple[Recording, ...], tuple[Recording, ...], Mapping[str, BoolArray]]


@cache
def series(key: tuple[int, ...] = ()) -> _Series:
    """Return the training recordings, the test recordings and the labels of these by id, simulated once a process."""
    training, courses = sound_courses(key), faulty_courses(key)
    shown = simulate([*courses, *(course.twin for course in courses)])
    test = tuple(_recording(course, values) for course, values in zip(courses, shown, strict=False))
    labels = {
        course.id: read_only(labels_of(course, values, twin))
        for course, values, twin in zip(courses, shown, shown[len(courses) :], strict=False)
    }
    normal = tuple(_recording(*one) for one in zip(training, simulate(training), strict=True))
    return normal, test, MappingProxyType(labels)


def simulate(courses: Sequence[Course]) -> list[FloatArray]:
    """Return what the sensors show without noise, [n_rows, n_sensors] for each course; all loops run side by side."""
    asked, opening, air = (
        _side_by_side([getattr(course, name) for course in courses]) for name in ("asked", "opening", "air")
    )
    amounts = np.array([course.amount for course in courses], dtype=np.float64).T
    first, last = (np.array([getattr(course, name) for course in courses]) for name in ("first", "last"))
    loops, shown = Loop(asked[0] * NOMINAL_VOLTAGE, opening[0], air[0]), []
    for second in range(len(asked)):
        row = second - WARM_UP
        fault = Fault(*(amounts * ((first <= row) & (row < last))))
        sensors = loops.step(asked[second] * NOMINAL_VOLTAGE, opening[second], air[second], fault)
        if row >= 0:
            shown.append(np.stack(sensors, axis=1))
    every = np.stack(shown, axis=1)
    return [values[: course.n_rows] for course, values in zip(courses, every, strict=True)]


def labels_of(course: Course, values: FloatArray, twin: FloatArray) -> BoolArray:
    """Return which rows are anomalous: the fault's, and those after it in which the loop is not yet back.

    ``values`` and ``twin`` are what the sensors show without noise, with the fault and without it, [n_rows, n_sensors].
    """
    row = np.arange(course.n_rows)
    away = np.flatnonzero((np.abs(values - twin) > TOLERANCE).any(axis=1) & (row >= course.last))
    return (row >= course.first) & (row < max(course.last, int(away[-1]) + 1 if len(away) else 0))


def _causes(course: Course, anomalous: BoolArray) -> tuple[Cause, ...]:
    return tuple(Cause(start, stop, FIRST_SENSORS[course.fault]) for start, stop in mask_runs(anomalous))


def _side_by_side(series: Sequence[FloatArray]) -> FloatArray:
    """Return series as columns, [longest, n_series]; shorter ones repeat their last value."""
    longest = max(len(one) for one in series)
    return np.stack([np.pad(one, (0, longest - len(one)), mode="edge") for one in series], axis=1)


def _recording(course: Course, values: FloatArray) -> Recording:
    rounded = np.round(values + course.noise, 4)
    return Recording(id=course.id, values=rounded, sensors=SENSORS, time=course.start + np.arange(float(course.n_rows)))


def _splits(courses: Sequence[Course]) -> Mapping[str, tuple[str, ...]]:
    faults = {name: tuple(course.id for course in courses if course.fault == name) for name in FAULTS}
    sizes = {name: tuple(course.id for course in courses if course.size == name) for name in SIZES}
    return {"overall": tuple(course.id for course in courses), **faults, **sizes}
