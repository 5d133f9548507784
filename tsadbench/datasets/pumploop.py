"""pumploop: a simulated water-pump loop that ships with the package and needs no files.

An inverter feeds a motor, the motor drives a centrifugal pump, the pump pushes water from a tank through a valve before
it and a valve after it, and back. Eight sensors, named as in SKAB; one row a second (`pump_physics` has the equations).
Everything is drawn from seeds, one per session, in less than a second.

The simulation knows the truth: every test recording is simulated twice from the same draws, with its fault and without
(the twin run). A row is anomalous while the fault lasts, and after it until every sensor, without noise, stays within
`TOLERANCE` of the twin run (`labels_of`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import NonNegativeInt
from scipy.signal import lfilter

from tsadbench.base.dataset import Cause, DataOptions, Dataset, LabelledDataset, Labels
from tsadbench.base.prior import Prior
from tsadbench.base.recording import Recording
from tsadbench.datasets.pump_physics import NOMINAL_VOLTAGE, SENSORS, SOUND, Fault, Loop
from tsadbench.utils.arrays import BoolArray, FloatArray, mask_runs, read_only

_HERE = Path(__file__).parent
_N_TRAIN, _TRAIN_ROWS = 6, 1500
_N_SESSIONS = 9  # test sessions
WARM_UP = 1800  # seconds simulated before the first row, so that temperatures do not reveal the beginning
_TEST_ROWS, _FAULT_ROWS = (560, 741), (200, 301)  # half-open ranges
_LEAST = 60  # rows of each fault inside its recording: more than any protocol drops at the borders
# Standard deviations of the sensors' noise, in their order and units.
NOISE = np.array([0.004, 0.004, 0.015, 0.006, 0.15, 0.1, 0.35, 0.25])
# The loop has recovered when each sensor is this close to the twin run: three standard deviations of its noise.
TOLERANCE = 3 * NOISE


SIZES = ("small", "medium", "large")
_HYDRAULIC, _VIBRATION = ("Pressure", "Volume Flow RateRMS"), ("Accelerometer1RMS", "Accelerometer2RMS")
# Amounts by `SIZES`, in the units of `Fault`, and the sensors that the equations blame (docs/systems/pumploop.md).
FAULTS: Mapping[str, tuple[tuple[float, float, float], tuple[str, ...]]] = {
    "valve1": ((0.2, 0.35, 0.5), _HYDRAULIC),
    "valve2": ((0.3, 0.45, 0.6), (*_HYDRAULIC, *_VIBRATION)),
    "unbalance": ((0.012, 0.024, 0.048), ("Accelerometer1RMS",)),
    "air": ((0.005, 0.01, 0.02), (*_HYDRAULIC, *_VIBRATION)),
    "leak": ((0.04, 0.08, 0.16), ("Volume Flow RateRMS",)),
    "friction": ((6.0, 12.0, 25.0), ("Current", "Temperature")),
    "winding": ((5.0, 10.0, 20.0), ("Current", "Temperature")),
    "fouling": ((0.15, 0.3, 0.6), ("Temperature", "Thermocouple")),
    "wear": ((0.03, 0.06, 0.12), _HYDRAULIC),
}


class Course(NamedTuple):
    """The inputs of one recording. Arrays begin `WARM_UP` seconds before its first row, unless stated otherwise."""

    id: str
    session: str
    start: float  # time of the recording's first row, s
    asked: FloatArray  # requested voltage as a share of the nominal voltage
    opening: FloatArray  # of the valves
    air: FloatArray  # degrees Celsius around the loop
    noise: FloatArray  # of the sensors, [n_rows, n_sensors], from the first row on
    fault: str = ""  # a key of `FAULTS`; empty if the loop is sound
    size: str = ""  # one of `SIZES`
    amount: Fault = SOUND  # what is wrong while the fault lasts
    first: int = 0  # the fault's first row; negative if it begins before the recording
    last: int = 0  # the row after the fault's last row; beyond the recording if it outlasts it

    @property
    def n_rows(self) -> int:
        """Rows of the recording."""
        return len(self.noise)


def load(options: DataOptions, *, seed: NonNegativeInt | None = None) -> LabelledDataset:  # noqa: ARG001 - no files
    """Return pumploop: 9,000 normal rows to train on, nine test sessions in which each of nine faults occurs once.

    Splits: ``overall``, one per fault, and one per size. Values are rounded like a sensor's and are the same on every
    machine. Another seed draws another plant, ``pumploop[seed=N]``, which no detector can have seen.
    """
    return _plant(seed)


@cache
def _plant(seed: int | None) -> LabelledDataset:
    # NumPy pads short entropy with zeros: without the ones, seeds 0 and 1 would share draws with pumploop itself.
    key = () if seed is None else (seed, 1, 1)
    sound, courses = sound_courses(key), faulty_courses(key)
    shown = simulate([*courses, *(course._replace(amount=SOUND) for course in courses)])
    pairs = [*zip(courses, shown, shown[len(courses) :], strict=False)]
    labels = {course.id: read_only(labels_of(course, values, twin)) for course, values, twin in pairs}
    splits = {"overall": tuple(course.id for course in courses)}
    splits |= {name: tuple(course.id for course in courses if course.fault == name) for name in FAULTS}
    splits |= {name: tuple(course.id for course in courses if course.size == name) for name in SIZES}
    dataset = Dataset(
        name="pumploop" if seed is None else f"pumploop[seed={seed}]",
        train=tuple(_recording(course, values) for course, values in zip(sound, simulate(sound), strict=True)),
        test=tuple(_recording(course, values) for course, values, _ in pairs),
        splits=splits,
        sessions={course.id: course.session for course in (*sound, *courses)},
        description=(_HERE / "pumploop.description.md").read_text(encoding="utf-8"),
        prior=Prior.load(_HERE / "pumploop.prior.json", origin="pumploop"),
        citation="Simulated by tsadbench (tsadbench.datasets.pumploop); no real plant stands behind it.",
        licence="MIT",
    )
    causes = {
        course.id: tuple(Cause(*rows, FAULTS[course.fault][1]) for rows in mask_runs(labels[course.id]))
        for course in courses
    }
    return LabelledDataset(dataset, Labels(labels, splits, causes))


def sound_courses(key: Sequence[int] = ()) -> list[Course]:
    """Return the recordings of the sound loop, one session each."""
    generators = [np.random.default_rng([*key, 0, number]) for number in range(_N_TRAIN)]
    return [
        _course(generator, f"normal/{number}", f"train-{number}", _TRAIN_ROWS, *_day(generator))
        for number, generator in enumerate(generators)
    ]


def faulty_courses(key: Sequence[int] = ()) -> list[Course]:
    """Return the recordings with faults: each session has each fault once, in balanced sizes and places.

    Two orthogonal Latin squares set a fault's size in each session, and the ninth of the possible first rows in which
    it begins: over the sessions, each fault occurs three times in each size and once in each ninth, and each size
    equally often in each ninth. So a row's place says next to nothing about its label, whatever the seeds.
    """
    courses = []
    for number in range(_N_SESSIONS):
        generator = np.random.default_rng([*key, 1, number])
        air, start = _day(generator)
        for place, fault in enumerate(FAULTS):
            n_rows, length = int(generator.integers(*_TEST_ROWS)), int(generator.integers(*_FAULT_ROWS))
            ninth = (place + 2 * number) % _N_SESSIONS
            earliest, latest = _LEAST - length, n_rows - _LEAST
            first = math.floor(earliest + (latest - earliest) * (ninth + generator.uniform()) / _N_SESSIONS)
            course = _course(generator, f"{fault}/{number}", f"test-{number}", n_rows, air, start + 7200.0 * place)
            size = (place + number) % len(SIZES)
            amount = SOUND._replace(**{fault: FAULTS[fault][0][size]})
            wrong = course._replace(fault=fault, size=SIZES[size], amount=amount, first=first, last=first + length)
            courses.append(wrong)
    return courses


def _day(generator: np.random.Generator) -> tuple[float, float]:
    """Return the air temperature around which a session's recordings vary, and the start of the first."""
    return float(generator.uniform(18.0, 26.0)), float(generator.integers(1_700_000_000, 1_800_000_000))


