"""What happens to the loop: sessions, which fault comes when and how large, and what operators ask for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.signal import lfilter

from tsadbench.datasets.pump_physics import SENSORS, SOUND, Fault
from tsadbench.utils.arrays import FloatArray

N_TRAIN, TRAIN_ROWS = 6, 1500
N_SESSIONS = 9  # of the test, each from a seed of its own: 0 to 8
SIZES = ("small", "medium", "large")
# The amounts of `SIZES`, in the units of `Fault`.
FAULTS: Mapping[str, tuple[float, float, float]] = {
    "valve1": (0.2, 0.35, 0.5),
    "valve2": (0.3, 0.45, 0.6),
    "unbalance": (0.012, 0.024, 0.048),
    "air": (0.005, 0.01, 0.02),
    "leak": (0.04, 0.08, 0.16),
    "friction": (6.0, 12.0, 25.0),
    "winding": (5.0, 10.0, 20.0),
    "fouling": (0.15, 0.3, 0.6),
    "wear": (0.03, 0.06, 0.12),
}
# The sensors that each fault shows in first, by the equations alone (docs/systems/pumploop.md has the reasons).
FIRST_SENSORS: Mapping[str, tuple[str, ...]] = {
    "valve1": ("Pressure", "Volume Flow RateRMS"),
    "valve2": ("Pressure", "Volume Flow RateRMS", "Accelerometer1RMS", "Accelerometer2RMS"),
    "unbalance": ("Accelerometer1RMS",),
    "air": ("Pressure", "Volume Flow RateRMS", "Accelerometer1RMS", "Accelerometer2RMS"),
    "leak": ("Volume Flow RateRMS",),
    "friction": ("Current", "Temperature"),
    "winding": ("Current", "Temperature"),
    "fouling": ("Temperature", "Thermocouple"),
    "wear": ("Pressure", "Volume Flow RateRMS"),
}
WARM_UP = 1800  # seconds before a recording's first row, so that its heat does not give its beginning away
_TEST_ROWS, _FAULT_ROWS = (560, 741), (200, 301)  # from, up to but without
_LEAST = 60  # rows of the fault that lie inside its recording: no protocol leaves out more at the borders
# Standard deviations of the sensors' noise, in their order and units.
NOISE = np.array([0.004, 0.004, 0.015, 0.006, 0.15, 0.1, 0.35, 0.25])


class Course(NamedTuple):
    """What one recording is made of. Arrays begin `WARM_UP` seconds before its first row, unless said otherwise."""

    id: str
    session: str
    fault: str  # a key of `FAULTS`; empty if the loop is sound
    size: str  # one of `SIZES`
    first: int  # the fault's rows from the recording's first one on: it may begin before row 0, with a negative number,
    last: int  # and outlast the recording; the first row without it
    asked: FloatArray  # voltage asked for as a share of the nominal one
    opening: FloatArray  # of the valves
    air: FloatArray  # degrees Celsius around the loop
    noise: FloatArray  # of the sensors, [n_rows, n_sensors]: rows of the recording alone
    start: float  # time of the recording's first row, s

    @property
    def n_rows(self) -> int:
        """Rows of the recording."""
        return len(self.noise)

    @property
    def amount(self) -> Fault:
        """What is wrong while the fault lasts."""
        return SOUND._replace(**{self.fault: FAULTS[self.fault][SIZES.index(self.size)]}) if self.fault else SOUND

    @property
    def twin(self) -> Course:
        """The same without the fault."""
        return self._replace(fault="", size="")


def sound_courses(key: Sequence[int] = ()) -> list[Course]:
    """Return the recordings of the sound loop, a session each."""
    courses = []
    for number in range(N_TRAIN):
        generator, name = np.random.default_rng([*key, 0, number]), f"train-{number}"
        courses.append(_course(generator, f"normal/{number}", name, TRAIN_ROWS, *_day(generator)))
    return courses


def faulty_courses(key: Sequence[int] = ()) -> list[Course]:
    """Return the recordings with faults: each session has each fault once, in sizes and places that are balanced.

    Which size a fault has in a session, and in which ninth of its recording it begins, are two orthogonal Latin
    squares: over the sessions each fault comes three times in each size and once from each ninth, and each size comes
    equally often from each ninth. So a row's place says next to nothing about its label, whatever the seeds.
    """
    return [course for session in range(N_SESSIONS) for course in _session(session, key)]


def _session(number: int, key: Sequence[int]) -> list[Course]:
    generator = np.random.default_rng([*key, 1, number])
    air, start = _day(generator)
    courses = []
    for place, fault in enumerate(FAULTS):
        n_rows, length = int(generator.integers(*_TEST_ROWS)), int(generator.integers(*_FAULT_ROWS))
        ninth = (place + 2 * number) % N_SESSIONS
        earliest, latest = _LEAST - length, n_rows - _LEAST
        first = math.floor(earliest + (latest - earliest) * (ninth + generator.uniform()) / N_SESSIONS)
        course = _course(generator, f"{fault}/{number}", f"test-{number}", n_rows, air, start + 7200.0 * place)
        size = SIZES[(place + number) % len(SIZES)]
        courses.append(course._replace(fault=fault, size=size, first=first, last=first + length))
    return courses


def _day(generator: np.random.Generator) -> tuple[float, float]:
    """Return what a session's recordings have in common: how warm it is, and when it began."""
    return float(generator.uniform(18.0, 26.0)), float(generator.integers(1_700_000_000, 1_800_000_000))


def _course(generator: np.random.Generator, name: str, session: str, n_rows: int, air: float, start: float) -> Course:
    seconds = WARM_UP + n_rows
    return Course(
        id=name, session=session, fault="", size="", first=0, last=0,
        asked=_operating_points(generator, seconds, 0.7, 1.0) * (1 + _wander(generator, seconds, 0.006)),
        opening=_operating_points(generator, seconds, 0.4, 1.0),
        air=air + float(generator.uniform(-2.0, 2.0)) + np.cumsum(generator.normal(0.0, 0.01, seconds)),
        noise=generator.normal(size=(n_rows, len(SENSORS))) * NOISE,
        start=start,
    )  # fmt: skip


def _operating_points(generator: np.random.Generator, seconds: int, low: float, high: float) -> FloatArray:
    """Return what operators set, [seconds]: each value is held for 40 to 240 s."""
    points: list[float] = []
    while len(points) < seconds:
        points += [float(generator.uniform(low, high))] * int(generator.integers(40, 241))
    return np.array(points[:seconds])


def _wander(generator: np.random.Generator, seconds: int, deviation: float) -> FloatArray:
    """Return noise with a memory of some 20 s, [seconds]."""
    kept = 0.95
    drawn = generator.normal(0.0, deviation * math.sqrt(1 - kept**2), seconds)
    return np.asarray(lfilter([1.0], [1.0, -kept], drawn), dtype=np.float64)
