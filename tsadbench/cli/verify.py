"""``tsadbench verify``: whether the tables are what the stored scores and the labels give."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tsadbench.cli.options import (
    AliasOption,
    CardsOption,
    DataOption,
    MemoryOption,
    RunsArgument,
    TimeoutOption,
    TrustCodeOption,
)
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
        typer.Option(
            metavar="FILE",
            help="Instead, compare a table (CSV, JSON, Markdown or LaTeX, as this program writes them) with the store.",
        ),
    ] = None,
    alias: AliasOption = None,
    dataset: CardsOption = None,
    data: DataOption = None,
    trust_code: TrustCodeOption = False,
    rerun: Annotated[
        bool,
        typer.Option(
            "--rerun",
            help="Of a submission: also check the code that is part of it, and run one trial of each detector again, "
            "sealed.",
        ),
    ] = False,
    comment: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Of a submission: write the comment for a pull request, as Markdown: the new rows beside floors and "
            "neighbours, or why it is refused.",
        ),
    ] = None,
    write: Annotated[
        bool,
        typer.Option("--write", help="Of a submission: write the trust of its rows beside its folder, for the tables."),
    ] = False,
    timeout: TimeoutOption = None,
    memory: MemoryOption = None,
) -> None:
    """Check every record against itself, and its thresholds and metrics against the stored scores and the labels.

    No detector runs, so this cannot know whether a detector made the scores. --redo N does: it runs N trials again,
    from the code that is installed here, and compares their scores with the stored ones, to the bit or within a
    tolerance. --table FILE compares an emitted table with what the store's trials give, at the table's precision.

    Exit code 1 if something differs or was edited, if data or labels are not those that the trial was run on, or if a
    trial cannot be checked. A detector's code that has changed since is reported, but does not count. A trial that
    other rules than today's have judged is judged again, and its record written anew.

    RUNS may be a submission (tsadbench submit): its files, statement, records, scores and reports are held against each
    other and against the data here, and every reason to refuse it is printed with its file.
    """
    from tsadbench.cli.actions.verify import print_checked, print_redone, print_table_check
    from tsadbench.datasets.by_name import loader
    from tsadbench.execution.run_store import Store, is_store
    from tsadbench.results.repetition import drawn
    from tsadbench.results.submissions.listed import is_submission

    if is_submission(runs):
        from tsadbench.cli.actions.submission import print_submission
        from tsadbench.utils.atomic_files import require_writable

        if redo is not None or table is not None or dataset or trust_code:
            raise UsageError(f"{runs} is a submission: leave out --redo, --table, --dataset and --trust-code")
        if comment is not None:
            require_writable(comment)
        if not print_submission(
            runs,
            loader([], data),
            again=rerun,
            tolerance=tolerance,
            timeout=timeout,
            memory=memory,
            comment=comment,
            write=write,
        ):
            raise typer.Exit(1)
        return
    if not is_store(runs):
        raise UsageError(
            f"{runs} holds neither a run store nor a submission: expected a folder that `tsadbench run --out` or "
            "`tsadbench submit` has written"
        )
    if rerun or comment is not None or write:
        raise UsageError(f"--rerun, --comment and --write are for submissions, and {runs} is none")
    if table is not None and redo is not None:
        raise UsageError("--table and --redo are two checks: give one of them")
    if alias and table is None:
        raise UsageError("--alias has an effect only with --table")
    number = _number(redo)
    load = loader(dataset or [], data)
    store = Store.open(runs)
    if table is not None:
        whole = print_table_check(store, load, table, alias or [])
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
