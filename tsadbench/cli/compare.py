"""``tsadbench compare``: whether stored detectors differ, over sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tsadbench.cli.options import DataOption, RunsArgument, StoredDatasetOption, StoredProtocolOption
from tsadbench.cli.output import ResultFormat, table_width


def compare(
    runs: RunsArgument,
    detectors: Annotated[
        list[str], typer.Argument(metavar="DETECTOR", help="Two detectors or more, as tables label them.")
    ],
    metric: Annotated[str, typer.Option(help="The one metric to compare; choose it before you look.")] = "auprc",
    split: Annotated[str | None, typer.Option(help="Split whose recordings count (default: all).")] = None,
    dataset: StoredDatasetOption = None,
    protocol: StoredProtocolOption = None,
    rope: Annotated[float, typer.Option(help="Region of practical equivalence: differences up to it are ties.")] = 0.01,
    independent: Annotated[
        bool, typer.Option("--independent", help="Take each recording for a session of its own.")
    ] = False,
    form: Annotated[
        ResultFormat, typer.Option("--format", help="Format of standard output; csv has one row per pair.")
    ] = "table",
    figure: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write a figure (.svg, .png or .pdf): the differences of two detectors; of several "
            "a critical-difference diagram, or each session below ten.",
        ),
    ] = None,
    data: DataOption = None,
) -> None:
    """Compare stored detectors over sessions, stretches of operation; no detector runs.

    Sessions are the unit, as the data set declares them or as its times and shared rows tell; seeds are averaged.
    From six sessions on: Wilcoxon's signed-rank test (with Holm's correction for several pairs), Friedman's test,
    effect sizes, bootstrap intervals, wins and losses. Below six it describes each session and tests nothing. In both
    cases it says how many sessions a difference of .05 would need.
    """
    from tsadbench.analysis.significance.compare import compare as compare_stored
    from tsadbench.cli.rank import require_figure

    if figure is not None:
        require_figure(figure)
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
    typer.echo(comparison.text(form, table_width()), nl=False)
    if figure is not None:
        from tsadbench.reporting.figures.significance import draw

        draw(comparison, figure)
        typer.echo(figure, err=True)
