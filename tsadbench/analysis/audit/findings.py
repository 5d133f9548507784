"""The input and the findings of an audit, and the committed findings on the data sets that ship with tsadbench."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.recording import Recording
from tsadbench.leaderboard.render import Table
from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench.utils.grouping import grouped
from tsadbench.utils.text import first_of

Grade: TypeAlias = Literal["good", "note", "fault"]

# Written by docs/audits/write.py (`make audits`): {"schema", "datasets": {name: {"version", "findings"}}}.
SHIPPED = Path(__file__).with_name("findings.json")


class Part(NamedTuple):
    """Recordings of one entity, in the data set's order, and their joined rows. Training or test may be missing.

    ``entity`` is empty if the data set has at most one; then the part is the whole data set. ``splits`` only have this
    entity's recordings. Rows are [n_rows, n_sensors]. Labels, by test recording's id and for all test rows, are True
    where anomalous; all False without labels.
    """

    entity: str
    sensors: tuple[str, ...]
    train: tuple[Recording, ...]
    test: tuple[Recording, ...]
    splits: Mapping[str, tuple[str, ...]]
    labels: Mapping[str, BoolArray]
    train_rows: FloatArray
    test_rows: FloatArray
    anomalous: BoolArray


def parts_of(data: LabelledDataset) -> tuple[Part, ...]:
    """Return a part per entity with test recordings, in the order of their first test recordings.

    Without test recordings, every entity is a part.
    """
    dataset, parts = data.dataset, []
    of_train, of_test = (
        grouped(recordings, lambda recording: dataset.entities.get(recording.id, ""))
        for recordings in (dataset.train, dataset.test)
    )
    several, none = len({*of_train, *of_test}) > 1, np.empty((0, len(dataset.sensors)))
    for entity in of_test or of_train:
        train, test = of_train.get(entity, ()), of_test.get(entity, ())
        labels = {one.id: data.labels.rows.get(one.id, np.zeros(one.n_rows, dtype=np.bool_)) for one in test}
        members = {split: tuple(one for one in every if one in labels) for split, every in dataset.splits.items()}
        splits = {split: own for split, own in members.items() if own}
        train_rows, test_rows = (np.concatenate([none, *(one.values for one in of)]) for of in (train, test))
        of_rows = train_rows, test_rows, np.concatenate([none[:, 0] > 0, *labels.values()])
        parts.append(Part(entity if several else "", dataset.sensors, train, test, splits, labels, *of_rows))
    return tuple(parts)


def by_entity(parts: Sequence[Part], describe: Callable[[Part], Mapping[str, object]]) -> pd.DataFrame:
    """Return a row per part, with a column "entity" if the data set has several."""
    frame = pd.DataFrame([{"entity": part.entity, **describe(part)} for part in parts])
    return frame if any(part.entity for part in parts) else frame.drop(columns="entity")


def within(rows: pd.DataFrame) -> str:
    """Return the entities of some rows of `by_entity` as " in a, b"; "" if the data set has at most one."""
    names = list(rows.get("entity", ()))
    return f" in {first_of(names)}" if names else ""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check of an audit, with the tables behind it; ``about`` is the check's stable name.

    The grade is "good", "note" (worth knowing) or "fault" (tables over the data set mean less). ``brief`` is a
    short form for notes under tables; not used if the grade is good, empty if another finding's brief covers it.
    """

    about: str
    grade: Grade
    sentence: str
    brief: str = ""
    tables: tuple[Table, ...] = field(default=(), compare=False)

    def as_row(self) -> dict[str, str]:
        """Return the finding without its tables, and without the brief of a good one."""
        brief = "" if self.grade == "good" else self.brief
        return {"about": self.about, "grade": self.grade, "sentence": self.sentence, "brief": brief}


def summary(findings: Sequence[Finding]) -> str:
    """Return the faults in one line, or "no fault found"."""
    return "; ".join(one.brief for one in findings if one.grade == "fault" and one.brief) or "no fault found"


def shipped_findings(dataset: str, version: int | None = None) -> tuple[Finding, ...]:
    """Return the committed audit findings of a data set, good ones included; () if there are none for this version."""
    audited = _shipped().get(dataset)
    if audited is None or version not in (None, audited["version"]):
        return ()
    return tuple(Finding(**finding) for finding in audited["findings"])


def shipped_note(dataset: str, version: int | None = None) -> str:
    """Return a data set's audit faults as a line for notes under tables; "" if tsadbench ships no audit of it.

    >>> print(shipped_note("pumploop"))
    pumploop: no fault found (docs/audits/pumploop.md).
    """
    findings = shipped_findings(dataset, version)
    return f"{dataset}: {summary(findings)} (docs/audits/{dataset}.md)." if findings else ""


@cache
def _shipped() -> dict[str, Any]:
    datasets: dict[str, Any] = json.loads(SHIPPED.read_bytes())["datasets"]
    return datasets
