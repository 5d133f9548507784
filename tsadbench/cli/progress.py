"""A run's trials on standard error: a live table on a terminal, a line a trial elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from tsadbench.execution.plan import Trial
from tsadbench.execution.record import Record


class Watcher:
    """What both have in common: they count the trials that an earlier run has left.

    Parameters
    ----------
    n_trials
        How many trials the run has.
    several
        Whether they are of more than one data set and protocol, so that a trial's line has to say which.
    """

    def __init__(self, n_trials: int, *, several: bool) -> None:
        self.n_trials = n_trials
        self.n_kept = 0
        self._several = several

    def kept(self, trial: Trial, record: Record) -> None:  # noqa: ARG002
        """Count a trial of an earlier run."""
        self.n_kept += 1

    def line(self, record: Record) -> str:
        """Return a trial on one line."""
        place = f"{record.dataset}, {record.protocol}: " if self._several else ""
        seconds = sum(part or 0.0 for part in (record.fit_seconds, record.score_seconds))
        reason = f": {' '.join(record.reason.split())}" if record.reason else f", {_duration(seconds)}"
        return f"{place}{record.label}, seed {record.seed}: {record.status}{reason}"


class LiveTable(Watcher):
    """Shows how many trials are done, running and failed and the time left; below, the steps of those in hand.

    Parameters
    ----------
    bars
        Where it is drawn.
    n_trials, several
        As `Watcher`'s.
    """

    def __init__(self, bars: Progress, n_trials: int, *, several: bool = False) -> None:
        super().__init__(n_trials, several=several)
        self._bars = bars
        self._all = bars.add_task("trials", total=n_trials, note="")
        self._running: dict[tuple[str, int], TaskID] = {}
        self._n_failed = 0
        self._lock = threading.Lock()

    def kept(self, trial: Trial, record: Record) -> None:
        """Count a trial of an earlier run."""
        super().kept(trial, record)
        self._bars.update(self._all, advance=1)

    def started(self, trial: Trial) -> None:
        """Give the trial that begins a bar."""
        with self._lock:
            if _key(trial) not in self._running:  # a cluster may start one again
                name = f"{trial.contender.label}, seed {trial.seed}"
                self._running[_key(trial)] = self._bars.add_task(name, total=None, note="")
        self._tell()

    def progressed(self, trial: Trial, done: int, total: int, note: str) -> None:
        """Move the trial's bar."""
        with self._lock:
            task = self._running.get(_key(trial))
        if task is not None:
            self._bars.update(task, completed=done, total=total, note=note)

    def finished(self, trial: Trial, record: Record) -> None:
        """Count the trial and take its bar away."""
        with self._lock:
            task = self._running.pop(_key(trial), None)
            self._n_failed += record.status != "ok"
        if task is not None:
            self._bars.remove_task(task)
        if record.status != "ok":
            self._bars.console.print(self.line(record), markup=False)
        self._bars.update(self._all, advance=1)
        self._tell()

    def _tell(self) -> None:
        failed = f", {self._n_failed} failed" if self._n_failed else ""
        self._bars.update(self._all, note=f"{len(self._running)} running{failed}")


class Lines(Watcher):
    """Prints a line for each trial that ends: how many are done, what it gave, about how long the rest will take.

    Parameters
    ----------
    console
        Where it prints.
    n_trials, several
        As `Watcher`'s.
    """

    def __init__(self, console: Console, n_trials: int, *, several: bool = False) -> None:
        super().__init__(n_trials, several=several)
        self._console = console
        self._n_done = self._n_failed = 0
        self._begun = time.monotonic()
        self._lock = threading.Lock()

    def started(self, trial: Trial) -> None:
        """Say nothing: a line a trial is enough."""

    def progressed(self, trial: Trial, done: int, total: int, note: str) -> None:
        """Say nothing."""

    def finished(self, trial: Trial, record: Record) -> None:  # noqa: ARG002
        """Print the trial's line."""
        with self._lock:
            self._n_done += 1
            self._n_failed += record.status != "ok"
            ended = self.n_kept + self._n_done
            left = (self.n_trials - ended) * (time.monotonic() - self._begun) / self._n_done
            rest = f"; about {_duration(left)} left" if ended < self.n_trials else ""
            failed = f"; {self._n_failed} failed" if self._n_failed else ""
            self._console.print(
                f"[{ended}/{self.n_trials}] {self.line(record)}{failed}{rest}",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )


def _duration(seconds: float) -> str:
    """Return a duration as people say it.

    Examples
    --------
    >>> _duration(0.123), _duration(75), _duration(7300)
    ('0.1 s', '75 s', '122 min')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 180 else f"{seconds / 60:.0f} min"


def _key(trial: Trial) -> tuple[str, int]:
    return trial.contender.label, trial.seed


@contextmanager
def watching(n_trials: int, *, several: bool = False) -> Iterator[LiveTable | Lines]:
    """Show a run's trials while the block runs; parameters as `Watcher`'s."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Lines(console, n_trials, several=several)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        yield LiveTable(bars, n_trials, several=several)
