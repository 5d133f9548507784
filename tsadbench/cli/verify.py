"""``tsadbench verify``: whether the tables are what the stored scores and the labels give."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tsadbench.cli.options import CardsOption, DataOption, MemoryOption, RunsArgument, TimeoutOption, TrustCodeOption
from tsadbench.errors import UsageError


def verify(
    runs: RunsArgument,
    redo: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Instead, run N trials again, drawn at random, or all of them (all), and compare their scores.",
        ),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            min=0.0, help="How far the scores of --redo may differ, as a share of the range of the test scores."
        ),
    ] = 1e-6,
    table: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Instead, compare a CSV or Markdown table with the store."),
    ] = None,
    dataset: CardsOption = None,
    data: DataOption = None,
    trust_code: TrustCodeOption = False,
    timeout: TimeoutOption = None,
    memory: MemoryOption = None,
) -> None:
    """Check every record against itself, and its thresholds and metrics against the stored scores and the labels.

    This checks stored files only. --redo N runs N trials again, with the code that is installed here, and compares
    their scores with the stored ones. --table FILE compares a table that `tsadbench leaderboard` has written with what
    the store's trials give, at the precision that the table prints.

    Exit code 1 if something differs or was edited, if data or labels are not those that the trial was run on, or if a
    trial cannot be checked. A detector's code that has changed since is reported, but does not count. A trial that
    other rules than today's have judged is judged again, and its record written anew.
    """
    from tsadbench.cli.actions.verify import print_checked, print_redone, print_table_check
    from tsadbench.datasets.by_name import loader
    from tsadbench.execution.run_store import Store
    from tsadbench.results.repetition import drawn

    if table is not None and redo is not None:
        raise UsageError("--table and --redo are two checks: give one of them")
    number = _number(redo)
    load = loader(dataset or [], data)
    store = Store.open(runs)
    if table is not None:
        whole = print_table_check(store, load, table)
    elif redo is None:
        whole = print_checked(store, load, trust_code)
    else:
        whole = print_redone(store, load, drawn(store, number), trust_code, tolerance, timeout, memory)
    if not whole:
        raise typer.Exit(1)


def _number(redo: str | None) -> int | None:
    """Return how many trials to run again; None for all."""
    if redo is None or redo == "all":
        return None
    if not redo.isdecimal() or int(redo) < 1:
        raise UsageError(f"--redo {redo}: expected a number of trials, at least 1, or all")
    return int(redo)
