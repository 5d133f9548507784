"""``tsadbench new``: beginnings of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Begin a package of your own.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Begin a package of your own."""


@app.command()
def detector(
    name: Annotated[str, typer.Argument(help="Name of the detector: small letters, digits, hyphens.")],
    out: Annotated[Path, typer.Option(help="Folder in which the package's folder is made.")] = Path(),
) -> None:
    """Write a package with a detector, its tests and a README, ready to be installed and run."""
    from tsadbench.cli.scaffold import new_detector

    for file in new_detector(name, out):
        typer.echo(file)
    typer.echo(f"\nNext:  pip install -e {out / name}  &&  tsadbench check {name}  &&  tsadbench run --detector {name}")
