"""What a stored trial's flags and scores are worth to an operator; no part of any protocol or ranking."""

from tsadbench.analysis.diagnostics.board import with_diagnostics
from tsadbench.analysis.diagnostics.compute import Diagnostics, of_result, of_splits, recording_events
from tsadbench.analysis.diagnostics.vus import VUS_BUFFER
from tsadbench.leaderboard.columns import DIAGNOSTICS, GROUPS, groups_of

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
