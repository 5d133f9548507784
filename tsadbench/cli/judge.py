"""``tsadbench judge``: stored scores, judged by today's rules or by a protocol of one's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tsadbench.cli.live import progress_bar
from tsadbench.cli.options import CardsOption, DataOption, SplitsOption, format_option
from tsadbench.cli.output import BoardFormat, in_words
from tsadbench.errors import UsageError
from tsadbench.utils.text import one_line

if TYPE_CHECKING:
    from tsadbench.base.dataset import LabelledDataset
    from tsadbench.results.trial_result import StoredScores


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
    from tsadbench.datasets.loading import loader
    from tsadbench.execution.store import Store

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
        _judge_again(source, load) if protocol is None else _show_judged_by(source, protocol, load, split or (), form)
    )
    if not judged_all:
        raise typer.Exit(1)


def _judge_again(source: StoredScores, load: Callable[[str], LabelledDataset]) -> bool:
    """Judge each trial by its own protocol, and print what is another now; whether all could be judged."""
    from tsadbench.execution.store import Store
    from tsadbench.results.judging import SINGLE_PRECISION, judge_all

    counts: Counter[str] = Counter()
    with progress_bar("Judging"):
        for judged in judge_all(source, load):
            counts[judged.verdict] += 1
            for fault in judged.faults[:1]:
                trial = f"{one_line(judged.trial)}{in_words(judged.record)}"
                typer.echo(f"{judged.verdict}: {trial}: {one_line(fault)}")
    within = "" if isinstance(source, Store) else f" up to {SINGLE_PRECISION:g}"
    typer.echo(
        f"{sum(counts.values())} trials: {counts['same']} as recorded{within}, {counts['changed']} changed, "
        f"{counts['cannot be judged']} cannot be judged"
    )
    return not counts["cannot be judged"]


def _show_judged_by(
    source: StoredScores,
    named: str,
    load: Callable[[str], LabelledDataset],
    splits: Sequence[str],
    form: BoardFormat | None,
) -> bool:
    """Judge all trials by one protocol, and print their tables; whether all could be judged."""
    from tsadbench.cli.leaderboard import show
    from tsadbench.execution.plan import make_protocol
    from tsadbench.leaderboard.board import Leaderboard
    from tsadbench.registry import know_protocol
    from tsadbench.results.judging import judge_all
    from tsadbench.utils.grouping import grouped
    from tsadbench.utils.parameters import parse_label

    asked = parse_label(named)
    _, label = make_protocol(know_protocol(asked.target), asked.arguments)
    with progress_bar("Judging"):
        judged = [*judge_all(source, load, label)]
    failed = [one for one in judged if one.verdict == "cannot be judged"]
    records = [one.record for one in judged if one.record is not None and one.verdict != "cannot be judged"]
    for reason, alike in grouped(failed, lambda one: one.faults[0]).items():
        trials = f"{one_line(alike[0].trial)}{in_words(alike[0].record)}"
        more = f" and {len(alike) - 1} more" if len(alike) > 1 else ""
        typer.echo(f"cannot be judged: {trials}{more}: {one_line(reason)}", err=True)
    if not records:
        raise UsageError(f"{source.path}: none of its {len(judged)} trials can be judged by {label}")
    show(Leaderboard.from_records(records, splits, checked_in=source.path), form or "table", wide=True)
    return not failed
