"""``tsadbench compare``: compares stored detectors over sessions."""

from __future__ import annotations

from typing import Annotated

import typer

from tsadbench import api
from tsadbench.cli import options, output


def compare(
    runs: options.Runs,
    detectors: Annotated[list[str], typer.Argument(metavar="DETECTOR...", help="Two or more labels, as in tables.")],
    metric: Annotated[str, typer.Option(help="The metric to compare; choose it before you see results.")] = "auprc",
    split: options.Split = None,
    dataset: options.Dataset = None,
    protocol: options.Protocol = None,
    rope: Annotated[float, typer.Option(help="Region of practical equivalence: differences up to it are ties.")] = 0.01,
    independent: Annotated[bool, typer.Option("--independent", help="Treat each recording as a session.")] = False,
    form: options.ResultForm = "table",
    figure: options.Figure = None,
    data: options.Data = None,
) -> None:
    """Compare stored detectors session by session, without running them.

    A session is one stretch of operation, as the data set declares it; without sessions, each file. Seeds are averaged.
    From six sessions on: Wilcoxon's signed-rank test (with Holm's correction for several pairs), Friedman's test,
    effect sizes, bootstrap intervals, wins and losses. Below six it describes each session and tests nothing. In both
    cases it estimates how many sessions are needed to detect a difference of .05.
    """
    api.require_figure(figure)
    comparison = api.compare(
        runs,
        detectors,
        metric=metric,
        dataset=dataset,
        protocol=protocol,
        split=split,
        rope=rope,
        independent=independent,
        data=data,
    )
    typer.echo(comparison.text(form, output.table_width()), nl=False)
    if figure is not None:
        api.draw(comparison, figure)
        output.say([figure])
