"""``tsadbench judge``: stored scores, judged by today's rules or by a protocol of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tsadbench.cli.options import CardsOption, DataOption, SplitsOption, format_option
from tsadbench.cli.output import BoardFormat

if TYPE_CHECKING:
    from tsadbench.execution.stored_files import StoredScores


def judge(
    runs: Annotated[
        Path,
        typer.Argument(
            metavar="RUNS", help="A run store (`tsadbench run --out`), or scores of the bank (`tsadbench bank fetch`)."
        ),
    ],
    protocol: Annotated[
        str | None,
        typer.Option(
            "--protocol",
            metavar="PROTOCOL",
            help="Judge all trials by this protocol instead, print their tables, and write nothing: "
            "NAME[key=value,...], package.module:Class or path/file.py:Class.",
        ),
    ] = None,
    split: SplitsOption = None,
    form: Annotated[BoardFormat | None, format_option] = None,
    dataset: CardsOption = None,
    data: DataOption = None,
) -> None:
    """Judge the stored scores of every trial again, by today's protocols and labels; no detector runs.

    Records of a run store are written anew, scores stay; files of the bank are only compared with their records. If a
    protocol's code has changed, `run`, `leaderboard` and `verify` do this by themselves. Exit code 1 if a trial cannot
    be judged.
    """
    from tsadbench.cli.actions.judge import judge_again, show_judged_by
    from tsadbench.datasets.by_name import loader
    from tsadbench.errors import UsageError
    from tsadbench.execution.run_store import Store

    if (form is not None or split) and protocol is None:
        raise UsageError("--format and --split are for the tables of --protocol: name one, or leave them out")
    source: StoredScores
    if (runs / "registry.txt").is_file():
        from tsadbench.results.bank import BankFolder  # it needs pyarrow, and a run store does not

        source = BankFolder(runs)
    else:
        source = Store.open(runs)
    load = loader(dataset or [], data)
    judged_all = (
        judge_again(source, load) if protocol is None else show_judged_by(source, protocol, load, split or (), form)
    )
    if not judged_all:
        raise typer.Exit(1)
