"""``tsadbench fit``: one detector, fitted for use, in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tsadbench.cli import complete
from tsadbench.cli.live import interruptible, progress_bar
from tsadbench.cli.options import (
    MemoryOption,
    SettingsOption,
    ThreadsOption,
    TimeoutOption,
    detector_option,
)


def fit(
    dataset: Annotated[
        str,
        typer.Option(
            metavar="NAME|CARD", help="The data set, or the path of a card.", autocompletion=complete.datasets
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="MODEL", help="The file to write.")],
    detector: Annotated[str | None, detector_option] = None,
    protocol: Annotated[
        str,
        typer.Option(
            help="Decides which rows train and how the threshold is set: strict or published.",
            autocompletion=complete.protocols,
        ),
    ] = "strict",
    entity: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose model to fit, if the data set has several entities.")
    ] = None,
    settings: SettingsOption = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of a stochastic detector.")] = 0,
    threads: ThreadsOption = 1,
    timeout: TimeoutOption = None,
    memory: MemoryOption = None,
) -> None:
    """Fit a detector on a data set's training recordings and write it, with its threshold, to a file.

    Without --detector it is the registered default, `multiview`, which needs no settings, labels or prior. The fit is
    the one that `tsadbench run` makes with the same seed; `tsadbench score` scores new rows with it. Exit code 1 if the
    detector fails.
    """
    from tsadbench.sandbox import BoxFailure
    from tsadbench.serving import fit_model
    from tsadbench.utils.progress import progress

    try:
        with interruptible(f"{out} is not written"), progress_bar(f"Fitting {detector or dataset}"):
            model = fit_model(
                detector,
                dataset,
                out,
                protocol=protocol,
                entity=entity,
                settings=settings or (),
                seed=seed,
                threads=threads,
                timeout=timeout,
                memory_mib=memory,
                listener=progress,
            )
    except BoxFailure as failure:
        typer.echo(f"tsadbench: {detector or dataset}: {failure.status}: {failure.reason}", err=True)
        raise typer.Exit(1) from None
    card, threshold, traits = model.card, model.card.threshold, model.detector.declared_traits()
    memory_rows = "all rows" if traits.memory is None else f"{traits.memory} rows"
    source = card.dataset if entity is None else f"{card.dataset}, {entity}"
    typer.echo(f"{out}: {card.label}, fitted on {card.n_rows:,} rows of {source}, {len(card.sensors)} sensors")
    typer.echo(f"  threshold {threshold.value:.6g} ({threshold.method}, {threshold.status}), protocol {card.protocol}")
    typer.echo(f"  a row's score uses {traits.look_ahead} later rows, and {memory_rows} before it")
    # Rows that arrive one by one cannot be resampled.
    streamed = f"   or   ... | tsadbench score {out} -" if card.layout.resample_every is None else ""
    typer.echo(f"Next:  tsadbench score {out} FILE.csv{streamed}")
