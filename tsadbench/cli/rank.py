"""``tsadbench rank``: the places of stored rows, on each data set and over several, and how firm they are."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Literal

import typer

from tsadbench.cli import complete
from tsadbench.cli.live import progress_bar
from tsadbench.cli.options import (
    DataOption,
    FigureOption,
    ShownOption,
    SplitsOption,
)
from tsadbench.cli.output import print_table, wide_console
from tsadbench.errors import UsageError


def rank(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUNS...", help="Run stores, or folders of committed leaderboards: what --write wrote."),
    ],
    stability: Annotated[
        bool, typer.Option("--stability", help="Resample sessions, and recordings within them: how firm is each rank?")
    ] = False,
    metric: Annotated[str, typer.Option(help="The metric that ranks.")] = "auprc",
    split: SplitsOption = None,
    dataset: Annotated[str | None, typer.Option(help="Data set, or its card (default: all of the stores).")] = None,
    suite: Annotated[
        list[str] | None,
        typer.Option(
            help="Rank over the data sets of this suite alone: plants, servers or all; may be repeated.",
            autocompletion=complete.suites,
        ),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help="Protocol (default: all of the stores; of a suite strict).")
    ] = None,
    resamples: Annotated[int, typer.Option(min=1, help="How many resamples are drawn.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="The seed that draws them.")] = 0,
    detector: ShownOption = None,
    form: Annotated[
        Literal["table", "json", "csv", "markdown"], typer.Option("--format", help="Format of standard output.")
    ] = "table",
    figure: FigureOption = None,
    write: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Also write SUITE/rank.md, rank.csv and rank.svg for each --suite below DIR."),
    ] = None,
    data: DataOption = None,
) -> None:
    """Rank the rows of run stores, floors included; --stability says how firm the ranks are. No detector runs.

    With --stability each row has the 90 % interval of its rank, and how often it beats the best floor, over resamples
    of the sessions and of the recordings within each. That needs stored scores, the data, and two sessions or more.
    Of a data set with more than eight splits the first is shown, unless --split names others.

    Several data sets are ranked together too, each on its split overall or the first of --split that it has: mean
    ranks, on how many the best floor is beaten, win rates, with intervals over resamples of the data sets.
    """
    from rich.text import Text

    from tsadbench.analysis.significance.rank import rank as rank_stored

    if write is not None and detector:
        raise UsageError("--write is for whole tables: leave out --detector")
    if write is not None or figure is not None:
        from tsadbench.cli.actions.ranks import check_outputs, write_all  # needs matplotlib

        check_outputs(suite or (), write, figure)
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
            suites=suite or (),
        )
    if detector:
        found = found.only(detector)
    if write is not None or figure is not None:
        write_all(found, write, figure)
    if form != "table":
        texts = {"json": found.to_json, "csv": found.to_csv, "markdown": found.to_markdown}
        typer.echo(texts[form](), nl=False)
        return
    console = wide_console()
    for ranking in found.rankings:
        title, header, rows = ranking.table
        if rows:
            print_table(console, title, header, rows, n_names=header.index("detector") + 1)
        else:
            console.print(Text(title))
        for note in ranking.notes:
            console.print(Text(note))
    console.print(Text(found.legend, style="dim"))
    for over_all in found.over_all:
        title, header, rows = over_all.table
        print_table(console, title, header, rows, n_names=header.index("detector") + 1)
        for note in over_all.notes:
            console.print(Text(note))
        console.print(Text(over_all.legend, style="dim"))
