"""What a terminal shows while a command works, on standard error: bars, trials, and the end by Ctrl-C."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from tsadbench.utils.progress import listening

if TYPE_CHECKING:
    from tsadbench.execution.plan import Trial
    from tsadbench.execution.record import Record
    from tsadbench.results.time_left import TimeLeft

# Seconds between two lines about one piece of work, where there is no terminal.
_SILENCE = 30.0


@contextmanager
def interruptible(kept: str | Callable[[], str]) -> Iterator[None]:
    """Turn Ctrl-C inside the block into exit code 130 and one line that says what is kept.

    Parameters
    ----------
    kept
        What becomes of the work so far; a function is called only after an interrupt.
    """
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"interrupted: {kept if isinstance(kept, str) else kept()}", err=True)
        raise typer.Exit(130) from None


def bars(console: Console, *, time_left: bool = False) -> Progress:
    """Return progress bars whose tasks have a ``note``; nothing is shown if the console is not a terminal."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        *([TimeRemainingColumn()] if time_left else []),
        TextColumn("{task.fields[note]}", markup=False),
        console=console,
        transient=True,
        # Redirected, what is printed for a file or a pipe would end up on the terminal.
        redirect_stdout=sys.stdout.isatty(),
        disable=not console.is_terminal,
    )


@contextmanager
def progress_bar(title: str, *, time_left: bool = False) -> Iterator[None]:
    """Show what the block reports by `tsadbench.progress`: live on a terminal, by a line in half a minute elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        with listening(_NowAndThen(console, title)):
            yield
        return
    with bars(console, time_left=time_left) as bar:
        task = bar.add_task(title, note="")
        with listening(lambda done, total, note: bar.update(task, completed=done, total=total, note=note)):
            yield


class _NowAndThen:
    """Prints how far something is, a line at most every half a minute, so that a log stays short."""

    def __init__(self, console: Console, title: str) -> None:
        self._console = console
        self._title = title
        self._begun = self._told = time.monotonic()

    def __call__(self, done: int, total: int, note: str) -> None:
        now = time.monotonic()
        if not done:
            self._begun = now
        if done and now - self._told >= _SILENCE:
            self._told = now
            left = _duration((total - done) * (now - self._begun) / done)
            line = f"{self._title}: {done:,} of {total:,}; about {left} left{note and f'; {note}'}"
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class Watcher:
    """Counts the trials that an earlier run completed, and describes a trial on one line.

    Parameters
    ----------
    time_left
        Estimates how long the rest of the run takes.
    several
        Whether trials are of more than one data set and protocol, so that a trial's line has to name both.
    """

    def __init__(self, time_left: TimeLeft, *, several: bool = False) -> None:
        self.n_trials = time_left.n_trials
        self.n_kept = 0
        self._time_left = time_left
        self._several = several

    def kept(self, trial: Trial, record: Record) -> None:
        """Count a trial of an earlier run."""
        self.n_kept += 1
        self._time_left.kept(trial, record)

    def started(self, trial: Trial) -> None:
        """Learn that a trial begins."""
        self._time_left.started(trial)

    def finished(self, trial: Trial, record: Record) -> None:
        """Learn what a trial took."""
        self._time_left.finished(trial, record)

    def line(self, record: Record) -> str:
        """Return a trial on one line."""
        origin = f"{record.dataset}, {record.protocol}: " if self._several else ""
        seconds = sum(part or 0.0 for part in (record.fit_seconds, record.score_seconds))
        reason = f": {' '.join(record.reason.split())}" if record.reason else f", {_duration(seconds)}"
        return f"{origin}{record.label}, seed {record.seed}: {record.status}{reason}"

    def rest(self) -> str:
        """Return how long the rest takes, in words; empty if it is not known."""
        seconds = self._time_left.seconds()
        return "" if seconds is None else f"about {_duration(seconds)} left"


class LiveTable(Watcher):
    """Shows how many trials are done, running and failed, and the time left; below, a bar per running trial.

    Parameters
    ----------
    bars
        Where it is drawn.
    time_left, several
        As in `Watcher`.
    """

    def __init__(self, bars: Progress, time_left: TimeLeft, *, several: bool = False) -> None:
        super().__init__(time_left, several=several)
        self._bars = bars
        self._all = bars.add_task("trials", total=self.n_trials, note="")
        self._running: dict[tuple[str, int], TaskID] = {}
        self._n_failed = 0
        self._lock = threading.Lock()  # trials report from several threads

    def kept(self, trial: Trial, record: Record) -> None:
        """Count a trial of an earlier run."""
        super().kept(trial, record)
        self._bars.update(self._all, advance=1)

    def started(self, trial: Trial) -> None:
        """Add a bar for the trial."""
        super().started(trial)
        with self._lock:
            if _key(trial) not in self._running:  # a cluster may start a trial a second time
                name = f"{trial.contender.label}, seed {trial.seed}"
                self._running[_key(trial)] = self._bars.add_task(name, total=None, note="")
        self._show_counts()

    def progressed(self, trial: Trial, done: int, total: int, note: str) -> None:
        """Move the trial's bar."""
        with self._lock:
            task = self._running.get(_key(trial))
        if task is not None:
            self._bars.update(task, completed=done, total=total, note=note)
        self._show_counts()

    def finished(self, trial: Trial, record: Record) -> None:
        """Count the trial and remove its bar."""
        super().finished(trial, record)
        with self._lock:
            task = self._running.pop(_key(trial), None)
            self._n_failed += record.status != "ok"
        if task is not None:
            self._bars.remove_task(task)
        if record.status != "ok":
            self._bars.console.print(self.line(record), markup=False)
        self._bars.update(self._all, advance=1)
        self._show_counts()

    def _show_counts(self) -> None:
        failed = f"{self._n_failed} failed" if self._n_failed else ""
        parts = (f"{len(self._running)} running", failed, self.rest())
        self._bars.update(self._all, note=", ".join(part for part in parts if part))


