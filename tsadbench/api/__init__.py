"""The Python face of tsadbench: what its commands do, and what scripts and plugins' commands need besides."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

# Loaded on first use (PEP 562), as in `tsadbench` itself.
_MODULE_OF = {
    "fill_blocks": "tsadbench.leaderboard.formatting",
    "load_dataset": "tsadbench.api.loading",
    "load_prior": "tsadbench.api.loading",
    "mean_std": "tsadbench.leaderboard.formatting",
    "number": "tsadbench.leaderboard.formatting",
    "table_lines": "tsadbench.leaderboard.formatting",
}

__all__ = ["fill_blocks", "load_dataset", "load_prior", "mean_std", "number", "table_lines"]

if TYPE_CHECKING:
    from tsadbench.api.loading import load_dataset, load_prior
    from tsadbench.leaderboard.formatting import fill_blocks, mean_std, number, table_lines


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value