def _course(generator: np.random.Generator, name: str, session: str, n_rows: int, air: float, start: float) -> Course:
    seconds = WARM_UP + n_rows
    return Course(
        name,
        session,
        start,
        asked=_operating_points(generator, seconds, 0.7, 1.0) * (1 + _wander(generator, seconds, 0.006)),
        opening=_operating_points(generator, seconds, 0.4, 1.0),
        air=air + float(generator.uniform(-2.0, 2.0)) + np.cumsum(generator.normal(0.0, 0.01, seconds)),
        noise=generator.normal(size=(n_rows, len(SENSORS))) * NOISE,
    )


def _operating_points(generator: np.random.Generator, seconds: int, low: float, high: float) -> FloatArray:
    """Return operators' set points [seconds]; each is held for 40 to 240 s."""
    points: list[float] = []
    while len(points) < seconds:
        points += [float(generator.uniform(low, high))] * int(generator.integers(40, 241))
    return np.array(points[:seconds])


def _wander(generator: np.random.Generator, seconds: int, deviation: float) -> FloatArray:
    """Return noise [seconds] with a correlation time of about 20 s."""
    kept = 0.95
    drawn = generator.normal(0.0, deviation * math.sqrt(1 - kept**2), seconds)
    return np.asarray(lfilter([1.0], [1.0, -kept], drawn), dtype=np.float64)


