"""``tsadbench rank``: the places of stored rows, on each data set and over several, and how firm they are."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tsadbench.cli import complete
from tsadbench.cli.live import progress_bar
from tsadbench.cli.options import DataOption, FigureOption, ShownOption, SplitsOption
from tsadbench.cli.output import ResultFormat, table_width
from tsadbench.errors import UsageError

if TYPE_CHECKING:
    from tsadbench.analysis.significance.rank import Ranks
    from tsadbench.analysis.significance.ranking import Ranking

MARKDOWN, CSV, FIGURE = "rank.md", "rank.csv", "rank.svg"


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
            help="Rank over the data sets of this suite alone: plants, servers, core or all; may be repeated.",
            autocompletion=complete.suites,
        ),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help="Protocol (default: all of the stores; of a suite strict).")
    ] = None,
    resamples: Annotated[int, typer.Option(min=1, help="How many resamples are drawn.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="The seed that draws them.")] = 0,
    detector: ShownOption = None,
    form: Annotated[ResultFormat, typer.Option("--format", help="Format of standard output.")] = "table",
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
    from tsadbench.analysis.significance.rank import rank as rank_stored
    from tsadbench.api.board import shown_against

    if write is not None and detector:
        raise UsageError("--write is for whole tables: leave out --detector")
    _check_outputs(suite or (), write, figure)
    with progress_bar("Resampling") if stability else nullcontext():
        found = rank_stored(
            shown_against(runs),
            metric=metric,
            stability=stability,
            resamples=resamples,
            seed=seed,
            dataset=dataset,
            protocol=protocol,
            splits=split or (),
            data=data,
            suites=suite or (),
            detectors=detector or (),
        )
    if write is not None:
        for ranking in found.over_all:
            _write_suite(found, ranking, write / ranking.suite.partition(" ")[0])
    if figure is not None:
        if not found.over_all:
            raise UsageError(
                "--figure draws a ranking over several data sets; here no two detectors have ranks on several"
            )
        from tsadbench.reporting.figures.significance import draw_ranking  # needs matplotlib

        draw_ranking(found.over_all[0], figure)
    typer.echo(found.text(form, table_width()), nl=False)


def _check_outputs(suites: Sequence[str], write: Path | None, figure: Path | None) -> None:
    """Raise a UsageError before long work if its results could not be written."""
    from tsadbench.datasets.loading import suite_named
    from tsadbench.utils.files import require_writable

    if write is not None and not suites:
        raise UsageError("--write expects --suite: below DIR each suite has a folder")
    files = [write / suite_named(name).name / MARKDOWN for name in suites] if write is not None else []
    for file in files:
        require_writable(file)
    if figure is not None:
        require_figure(figure)


def require_figure(file: Path) -> None:
    """Raise a UsageError before long work if a figure cannot be written to a file."""
    from tsadbench.reporting.figures.style import check_ending
    from tsadbench.utils.files import require_writable

    check_ending(file)
    require_writable(file)


def _write_suite(ranks: Ranks, ranking: Ranking, folder: Path) -> None:
    """Write ``rank.md``, ``rank.csv`` and ``rank.svg``; the first has the rankings of its data sets too."""
    from tsadbench.analysis.significance.rank import joined
    from tsadbench.reporting.figures.significance import draw_ranking
    from tsadbench.utils.files import write_file

    keys = ["dataset", "split"]
    parts = set(ranking.datasets[keys].itertuples(index=False, name=None))
    single = [one for one in ranks.rankings if {*one.datasets[keys].itertuples(index=False, name=None)} <= parts]
    picture = f"![Mean ranks with their 90 % intervals]({FIGURE})\n"
    write_file(folder / MARKDOWN, f"{ranking.to_markdown()}\n{picture}\n{joined(single, ()).to_markdown()}")
    write_file(folder / CSV, ranking.to_csv())
    draw_ranking(ranking, folder / FIGURE)
