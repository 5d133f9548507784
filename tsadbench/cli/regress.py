"""``tsadbench regress``: run a chosen set again, and fail if a cell left its tolerance."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from tsadbench.cli.options import DataOption, JobsOption


def regress(
    baseline: Annotated[
        Path, typer.Option(metavar="DIR", help="Committed leaderboards: what `tsadbench run --write DIR` has written.")
    ],
    chosen: Annotated[
        Literal["quick", "full"],
        typer.Option("--set", help="quick: detectors whose trials took at most half a CPU second; full: all."),
    ] = "quick",
    detector: Annotated[list[str] | None, typer.Option(help="Only this detector or label; may be repeated.")] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(help="Only this data set: its name, or its card; may be repeated.")
    ] = None,
    protocol: Annotated[list[str] | None, typer.Option(help="Only this protocol; may be repeated.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Run fewer seeds than the baseline has.")] = None,
    jobs: JobsOption = None,
    data: DataOption = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write JUnit XML.")] = None,
    summary: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append a summary in Markdown, for $GITHUB_STEP_SUMMARY.")
    ] = None,
) -> None:
    """Run detectors of committed leaderboards again; exit code 1 if a cell left its tolerance.

    A deterministic detector's metrics may move by 1e-5, or .005 if it does not forget. A stochastic one's mean may move
    by three standard errors of the difference between the two means, plus .001. A row that lost its seal is a note.
    """
    from tsadbench.cli.run import run_watched
    from tsadbench.leaderboard.regression import run_again, to_junit, to_markdown
    from tsadbench.utils.files import open_text, require_writable, write_file
    from tsadbench.utils.numerics import default_jobs

    for file in (junit, summary):
        if file is not None:
            require_writable(file)
    cells, notes = run_again(
        baseline,
        run=lambda plan: run_watched([plan], None, jobs=jobs or default_jobs())[0][0],
        cheap=chosen == "quick",
        detectors=detector or (),
        datasets=dataset or (),
        protocols=protocol or (),
        seeds=seeds,
        directory=data,
    )
    text = to_markdown(cells, notes)
    sys.stdout.write(text)
    if junit is not None:
        write_file(junit, to_junit(cells))
    if summary is not None:
        with open_text(summary, "a") as stream:
            stream.write(text)
    if not cells["holds"].all():
        raise typer.Exit(1)
