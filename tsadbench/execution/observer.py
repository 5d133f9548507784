"""Who hears how far a run has come."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Protocol as Interface

if TYPE_CHECKING:
    from tsadbench.execution.plan import Trial
    from tsadbench.execution.record import Record


class Observer(Interface):
    """Receives a run's progress events, from several threads."""

    def kept(self, trial: Trial, record: Record) -> None:
        """Hear that an earlier run has completed the trial."""

    def started(self, trial: Trial) -> None:
        """Hear that a trial begins."""

    def progressed(self, trial: Trial, done: int, total: int, note: str) -> None:
        """Hear how far a trial's fit has come."""

    def finished(self, trial: Trial, record: Record) -> None:
        """Hear the result of a trial."""


class Silent:
    """An observer that says nothing."""

    def kept(self, trial: Trial, record: Record) -> None:
        """Say nothing."""

    def started(self, trial: Trial) -> None:
        """Say nothing."""

    def progressed(self, trial: Trial, done: int, total: int, note: str) -> None:
        """Say nothing."""

    def finished(self, trial: Trial, record: Record) -> None:
        """Say nothing."""
