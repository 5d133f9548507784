"""Whether a record says what its trial's run wrote: its checksums and identities, and what its detector is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import cast

from tsadbench.base.dataset import Dataset
from tsadbench.errors import TsadbenchError
from tsadbench.execution.plan import Contender, contender_from_label
from tsadbench.execution.provenance import imported_versions, prior_hashes, scoring_identity, trial_name
from tsadbench.execution.record import CHECKSUM, Record
from tsadbench.sandbox import Interview
from tsadbench.utils.parameters import JsonValue, parse_label


def edits(record: Record) -> Iterator[str]:
    """Yield what shows that a record was edited, by itself alone."""
    checksum = record.manifest.get(CHECKSUM)
    if checksum is not None and checksum != record.checksum:
        yield "it was edited: its checksum is not that of what its run wrote"
    if record.scoring and record.trial != trial_name(record.scoring, record.protocol):
        yield "its name is not that of its scoring identity and protocol"
    if parse_label(record.label).target != record.detector:
        yield f"its detector is {record.detector}, its label {record.label}"
    for name in ("seed", "threads"):
        if name in record.manifest and record.manifest[name] != getattr(record, name):
            yield f"{name}: {getattr(record, name)}, in its manifest {record.manifest[name]}"
    if not record.floor and any(entry.threshold.method == "fixed" for entry in record.thresholds):
        yield "it has a fixed threshold and is no floor"


def contender_of(record: Record, dataset: Dataset, interview: Interview) -> Contender | str:
    """Return the detector that a record's label names, described in a box; if that is not possible, why."""
    try:
        return contender_from_label(record.label, dataset, interview)
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
        # A parameter that came later has its default value, or it would be in the label.
        "parameters": {name: contender.parameters.get(name) for name in record.parameters},
    }
    for name, value in here.items():
        recorded = dict(record.parameters) if name == "parameters" else getattr(record, name)
        if recorded != value:
            yield f"{name}: recorded {recorded!r}, expected {value!r}"
    fixed = {entry.threshold.value for entry in record.thresholds if entry.threshold.method == "fixed"}
    if fixed and fixed != {contender.traits.fixed_threshold}:
        yield f"fixed threshold: recorded {sorted(fixed)}, expected {contender.traits.fixed_threshold}"


def scoring_fault(record: Record, episodes: str, dataset: Dataset, contender: Contender | None) -> str | None:
    """Return what is wrong with a record's scoring identity; None if it cannot be computed again.

    Parameters
    ----------
    record
        The record.
    episodes
        Hash of the protocol's episodes on the data set here.
    dataset
        The data set, which is the one that was scored.
    contender
        The record's detector, if the same code is here. Records from before all parts were kept may need it.

    Returns
    -------
    str or None
        Empty if it is the hash of what the record says.
    """
    if not record.scoring:
        return None
    kept = "episodes_hash" in record.manifest
    if kept and record.manifest["episodes_hash"] != episodes:
        return "the protocol's episodes here are not those that it was run on: their hash is another"
    for priors, imported in product(_priors(record, dataset, contender), _imported(record, contender)):
        found = scoring_identity(
            label=record.label,
            priors=priors,
            code=str(record.manifest.get("code_hash")),
            libraries={**_versions(record, "versions"), **_versions(record, "adapted"), **imported},
            dataset=record.dataset,
            data=str(record.manifest.get("data_hash")),
            episodes=episodes,
            seed=record.seed,
            threads=record.threads,
        )
        if found == record.scoring:
            return ""
    if not kept and contender is None:
        return None
    return "its scoring identity is not that of its label, data, code, versions, seed and threads"


def _priors(record: Record, dataset: Dataset, contender: Contender | None) -> list[Mapping[str, str]]:
    """Return the priors that a trial may have had: those recorded, else what can be known of an older record."""
    if "priors" in record.manifest:
        return [cast("Mapping[str, str]", _mapping(record, "priors"))]
    if contender is not None:
        return [prior_hashes(contender)]
    return [{}] if dataset.prior is None else [{}, {"prior": dataset.prior.content_hash}]


def _imported(record: Record, contender: Contender | None) -> list[Mapping[str, JsonValue]]:
    if "imported" in record.manifest:
        return [_mapping(record, "imported")]
    return [{}] if contender is None else [imported_versions(contender.description.imported), {}]


def _versions(record: Record, key: str) -> Mapping[str, JsonValue]:
    return {name: version for name, version in _mapping(record, key).items() if name != "python"}


def _mapping(record: Record, key: str) -> Mapping[str, JsonValue]:
    found = record.manifest.get(key)
    return found if isinstance(found, dict) else {}
