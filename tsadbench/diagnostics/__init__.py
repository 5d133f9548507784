"""What a stored trial's flags and scores are worth to an operator; no part of any protocol or ranking."""

from tsadbench.diagnostics.board import with_diagnostics
from tsadbench.diagnostics.catalogue import DIAGNOSTICS, GROUPS, groups_of
from tsadbench.diagnostics.compute import Diagnostics, of_result, of_splits, recording_events
from tsadbench.diagnostics.vus import VUS_BUFFER

__all__ = [
    "DIAGNOSTICS",
    "GROUPS",
    "VUS_BUFFER",
    "Diagnostics",
    "groups_of",
    "of_result",
    "of_splits",
    "recording_events",
    "with_diagnostics",
]
