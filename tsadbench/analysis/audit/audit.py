"""An audit: facts about a data set, and verdicts on them in sentences."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass

from tsadbench.analysis.audit import verdicts
from tsadbench.analysis.audit.events import EventFacts, event_facts
from tsadbench.analysis.audit.facts import RecordingFacts, facts_of
from tsadbench.analysis.audit.findings import Finding
from tsadbench.analysis.audit.overlap import (
    Copy,
    Overlap,
    SharedRows,
    copies_of,
    overlap_of,
    recordings_sharing_rows,
)
from tsadbench.analysis.audit.parts import parts_of
from tsadbench.analysis.audit.predictors import Predictor, one_liner_scores, predictors
from tsadbench.analysis.audit.sensors import SensorFacts, Shift, sensor_facts, shifts_of
from tsadbench.analysis.label_noise import Fit, LabelChange, LabelNoise, label_changes, label_noise
from tsadbench.base.dataset import Dataset, LabelledDataset

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """Facts about a data set, and the findings that follow.

    ``events``, ``overlap`` and ``sensors`` stand apart for each entity, which has a model of its own; ``shifts`` for
    every sensor in every split, or for every entity. ``predictors`` tell how well position, time and one-liners predict
    the labels, ``label_noise`` what other labels change for these and for stored trials. ``shared`` are pairs of
    recordings that share rows, ``copies`` stretches that occur twice.
    """

    dataset: str
    version: int
    entities: tuple[str, ...]
    recordings: tuple[RecordingFacts, ...]
    events: tuple[EventFacts, ...]
    predictors: tuple[Predictor, ...]
    label_noise: tuple[LabelNoise, ...]
    overlap: tuple[Overlap, ...]
    shared: tuple[SharedRows, ...]
    copies: tuple[Copy, ...]
    sensors: tuple[SensorFacts, ...]
    shifts: tuple[Shift, ...]
    findings: tuple[Finding, ...]

    def to_json(self) -> str:
        """Return the audit as JSON."""
        return json.dumps({"schema": SCHEMA, **dataclasses.asdict(self)}, indent=1, allow_nan=False) + "\n"


def audit(
    data: LabelledDataset, changes: Sequence[LabelChange] | None = None, stored: LabelNoise | None = None
) -> Audit:
    """Audit a data set, labels included. Without labels, every test row counts as normal, and no event is searched."""
    dataset, labels = data.dataset, data.labels.rows
    parts = parts_of(data)
    recordings = (
        *(facts_of(recording, "train", None) for recording in dataset.train),
        *(facts_of(recording, "test", labels.get(recording.id)) for recording in dataset.test),
    )
    events: tuple[EventFacts, ...] = ()
    predicting: tuple[Predictor, ...] = ()
    noises: tuple[LabelNoise, ...] = ()
    if not data.missing:
        events = tuple(map(event_facts, parts))
        one_liners = one_liner_scores(parts, dataset.folder)
        predicting = predictors(data, parts, one_liners)
        fits = [Fit(name, scores) for part in one_liners for name, scores in part.items()]
        about = f"one-liners on all test rows of {dataset.name}"
        noise = label_noise(about, fits, data, label_changes(data) if changes is None else changes)
        noises = (noise,) if stored is None else (noise, stored)
    overlap = tuple(map(overlap_of, parts))
    shared = recordings_sharing_rows(dataset.train, dataset.test, labels)
    copies = copies_of(dataset.train, dataset.test, labels)
    sensors = tuple(map(sensor_facts, parts))
    moved = tuple(shift for part in parts for shift in shifts_of(part))
    of_labels = (
        verdicts.on_anomalies(events),
        *verdicts.on_entities(parts),
        verdicts.on_events(events),
        *verdicts.on_predictors(predicting),
        verdicts.on_trivial(events),
    ) if events else (verdicts.on_missing(data.missing),)  # fmt: skip
    of_test = (
        verdicts.on_overlap(overlap),
        *verdicts.on_shared(shared, copies, _compared(dataset), labelled=bool(labels)),
        verdicts.on_copies(copies, shared, recordings),
        *verdicts.on_sessions(copies, dataset.sessions),
        verdicts.on_shift(moved),
        verdicts.on_range(sensors),
    ) if dataset.test else (verdicts.on_copies(copies, shared, recordings),)  # fmt: skip
    findings = (
        *of_labels,
        *of_test,
        verdicts.on_gaps(recordings),
        verdicts.on_duplicates(recordings),
        verdicts.on_constant(recordings, len(dataset.sensors)),
        *([verdicts.on_still_in_training(sensors), verdicts.on_scaling(sensors)] if dataset.test else []),
        *map(verdicts.on_label_noise, noises),
    )
    return Audit(
        dataset=dataset.name,
        version=dataset.version,
        entities=tuple(part.entity for part in parts if part.entity),
        recordings=recordings,
        events=events,
        predictors=predicting,
        label_noise=noises,
        overlap=overlap,
        shared=shared,
        copies=copies,
        sensors=sensors,
        shifts=moved,
        findings=findings,
    )


def _compared(dataset: Dataset) -> verdicts.Compared:
    """Return by what `recordings_sharing_rows` compares; times that begin alike are no clock's."""
    begins = [None if one.time is None else one.time[0] for one in (*dataset.train, *dataset.test)]
    if None in begins:
        return verdicts.Compared.VALUES
    return verdicts.Compared.CLOCK if len(set(begins)) == len(begins) else verdicts.Compared.ELAPSED
