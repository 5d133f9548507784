"""Shows progress on standard error: bars on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tsadbench.execution.runner import Observer
from tsadbench.utils.progress import listening

if TYPE_CHECKING:
    from tsadbench.execution.plan import Plan, Trial
    from tsadbench.execution.record import Record


def watched() -> bool:
    """Whether a person is watching: on a terminal or in a notebook."""
    return sys.stderr.isatty() or Console().is_jupyter


def bars(*, shown: bool = True) -> Progress:
    """Return progress bars on standard error whose tasks have a ``note``; nothing is shown if it is not a terminal.

    Unless ``shown``, the bars' console prints nothing either.
    """
    # A notebook says that it is a terminal, and gets lines.
    terminal = False if Console().is_jupyter else None
    console = Console(stderr=True, quiet=not shown, force_jupyter=False, force_terminal=terminal)
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        console=console,
        transient=True,
        # Redirect stdout only on a terminal; otherwise `print` output would not reach the pipe.
        redirect_stdout=shown and sys.stdout.isatty(),
        disable=not (shown and console.is_terminal),
    )


@contextmanager
def progress_bar(title: str, *, shown: bool = True) -> Iterator[None]:
    """Show on a terminal, if ``shown``, what the block reports by `tsadbench.progress`."""
    with bars(shown=shown) as bar:
        task = bar.add_task(title, total=None, note="")
        with listening(lambda done, total, note: bar.update(task, completed=done, total=total, note=note)):
            yield


class RunProgress(Observer):
    """Counts trials, and shows the number of finished ones and the state of a running one."""

    def __init__(self, plans: Sequence[Plan], shown: Progress) -> None:
        self.total, self.n_done, self.n_failed, self.n_kept = sum(len(plan.trials) for plan in plans), 0, 0, 0
        self._several = len(plans) > 1
        self._bars, self._console = shown, shown.console
        self._bar = shown.add_task("trials", total=self.total, note="")
        self._lock = threading.Lock()  # trials report from several threads

    def kept(self, trial: Trial, record: Record) -> None:  # noqa: ARG002
        """Count a trial of an earlier run; the bar only counts trials that run now."""
        self.n_kept += 1
        self.n_done += 1
        self._bars.update(self._bar, total=self.total - self.n_kept)

    def started(self, trial: Trial) -> None:
        """Name the trial."""
        self._bars.update(self._bar, note=f"{trial.contender.label}, seed {trial.seed}")

    def progressed(self, trial: Trial, done: int, total: int, note: str) -> None:
        """Show the trial's progress."""
        text = f"{trial.contender.label}, seed {trial.seed}: {done} of {total}{note and f', {note}'}"
        self._bars.update(self._bar, note=text)

    def finished(self, trial: Trial, record: Record) -> None:  # noqa: ARG002
        """Count the trial; say how it ended, on a terminal only if it failed."""
        seconds = (record.fit_seconds or 0.0) + (record.score_seconds or 0.0)
        reason = f": {' '.join(record.reason.split())}" if record.reason else f", {seconds:.1f} s"
        with self._lock:
            self.n_done += 1
            self.n_failed += record.status != "ok"
            self._bars.update(self._bar, advance=1, note=f"{self.n_failed} failed" if self.n_failed else "")
            if record.status != "ok" or not self._console.is_terminal:
                origin = f" {record.dataset}, {record.protocol}:" if self._several else ""
                line = (
                    f"[{self.n_done}/{self.total}]{origin} {record.label}, seed {record.seed}: {record.status}{reason}"
                )
                self._console.print(line, markup=False, highlight=False, soft_wrap=True)
