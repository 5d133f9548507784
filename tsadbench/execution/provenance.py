"""What determines a trial, and what is needed to repeat it: hashes, versions, platform, command."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import cast

from tsadbench._version import __version__
from tsadbench.base.prior import Prior
from tsadbench.base.protocol import Protocol
from tsadbench.execution.plan import Contender, Plan, Trial
from tsadbench.sandbox.description import Description
from tsadbench.utils.distributions import installed_version, versions_of
from tsadbench.utils.names import command_without_folders
from tsadbench.utils.parameters import JsonValue
from tsadbench.utils.source_digest import digest_of, source_of
from tsadbench.utils.threads import loaded_blas

# Another release of one of these may change a score's last digits, or more.
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "torch", "torch-geometric")
# The packages that these install.
_LIBRARY_PACKAGES = frozenset({"numpy", "scipy", "sklearn", "pandas", "torch", "torch_geometric"})


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes two trials the same.

    Parameters
    ----------
    scoring, judging
        Hashes of what determines the scores, and what the judge makes of them (`Record`).
    trial
        The trial's name: hash of the scoring identity and the protocol's label. Other rules under the same label do
        not change it: the stored scores are judged again.
    """

    trial: str
    scoring: str
    judging: str


def identity(trial: Trial, plan: Plan) -> Identity:
    """Return the identity of a trial of a plan."""
    description = trial.contender.description
    scoring = scoring_identity(
        label=trial.contender.label,
        priors=prior_hashes(trial.contender),
        code=description.sources.digest,
        libraries=determining_versions(description),
        dataset=plan.data.dataset.name,
        data=plan.data.dataset.content_hash,
        episodes=plan.episodes_hash,
        seed=trial.seed,
        threads=trial.threads,
    )
    return Identity(
        trial=trial_name(scoring, plan.protocol_label),
        scoring=scoring,
        judging=judging_identity(
            plan.protocol_label, plan.protocol, plan.data.labels.content_hash, trial.contender.traits.fixed_threshold
        ),
    )


def scoring_identity(
    *,
    label: str,
    priors: Mapping[str, str],
    code: str,
    libraries: Mapping[str, JsonValue],
    dataset: str,
    data: str,
    episodes: str,
    seed: int,
    threads: int,
) -> str:
    """Return the hash of what determines a trial's scores.

    Parameters
    ----------
    label, dataset, seed, threads
        As records hold them.
    priors
        Content hashes of the detector's priors, by parameter.
    code
        Fingerprint of the detector's code.
    libraries
        Versions of `library_versions`, `adapted_versions` and `imported_versions`.
    data, episodes
        Content hash of the data set; `Plan.episodes_hash`.
    """
    return _hash(
        {
            "label": label,
            "priors": dict(priors),
            "code": code,
            "libraries": dict(libraries),
            "dataset": dataset,
            "data": data,
            "episodes": episodes,
            "seed": seed,
            "threads": threads,
        }
    )


def trial_name(scoring: str, protocol: str) -> str:
    """Return the name of the trial of a scoring identity under a protocol's label."""
    return _hash({"scoring": scoring, "protocol": protocol})


def prior_hashes(contender: Contender) -> dict[str, str]:
    """Return the content hashes of a contender's priors, by parameter."""
    arguments = contender.construction.arguments
    return {name: value.content_hash for name, value in arguments.items() if isinstance(value, Prior)}


def judging_identity(label: str, protocol: Protocol, labels_hash: str, fixed_threshold: float | None) -> str:
    """Return the hash of what determines how scores are judged.

    Parameters
    ----------
    label, protocol
        The protocol's name with the parameters that differ from their defaults, and the protocol.
    labels_hash
        Content hash of the labels.
    fixed_threshold
        The threshold that the detector, a floor, brings; None for all others.
    """
    return _hash(
        {
            "protocol": label,
            "version": protocol.version,
            "code": source_of(type(protocol)).digest,
            "labels": labels_hash,
            "fixed_threshold": fixed_threshold,
        }
    )


def manifest(
    trial: Trial,
    plan: Plan,
    started: datetime,
    fit_shared_with: Sequence[str] = (),
    crossing: str | None = None,
) -> dict[str, JsonValue]:
    """Return what a reader needs to repeat the trial, or to see why a repetition differs.

    Parameters
    ----------
    trial, plan, started
        The trial, the plan it belongs to, and when it began.
    fit_shared_with
        Labels of the variants that were scored by the same fit.
    crossing
        The secret from which its recordings' order, ids and clocks were drawn (`sandbox.Crossing`), if it came to that.
    """
    contender = trial.contender
    return {
        "seed": trial.seed,
        "threads": trial.threads,
        "device": contender.device,
        "command": list[JsonValue](command_without_folders(sys.argv)),
        "started": started.isoformat(timespec="seconds"),
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "platform": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cpu_count": os.cpu_count(),
        "versions": {"python": platform.python_version(), **library_versions()},
        "adapted": dict(adapted_versions(contender.description.libraries)),
        "blas": list(loaded_blas()),
        "imported": dict(imported_versions(contender.description.sources.packages)),
        "priors": dict(prior_hashes(contender)),
        "sources": dict(contender.description.sources.modules),
        "data_hash": plan.data.dataset.content_hash,
        "episodes_hash": plan.episodes_hash,
        "labels_hash": plan.data.labels.content_hash,
        "fit_shared_with": list(fit_shared_with),
        **({} if crossing is None else {"crossing": crossing}),
        **asked_by(plan),
    }


def code_of(manifest: Mapping[str, JsonValue]) -> str:
    """Return the digest of the code that made a record; of a record from before there were `Sources`, its own hash."""
    sources = manifest.get("sources")
    return digest_of(cast("dict[str, str]", sources)) if isinstance(sources, dict) else str(manifest.get("code_hash"))


# What records keep of the run that made them, none of it part of their identity.
ASKED_BY = ("config_hash", "tuning", "suite")


def asked_by(plan: Plan) -> dict[str, JsonValue]:
    """Return the suite and the hash of the configuration that a plan comes from, and how its settings were tuned."""
    entries = dict(zip(ASKED_BY, (plan.config_hash, dict(plan.tuning), plan.suite), strict=True))
    return {key: value for key, value in entries.items() if value}


@cache
def library_versions() -> dict[str, JsonValue]:
    """Return the versions of the libraries on which a score's last digits depend; None if one is not installed."""
    return {"tsadbench": __version__, **{library: installed_version(library) for library in _LIBRARIES}}


def determining_versions(description: Description) -> dict[str, JsonValue]:
    """Return the versions of all libraries that determine a detector's scores, as far as its identity knows them."""
    return {
        **library_versions(),
        **adapted_versions(description.libraries),
        **imported_versions(description.sources.packages),
    }


def adapted_versions(libraries: Iterable[str]) -> dict[str, JsonValue]:
    """Return the versions of the libraries that do an adapted detector's work (`AdaptedDetector.libraries`)."""
    return {library: installed_version(library) for library in libraries}


@cache
def imported_versions(imported: frozenset[str]) -> dict[str, JsonValue]:
    """Return the versions of other distributions that hold packages which a detector's own files import.

    As for `versions_of`: what is installed from its source folder, or belongs to no distribution, counts by its code.
    """
    return dict(versions_of(imported - _LIBRARY_PACKAGES))


def _hash(determinants: Mapping[str, JsonValue]) -> str:
    return hashlib.sha256(json.dumps(determinants, sort_keys=True).encode()).hexdigest()[:24]
