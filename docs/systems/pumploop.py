"""Make the tables of docs/systems/pumploop.md anew, from the simulator: ``python docs/systems/pumploop.py``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score

from tsadbench.analysis.audit.predictors import position_scores
from tsadbench.base.dataset import DataOptions
from tsadbench.datasets.pumploop import TOLERANCE, labels_of, load, simulate
from tsadbench.datasets.pumploop.loop import SENSORS
from tsadbench.datasets.pumploop.plan import FAULTS, SIZES, Course, faulty_courses
from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench.utils.markdown import fill_blocks, number, table_lines

PAGE = Path(__file__).with_suffix(".md")
# How an amount of each fault is written.
AMOUNTS: Mapping[str, str] = {
    "valve1": "valve after the pump {0:.0%} closed",
    "valve2": "valve before the pump {0:.0%} closed",
    "unbalance": "{1:.0f} mg more vibration",
    "air": "{0:.1%} of the water is air",
    "leak": "{0:.0%} of the flow",
    "friction": "{0:.0f} W more in the bearings",
    "winding": "{0:.0f} Ohm more",
    "fouling": "{0:.0%} less heat given off",
    "wear": "{0:.0%} of the head lost",
}


class Measured(NamedTuple):
    """How hard a recording's fault is.

    Parameters
    ----------
    course
        The recording's course.
    labels
        Its anomalous rows, [n_rows].
    distance, hidden
        As the page defines them.
    after
        Anomalous rows after the fault.
    sensor
        The one that is furthest from the twin run on the average of the anomalous rows.
    """

    course: Course
    labels: BoolArray
    distance: float
    hidden: float
    after: int
    sensor: str


def measured() -> list[Measured]:
    """Return a figure for every test recording: simulated with its fault, and without."""
    deviations = np.concatenate([one.values for one in load(DataOptions()).dataset.train]).std(axis=0)
    courses = faulty_courses()
    faulty, twins = simulate(courses), simulate([course.twin for course in courses])
    return [_measure(*one, deviations) for one in zip(courses, faulty, twins, strict=True)]


def _measure(course: Course, values: FloatArray, twin: FloatArray, deviations: FloatArray) -> Measured:
    labels, apart = labels_of(course, values, twin), np.abs(values - twin)
    far = apart[labels] / deviations
    return Measured(
        course=course,
        labels=labels,
        distance=float(np.linalg.norm(far, axis=1).mean()),
        hidden=float((apart[labels] <= TOLERANCE).all(axis=1).mean()),
        after=int(labels[max(course.last, 0) :].sum()),
        sensor=SENSORS[int(far.mean(axis=0).argmax())],
    )


def fault_lines(every: list[Measured]) -> list[str]:
    """Return a table with a row for each fault and size."""
    rows = []
    for fault, amounts in FAULTS.items():
        for size, amount in zip(SIZES, amounts, strict=True):
            found = [one for one in every if (one.course.fault, one.course.size) == (fault, size)]
            sensors = sorted({one.sensor for one in found})
            rows.append(
                [
                    fault,
                    f"{size}: {AMOUNTS[fault].format(amount, 1000 * amount)}",
                    _spread([one.distance for one in found], 2),
                    number(float(np.mean([one.hidden for one in found])), 2),
                    str(round(np.mean([one.after for one in found]))),
                    ", ".join(sensors),
                ]
            )
    return table_lines(["fault", "size", "distance", "hidden", "rows after it", "shows most in"], rows)


def session_lines(every: list[Measured]) -> list[str]:
    """Return a table with a row for each session."""
    rows = []
    for session in dict.fromkeys(one.course.session for one in every):
        found = [one for one in every if one.course.session == session]
        labels = np.concatenate([one.labels for one in found])
        rows.append(
            [
                session,
                f"{len(labels):,}",
                f"{labels.mean():.1%}",
                number(_position(every, session), 2),
                _spread([one.distance for one in found], 2),
            ]
        )
    return table_lines(["session", "rows", "anomalous", "position", "distance"], rows)


def _spread(values: list[float], decimals: int) -> str:
    low, mean, high = (number(float(value), decimals) for value in (min(values), np.mean(values), max(values)))
    return f"{mean} ({low} to {high})"


def _position(every: list[Measured], session: str) -> float:
    """Return the AUROC of position in one session, learned from the others."""
    truth = {one.course.id: one.labels for one in every}
    scores = position_scores(truth, {one.course.id: one.course.session for one in every})
    inside = [(one.labels, score) for one, score in zip(every, scores, strict=True) if one.course.session == session]
    labels, scored = (np.concatenate(parts) for parts in zip(*inside, strict=True))
    return float(roc_auc_score(labels, scored))


def filled(text: str) -> str:
    """Return the page with its tables made anew; other blocks are docs/readme.py's."""
    every = measured()
    tables = {"faults": lambda: fault_lines(every), "sessions": lambda: session_lines(every)}
    return fill_blocks(text, lambda name: tables[name]() if name in tables else None)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
