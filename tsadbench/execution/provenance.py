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

from tsadbench._version import __version__
from tsadbench.base import scores
from tsadbench.base.prior import Prior
from tsadbench.base.protocol import Protocol
from tsadbench.execution.plan import Contender, Plan, Trial
from tsadbench.sandbox import LoadedPackages
from tsadbench.sandbox.description import Description
from tsadbench.sandbox.interpreter.environment import Environment
from tsadbench.utils.code_fingerprint import code_fingerprint, module_fingerprint
from tsadbench.utils.distributions import distributions_of, installed_version, normalised, requirements, versions_of
from tsadbench.utils.names import command_without_folders
from tsadbench.utils.parameters import JsonValue
from tsadbench.utils.threads import loaded_blas

# Another release of one of these may change a score's last digits, or more.
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "torch", "torch-geometric")
# Their versions stand in a manifest by themselves.
_IN_EVERY_RECORD = frozenset({"tsadbench", *_LIBRARIES})
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
    description, environment = trial.contender.description, trial.contender.environment
    scoring = scoring_identity(
        label=trial.contender.label,
        priors=prior_hashes(trial.contender),
        code=description.code_hash,
        libraries=determining_versions(description, environment),
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
            "code": code_fingerprint(type(protocol)),
            # The core's, which a protocol's fingerprint names and does not follow: what a missing score counts as.
            "ranking": _ranking(),
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
    loaded: LoadedPackages | None = None,
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
    loaded
        What its boxes loaded to fit and to score.
    """
    contender, environment = trial.contender, trial.contender.environment
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
        "versions": {
            "python": platform.python_version() if environment is None else environment.version,
            **library_versions(environment),
        },
        "adapted": dict(adapted_versions(contender.description.libraries, environment)),
        "blas": list(loaded_blas() if environment is None else environment.blas),
        "imported": dict(imported_versions(contender.description.imported, environment)),
        "loaded": dict(loaded_versions(loaded or LoadedPackages(), contender.description, environment)),
        "priors": dict(prior_hashes(contender)),
        "code_hash": contender.description.code_hash,
        "data_hash": plan.data.dataset.content_hash,
        "episodes_hash": plan.episodes_hash,
        "labels_hash": plan.data.labels.content_hash,
        "fit_shared_with": list(fit_shared_with),
        **({} if crossing is None else {"crossing": crossing}),
        **({} if environment is None else {"interpreter": _interpreter(environment)}),
        **asked_by(plan),
    }


# What records keep of the run that made them, none of it part of their identity.
ASKED_BY = ("config_hash", "tuning", "suite")


def asked_by(plan: Plan) -> dict[str, JsonValue]:
    """Return the suite and the hash of the configuration that a plan comes from, and how its settings were tuned."""
    entries = dict(zip(ASKED_BY, (plan.config_hash, dict(plan.tuning), plan.suite), strict=True))
    return {key: value for key, value in entries.items() if value}


@cache
def library_versions(environment: Environment | None = None) -> dict[str, JsonValue]:
    """Return the versions of the libraries on which a score's last digits depend; None if one is not installed.

    Parameters
    ----------
    environment
        A detector's own interpreter; None: this one.
    """
    return {"tsadbench": __version__, **{library: _version(library, environment) for library in _LIBRARIES}}


def determining_versions(description: Description, environment: Environment | None = None) -> dict[str, JsonValue]:
    """Return the versions of all libraries that determine a detector's scores, as far as its identity knows them."""
    return {
        **library_versions(environment),
        **adapted_versions(description.libraries, environment),
        **imported_versions(description.imported, environment),
    }


def adapted_versions(libraries: Iterable[str], environment: Environment | None = None) -> dict[str, JsonValue]:
    """Return the versions of the libraries that do an adapted detector's work (`AdaptedDetector.libraries`)."""
    return {library: _version(library, environment) for library in libraries}


def _interpreter(environment: Environment) -> dict[str, JsonValue]:
    """Return what a record keeps of a detector's own interpreter; its path is no part of any identity."""
    return {
        "path": environment.executable,
        "name": environment.name,
        "python": environment.version,
        "distributions": dict(environment.distributions),
    }


@cache
def _ranking() -> str:
    """Return the fingerprint of the core's rule for missing scores; cached, as every record of a store asks for it."""
    return module_fingerprint(scores)


@cache
def imported_versions(imported: tuple[str, ...], environment: Environment | None = None) -> dict[str, JsonValue]:
    """Return the versions of other distributions that hold packages which a detector's own files import.

    As for `versions_of`: what is installed from its source folder, or belongs to no distribution, counts by its code.
    In another interpreter, distributions count by their versions alone.
    """
    packages = frozenset(imported) - _LIBRARY_PACKAGES
    if environment is None:
        return dict(versions_of(packages))
    tops = sorted({package.partition(".")[0] for package in packages})
    return {name: _version(name, environment) for top in tops for name in environment.packages.get(top, ())}


def loaded_versions(
    loaded: LoadedPackages, description: Description, environment: Environment | None = None
) -> dict[str, JsonValue]:
    """Return the versions of the distributions that a detector's fit and scores loaded, besides `library_versions`.

    These are the distributions of modules that its boxes imported, and those that the detector's own files import or
    declare, with what they require, if they are loaded. What the boxes' server had loaded for others is left out, so
    that a detector's records do not differ by what ran before.
    """
    if environment is not None:  # nobody else's process: whatever it loaded is the detector's
        tops = {package.partition(".")[0] for package in {*description.imported, *loaded.since}}
        found = {name for package in tops for name in environment.packages.get(package, ())}
        return {
            name: environment.version_of(name)
            for name in sorted({*found, *description.libraries}, key=str.lower)
            if normalised(name) not in _IN_EVERY_RECORD
        }
    named = {name for package in {*description.imported, *loaded.since} for name in distributions_of(package)}
    counted = requirements([*named, *description.libraries]) - _IN_EVERY_RECORD
    held = {name for package in loaded.held for name in distributions_of(package)}
    return {name: installed_version(name) for name in sorted(held, key=str.lower) if normalised(name) in counted}


def _hash(determinants: Mapping[str, JsonValue]) -> str:
    return hashlib.sha256(json.dumps(determinants, sort_keys=True).encode()).hexdigest()[:24]


def _version(library: str, environment: Environment | None) -> str | None:
    return installed_version(library) if environment is None else environment.version_of(library)
