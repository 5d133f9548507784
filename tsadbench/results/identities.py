"""Whether a record says what its trial's run wrote: its identities, and what its detector is."""

from __future__ import annotations

from collections.abc import Iterator

from tsadbench.base.dataset import Dataset
from tsadbench.errors import TsadbenchError
from tsadbench.execution.identity import scoring_identity, trial_name
from tsadbench.execution.plan import Contender, contender_from_label
from tsadbench.execution.record import Record
from tsadbench.utils.parameters import parse_label


def edits(record: Record) -> Iterator[str]:
    """Yield what shows that a record was edited, by itself alone."""
    if record.trial != trial_name(record.scoring, record.protocol):
        yield "its name is not that of its scoring identity and protocol"
    if parse_label(record.label).target != record.detector:
        yield f"its detector is {record.detector}, its label {record.label}"
    for name in ("seed", "threads"):
        if record.manifest.get(name) != getattr(record, name):
            yield f"{name}: {getattr(record, name)}, in its manifest {record.manifest.get(name)}"
    if not record.floor and any(entry.threshold.method == "fixed" for entry in record.thresholds):
        yield "it has a fixed threshold and is no floor"


def contender_of(record: Record, dataset: Dataset) -> Contender | str:
    """Return the detector that a record's label names, described in a box; if that is not possible, why."""
    try:
        return contender_from_label(record.label, dataset)
    except TsadbenchError as error:
        return str(error)


def other_detector(record: Record, contender: Contender) -> Iterator[str]:
    """Yield in what a record says something else of its detector than the same code says here."""
    here: dict[str, object] = {
        "label": contender.label,
        "family": contender.traits.family,
        "floor": contender.floor,
        "look_ahead": contender.traits.look_ahead,
        "leaky": contender.traits.leaky,
        "pretrained_on": contender.traits.pretrained_on,
        "parameters": contender.parameters,
    }
    for name, value in here.items():
        recorded = getattr(record, name)
        if recorded != value:
            yield f"{name}: recorded {recorded!r}, expected {value!r}"
    fixed = {entry.threshold.value for entry in record.thresholds if entry.threshold.method == "fixed"}
    if fixed and fixed != {contender.traits.fixed_threshold}:
        yield f"fixed threshold: recorded {sorted(fixed)}, expected {contender.traits.fixed_threshold}"


def scoring_fault(record: Record, episodes: str) -> str:
    """Return what is wrong with a record's scoring identity, given the hash of the protocol's episodes here."""
    if record.manifest.get("episodes_hash") != episodes:
        return "the protocol's episodes here are not those that it was run on: their hash is another"
    same = scoring_identity(record.label, record.dataset, record.manifest) == record.scoring
    return "" if same else "its scoring identity is not that of its label, data, code, versions, seed and threads"
