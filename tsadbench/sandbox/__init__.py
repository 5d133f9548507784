"""The box: the only place where a detector runs, a child process behind a socket.

Through the box's own channels no label and, before fit ends, no test row can reach a detector. This guards against
mistakes and lazy cheating, not against hostile native code.
"""

from tsadbench.sandbox.box import Box
from tsadbench.sandbox.boxed_process import Costs
from tsadbench.sandbox.closing import SealStatus
from tsadbench.sandbox.construction import Construction
from tsadbench.sandbox.crossing import Crossing
from tsadbench.sandbox.launch import default_launcher, seal_status
from tsadbench.sandbox.limits import BoxFailure, Limits
from tsadbench.sandbox.questions import Interview

__all__ = [
    "Box",
    "BoxFailure",
    "Construction",
    "Costs",
    "Crossing",
    "Interview",
    "Limits",
    "SealStatus",
    "default_launcher",
    "seal_status",
]
