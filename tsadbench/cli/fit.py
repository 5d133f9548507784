"""``tsadbench fit``: fits a detector for use and stores it in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tsadbench import api
from tsadbench.cli import options, output


def fit(
    dataset: Annotated[
        str, typer.Option(metavar="NAME|CARD", help="Data set, or its card.", autocompletion=options.datasets)
    ],
    out: Annotated[Path, typer.Option(metavar="MODEL", help="The file to write.")],
    detector: options.Detector = None,
    protocol: Annotated[
        str, typer.Option(help="Decides which rows train and how the threshold is set: strict or published.")
    ] = "strict",
    entity: Annotated[
        str | None, typer.Option(metavar="NAME", help="The entity to model, if the data set has several.")
    ] = None,
    settings: options.Set = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of a stochastic detector.")] = 0,
    threads: Annotated[int, typer.Option(min=1, help="Threads of a detector's numerical libraries.")] = 1,
    timeout: options.Timeout = None,
    memory: options.Memory = None,
) -> None:
    """Fit a detector on a data set's training recordings and write it, with its threshold, to a file.

    Without --detector it is the registered default, `multiview`, which needs no settings, labels or prior. The fit is
    the same as in `tsadbench run` with the same seed; `tsadbench score` scores new rows with it. Exit code 1 if the
    detector fails.
    """
    with output.box_failures(detector or dataset), api.progress_bar(f"Fitting {detector or dataset}"):
        asked = {"protocols": [protocol], "settings": settings or (), "seeds": [seed], "threads": threads}
        asked |= {"detectors": [api.defaults("fit")[0] if detector is None else detector], "datasets": [dataset]}
        request = api.requested(None, {**asked, "timeout": timeout, "memory": memory})
        card, traits, _ = api.write_model(request, out, entity)
    threshold = card.threshold
    memory_rows = "all rows" if traits.memory is None else f"{traits.memory} rows"
    source = card.dataset if entity is None else f"{card.dataset}, {entity}"
    sensors = api.counted(len(card.sensors), "sensor")
    typer.echo(f"{out}: {card.label}, fitted on {card.n_rows:,} rows of {source}, {sensors}")
    typer.echo(f"  threshold {threshold.value:.6g} ({threshold.method}, {threshold.status}), protocol {card.protocol}")
    typer.echo(f"  a row's score uses {traits.look_ahead} later rows, and {memory_rows} before it")
    # Streams cannot be resampled.
    streamed = f"   or   ... | tsadbench score {out} -" if card.layout.resample_every is None else ""
    typer.echo(f"Next:  tsadbench score {out} FILE.csv{streamed}")
