"""Audits a data set, including its labels, for flaws that make results look better than they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from tsadbench.analysis.audit import labels, overlap, sensors
from tsadbench.analysis.audit.findings import Finding, Part, by_entity, parts_of
from tsadbench.analysis.audit.label_noise import Fit, LabelChanges, label_changes, label_noise
from tsadbench.base.dataset import LabelledDataset
from tsadbench.leaderboard.render import Table, render
from tsadbench.utils.text import first_of

MARKS = {"good": "✓", "note": "·", "fault": "✗"}
# What the audit skips without labels or test recordings.
_MISSING = {
    "labels": "every test row counts as normal in what follows",
    "test recordings": "nothing is compared with the training recordings",
}


@dataclass(frozen=True, slots=True, eq=False)
class Audit:
    """The findings about a data set, in the order of the checks."""

    dataset: str
    version: int
    findings: tuple[Finding, ...]

    def __getitem__(self, about: str) -> Finding:
        """Return the finding of a check; raises a KeyError if there is none."""
        return {finding.about: finding for finding in self.findings}[about]

    @property
    def tables(self) -> list[Table]:
        """The tables behind all findings."""
        return [table for finding in self.findings for table in finding.tables]

    def text(self, form: Literal["json", "markdown"]) -> str:
        """Return the findings as a table, and the tables behind them, as JSON or Markdown."""
        every = Table("Findings", pd.DataFrame([finding.as_row() for finding in self.findings]))
        return render([every, *self.tables], form=form)


def audit(data: LabelledDataset, changes: LabelChanges | None = None, stored: Finding | None = None) -> Audit:
    """Audit a data set; without labels, all test rows count as normal, and checks of events are skipped.

    ``changes`` of the labels default to those of `label_changes`; ``stored`` is the finding of `label_noise` on stored
    trials.
    """
    findings = tuple(_findings(data, label_changes(data) if changes is None else changes, stored))
    return Audit(data.dataset.name, data.dataset.version, findings)


def _findings(data: LabelledDataset, changes: LabelChanges, stored: Finding | None) -> Iterator[Finding]:
    dataset, parts, missing = data.dataset, parts_of(data), data.missing
    one_liners = () if missing else labels.one_liner_scores(parts, dataset.folder)
    if missing:
        cannot = "checks of events and their predictors are skipped"
        sentence = f"No {missing}: {_MISSING[missing]}; {cannot}."
        yield Finding(missing.replace(" ", "-"), "note", sentence, f"no {missing}")
    else:
        event_table = labels.event_table(parts)
        yield labels.anomalies(event_table)
        yield from _entities(parts)
        yield labels.events(event_table)
        yield from labels.predictors(data, parts, one_liners)
        yield labels.trivial(event_table)
    pairs = overlap.recordings_sharing_rows(dataset.train, dataset.test, data.labels.rows)
    copies = overlap.copies_of(data)
    if dataset.test:
        yield overlap.overlap(parts)
        yield from overlap.shared(pairs, copies, data)
    yield overlap.copies(copies, pairs, sum(one.n_rows for one in dataset.test))
    sensor_table = by_entity(parts, sensors.of_sensors)
    if dataset.test:
        yield from overlap.sessions(copies, dataset.sessions)
        yield sensors.shift(parts)
        yield sensors.out_of_range(sensor_table)
    yield from sensors.recordings(data)
    if dataset.test:
        yield from sensors.of_table(sensor_table)
    if not missing:
        fits = [Fit(name, scores) for part in one_liners for name, scores in part.items()]
        yield label_noise(f"one-liners on all test rows of {dataset.name}", fits, changes)
    if stored is not None:
        yield stored


def _entities(parts: Sequence[Part]) -> Iterator[Finding]:
    """Report the number of entities, and those that cannot be trained or judged; nothing for one trained entity."""
    untrained = [part.entity or "the data set" for part in parts if not part.train]
    one_class = [part.entity for part in parts if part.anomalous.all() or not part.anomalous.any()]
    sentence = f"{len(parts)} entities, one model each: figures are means over them, scores are never pooled."
    brief = f"{len(one_class)} of {len(parts)} entities have test rows of one class" * bool(one_class)
    if untrained:
        names = first_of(untrained)
        yield Finding("entities", "fault", f"Without training recordings: {names}.", f"{names} cannot be trained")
    elif len(parts) > 1:
        if one_class:
            sentence += f" Test rows of one class, which take no part in these means: {first_of(one_class)}."
        yield Finding("entities", "note" if one_class else "good", sentence, brief)
