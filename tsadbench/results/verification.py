"""Checks a run store without running a detector: records against themselves, metrics against scores and labels.

What this cannot know is whether a detector made the scores: whoever forges them can compute everything else to fit.
`tsadbench.results.repetition` runs trials again for that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tsadbench.base.dataset import Dataset, LabelledDataset
from tsadbench.errors import StoreError, TsadbenchError
from tsadbench.execution.identity import code_of, scoring_identity, trial_name
from tsadbench.execution.judging import arrays_hash, contribution_shapes, score_shapes
from tsadbench.execution.plan import Contender, contender_from_label
from tsadbench.execution.record import Record
from tsadbench.execution.store import Store
from tsadbench.results.admission import refusal
from tsadbench.results.judging import Judge, judged_faults
from tsadbench.results.trial_result import data_faults
from tsadbench.sandbox import asking
from tsadbench.utils.parameters import parse_label
from tsadbench.utils.progress import progress

Verdict: TypeAlias = Literal["same", "differs", "cannot be checked"]


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of checking one trial; ``record`` is None if it cannot be read.

    ``faults`` say what differs, or why it cannot be checked. ``remarks`` are no faults: the detector's code is another
    one now, or the rules are, and the trial was judged again.
    """

    trial: str
    record: Record | None
    verdict: Verdict
    faults: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def verify(store: Store, load: Callable[[str], LabelledDataset], named: Collection[str] = ()) -> Iterator[Verified]:
    """Yield the result for each trial of a store, by the trials' names, one in memory at a time.

    ``load`` returns the data set of a name. ``named`` are labels of detectors that boxes may load, with the priors
    that they name, though they are not registered here.
    """
    trials = store.trials()
    with asking():
        verifier = _Verifier(store, load, named)
        for done, trial in enumerate(trials):
            progress(done, len(trials))
            try:
                record = store.record(trial)
            except StoreError as error:
                yield Verified(trial, None, "cannot be checked", (str(error),))
            else:
                yield verifier.verified(record)


class _Verifier:
    """Checks the trials of one store; what they have in common is found once."""

    def __init__(self, store: Store, load: Callable[[str], LabelledDataset], named: Collection[str]) -> None:
        self._store = store
        self._judge = Judge(load)
        self._named = named
        self._contenders: dict[tuple[str, str], Contender | str] = {}

    def verified(self, record: Record) -> Verified:
        """Return the result for one trial."""
        remarks: list[str] = []
        faults = list(_inconsistencies(record))
        try:
            data = self._judge.data(record.dataset)
        except TsadbenchError as error:
            faults.append(f"data set {record.dataset}: {error}")
            return Verified(record.trial, record, "cannot be checked", tuple(faults))
        other_data = data_faults(record, data)
        faults += other_data
        contender = self._contender(record, data.dataset)
        if isinstance(contender, str):
            remarks.append(contender)
        else:
            faults += _detector_faults(record, contender)
        if record.status != "ok":
            if record.splits or record.thresholds:
                faults.append(f"its status is {record.status}, yet it has metrics")
        elif not other_data:
            try:
                faults += _scoring_faults(record, self._judge.episodes_hash(record))
                faults += self._array_faults(record)
                faults += self._judged_faults(record, remarks)
            except TsadbenchError as error:
                faults.append(str(error))
        return Verified(record.trial, record, "differs" if faults else "same", tuple(faults), tuple(remarks))

    def _contender(self, record: Record, dataset: Dataset) -> Contender | str:
        """Return the detector that a record's label names if its code is here; else why it was not compared."""
        if refused := refusal(record, self._named):
            return f"{refused}: the detector was not compared"
        key = record.dataset, record.label
        if key not in self._contenders:
            try:
                self._contenders[key] = contender_from_label(record.label, dataset)
            except TsadbenchError as error:
                self._contenders[key] = f"the detector {record.label} was not compared: {error}"
        contender = self._contenders[key]
        if isinstance(contender, str) or contender.description.sources.digest == code_of(record.manifest):
            return contender
        return f"the code of {record.detector} here is not what made it"

    def _array_faults(self, record: Record) -> Iterator[str]:
        """Yield which arrays are not those that the run wrote; a StoreError if they cannot be read."""
        episodes = self._judge.episodes(record)
        arrays: dict[str, Mapping[str, NDArray[np.floating]]] = {
            "scores": self._store.scores(record, score_shapes(episodes)),
            "contributions": self._store.contributions(record, contribution_shapes(episodes)),
        }
        for name, found in arrays.items():
            if (found or name == "scores") and arrays_hash(found) != record.manifest.get(f"{name}_hash"):
                yield f"its {name} are not those that its run wrote: their hash is another"

    def _judged_faults(self, record: Record, remarks: list[str]) -> Iterator[str]:
        """Yield what is not as today's judge finds it; a record that other rules have judged is replaced first."""
        now = self._judge.again(record, self._store)
        if self._judge.outdated(record):
            if now.judging == record.judging:
                yield f"protocol_version: recorded {record.protocol_version}, expected {now.protocol_version}"
            self._store.put(now)
            remarks.append("judged again: the rules have changed since")
            record = now
        if len({entry.episode for entry in record.thresholds}) < len(record.thresholds):
            yield "it has two thresholds for one episode"
        for name in ("rows_scored", "protocol_notes", "smoothing", "reason"):
            if getattr(record, name) != getattr(now, name):
                yield f"{name}: recorded {getattr(record, name)!r}, found {getattr(now, name)!r}"
        yield from judged_faults(record, now)


def _inconsistencies(record: Record) -> Iterator[str]:
    """Yield what shows by itself alone that a record was edited."""
    if record.trial != trial_name(record.scoring, record.protocol):
        yield "its name is not that of its scoring identity and protocol"
    if parse_label(record.label).target != record.detector:
        yield f"its detector is {record.detector}, its label {record.label}"
    for name in ("seed", "threads"):
        if record.manifest.get(name) != getattr(record, name):
            yield f"{name}: {getattr(record, name)}, in its manifest {record.manifest.get(name)}"
    if not record.floor and any(entry.threshold.method == "fixed" for entry in record.thresholds):
        yield "it has a fixed threshold and is no floor"


def _detector_faults(record: Record, contender: Contender) -> Iterator[str]:
    """Yield what a record says otherwise of its detector than the same code says here."""
    traits = contender.traits
    here: dict[str, object] = {
        "label": contender.label,
        "parameters": contender.description.values,
        **{name: getattr(traits, name) for name in ("floor", "family", "look_ahead", "leaky", "pretrained_on")},
    }
    for name, value in here.items():
        if getattr(record, name) != value:
            yield f"{name}: recorded {getattr(record, name)!r}, expected {value!r}"
    fixed = {entry.threshold.value for entry in record.thresholds if entry.threshold.method == "fixed"}
    if fixed and fixed != {traits.fixed_threshold}:
        yield f"fixed threshold: recorded {sorted(fixed)}, expected {traits.fixed_threshold}"


def _scoring_faults(record: Record, episodes: str) -> Iterator[str]:
    """Yield what is wrong with a record's scoring identity, given the hash of the protocol's episodes here."""
    if record.manifest.get("episodes_hash") != episodes:
        yield "the protocol's episodes here are not those that it was run on: their hash is another"
        return
    if scoring_identity(record.label, record.dataset, record.manifest) != record.scoring:
        yield "its scoring identity is not that of its label, data, code, versions, seed and threads"
