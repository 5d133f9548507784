"""The rows that `tsadbench leaderboard` ranks, by where their numbers come from."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from tsadbench.base.status import Trust
from tsadbench.errors import UsageError
from tsadbench.execution.record import Record
from tsadbench.leaderboard.origins import chosen_by_origin


def wanted(records: Sequence[Record], trust: Trust, without_pretrained: bool) -> tuple[Record, ...]:
    """Return the records of the rows to rank, and say which are left out."""
    kept, out = chosen_by_origin(records, trust, pretrained=not without_pretrained)
    if out:
        typer.echo(f"note: left out by --trust or --without-pretrained: {', '.join(out)}", err=True)
    if not kept:
        raise UsageError("--trust and --without-pretrained leave no row: choose a lower trust, or leave them out")
    return kept
