"""``tsadbench explain``: a detector's alarms on one recording, in words."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tsadbench.cli.plot import DataOption, DatasetOption, ProtocolOption, RunStore, write_figure


class ExplanationFormat(StrEnum):
    """The formats of an explanation on standard output."""

    text = "text"
    json = "json"


def explain(
    runs: RunStore,
    label: Annotated[str, typer.Argument(metavar="LABEL", help="A detector's label, as `leaderboard` shows it.")],
    recording: Annotated[str, typer.Option(metavar="ID", help="The test recording.")],
    seed: Annotated[int | None, typer.Option(help="The seed; by default the lowest.")] = None,
    figure: Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw it: .svg, .png or .pdf.")] = None,
    prior: Annotated[
        str | None,
        typer.Option(metavar="PRIOR", help="Prior to look up neighbours in: its file, or a data set that has one."),
    ] = None,
    dataset: DatasetOption = None,
    protocol: ProtocolOption = None,
    data: DataOption = None,
    form: Annotated[
        ExplanationFormat, typer.Option("--format", help="Format of standard output.")
    ] = ExplanationFormat.text,
) -> None:
    """Explain a detector's alarms on a recording: when, how late, by which sensors, and what drives these.

    Which sensors raised an alarm is known only if the trial kept contributions.
    """
    from tsadbench.analysis.explanation.explain import explain as explain_result
    from tsadbench.analysis.explanation.narrative import narrative
    from tsadbench.cli.prior import load_prior
    from tsadbench.leaderboard.selection import select

    if figure is not None:
        from tsadbench.reporting.figures.style import check_ending

        check_ending(figure)
    lookup = None if prior is None else load_prior(prior)
    selection = select(runs, dataset=dataset, protocol=protocol, detectors=[label], seed=seed, data=data)
    (result,) = selection.results(one_each=True)
    explained = explain_result(result, recording, lookup)
    if form is ExplanationFormat.json:
        typer.echo(json.dumps(explained.to_json(), indent=1, allow_nan=False))
    else:
        typer.echo(narrative(explained), nl=False)
    for line in selection.left_out:
        print(f"left out: {line}", file=sys.stderr)
    if figure is not None:
        from tsadbench.reporting.figures import explanation

        write_figure(figure, lambda page: explanation(result, explained, figure=page))
