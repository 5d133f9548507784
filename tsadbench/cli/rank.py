"""``tsadbench rank``: the places of stored rows, and how firm they are."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated, Literal

import typer

from tsadbench.cli.live import progress_bar
from tsadbench.cli.options import DataOption, RunsArgument, SplitsOption
from tsadbench.cli.output import print_table, wide_console


def rank(
    runs: RunsArgument,
    stability: Annotated[
        bool, typer.Option("--stability", help="Resample sessions, and recordings within them: how firm is each rank?")
    ] = False,
    metric: Annotated[str, typer.Option(help="The metric that ranks.")] = "auprc",
    split: SplitsOption = None,
    dataset: Annotated[str | None, typer.Option(help="Data set, or its card (default: all of the store).")] = None,
    protocol: Annotated[str | None, typer.Option(help="Protocol (default: all of the store).")] = None,
    resamples: Annotated[int, typer.Option(min=1, help="How many resamples --stability draws.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="The seed that draws them.")] = 0,
    form: Annotated[
        Literal["table", "json", "csv", "markdown"], typer.Option("--format", help="Format of standard output.")
    ] = "table",
    data: DataOption = None,
) -> None:
    """Rank the rows of a run store, floors included; --stability says how firm the ranks are. No detector runs.

    With --stability each row has the 90 % interval of its rank, and how often it beats the best floor, over resamples
    of the sessions and of the recordings within each. That needs stored scores, the data, and two sessions or more.
    Of a data set with more than eight splits the first is shown, unless --split names others.
    """
    from rich.text import Text

    from tsadbench.analysis.significance.rank import rank as rank_stored

    with progress_bar("Resampling") if stability else nullcontext():
        found = rank_stored(
            runs,
            metric=metric,
            stability=stability,
            resamples=resamples,
            seed=seed,
            dataset=dataset,
            protocol=protocol,
            splits=split or (),
            data=data,
        )
    if form != "table":
        texts = {"json": found.to_json, "csv": found.to_csv, "markdown": found.to_markdown}
        typer.echo(texts[form](), nl=False)
        return
    console = wide_console()
    for ranking in found.rankings:
        title, header, rows = ranking.table
        if rows:
            print_table(console, title, header, rows)
        else:
            console.print(Text(title))
        for note in ranking.notes:
            console.print(Text(note))
    console.print(Text(found.legend, style="dim"))
