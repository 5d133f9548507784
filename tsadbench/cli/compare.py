"""``tsadbench compare``: do stored detectors differ, over recordings."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tsadbench.cli.output import print_table, wide_console

if TYPE_CHECKING:
    from tsadbench.analysis.significance import Comparison


class Format(StrEnum):
    """The formats of a comparison on standard output."""

    table = "table"
    json = "json"
    csv = "csv"
    markdown = "markdown"


def compare(
    runs: Annotated[Path, typer.Argument(metavar="RUNS", help="A run store: what `tsadbench run --out` has written.")],
    detectors: Annotated[
        list[str], typer.Argument(metavar="DETECTOR", help="Two detectors or more, as tables name them.")
    ],
    metric: Annotated[str, typer.Option(help="The one metric to test; named beforehand, auprc.")] = "auprc",
    split: Annotated[str | None, typer.Option(help="The split whose recordings count; all.")] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Data set, or card of one of your own, where the store does not say which.")
    ] = None,
    protocol: Annotated[str | None, typer.Option(help="Protocol, where the store holds several.")] = None,
    rope: Annotated[float, typer.Option(help="Region of practical equivalence: differences up to it are ties.")] = 0.01,
    independent: Annotated[
        bool, typer.Option("--independent", help="Take recordings as independent even where they share rows.")
    ] = False,
    form: Annotated[
        Format, typer.Option("--format", help="Format of standard output; csv: a row a pair.")
    ] = Format.table,
    figure: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a figure as well (.svg, .png or .pdf): the differences of two detectors, else a "
            "critical-difference diagram.",
        ),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder that holds the data sets' folders (skab/, ...).")] = None,
) -> None:
    """Compare stored detectors over recordings; no detector runs.

    Recordings are the unit, seeds are averaged within each, and recordings that share rows count once. Wilcoxon's
    signed-rank test (with Holm's correction for several pairs), Friedman's test, effect sizes, bootstrap intervals,
    wins and losses; and whether there are too few recordings to conclude anything.
    """
    from tsadbench.analysis.significance.compare import compare as compare_stored

    comparison = compare_stored(
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
    formats = {Format.json: comparison.to_json, Format.csv: comparison.to_csv, Format.markdown: comparison.to_markdown}
    if form is Format.table:
        _show(comparison)
    else:
        typer.echo(formats[form](), nl=False)
    if figure is not None:
        from tsadbench.reporting.figures.significance import draw

        draw(comparison, figure)
        typer.echo(str(figure), err=True)


def _show(comparison: Comparison) -> None:
    from rich.text import Text

    console = wide_console()
    console.print(Text(comparison.title))
    for title, header, rows in comparison.tables():
        print_table(console, title, header, rows)
    for sentence in comparison.inference.conclusions:
        console.print(Text(sentence, style="bold"))
    console.print(Text(comparison.legend, style="dim"))
    for note in comparison.notes:
        console.print(Text(note))
