"""Shows work in progress on standard error: bars on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from tsadbench.execution.runner import Observer
from tsadbench.utils.progress import listening

if TYPE_CHECKING:
    from types import TracebackType

    from tsadbench.execution.plan import Plan, Trial
    from tsadbench.execution.record import Record

# Seconds between two lines about one piece of work, where there is no terminal.
_SILENCE = 30.0


def watched() -> bool:
    """Whether a person watches: this process has a terminal, or is the kernel of a notebook."""
    return sys.stderr.isatty() or Console().is_jupyter


def _bars(console: Console) -> Progress:
    """Return progress bars whose tasks have a ``note``; nothing is shown if the console is not a terminal."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        console=console,
        transient=True,
        # Redirect stdout only on a terminal; otherwise `print` output would not reach the pipe.
        redirect_stdout=sys.stdout.isatty(),
        disable=not console.is_terminal,
    )


@contextmanager
def progress_bar(title: str) -> Iterator[None]:
    """Show what the block reports by `tsadbench.progress`: a bar on a terminal, else a line every half a minute."""
    console = Console(stderr=True, force_jupyter=False)
    said = time.monotonic()
    with _bars(console) as bar:
        task = bar.add_task(title, total=None, note="")

        def show(done: int, total: int, note: str) -> None:
            nonlocal said
            bar.update(task, completed=done, total=total, note=note)
            if done and not console.is_terminal and time.monotonic() - said >= _SILENCE:
                said = time.monotonic()
                _line(console, f"{title}: {done:,} of {total:,}{note and f'; {note}'}")

        with listening(show):
            yield


def _line(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


class RunProgress(Observer):
    """Shows the trials of plans while they run; to be entered as a context."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        self.total, self.n_done, self.n_failed, self.n_kept = sum(len(plan.trials) for plan in plans), 0, 0, 0
        self._several = len(plans) > 1
        self._console = Console(stderr=True, force_jupyter=False)  # a notebook gets plain lines
        self._bars = _bars(self._console)
        self._all = self._bars.add_task("trials", total=self.total, note="")
        self._running: dict[tuple[str, int], TaskID] = {}
        self._lock = threading.Lock()  # trials report from several threads

    def __enter__(self) -> RunProgress:
        self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._bars.stop()

    def kept(self, trial: Trial, record: Record) -> None:  # noqa: ARG002
        """Count a trial of an earlier run; the bar counts those that run."""
        with self._lock:
            self.n_kept += 1
            self.n_done += 1
            self._bars.update(self._all, total=self.total - self.n_kept)

    def started(self, trial: Trial) -> None:
        """Add a bar, unless there is one: a cluster may start a trial a second time."""
        with self._lock:
            name = f"{trial.contender.label}, seed {trial.seed}"
            if _key(trial) not in self._running:
                self._running[_key(trial)] = self._bars.add_task(name, total=None, note="")

    def progressed(self, trial: Trial, done: int, total: int, note: str) -> None:
        """Move the trial's bar."""
        with self._lock:
            if (bar := self._running.get(_key(trial))) is not None:
                self._bars.update(bar, completed=done, total=total, note=note)

    def finished(self, trial: Trial, record: Record) -> None:
        """Count the trial and remove its bar; say how it ended, on a terminal only if it failed."""
        origin = f"{record.dataset}, {record.protocol}: " if self._several else ""
        seconds = (record.fit_seconds or 0.0) + (record.score_seconds or 0.0)
        reason = f": {' '.join(record.reason.split())}" if record.reason else f", {seconds:.1f} s"
        with self._lock:
            self.n_done += 1
            self.n_failed += record.status != "ok"
            if (bar := self._running.pop(_key(trial), None)) is not None:
                self._bars.remove_task(bar)
            self._bars.update(self._all, advance=1, note=f"{self.n_failed} failed" if self.n_failed else "")
            if record.status != "ok" or not self._console.is_terminal:
                line = f"{origin}{record.label}, seed {record.seed}: {record.status}{reason}"
                _line(self._console, f"[{self.n_done}/{self.total}] {line}")


def _key(trial: Trial) -> tuple[str, int]:
    return trial.contender.label, trial.seed
