"""``tsadbench tune``: parameters chosen without labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tsadbench.api.live import Live
from tsadbench.cli.live import interruptible, progress_bar
from tsadbench.cli.options import TimeoutOption, detector_option
from tsadbench.cli.output import wide_console
from tsadbench.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd


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
    import pandas as pd

    from tsadbench.execution.plan import make_plan
    from tsadbench.execution.request import RunRequest
    from tsadbench.leaderboard.render import Table, print_tables
    from tsadbench.tuning.study import best_and_defaults, label_at, n_counted, run_study, write_tuned
    from tsadbench.tuning.task import Settings, make_task
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
        Live("points", trials) as live,
    ):

        def ended(number: int, points: pd.DataFrame) -> None:
            live.n_done = n_counted(points) - 1  # points of earlier runs and of other machines count
            live.end(number, _line(number, points, best_and_defaults(points, task)))

        points = run_study(task, storage or f"sqlite:///{file}", ended)
    shown = best_and_defaults(points, task)
    if len(shown):
        faults = objective == "injection"
        measure = "mean AUPRC on planted faults" if faults else "mean loss on held-out rows"
        values = {"all": shown["value"]} | (
            {part: shown["parts"].str[part] for part in shown["parts"]["best"]} if faults else {}
        )
        table = pd.DataFrame(values).T.rename_axis(measure).reset_index()
        print_tables(wide_console(), [Table(label_at(task, shown["parameters"]["best"]), table)])
    states = points["state"].value_counts().sort_index()
    typer.echo(f"points: {', '.join(f'{n} {state}' for state, n in states.items())}", err=True)
    for reason in (points["state"] + ": " + points["reason"])[points["reason"] != ""].unique():
        typer.echo(f"  {reason}", err=True)
    if not len(shown):
        raise typer.Exit(1)
    typer.echo(f"{write_tuned(task, points, out)}: use it with tsadbench run --config", err=True)


def _line(number: int, points: pd.DataFrame, shown: pd.DataFrame) -> str:
    """Return how a point has ended, and which is the best so far."""
    point = points.loc[number]
    value = f"{point['value']:.4g}" if point["state"] == "complete" else point["state"]
    reason = f" ({' '.join(point['reason'].split())})" if point["reason"] else ""
    parameters = ", ".join(f"{name}={value}" for name, value in point["parameters"].items())
    leader = f"; best {shown['value']['best']:.4g} (trial {shown['number']['best']})" if len(shown) else ""
    return f"trial {number}: {value}{reason}: {parameters}{leader}"
