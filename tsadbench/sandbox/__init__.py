"""The box: the only place where a detector runs, a child process behind a socket.

Through the box's own channels no label and, before fit ends, no test row can reach a detector. On Linux the kernel
seals the process: whatever code it runs, it reaches its libraries, one private folder and its channel. Elsewhere, or if
the kernel refuses, an audit hook guards against mistakes and lazy cheating.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tsadbench.sandbox.box import Box, LoadedPackages
    from tsadbench.sandbox.boxed_process import Costs
    from tsadbench.sandbox.closing import SealStatus
    from tsadbench.sandbox.construction import Construction
    from tsadbench.sandbox.crossing import Crossing
    from tsadbench.sandbox.launch import default_launcher, seal_status
    from tsadbench.sandbox.limits import BoxFailure, Limits
    from tsadbench.sandbox.questions import Interview

# Loaded on first use (PEP 562): the inside of a box may run in an interpreter that lacks what the outside imports.
_MODULE_OF = {
    "Box": "box",
    "BoxFailure": "limits",
    "Construction": "construction",
    "Costs": "boxed_process",
    "Crossing": "crossing",
    "Interview": "questions",
    "Limits": "limits",
    "LoadedPackages": "box",
    "SealStatus": "closing",
    "default_launcher": "launch",
    "seal_status": "launch",
}

__all__ = [
    "Box",
    "BoxFailure",
    "Construction",
    "Costs",
    "Crossing",
    "Interview",
    "Limits",
    "LoadedPackages",
    "SealStatus",
    "default_launcher",
    "seal_status",
]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value
