"""What to cite for a table, on standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import typer

from tsadbench.results.citations import citations


def print_citations(datasets: Iterable[str], labels: Iterable[str]) -> None:
    """Print BibTeX of data sets, detectors and this bench; standard error names those without a reference."""
    text, unknown = citations(datasets, labels)
    sys.stdout.write(text)
    if unknown:
        typer.echo(f"note: no reference is known for {', '.join(unknown)}", err=True)
