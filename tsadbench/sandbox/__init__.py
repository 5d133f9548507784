"""The box: the only place where a detector runs, a child process behind a socket.

Through the box's own channels no label and, before fit ends, no test row can reach a detector. On Linux the kernel
seals the process: it reaches only its libraries, one private folder and its channel. Elsewhere, or if
the kernel refuses, an audit hook guards against mistakes and lazy cheating.
"""

from __future__ import annotations

from tsadbench.sandbox.box import Box, Costs
from tsadbench.sandbox.construction import Construction
from tsadbench.sandbox.crossing import Crossing
from tsadbench.sandbox.description import Description, ask, asking, describe
from tsadbench.sandbox.limits import BoxFailure, Limits
from tsadbench.sandbox.seal.closing import SealStatus
from tsadbench.sandbox.server import default_server, seal_status

__all__ = [
    "Box", "BoxFailure", "Construction", "Costs", "Crossing", "Description", "Limits", "SealStatus", "ask", "asking",
    "default_server", "describe", "seal_status",
]  # fmt: skip
