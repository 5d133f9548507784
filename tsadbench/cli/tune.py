"""``tsadbench tune``: parameters chosen without labels."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tsadbench.api.live import Live
from tsadbench.cli.live import interruptible, progress_bar
from tsadbench.cli.options import (
    AllowChangedDataOption,
    DataOption,
    MemoryOption,
    RequireSealOption,
    ThreadsOption,
    TimeoutOption,
    detector_option,
)
from tsadbench.cli.output import print_table, wide_console
from tsadbench.errors import UsageError

if TYPE_CHECKING:
    from tsadbench.tuning.study_result import Point, StudyResult
    from tsadbench.tuning.task import Task


class Objective(StrEnum):
    """What a point of the search is measured by."""

    injection = "injection"
    heldout = "heldout"


def tune(
    detector: Annotated[str | None, detector_option] = None,
    dataset: Annotated[str, typer.Option(help="Name of the data set, or a card.")] = "skab",
    trials: Annotated[int, typer.Option(help="Points of the study, those of earlier runs included.")] = 30,
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            metavar="NAME.KEY=RANGE",
            help="What to search of a parameter: LOW:HIGH, LOW:HIGH:log or A|B|...; may be repeated, and wins over "
            "what the detector declares.",
        ),
    ] = None,
    objective: Annotated[
        Objective,
        typer.Option(
            help="injection: find faults injected into held-out training rows. heldout: forecast or reconstruct "
            "held-out training rows."
        ),
    ] = Objective.injection,
    folds: Annotated[int, typer.Option(help="Blocks of each training recording; each is held out once.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the detector, the faults and the search.")] = 0,
    jobs: Annotated[int, typer.Option(help="Points to evaluate at the same time, each in a process of its own.")] = 1,
    threads: ThreadsOption = 1,
    timeout: TimeoutOption = None,
    memory: MemoryOption = None,
    require_seal: RequireSealOption = False,
    prune: Annotated[bool, typer.Option("--prune/--no-prune", help="Whether to stop points that do badly.")] = True,
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where to keep the study: sqlite:///FILE, postgresql://..., mysql://..., or journal:FILE on a disk "
            "that machines share; the same command on several machines works on one study (default: a file below "
            "--out).",
        ),
    ] = None,
    data: DataOption = None,
    allow_changed_data: AllowChangedDataOption = False,
    out: Annotated[Path, typer.Option(help="Folder of the studies and their results.")] = Path("tuning"),
) -> None:
    """Choose a detector's parameters without labels, on training recordings alone, and write them as a configuration.

    Parameters set in the detector's brackets are not searched. The search knows the training recordings and nothing
    else: test recordings and labels are dropped before it begins. The same command continues the study. Exit code 1 if
    no point is complete.
    """
    from tsadbench.execution.plan import make_plan
    from tsadbench.execution.request import RunRequest
    from tsadbench.tuning.storage import storage_of
    from tsadbench.tuning.study import run_study
    from tsadbench.tuning.task import Settings, make_task
    from tsadbench.tuning.tuned_file import write_tuned

    if detector is None:
        raise UsageError("--detector is missing: which detector is to be tuned? `tsadbench list` names them")
    settings = Settings(
        objective=objective.value,
        trials=trials,
        folds=folds,
        seed=seed,
        jobs=jobs,
        threads=threads,
        timeout=timeout,
        memory_mib=memory,
        require_seal=require_seal,
        prune=prune,
        ranges=tuple(ranges or ()),
    )
    request = RunRequest(
        detectors=[detector],
        datasets=[dataset],
        seeds=1,
        floors=False,
        require_seal=require_seal,
        data=data,
        allow_changed_data=allow_changed_data,
    )
    with progress_bar(f"Reading {dataset}"):
        # The plan gets no name here: it holds test recordings and labels, which are to be gone when the search begins.
        task = make_task(make_plan(request, judged=False), settings)
    url = storage_of(task, out, storage)
    typer.echo(f"study {task.study}: {', '.join(task.space)}", err=True)
    with (
        interruptible("completed points are kept; run the same command to continue"),
        PointProgress(task) as observer,
    ):
        result = run_study(task, url, observer)
    _show(task, result)
    if result.best is None:
        raise typer.Exit(1)
    typer.echo(f"{write_tuned(task, result, out)}: use it with tsadbench run --config", err=True)


def _show(task: Task, result: StudyResult) -> None:
    """Print the best point beside the defaults, and how all points ended."""
    from tsadbench.tuning.tuned_file import label_at

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
    from tsadbench.utils.parameters import format_value

    best = result.best
    point = next((point for point in result.points if point.number == number), None)
    if point is None:
        return f"trial {number}"
    value = point.state if point.value is None else f"{point.value:.4g}"
    reason = f" ({' '.join(point.reason.split())})" if point.reason else ""
    parameters = ", ".join(f"{name}={format_value(value)}" for name, value in point.parameters.items())
    leader = "" if best is None else f"; best {best.value:.4g} (trial {best.number})"
    return f"trial {number}: {value}{reason}: {parameters}{leader}"
