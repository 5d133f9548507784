"""tsadbench: the benchmark harness that people can believe, for anomaly detection in multivariate sensor series."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tsadbench._lazy import lazy
from tsadbench._version import __version__

__all__ = [
    "Board", "BrokenTrialError", "BrokenTrialWarning", "ClusterError", "ContractError", "DataError",
    "DataNotFoundError", "Dataset", "Detector", "Episode", "LabelledDataset", "Labels", "Leaderboard",
    "MissingExtraError", "ModelFileError", "NotFittedError", "PluginError", "Prior",
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
        BrokenTrialError,
        BrokenTrialWarning,
        ClusterError,
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

__getattr__ = lazy(__name__, __file__)  # the imports above happen on first use


def __dir__() -> list[str]:
    return __all__
