"""``tsadbench judge``: judges stored scores by today's rules or by a user's protocol."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from tsadbench import api
from tsadbench.cli import options, output
from tsadbench.errors import UsageError


def judge(
    runs: Annotated[
        Path, typer.Argument(metavar="RUNS", help="A run store, or scores of the bank (`tsadbench bank fetch`).")
    ],
    protocol: Annotated[
        str | None,
        typer.Option(
            help="Judge all trials by this protocol instead, print their tables, and write nothing: "
            "NAME[key=value,...], package.module:Class or path/file.py:Class."
        ),
    ] = None,
    split: options.Splits = None,
    form: options.ResultForm = "table",
    dataset: options.Datasets = None,
    data: options.Data = None,
) -> None:
    """Judge the stored scores of every trial again, by today's protocols and labels; no detector runs.

    Records of a run store are replaced, scores stay; files of a bank are only compared with their records. If a
    protocol's code has changed, `run`, `leaderboard` and `verify` do this automatically. Exit code 1 if a trial cannot
    be judged. --split and --format are for the tables of --protocol.
    """
    if protocol is None and (split or form != "table"):
        raise UsageError("there are no tables without --protocol", field="split" if split else "form")
    source = api.BankFolder(runs) if (runs / "registry.txt").is_file() else api.Store.open(runs)
    names, load = api.loader(dataset or (), data)
    label = None
    if protocol is not None:
        asked = api.parse_label(protocol)
        _, label = api.make_protocol(api.know_protocol(asked.target), asked.arguments)
    with api.progress_bar("Judging"):
        judged = list(api.judge_all(source, load, label, names))
    output.require_found(judged, names)
    failed = [one for one in judged if one.verdict == "cannot be judged"]
    output.show_findings(judged if label is None else failed, most=1, err=label is not None)
    if label is None:
        counts = Counter(one.verdict for one in judged)
        within = "" if isinstance(source, api.Store) else f" (within {api.SINGLE_PRECISION:g})"
        typer.echo(
            f"{api.counted(len(judged), 'trial')}: {counts['same']} as recorded{within}, {counts['changed']} changed, "
            f"{counts['cannot be judged']} cannot be judged"
        )
    else:
        records = [one.record for one in judged if one.record is not None and one not in failed]
        if not records:
            raise UsageError(f"{runs}: none of its {len(judged)} trials can be judged by {label}")
        board = api.Leaderboard.from_records(records, split or (), checked_in=source.path)
        output.show_board(board, form, wide=True)
    if failed:
        raise typer.Exit(1)
