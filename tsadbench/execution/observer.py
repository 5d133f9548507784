"""Who hears how far a run has come, from several threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tsadbench.execution.plan import Trial
    from tsadbench.execution.record import Record


class Observer:
    """Receives a run's events; this one ignores them."""

    def kept(self, trial: Trial, record: Record) -> None:
        """Hear that an earlier run has completed the trial."""

    def started(self, trial: Trial) -> None:
        """Hear that a trial of this machine begins."""

    def progressed(self, trial: Trial, done: int, total: int, note: str) -> None:
        """Hear how far a trial's fit has come."""

    def finished(self, trial: Trial, record: Record) -> None:
        """Hear the result of a trial."""
