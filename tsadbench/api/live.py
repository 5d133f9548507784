"""What a person sees of a run while it works: bars on a terminal or in a notebook, or a line per trial."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from tsadbench.errors import UsageError
from tsadbench.execution.observer import Observer, Silent

if TYPE_CHECKING:
    from tsadbench.execution.plan import Trial
    from tsadbench.execution.record import Record
    from tsadbench.results.time_left import TimeLeft


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
        reason = f": {' '.join(record.reason.split())}" if record.reason else f", {duration(seconds)}"
        return f"{origin}{record.label}, seed {record.seed}: {record.status}{reason}"

    def rest(self) -> str:
        """Return how long the rest takes, in words; empty if it is not known."""
        seconds = self._time_left.seconds()
        return "" if seconds is None else f"about {duration(seconds)} left"


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


class NotebookBar(Watcher):
    """One bar of tqdm for all trials; what fails is written below it.

    Parameters
    ----------
    bar
        A bar of tqdm's, without a total.
    time_left, several
        As in `Watcher`.
    """

    def __init__(self, bar: Any, time_left: TimeLeft, *, several: bool = False) -> None:  # tqdm has no types
        super().__init__(time_left, several=several)
        self._bar = bar
        self._n_running = self._n_failed = 0
        self._lock = threading.Lock()
        bar.reset(total=self.n_trials)

    def kept(self, trial: Trial, record: Record) -> None:
        """Count a trial of an earlier run."""
        super().kept(trial, record)
        self._bar.update()

    def started(self, trial: Trial) -> None:
        """Count a running trial."""
        super().started(trial)
        self._show(running=1, name=f"{trial.contender.label}, seed {trial.seed}")

    def progressed(self, trial: Trial, done: int, total: int, note: str) -> None:
        """Show how far the trial is."""
        self._show(name=" ".join([f"{trial.contender.label}, seed {trial.seed}: {done}/{total}", note]).rstrip())

    def finished(self, trial: Trial, record: Record) -> None:
        """Count the trial."""
        super().finished(trial, record)
        self._show(running=-1, failed=record.status != "ok")
        if record.status != "ok":
            self._bar.write(self.line(record), file=sys.stderr)
        self._bar.update()

    def _show(self, *, running: int = 0, failed: int = 0, name: str = "") -> None:
        with self._lock:
            self._n_running += running
            self._n_failed += failed
            counts = f"{self._n_failed} failed" if self._n_failed else ""
            parts = (name or f"{self._n_running} running", counts, self.rest())
            self._bar.set_postfix_str(", ".join(part for part in parts if part))


@contextmanager
def watching(time_left: TimeLeft, *, several: bool = False) -> Iterator[LiveTable | Lines]:
    """Show a run's trials while the block runs: live on a terminal, by lines elsewhere; parameters as `Watcher`'s."""
    console = Console(stderr=True)
    if console.is_terminal:
        with bars(console) as live:
            yield LiveTable(live, time_left, several=several)
    else:
        yield Lines(console, time_left, several=several)


def check_progress(progress: object) -> None:
    """Raise a UsageError unless this is what `shown` takes."""
    if progress is not None and not isinstance(progress, bool):
        raise UsageError(f"progress: expected True, False or None, found {progress!r}")


@contextmanager
def shown(progress: bool | None, time_left: TimeLeft, *, several: bool = False) -> Iterator[Observer]:
    """Show a run's trials while the block runs.

    Parameters
    ----------
    progress
        True: by a bar of tqdm's in a notebook, by bars on a terminal, by a line per trial elsewhere. None: the same,
        but nothing elsewhere. False: nothing.
    time_left, several
        As in `Watcher`.
    """
    bar = notebook_bar() if progress is not False else None
    if bar is not None:
        with bar:
            yield NotebookBar(bar, time_left, several=several)
    elif progress or (progress is None and (in_notebook() or sys.stderr.isatty())):
        with watching(time_left, several=several) as observer:
            yield observer
    else:
        yield Silent()


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def notebook_bar() -> Any:
    """Return a bar of tqdm's for the notebook that runs this process; None if there is none, or no tqdm."""
    if not in_notebook():
        return None
    try:
        import_module("ipywidgets")  # without it, tqdm's bar is an error
        bar = import_module("tqdm.notebook").tqdm
    except ImportError:
        return None
    return bar(desc="trials", unit="trial")


def duration(seconds: float) -> str:
    """Return a duration in words.

    Examples
    --------
    >>> duration(0.123), duration(75), duration(7300)
    ('0.1 s', '75 s', '122 min')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 180 else f"{seconds / 60:.0f} min"


def _key(trial: Trial) -> tuple[str, int]:
    return trial.contender.label, trial.seed
