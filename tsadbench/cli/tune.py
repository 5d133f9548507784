"""``tsadbench tune``: parameters chosen without labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tsadbench.api.live import Live
from tsadbench.cli.live import interruptible, progress_bar
from tsadbench.cli.options import TimeoutOption, detector_option
from tsadbench.cli.output import print_table, wide_console
from tsadbench.errors import UsageError

if TYPE_CHECKING:
    from tsadbench.tuning.study import StudyResult
    from tsadbench.tuning.task import Task


def tune(
    detector: Annotated[str | None, detector_option] = None,
    dataset: Annotated[str, typer.Option(help="Name of the data set, or a card.")] = "skab",
    trials: Annotated[int, typer.Option(min=1, help="Points of the study, those of earlier runs included.")] = 30,
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
        Literal["injection", "heldout"],
        typer.Option(
            help="injection: find faults injected into held-out training rows. heldout: forecast or reconstruct "
            "held-out training rows."
        ),
    ] = "injection",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the detector, the faults and the search.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Points to evaluate at the same time.")] = 1,
    timeout: TimeoutOption = None,
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Database that keeps the study, as Optuna takes it: postgresql://..., mysql://... (default: a SQLite "
            "file below --out). Several machines may work on one study.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the studies and their results.")] = Path("tuning"),
) -> None:
    """Choose a detector's parameters without labels, on training recordings alone, and write them as a configuration.

    Parameters set in the detector's brackets are not searched. The same command continues the study. Exit code 1 if no
    point is complete.
    """
    from tsadbench.execution.plan import make_plan
    from tsadbench.execution.request import RunRequest
    from tsadbench.tuning.study import run_study
    from tsadbench.tuning.task import Settings, make_task
    from tsadbench.tuning.tuned_file import label_at, write_tuned
    from tsadbench.utils.files import require_writable

    if detector is None:
        raise UsageError("--detector is missing: which detector is to be tuned? `tsadbench list` names them")
    settings = Settings(
        objective=objective, trials=trials, seed=seed, jobs=jobs, timeout=timeout, ranges=tuple(ranges or ())
    )
    request = RunRequest(detectors=[detector], datasets=[dataset], seeds=1, floors=False)
    with progress_bar(f"Reading {dataset}"):
        # The plan gets no name here: it holds test recordings and labels, which are to be gone when the search begins.
        task = make_task(make_plan(request, judged=False), settings)
    file = out.resolve() / "studies.sqlite3"
    require_writable(file)
    typer.echo(f"study {task.study}: {', '.join(task.space)}", err=True)
    with (
        interruptible("completed points are kept; run the same command to continue"),
        PointProgress(task) as observer,
    ):
        result = run_study(task, storage or f"sqlite:///{file}", observer)
    best, defaults = result.best, result.at(task.defaults)
    if best is not None:
        measure = "mean AUPRC on planted faults" if result.maximise else "mean loss on held-out rows"
        shown = {"defaults": defaults, "best": best} if defaults else {"best": best}
        parts = {part: [f"{point.parts[part]:.4g}" for point in shown.values()] for part in best.parts}
        rows = {"all": [f"{point.value:.4g}" for point in shown.values()], **(parts if result.maximise else {})}
        table = [[name, *cells] for name, cells in rows.items()]
        print_table(wide_console(), label_at(task, best.parameters), (measure, *shown), table)
    typer.echo(f"points: {', '.join(f'{n} {state}' for state, n in sorted(result.counts.items()))}", err=True)
    for reason in dict.fromkeys(f"{point.state}: {point.reason}" for point in result.points if point.reason):
        typer.echo(f"  {reason}", err=True)
    if best is None:
        raise typer.Exit(1)
    typer.echo(f"{write_tuned(task, result, out)}: use it with tsadbench run --config", err=True)


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
        point, best = next(one for one in result.points if one.number == number), result.best
        value = point.state if point.value is None else f"{point.value:.4g}"
        reason = f" ({' '.join(point.reason.split())})" if point.reason else ""
        parameters = ", ".join(f"{name}={value}" for name, value in point.parameters.items())
        leader = "" if best is None else f"; best {best.value:.4g} (trial {best.number})"
        self.end(number, f"trial {number}: {value}{reason}: {parameters}{leader}")
