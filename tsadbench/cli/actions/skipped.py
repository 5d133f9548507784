"""What `tsadbench score --on-error skip` says of the lines that it skips."""

from __future__ import annotations

import typer

from tsadbench.base.detector import Traits
from tsadbench.cli.actions.hints import of_new_files
from tsadbench.serving.skipping import BREAK
from tsadbench.utils.text import printable

# So many are shown one by one; then only how many there are, each time that they are ten times as many.
SHOWN = 20


class Skipped:
    """Counts skipped lines, and reports the first ones on standard error.

    Parameters
    ----------
    traits
        The detector's: how far from a skipped line scores may differ.
    """

    def __init__(self, traits: Traits) -> None:
        self.count = 0
        self._traits = traits
        self._next_told = 10 * SHOWN

    def __call__(self, fault: str) -> None:
        """Take a line: its place, and what is wrong with it."""
        self.count += 1
        fault = of_new_files(fault)
        if self.count <= SHOWN:
            typer.echo(f"skipped: {printable(fault)}", err=True)
        if self.count == SHOWN:
            typer.echo(f"skipped: {SHOWN} lines so far; further ones are only counted", err=True)
        if self.count == self._next_told:
            typer.echo(f"skipped: {self.count:,} lines so far, the last is {printable(fault)}", err=True)
            self._next_told *= 10

    def report(self) -> None:
        """Say how many lines were skipped, and what that means for the scores of the others."""
        if not self.count:
            return
        lines = "1 line was" if self.count == 1 else f"{self.count:,} lines were"
        memory, look_ahead = self._traits.memory, self._traits.look_ahead
        after = "all rows after it" if memory is None else f"the {memory} rows after it" if memory else ""
        before = f"the {look_ahead} rows before it" if look_ahead else ""
        near = " and ".join(filter(None, (before, after)))
        meaning = f"; of each, scores of {near} may differ from those with a sound line" if near else ""
        typer.echo(f"{lines} skipped{meaning}; after {BREAK} in a row, a new recording begins", err=True)
