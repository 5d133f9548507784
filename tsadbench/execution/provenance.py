"""What determines a trial, and what is needed to do it again: hashes, versions, platform, command."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from tsadbench._version import __version__
from tsadbench.base.detector_library import AdaptedDetector
from tsadbench.base.prior import Prior
from tsadbench.execution.plan import Plan, Trial
from tsadbench.utils.code_fingerprint import code_fingerprint
from tsadbench.utils.parameters import JsonValue, as_json

# Another release of one of these may change a score's last digits, or more.
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "torch", "torch-geometric")


def identity(trial: Trial, plan: Plan) -> str:
    """Return the hash of all that determines a trial's scores and metrics."""
    determinants: dict[str, JsonValue] = {
        "label": trial.contender.label,
        "priors": {
            name: value.content_hash
            for name, value in trial.contender.construction.arguments.items()
            if isinstance(value, Prior)
        },
        "code": code_fingerprint(trial.contender.construction.cls),
        "dataset": plan.data.dataset.name,
        "data": plan.data.dataset.content_hash,
        "labels": plan.data.labels.content_hash,
        "protocol": plan.protocol_label,
        "protocol_code": code_fingerprint(type(plan.protocol)),
        "seed": trial.seed,
        "threads": trial.threads,
        "libraries": {**library_versions(), **adapted_versions(trial.contender.construction.cls)},
    }
    return hashlib.sha256(json.dumps(determinants, sort_keys=True).encode()).hexdigest()[:24]


def manifest(trial: Trial, plan: Plan, started: datetime, fit_shared_with: Sequence[str] = ()) -> dict[str, JsonValue]:
    """Return what a reader needs to do the trial again, or to see why it came out otherwise.

    Parameters
    ----------
    trial, plan, started
        The trial, the plan it belongs to, and when it began.
    fit_shared_with
        Labels of the variants that were scored by the same fit.
    """
    return {
        "seed": trial.seed,
        "threads": trial.threads,
        "device": str(trial.contender.construction.arguments.get("device", "cpu")),
        "command": [as_json(word) for word in sys.argv],
        "started": started.isoformat(timespec="seconds"),
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "platform": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cpu_count": os.cpu_count(),
        "versions": {"python": platform.python_version(), **library_versions()},
        "adapted": dict(adapted_versions(trial.contender.construction.cls)),
        "code_hash": code_fingerprint(trial.contender.construction.cls),
        "data_hash": plan.data.dataset.content_hash,
        "labels_hash": plan.data.labels.content_hash,
        "fit_shared_with": list(fit_shared_with),
        **asked_by(plan),
    }


def asked_by(plan: Plan) -> dict[str, JsonValue]:
    """Return the hash of the configuration that asked for a plan, and how its settings were tuned, where there are."""
    told: dict[str, JsonValue] = {"config_hash": plan.config_hash, "tuning": dict(plan.tuning)}
    return {key: value for key, value in told.items() if value}


@cache
def library_versions() -> dict[str, JsonValue]:
    """Return the versions of the libraries on which a score's last digits depend; None for what is not installed."""
    return {"tsadbench": __version__, **{library: _version(library) for library in _LIBRARIES}}


def adapted_versions(cls: type) -> dict[str, JsonValue]:
    """Return the versions of the libraries that do an adapted detector's work; nothing for any other class."""
    return {library: _version(library) for library in cls.libraries} if issubclass(cls, AdaptedDetector) else {}


def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None