class Lines(Watcher):
    """Prints a line per finished trial: how many are done, its outcome, roughly how long the rest will take.

    Parameters
    ----------
    console
        Where it prints.
    time_left, several
        As in `Watcher`.
    """

    def __init__(self, console: Console, time_left: TimeLeft, *, several: bool = False) -> None:
        super().__init__(time_left, several=several)
        self._console = console
        self._n_done = self._n_failed = 0
        self._begun = False
        self._lock = threading.Lock()

    def started(self, trial: Trial) -> None:
        """Print how long all will take before the first trial, if that is known."""
        super().started(trial)
        with self._lock:
            if not self._begun and (rest := self.rest()):
                self._print(self.n_kept, rest)
            self._begun = True

    def progressed(self, trial: Trial, done: int, total: int, note: str) -> None:
        """Print nothing: one line per trial is enough."""

    def finished(self, trial: Trial, record: Record) -> None:
        """Print the trial's line."""
        super().finished(trial, record)
        with self._lock:
            self._n_done += 1
            self._n_failed += record.status != "ok"
            ended = self.n_kept + self._n_done
            failed = f"{self._n_failed} failed" if self._n_failed else ""
            rest = self.rest() if ended < self.n_trials else ""
            text = "; ".join(part for part in (self.line(record), failed, rest) if part)
            self._print(ended, text)

    def _print(self, ended: int, text: str) -> None:
        self._console.print(f"[{ended}/{self.n_trials}] {text}", markup=False, highlight=False, soft_wrap=True)


@contextmanager
def watching(time_left: TimeLeft, *, several: bool = False) -> Iterator[LiveTable | Lines]:
    """Show a run's trials while the block runs: live on a terminal, by lines elsewhere; parameters as `Watcher`'s."""
    console = Console(stderr=True)
    if console.is_terminal:
        with bars(console) as live:
            yield LiveTable(live, time_left, several=several)
    else:
        yield Lines(console, time_left, several=several)


def _duration(seconds: float) -> str:
    """Return a duration in words.

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