def simulate(courses: Sequence[Course]) -> list[FloatArray]:
    """Return the sensors' values without noise, [n_rows, n_sensors] per course; simulates all loops at once."""
    seconds = WARM_UP + max(course.n_rows for course in courses)
    asked, opening, air = (  # [seconds, n_courses]; shorter ones repeat their last value
        np.stack([np.pad(one, (0, seconds - len(one)), mode="edge") for one in inputs], axis=1)
        for inputs in zip(*((course.asked, course.opening, course.air) for course in courses), strict=True)
    )
    amounts = np.array([course.amount for course in courses], dtype=np.float64).T
    first, last = (np.array([getattr(course, name) for course in courses]) for name in ("first", "last"))
    loops, shown = Loop(asked[0] * NOMINAL_VOLTAGE, opening[0], air[0]), []
    for second in range(seconds):
        row = second - WARM_UP
        fault = Fault(*(amounts * ((first <= row) & (row < last))))
        sensors = loops.step(asked[second] * NOMINAL_VOLTAGE, opening[second], air[second], fault)
        if row >= 0:
            shown.append(np.stack(sensors, axis=1))
    every = np.stack(shown, axis=1)
    return [values[: course.n_rows] for course, values in zip(courses, every, strict=True)]


def labels_of(course: Course, values: FloatArray, twin: FloatArray) -> BoolArray:
    """Return which rows are anomalous: those of the fault, and those after it until the loop has recovered.

    ``values`` and ``twin`` [n_rows, n_sensors] are the sensors' values without noise, with and without the fault.
    """
    row = np.arange(course.n_rows)
    away = np.flatnonzero((np.abs(values - twin) > TOLERANCE).any(axis=1) & (row >= course.last))
    return (row >= course.first) & (row < max(course.last, int(away[-1]) + 1 if len(away) else 0))


def _recording(course: Course, values: FloatArray) -> Recording:
    rounded = np.round(values + course.noise, 4)
    return Recording(id=course.id, values=rounded, sensors=SENSORS, time=course.start + np.arange(float(course.n_rows)))
