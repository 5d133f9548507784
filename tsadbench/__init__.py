"""tsadbench: the benchmark harness for anomaly detection in multivariate sensor series that people can believe."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from tsadbench._version import __version__
from tsadbench.utils.moved_modules import MovedModules

sys.meta_path.append(MovedModules)

# Loaded on first use (PEP 562): `tsadbench --help` must not wait for scikit-learn.
_PLACES = {
    "Dataset": "tsadbench.base.dataset",
    "Labels": "tsadbench.base.dataset",
    "Detector": "tsadbench.base.detector",
    "Traits": "tsadbench.base.detector",
    "Episode": "tsadbench.base.protocol",
    "Protocol": "tsadbench.base.protocol",
    "Scored": "tsadbench.base.protocol",
    "Prior": "tsadbench.base.prior",
    "Recording": "tsadbench.base.recording",
    "Leaderboard": "tsadbench.leaderboard.board",
    "Record": "tsadbench.execution.record",
    "compare": "tsadbench.analysis.significance.compare",
    "progress": "tsadbench.utils.progress",
    "run": "tsadbench.api",
    "fit_model": "tsadbench.serving",
    "load_model": "tsadbench.serving",
    **dict.fromkeys(
        (
            "ContractError",
            "DataError",
            "DataNotFoundError",
            "MissingExtraError",
            "ModelFileError",
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
    "ModelFileError",
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
    "fit_model",
    "load_model",
    "progress",
    "run",
]

if TYPE_CHECKING:
    from tsadbench.analysis.significance.compare import compare
    from tsadbench.api import run
    from tsadbench.base.dataset import Dataset, Labels
    from tsadbench.base.detector import Detector, Traits
    from tsadbench.base.prior import Prior
    from tsadbench.base.protocol import Episode, Protocol, Scored
    from tsadbench.base.recording import Recording
    from tsadbench.errors import (
        ContractError,
        DataError,
        DataNotFoundError,
        MissingExtraError,
        ModelFileError,
        NotFittedError,
        PluginError,
        StoreError,
        TsadbenchError,
        UsageError,
    )
    from tsadbench.execution.record import Record
    from tsadbench.leaderboard.board import Leaderboard
    from tsadbench.serving import fit_model, load_model
    from tsadbench.utils.progress import progress


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_PLACES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
