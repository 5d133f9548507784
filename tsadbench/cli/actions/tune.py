"""What `tsadbench tune` shows of a search and of its result."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.progress import Progress

from tsadbench.api.live import bars
from tsadbench.cli.output import print_table, wide_console
from tsadbench.tuning.study_result import Point, StudyObserver, StudyResult
from tsadbench.tuning.task import Task
from tsadbench.tuning.tuned_file import label_at
from tsadbench.utils.parameters import format_value


def show(task: Task, result: StudyResult) -> None:
    """Print the best point beside the defaults, and how all points ended."""
    best, defaults = result.best, result.at(task.defaults)
    if best is not None:
        columns: dict[str, Point] = {} if defaults is None else {"defaults": defaults}
        columns["best"] = best
        measure = "mean AUPRC on planted faults" if result.maximise else "mean loss on held-out rows"
        parts = best.parts if result.maximise else ()
        rows = [
            ["all", *(f"{point.value:.4g}" for point in columns.values())],
            *([part, *(f"{point.parts[part]:.4g}" for point in columns.values())] for part in parts),
        ]
        print_table(wide_console(), label_at(task, best.parameters), (measure, *columns), rows)
    typer.echo(f"points: {', '.join(f'{n} {state}' for state, n in sorted(result.counts.items()))}", err=True)
    for reason in dict.fromkeys(f"{point.state}: {point.reason}" for point in result.points if point.reason):
        typer.echo(f"  {reason}", err=True)


@contextmanager
def watching_points(task: Task) -> Iterator[StudyObserver]:
    """Show a search while the block runs: a bar on a terminal, a line per point elsewhere."""
    console = Console(stderr=True)
    if console.is_terminal:
        with bars(console, time_left=True) as live:
            yield _PointBar(live, task)
    else:
        yield PointLines(task)


class PointLines:
    """Prints a line per point on standard error.

    Parameters
    ----------
    task
        The search.
    """

    def __init__(self, task: Task) -> None:
        self._n_trials = task.settings.trials

    def step(self, number: int, done: int, of: int) -> None:
        """Print nothing: one line per point is enough."""

    def ended(self, number: int, result: StudyResult) -> None:
        """Print the point's line."""
        typer.echo(f"[{result.n_counted}/{self._n_trials}] {_line(number, result)}", err=True)


class _PointBar:
    """A bar over points; beside it, the progress of the running points, and the best value."""

    def __init__(self, live: Progress, task: Task) -> None:
        self._live = live
        self._bar = live.add_task("points", total=task.settings.trials, note="")
        self._running: dict[int, str] = {}
        self._best = ""
        self._lock = threading.Lock()  # points report from several threads

    def step(self, number: int, done: int, of: int) -> None:
        """Show how far a point is."""
        with self._lock:
            self._running[number] = f"trial {number}: {done}/{of}"
            self._update()

    def ended(self, number: int, result: StudyResult) -> None:
        """Count a point, and show the best one."""
        with self._lock:
            self._running.pop(number, None)
            if result.best is not None:
                self._best = f"best {result.best.value:.4g}"
            self._update(result.n_counted)

    def _update(self, n_done: int | None = None) -> None:
        note = "  ".join([self._best, *self._running.values()]).strip()
        self._live.update(self._bar, completed=n_done, note=note)


def _line(number: int, result: StudyResult) -> str:
    best = result.best
    point = next((point for point in result.points if point.number == number), None)
    if point is None:
        return f"trial {number}"
    value = point.state if point.value is None else f"{point.value:.4g}"
    reason = f" ({' '.join(point.reason.split())})" if point.reason else ""
    parameters = ", ".join(f"{name}={format_value(value)}" for name, value in point.parameters.items())
    leader = "" if best is None else f"; best {best.value:.4g} (trial {best.number})"
    return f"trial {number}: {value}{reason}: {parameters}{leader}"
