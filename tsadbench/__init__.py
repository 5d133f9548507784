"""tsadbench: the benchmark harness for anomaly detection in multivariate sensor series that people can believe."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tsadbench._version import __version__

_MODULES = {  # loaded on first use (PEP 562): `tsadbench --help` must not wait for them
    "tsadbench.analysis.significance.compare": ("compare",),
    "tsadbench.analysis.significance.rank": ("rank",),
    "tsadbench.api.board": ("Board", "load_board"),
    "tsadbench.api.checking": ("check",),
    "tsadbench.api.frames": ("dataset_from_frames",),
    "tsadbench.api.plotting": ("plot_scores",),
    "tsadbench.api.running": ("run",),
    "tsadbench.base": (
        "Dataset", "Detector", "Episode", "LabelledDataset", "Labels", "Prior", "Protocol", "Recording", "Scored",
        "Traits", "WrappedDetector", "detector",
    ),
    "tsadbench.errors": (
        "ContractError", "DataError", "DataNotFoundError", "MissingExtraError", "ModelFileError", "NotFittedError",
        "PluginError", "StoreError", "TsadbenchError", "UsageError",
    ),
    "tsadbench.execution.record": ("Record",),
    "tsadbench.leaderboard.board": ("Leaderboard",),
    "tsadbench.serving": ("fit_model", "load_model"),
    "tsadbench.utils.progress": ("progress",),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Board", "ContractError", "DataError", "DataNotFoundError", "Dataset", "Detector", "Episode", "LabelledDataset",
    "Labels", "Leaderboard", "MissingExtraError", "ModelFileError", "NotFittedError", "PluginError", "Prior",
    "Protocol", "Record", "Recording", "Scored", "StoreError", "Traits", "TsadbenchError", "UsageError",
    "WrappedDetector", "__version__", "check", "compare", "dataset_from_frames", "detector", "fit_model", "load_board",
    "load_model", "plot_scores", "progress", "rank", "run",
]  # fmt: skip

if TYPE_CHECKING:
    from tsadbench.analysis.significance.compare import compare
    from tsadbench.analysis.significance.rank import rank
    from tsadbench.api.board import Board, load_board
    from tsadbench.api.checking import check
    from tsadbench.api.frames import dataset_from_frames
    from tsadbench.api.plotting import plot_scores
    from tsadbench.api.running import run
    from tsadbench.base import (
        Dataset,
        Detector,
        Episode,
        LabelledDataset,
        Labels,
        Prior,
        Protocol,
        Recording,
        Scored,
        Traits,
        WrappedDetector,
        detector,
    )  # fmt: skip
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
    )  # fmt: skip
    from tsadbench.execution.record import Record
    from tsadbench.leaderboard.board import Leaderboard
    from tsadbench.serving import fit_model, load_model
    from tsadbench.utils.progress import progress


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
