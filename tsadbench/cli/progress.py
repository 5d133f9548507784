"""Progress bars on standard error: trials, and the epochs of the one that runs. Quiet when not a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tsadbench.plan import Trial
from tsadbench.record import Record


class ProgressBars:
    """Shows a run's trials, and below them the steps of the trial in hand.

    Parameters
    ----------
    bars
        Where they are drawn.
    n_trials
        How many trials the run has.
    """

    def __init__(self, bars: Progress, n_trials: int) -> None:
        self._bars = bars
        self._trials = bars.add_task("trials", total=n_trials, note="")
        self._steps = bars.add_task("", total=None, visible=False, note="")

    def started(self, trial: Trial) -> None:
        """Name the trial that begins."""
        self._bars.reset(self._steps, total=None, visible=False, note="")
        name = f"{trial.contender.label}, seed {trial.seed}"
        self._bars.update(self._steps, description=name)
        self._bars.update(self._trials, note=name)

    def progressed(self, done: int, total: int, note: str) -> None:
        """Move the trial's bar."""
        self._bars.update(self._steps, completed=done, total=total, note=note, visible=True)

    def finished(self, record: Record) -> None:
        """Count the trial."""
        if record.status != "ok":
            self._bars.console.print(
                f"{record.label}, seed {record.seed}: {record.status}: {record.reason}", markup=False
            )
        self._bars.update(self._trials, advance=1)


@contextmanager
def watching(n_trials: int) -> Iterator[ProgressBars]:
    """Draw progress bars while the block runs."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        yield ProgressBars(bars, n_trials)
