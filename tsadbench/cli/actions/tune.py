"""What `tsadbench tune` shows of a search and of its result."""

from __future__ import annotations

import typer

from tsadbench.api.live import Live
from tsadbench.cli.output import print_table, wide_console
from tsadbench.tuning.study_result import Point, StudyResult
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


class PointProgress(Live):
    """Observes a search."""

    def __init__(self, task: Task) -> None:
        super().__init__("points", task.settings.trials)

    def __enter__(self) -> PointProgress:
        super().__enter__()
        return self

    def step(self, number: int, done: int, of: int) -> None:
        """Move the bar of a point."""
        self.begin(number, f"trial {number}")
        self.move(number, done, of)

    def ended(self, number: int, result: StudyResult) -> None:
        """Count a point, and say how it ended; points of earlier runs and of other machines count."""
        self.n_done = result.n_counted - 1
        self.end(number, _line(number, result))


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
