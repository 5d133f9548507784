"""The worth of a stored trial's flags and scores to an operator; separate from protocols and rankings."""

from tsadbench.analysis.diagnostics.board import with_diagnostics
from tsadbench.analysis.diagnostics.compute import Diagnostics, of_result, of_splits
from tsadbench.analysis.events import recording_events
from tsadbench.leaderboard.columns import DIAGNOSTICS, GROUPS, groups_of

__all__ = [
    "DIAGNOSTICS",
    "GROUPS",
    "Diagnostics",
    "groups_of",
    "of_result",
    "of_splits",
    "recording_events",
    "with_diagnostics",
]
