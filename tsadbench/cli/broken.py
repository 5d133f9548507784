"""What commands say of broken trials of a run store: a line each, and exit code 1 at the end."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import typer

from tsadbench.errors import BrokenTrialWarning
from tsadbench.utils.text import one_line


@contextmanager
def broken_trials_told() -> Iterator[None]:
    """Print a line for each `BrokenTrialWarning`, when the command has ended; its exit code is 1 then."""
    told: list[str] = []
    handled = sys.exc_info()[1]
    with warnings.catch_warnings():
        warnings.simplefilter("always", BrokenTrialWarning)
        show = warnings.showwarning

        def note(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, BrokenTrialWarning):
                told.append(str(message))
            else:
                show(message, category, filename, lineno, file, line)

        warnings.showwarning = note
        try:
            yield
        finally:
            for reason in dict.fromkeys(told):  # some commands read a store twice
                typer.echo(f"broken: {one_line(reason)}", err=True)
    # click 8.2.1 does not say here that the command failed; its error goes first.
    if told and sys.exc_info()[1] is handled:
        raise typer.Exit(1)
