"""``tsadbench regress``: runs committed rows again, and fails if a cell left its tolerance."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from tsadbench import api
from tsadbench.cli import options


def regress(
    baseline: Annotated[
        Path, typer.Option(metavar="DIR", help="Tables written by `tsadbench leaderboard --write DIR`.")
    ],
    chosen: Annotated[
        Literal["quick", "full"],
        typer.Option("--set", help="quick: detectors whose trials took at most half a CPU second; full: all."),
    ] = "quick",
    detector: options.Labels = None,
    dataset: options.Datasets = None,
    protocol: options.Protocols = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Run fewer seeds than the baseline has.")] = None,
    jobs: options.Jobs = None,
    data: options.Data = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write JUnit XML.")] = None,
) -> None:
    """Run detectors of committed leaderboards again; exit code 1 if a cell left its tolerance.

    A deterministic detector's metrics may move by 1e-4, a stochastic one's mean by three standard errors of the
    difference between the two means, plus .001; that of a detector that depends on the recording's start by at least
    .005. A lost seal is reported, but is no failure.
    """
    if junit is not None:
        api.require_writable(junit)
    request = api.RunRequest() if jobs is None else api.RunRequest(jobs=jobs)
    cells, notes = api.run_again(
        baseline,
        run=lambda plan: api.run_plans([plan], None, request)[0][0],
        cheap=chosen == "quick",
        detectors=detector or (),
        datasets=dataset or (),
        protocols=protocol or (),
        seeds=seeds,
        directory=data,
    )
    typer.echo(api.to_markdown(cells, notes), nl=False)
    if junit is not None:
        api.write_file(junit, api.to_junit(cells))
    if not cells["holds"].all():
        raise typer.Exit(1)
