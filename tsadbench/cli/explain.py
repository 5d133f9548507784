"""``tsadbench explain``: a detector's alarms on one recording, in words."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from tsadbench.cli.options import (
    DataOption,
    FigureOption,
    RunsArgument,
    StoredDatasetOption,
    StoredProtocolOption,
    format_option,
)
from tsadbench.utils.text import printable


def explain(
    runs: RunsArgument,
    label: Annotated[str, typer.Argument(metavar="LABEL", help="A detector's label, as `leaderboard` shows it.")],
    recording: Annotated[str, typer.Option(metavar="ID", help="The test recording.")],
    seed: Annotated[int | None, typer.Option(help="The seed (default: the lowest).")] = None,
    figure: FigureOption = None,
    prior: Annotated[
        str | None,
        typer.Option(metavar="PRIOR", help="Prior to look up neighbours in: its file, or a data set that has one."),
    ] = None,
    dataset: StoredDatasetOption = None,
    protocol: StoredProtocolOption = None,
    data: DataOption = None,
    form: Annotated[Literal["text", "json"], format_option] = "text",
) -> None:
    """Explain a detector's alarms on a recording: when, how late, by which sensors, and what drives these.

    Which sensors raised an alarm is known only if the trial kept contributions.
    """
    from tsadbench.analysis.explanation import explain as explain_result
    from tsadbench.analysis.explanation import narrative
    from tsadbench.analysis.stored import select
    from tsadbench.api.loading import load_prior

    if figure is not None:
        from tsadbench.reporting.figures.style import check_ending

        check_ending(figure)
    edges = None if prior is None else load_prior(prior)
    selection = select(runs, dataset=dataset, protocol=protocol, detectors=[label], seed=seed, data=data)
    (result,) = selection.results(one_each=True)
    explained = explain_result(result, recording, edges)
    if form == "json":
        typer.echo(json.dumps(explained.to_json(), indent=1, allow_nan=False))
    else:
        typer.echo(printable(narrative(explained), lines=True), nl=False)
    for row, reason in selection.left_out.items():
        typer.echo(f"left out: {row}: {reason}", err=True)
    if figure is not None:
        from tsadbench.cli.plot import write_figure
        from tsadbench.reporting import figures

        write_figure(figure, lambda page: figures.explanation(result, explained, page))
