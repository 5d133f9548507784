"""``tsadbench explain``: explains a detector's alarms on one recording in words."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from tsadbench import api
from tsadbench.cli import options, output


def explain(
    runs: options.Runs,
    label: Annotated[str, typer.Argument(metavar="LABEL", help="A detector's label, as `leaderboard` shows it.")],
    recording: Annotated[str, typer.Option(metavar="ID", help="The test recording.")],
    seed: Annotated[int | None, typer.Option(help="The seed (default: the lowest).")] = None,
    figure: options.Figure = None,
    prior: Annotated[
        str | None, typer.Option(metavar="FILE|NAME", help="Prior for neighbours of sensors: a file or a data set.")
    ] = None,
    dataset: options.Dataset = None,
    protocol: options.Protocol = None,
    data: options.Data = None,
    form: Annotated[Literal["text", "json"], typer.Option("--format", help="Format of standard output.")] = "text",
) -> None:
    """Explain a detector's alarms on a recording: time, delay, contributing sensors, and what drives them.

    Which sensors raised an alarm is known only if the trial kept contributions.
    """
    api.require_figure(figure)
    edges = None if prior is None else api.load_prior(prior)
    chosen = api.select(runs, dataset=dataset, protocol=protocol, detectors=[label], seed=seed, data=data)
    (result,) = chosen.results(one_each=True)
    explained = api.explain(result, recording, edges)
    if form == "json":
        output.show_json(explained.to_json())
    else:
        typer.echo(api.printable(api.narrative(explained), lines=True), nl=False)
    output.say(f"left out: {row}: {reason}" for row, reason in chosen.left_out.items())
    if figure is not None:
        with api.style(), api.page(figure) as page:
            api.explanation(result, explained, page)
        output.say([figure])
