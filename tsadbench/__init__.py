"""tsadbench: the benchmark harness for anomaly detection in multivariate sensor series that people can believe."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

# Loaded on first use (PEP 562): `tsadbench --help` must not wait for scikit-learn.
_PLACES = {
    "Dataset": "tsadbench.dataset",
    "Labels": "tsadbench.dataset",
    "Detector": "tsadbench.detector",
    "Traits": "tsadbench.detector",
    "Episode": "tsadbench.protocol",
    "Protocol": "tsadbench.protocol",
    "Scored": "tsadbench.protocol",
    "Prior": "tsadbench.prior",
    "Recording": "tsadbench.recording",
    "Leaderboard": "tsadbench.leaderboard",
    "Record": "tsadbench.record",
    "compare": "tsadbench.significance.compare",
    "progress": "tsadbench.progress",
    "run": "tsadbench.api",
    **dict.fromkeys(
        (
            "ContractError",
            "DataError",
            "DataNotFoundError",
            "MissingExtraError",
            "NotFittedError",
            "PluginError",
            "StoreError",
            "TsadbenchError",
            "UsageError",
        ),
        "tsadbench.errors",
    ),
}

__all__ = [
    "ContractError",
    "DataError",
    "DataNotFoundError",
    "Dataset",
    "Detector",
    "Episode",
    "Labels",
    "Leaderboard",
    "MissingExtraError",
    "NotFittedError",
    "PluginError",
    "Prior",
    "Protocol",
    "Record",
    "Recording",
    "Scored",
    "StoreError",
    "Traits",
    "TsadbenchError",
    "UsageError",
    "__version__",
    "compare",
    "progress",
    "run",
]

if TYPE_CHECKING:
    from tsadbench.api import run
    from tsadbench.dataset import Dataset, Labels
    from tsadbench.detector import Detector, Traits
    from tsadbench.errors import (
        ContractError,
        DataError,
        DataNotFoundError,
        MissingExtraError,
        NotFittedError,
        PluginError,
        StoreError,
        TsadbenchError,
        UsageError,
    )
    from tsadbench.leaderboard import Leaderboard
    from tsadbench.prior import Prior
    from tsadbench.progress import progress
    from tsadbench.protocol import Episode, Protocol, Scored
    from tsadbench.record import Record
    from tsadbench.recording import Recording
    from tsadbench.significance.compare import compare


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_PLACES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
