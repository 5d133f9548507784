"""``tsadbench new``: packages to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tsadbench.cli.ending import Listing

app = typer.Typer(cls=Listing, help="Start a package of your own.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Start a package of your own."""


@app.command()
def detector(
    name: Annotated[str, typer.Argument(help="Name of the detector: small letters, digits, hyphens.")],
    out: Annotated[Path, typer.Option(help="Folder in which to make the package's folder.")] = Path(),
) -> None:
    """Write a package with a detector, its tests and a README, ready to install and run."""
    from tsadbench.cli.scaffold import new_detector

    for file in new_detector(name, out):
        typer.echo(file)
    typer.echo(f"\nNext:  pip install -e {out / name}  &&  tsadbench check {name}  &&  tsadbench run --detector {name}")
