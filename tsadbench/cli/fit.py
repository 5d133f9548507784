"""``tsadbench fit``: one detector, fitted for use, in a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tsadbench.cli import complete

if TYPE_CHECKING:
    from tsadbench.serving import Model


def fit(
    detector: Annotated[
        str,
        typer.Option(
            "--detector",
            "-d",
            help="NAME, NAME[key=value,...], package.module:Class or path/file.py:Class.",
            autocompletion=complete.detectors,
        ),
    ],
    dataset: Annotated[
        str,
        typer.Option(
            metavar="NAME|CARD", help="The data set, or the path of a card.", autocompletion=complete.datasets
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="MODEL", help="The file to write.")],
    protocol: Annotated[
        str,
        typer.Option(
            help="Says which rows train and how the threshold is set: strict or published.",
            autocompletion=complete.protocols,
        ),
    ] = "strict",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME.key=value: a parameter of the detector or the protocol. Repeat for several."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of a detector that is stochastic.")] = 0,
    threads: Annotated[int, typer.Option(help="Threads of the detector's libraries.")] = 1,
    timeout: Annotated[float | None, typer.Option(help="Seconds that fitting may take.")] = None,
    memory: Annotated[float | None, typer.Option(help="MiB that the detector's process may hold.")] = None,
    data: Annotated[Path | None, typer.Option(help="Folder that holds the data sets' folders (skab/, ...).")] = None,
    allow_changed_data: Annotated[
        bool, typer.Option("--allow-changed-data", help="Go on where files differ from the published ones.")
    ] = False,
) -> None:
    """Fit a detector on a data set's training recordings and write it, with its threshold, to a file.

    It is the fit that `tsadbench run` makes with the same seed; `tsadbench score` scores new rows with it. Exit code 1
    where the detector fails.
    """
    from tsadbench.base.dataset import DataOptions
    from tsadbench.cli.data import progress_bar
    from tsadbench.sandbox import BoxFailure
    from tsadbench.serving import fit_model
    from tsadbench.utils.progress import progress

    try:
        with progress_bar(f"Fitting {detector}"):
            model = fit_model(
                detector,
                dataset,
                out,
                protocol=protocol,
                settings=settings or (),
                seed=seed,
                threads=threads,
                data=DataOptions(directory=data, allow_changed=allow_changed_data),
                timeout=timeout,
                memory_mib=memory,
                listener=progress,
            )
    except BoxFailure as failure:
        print(f"tsadbench: {detector}: {failure.status}: {failure.reason}", file=sys.stderr)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        print(f"interrupted: {out} is not written", file=sys.stderr)
        raise typer.Exit(130) from None
    _tell(model, out)


def _tell(model: Model, out: Path) -> None:
    card, threshold = model.card, model.card.threshold
    print(f"{out}: {card.label}, fitted on {card.n_rows:,} rows of {card.dataset}, {len(card.sensors)} sensors")
    print(f"  threshold {threshold.value:.6g} ({threshold.method}, {threshold.status}), protocol {card.protocol}")
    traits = model.detector.declared_traits()
    print(f"  a row's score uses {traits.look_ahead} later rows, and {_memory(traits.memory)} before it")
    print(f"Next:  tsadbench score {out} FILE.csv   or   ... | tsadbench score {out} -")


def _memory(rows: int | None) -> str:
    return "all rows" if rows is None else f"{rows} rows"
