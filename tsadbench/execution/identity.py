"""The identity of trials, and the manifest that records it: hashes, versions, platform, command."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache

from tsadbench._version import __version__
from tsadbench.base.protocol import Protocol
from tsadbench.execution.plan import Plan, Trial
from tsadbench.execution.record import Record
from tsadbench.utils.distributions import installed_version, versions_of
from tsadbench.utils.numerics import loaded_blas
from tsadbench.utils.parameters import JsonValue
from tsadbench.utils.source_digest import digest_of, source_of
from tsadbench.utils.text import printable, without_folders

# Raise this when the box calls detectors differently, since the same code may then give other scores.
SCORING = 1
# Manifest entries that decide the scores, besides library versions; then hashes, with their words in messages.
_DECIDES = ("seed", "threads", "scoring_version", "sources", "priors", "data_hash", "episodes_hash")
_HASHES = {
    "data_hash": "the data",
    "episodes_hash": "which recordings the protocol trains on and scores",
    "scoring_version": "how boxes call detectors",
    "labels_hash": "rules: the labels",
}
# The source digest is more precise than tsadbench's version.
_NO_LIBRARIES = ("python", "tsadbench")


@dataclass(frozen=True, slots=True)
class Identity:
    """The hashes of what decides a trial's scores and their judgement, and the trial's name.

    The name is a hash of the scoring identity and the protocol's label. New rules under the same label keep the
    name, and the stored scores are judged again.
    """

    trial: str
    scoring: str
    judging: str


def identity(trial: Trial, plan: Plan) -> Identity:
    """Return the identity of a trial of a plan."""
    scoring = scoring_identity(trial.contender.label, plan.data.dataset.name, _decides(trial, plan))
    fixed = trial.contender.traits.fixed_threshold
    judging = judging_identity(plan.protocol_label, plan.protocol, plan.data.labels.content_hash, fixed)
    return Identity(trial_name(scoring, plan.protocol_label), scoring, judging)


def scoring_identity(label: str, dataset: str, manifest: Mapping[str, JsonValue]) -> str:
    """Return the hash of what decides a trial's scores, from its record's label, data set and manifest."""
    libraries = {name: one for name, one in _part(manifest, "versions").items() if name not in _NO_LIBRARIES}
    of_manifest = {key: manifest.get(key) for key in _DECIDES}
    return _hash({"label": label, "dataset": dataset, "libraries": libraries, **of_manifest})


def trial_name(scoring: str, protocol: str) -> str:
    """Return the name of a trial: a hash of its scoring identity and the protocol's label."""
    return _hash({"scoring": scoring, "protocol": protocol})


def judging_identity(label: str, protocol: Protocol, labels_hash: str, fixed_threshold: float | None) -> str:
    """Return the hash of what decides how scores are judged; only floors have a fixed threshold."""
    rules: dict[str, JsonValue] = {"version": protocol.version, "sources": dict(source_of(type(protocol)).modules)}
    return _hash({"protocol": label, **rules, "labels": labels_hash, "fixed_threshold": fixed_threshold})


def manifest(
    trial: Trial, plan: Plan, started: datetime, fit_shared_with: Sequence[str] = (), crossing: str | None = None
) -> dict[str, JsonValue]:
    """Return what is needed to repeat a trial, or to see why a repetition differs.

    ``crossing`` is the secret that determined the order, ids and clocks of its recordings.
    """
    return {
        **_decides(trial, plan),
        "rules": dict(source_of(type(plan.protocol)).modules),
        "labels_hash": plan.data.labels.content_hash,
        "device": trial.contender.construction.device,
        "command": [*map(printable, (*map(os.path.basename, sys.argv[:1]), *map(without_folders, sys.argv[1:])))],
        "started": started.isoformat(timespec="seconds"),
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "platform": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cpu_count": os.cpu_count(),
        "blas": list(loaded_blas()),
        "fit_shared_with": list(fit_shared_with),
        **({} if crossing is None else {"crossing": crossing}),
        **plan.asked_by,
    }


@cache
def library_versions(packages: frozenset[str], libraries: tuple[str, ...]) -> Mapping[str, str | None]:
    """Return the versions of the packages that a detector's source imports and of libraries that its class names."""
    return {**versions_of(packages), **{library: installed_version(library) for library in libraries}}


def code_of(manifest: Mapping[str, JsonValue]) -> str:
    """Return the digest of the code that made a record."""
    return digest_of({name: str(one) for name, one in _part(manifest, "sources").items()})


def changes(record: Record, trial: Trial, plan: Plan) -> Iterator[str]:
    """Yield what has changed since a trial ran, so that a run makes or judges it again."""
    if record.label != trial.contender.label:
        yield f"its label, now {trial.contender.label}"
    yield from differences(record.manifest, manifest(trial, plan, datetime.now(UTC)))


def differences(then: Mapping[str, JsonValue], now: Mapping[str, JsonValue]) -> Iterator[str]:
    """Yield the differences between two manifests of a trial that change its scores or its metrics."""
    yield from (f"module {name}" for name in _changed(then, now, "sources"))
    for name in _changed(then, now, "versions"):
        if name not in _NO_LIBRARIES:
            yield f"{name} {_part(then, 'versions').get(name)}, here {_part(now, 'versions').get(name)}"
    yield from (f"prior {name}" for name in _changed(then, now, "priors"))
    yield from (what for key, what in _HASHES.items() if then.get(key) != now.get(key))
    yield from (f"rules: module {name}" for name in _changed(then, now, "rules"))


def _decides(trial: Trial, plan: Plan) -> dict[str, JsonValue]:
    """Return the entries of a manifest that decide the scores."""
    description = trial.contender.description
    libraries = library_versions(description.sources.packages, description.libraries)
    return {
        "seed": trial.seed,
        "threads": trial.threads,
        "scoring_version": SCORING,
        "sources": dict(description.sources.modules),
        "versions": {"python": platform.python_version(), "tsadbench": __version__, **libraries},
        "priors": dict(trial.contender.prior_hashes),
        "data_hash": plan.data.dataset.content_hash,
        "episodes_hash": plan.episodes_hash,
    }


def _changed(then: Mapping[str, JsonValue], now: Mapping[str, JsonValue], key: str) -> list[str]:
    """Return the names in one mapping of two manifests whose values differ."""
    before, after = _part(then, key), _part(now, key)
    return [name for name in dict.fromkeys([*before, *after]) if before.get(name) != after.get(name)]


def _part(manifest: Mapping[str, JsonValue], key: str) -> Mapping[str, JsonValue]:
    part = manifest.get(key)
    return part if isinstance(part, dict) else {}


def _hash(content: Mapping[str, JsonValue]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]
