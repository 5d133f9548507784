"""Shows work in progress on standard error: bars on a terminal, a line per trial elsewhere."""

from __future__ import annotations

import sys
import threading
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.text import Text

from tsadbench.execution.runner import Observer

if TYPE_CHECKING:
    from types import TracebackType

    from tsadbench.execution.plan import Plan, Trial
    from tsadbench.execution.record import Record


# Before this share of the work is done, the time that it took says little about the rest.
_TOLD_FROM = 0.1


class _TimeLeft(ProgressColumn):
    """The time left, if the rest takes as long a unit as what this run has done; ``kept`` was done before."""

    def render(self, task: Task) -> Text:
        done, total = task.completed - task.fields.get("kept", 0), (task.total or 0) - task.fields.get("kept", 0)
        if not task.elapsed or not total or not _TOLD_FROM <= done / total < 1:
            return Text()
        seconds = task.elapsed * (total - done) / done
        return Text(f"about {seconds:.0f} s left" if seconds < 90 else f"about {seconds / 60:.0f} min left")


def bars(console: Console) -> Progress:
    """Return progress bars whose tasks have a ``note``; nothing is shown if the console is not a terminal."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        _TimeLeft(),
        TextColumn("{task.fields[note]}", markup=False),
        console=console,
        transient=True,
        # Redirect stdout only on a terminal; otherwise `print` output would not reach the pipe.
        redirect_stdout=sys.stdout.isatty(),
        disable=not console.is_terminal,
    )


class Live:
    """Counts pieces of work that are done and failed, with a bar for each that runs; to be entered as a context.

    Parameters
    ----------
    name
        What the pieces are called.
    total
        How many there are.
    """

    def __init__(self, name: str, total: int) -> None:
        self.total, self.n_done, self.n_failed = total, 0, 0
        self._console = Console(stderr=True, force_jupyter=False)  # a notebook gets plain lines
        self._bars = bars(self._console)
        self._all = self._bars.add_task(name, total=total, note="")
        self._running: dict[Hashable, TaskID] = {}
        self._lock = threading.Lock()  # pieces report from several threads

    def __enter__(self) -> Live:
        self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._bars.stop()

    def begin(self, key: Hashable, name: str) -> None:
        """Add a bar, unless there is one: a cluster may start a trial a second time."""
        with self._lock:
            if key not in self._running:
                self._running[key] = self._bars.add_task(name, total=None, note="")

    def move(self, key: Hashable, done: int, total: int, note: str = "") -> None:
        """Move a bar."""
        with self._lock:
            if key in self._running:
                self._bars.update(self._running[key], completed=done, total=total, note=note)

    def end(self, key: Hashable, line: str, *, failed: bool = False) -> None:
        """Count a piece and remove its bar; a terminal shows the line only if it failed."""
        with self._lock:
            self.n_done += 1
            self.n_failed += failed
            if key in self._running:
                self._bars.remove_task(self._running.pop(key))
            note = f"{self.n_failed} failed" if self.n_failed else ""
            self._bars.update(self._all, completed=self.n_done, note=note)
            if failed or not self._console.is_terminal:
                text = f"[{self.n_done}/{self.total}] {line}"
                self._console.print(text, markup=False, highlight=False, soft_wrap=True)


class RunProgress(Live, Observer):
    """Shows the trials of plans while they run."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        super().__init__("trials", sum(len(plan.trials) for plan in plans))
        self._several = len(plans) > 1
        self.n_kept = 0

    def kept(self, trial: Trial, record: Record) -> None:  # noqa: ARG002
        """Count a trial of an earlier run."""
        with self._lock:
            self.n_kept += 1
            self.n_done += 1
            self._bars.update(self._all, completed=self.n_done, kept=self.n_kept)

    def started(self, trial: Trial) -> None:
        """Add a bar for the trial."""
        self.begin(_key(trial), f"{trial.contender.label}, seed {trial.seed}")

    def progressed(self, trial: Trial, done: int, total: int, note: str) -> None:
        """Move the trial's bar."""
        self.move(_key(trial), done, total, note)

    def finished(self, trial: Trial, record: Record) -> None:
        """Count the trial, and say how it ended."""
        origin = f"{record.dataset}, {record.protocol}: " if self._several else ""
        seconds = (record.fit_seconds or 0.0) + (record.score_seconds or 0.0)
        reason = f": {' '.join(record.reason.split())}" if record.reason else f", {seconds:.1f} s"
        line = f"{origin}{record.label}, seed {record.seed}: {record.status}{reason}"
        self.end(_key(trial), line, failed=record.status != "ok")


def watched() -> bool:
    """Whether a person watches: this process has a terminal, or is the kernel of a notebook."""
    return sys.stderr.isatty() or Console().is_jupyter


def _key(trial: Trial) -> tuple[str, int]:
    return trial.contender.label, trial.seed
