"""``tsadbench rank``: ranks stored rows on each data set and over several, with intervals."""

from __future__ import annotations

from typing import Annotated

import typer

from tsadbench import api
from tsadbench.cli import options, output
from tsadbench.errors import UsageError


def rank(
    runs: options.Stores,
    stability: Annotated[
        bool, typer.Option("--stability", help="Resample sessions, and recordings within them, for intervals of ranks.")
    ] = False,
    metric: Annotated[str, typer.Option(help="The metric to rank by.")] = "auprc",
    split: options.Splits = None,
    dataset: options.Dataset = None,
    suite: Annotated[
        list[str] | None,
        typer.Option(
            help="Rank over the data sets of plants, servers, core or all; repeatable.", autocompletion=options.suites
        ),
    ] = None,
    protocol: options.Protocol = None,
    detector: options.Labels = None,
    form: options.ResultForm = "table",
    figure: options.Figure = None,
    data: options.Data = None,
) -> None:
    """Rank the rows of run stores, floors included; --stability adds intervals. Runs no detector.

    RUNS may also be folders of leaderboards written by `tsadbench leaderboard --write`. With
    --stability each row has the 90 % interval of its rank, and how often it beats the best floor, over resamples
    of the sessions and of the recordings within each. That needs stored scores, the data, and two sessions or more.
    For data sets with more than eight splits, only the first is shown, unless --split names others.

    Several data sets are also ranked together, each by its split overall or the first of --split that it has: mean
    ranks, the number on which the best floor is beaten, and win rates, with intervals over resamples of the data sets.
    """
    api.require_figure(figure)
    with api.progress_bar("Resampling", shown=stability):
        found = api.rank(
            api.shown_against(runs),
            metric=metric,
            stability=stability,
            dataset=dataset,
            protocol=protocol,
            splits=split or (),
            data=data,
            suites=suite or (),
            detectors=detector or (),
        )
    if figure is not None:
        if not found.over_all:
            raise UsageError("it draws a ranking over several data sets, but there is only one", field="figure")
        api.draw_ranking(found.over_all[0], figure)
    typer.echo(found.text(form, output.table_width()), nl=False)
