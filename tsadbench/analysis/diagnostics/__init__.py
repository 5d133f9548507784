"""What a stored trial's flags and scores are worth to an operator; separate from protocols and rankings."""

from tsadbench.analysis.diagnostics.board import with_diagnostics
from tsadbench.analysis.diagnostics.compute import of_result, of_splits
from tsadbench.analysis.events import recording_events

__all__ = ["of_result", "of_splits", "recording_events", "with_diagnostics"]
