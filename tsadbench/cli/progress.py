"""Progress bars on standard error: trials, and the epochs of those that run. Quiet when not a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from tsadbench.plan import Trial
from tsadbench.record import Record


class ProgressBars:
    """Shows a run's trials, and below them the steps of those in hand.

    Parameters
    ----------
    bars
        Where they are drawn.
    n_trials
        How many trials the run has.
    """

    def __init__(self, bars: Progress, n_trials: int) -> None:
        self._bars = bars
        self._all = bars.add_task("trials", total=n_trials, note="")
        self._running: dict[tuple[str, int], TaskID] = {}

    def kept(self, trial: Trial, record: Record) -> None:  # noqa: ARG002
        """Count a trial of an earlier run."""
        self._bars.update(self._all, advance=1)

    def started(self, trial: Trial) -> None:
        """Give the trial that begins a bar."""
        self._running[_key(trial)] = self._bars.add_task(
            f"{trial.contender.label}, seed {trial.seed}", total=None, note=""
        )

    def progressed(self, trial: Trial, done: int, total: int, note: str) -> None:
        """Move the trial's bar."""
        self._bars.update(self._running[_key(trial)], completed=done, total=total, note=note)

    def finished(self, trial: Trial, record: Record) -> None:
        """Count the trial and take its bar away."""
        self._bars.remove_task(self._running.pop(_key(trial)))
        if record.status != "ok":
            line = f"{record.label}, seed {record.seed}: {record.status}: {record.reason}"
            self._bars.console.print(line, markup=False)
        self._bars.update(self._all, advance=1)


def _key(trial: Trial) -> tuple[str, int]:
    return trial.contender.label, trial.seed


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
