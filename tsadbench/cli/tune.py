"""``tsadbench tune``: chooses parameters without labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tsadbench import api
from tsadbench.cli import options, output

if TYPE_CHECKING:
    import pandas as pd


def tune(
    detector: options.RequiredDetector,
    dataset: Annotated[str, typer.Option(help="Data set, or its card.", autocompletion=options.datasets)] = "skab",
    trials: Annotated[int, typer.Option(min=1, help="Points of the study, including earlier runs.")] = 30,
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            metavar="NAME.KEY=RANGE",
            help="What to search, instead of the detector's own: LOW:HIGH, LOW:HIGH:log or A|B|...; repeatable.",
        ),
    ] = None,
    objective: Annotated[
        Literal["injection", "heldout"],
        typer.Option(help="Find faults injected into held-out training rows, or forecast or reconstruct these rows."),
    ] = "injection",
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of detector, faults and search.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Points to evaluate at the same time.")] = 1,
    timeout: options.Timeout = None,
    storage: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Database of the study, shared by machines (default: SQLite in --out)."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the studies and their results.")] = Path("tuning"),
) -> None:
    """Choose a detector's parameters without labels, on training recordings alone, and write them as a configuration.

    Parameters set in the detector's brackets are not searched. The same command continues the study. Exit code 1 if no
    point is complete.
    """
    settings = api.Settings(
        objective=objective, trials=trials, seed=seed, jobs=jobs, timeout=timeout, ranges=tuple(ranges or ())
    )
    with api.progress_bar(f"Reading {dataset}"):
        request = api.RunRequest(detectors=[detector], datasets=[dataset], seeds=1, floors=False, timeout=timeout)
        # Keep no reference to the plan, so that its test recordings and labels are freed before the search.
        task = api.make_task(api.make_plan(request, judged=False), settings)
    file = out.resolve() / "studies.sqlite3"
    api.require_writable(file)
    output.say([f"study {task.study}: {', '.join(task.space)}"])

    def ended(number: int, points: pd.DataFrame) -> None:  # includes points of earlier runs and other machines
        line = _line(number, points, api.best_and_defaults(points, task))
        output.say([f"[{api.n_counted(points)}/{trials}] {line}"])

    points = api.run_study(task, storage or f"sqlite:///{file}", ended)
    shown = api.best_and_defaults(points, task)
    if len(shown):
        faults = objective == "injection"
        values = {"all": shown["value"]}
        values |= {part: shown["parts"].str[part] for part in shown["parts"]["best"]} if faults else {}
        measure = "mean AUPRC on injected faults" if faults else "mean loss on held-out rows"
        rows = [
            {measure: part} | {str(name): value for name, value in of_part.items()} for part, of_part in values.items()
        ]
        output.show_table(api.label_at(task, shown["parameters"]["best"]), rows, {})
    states = points["state"].value_counts().sort_index()
    output.say([f"points: {', '.join(f'{n} {state}' for state, n in states.items())}"])
    output.say(f"  {reason}" for reason in (points["state"] + ": " + points["reason"])[points["reason"] != ""].unique())
    if not len(shown):
        raise typer.Exit(1)
    output.say([f"{api.write_tuned(task, points, out)}: use it with tsadbench run --config"])


def _line(number: int, points: pd.DataFrame, shown: pd.DataFrame) -> str:
    """Describe a point's result, and the best point so far."""
    point = points.loc[number]
    value = f"{point['value']:.4g}" if point["state"] == "complete" else point["state"]
    reason = f" ({' '.join(point['reason'].split())})" if point["reason"] else ""
    parameters = ", ".join(f"{name}={value}" for name, value in point["parameters"].items())
    leader = f"; best {shown['value']['best']:.4g} (point {shown['number']['best']})" if len(shown) else ""
    return f"point {number}: {value}{reason}: {parameters}{leader}"
