"""Judge stored scores, and print what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import typer

from tsadbench.base.dataset import LabelledDataset
from tsadbench.cli.actions.board import show
from tsadbench.cli.live import progress_bar
from tsadbench.cli.output import BoardFormat, in_words
from tsadbench.errors import UsageError
from tsadbench.execution.plan import make_protocol
from tsadbench.execution.run_store import Store
from tsadbench.execution.stored_files import StoredScores
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.registry import know_protocol
from tsadbench.results.judging import Judged, judge_store
from tsadbench.results.judging_stored import SINGLE_PRECISION, judge_bank, judge_by
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import parse_label
from tsadbench.utils.text import one_line


def judge_again(source: StoredScores, load: Callable[[str], LabelledDataset]) -> bool:
    """Judge each trial by its own protocol, and print what is another now; whether all could be judged."""
    counts: Counter[str] = Counter()
    largest: dict[str, tuple[float, str]] = {}
    judged_trials = judge_store(source, load) if isinstance(source, Store) else judge_bank(source, load)
    with progress_bar("Judging"):
        for judged in judged_trials:
            counts[judged.verdict] += 1
            for metric, change in judged.changes.items():
                largest[metric] = max(largest.get(metric, (0.0, "")), (change, in_words(judged.record)))
            if judged.verdict != "same":
                reason = f": {one_line(judged.reason)}" if judged.reason else ""
                typer.echo(f"{judged.verdict}: {one_line(judged.trial)}{in_words(judged.record)}{reason}")
    for metric, (change, trial) in largest.items():
        typer.echo(f"largest change of {metric} by float32: {change:.2g}{trial if change else ''}")
    within = "" if isinstance(source, Store) else f" up to {SINGLE_PRECISION:g}"
    typer.echo(
        f"{sum(counts.values())} trials: {counts['same']} as recorded{within}, {counts['changed']} changed, "
        f"{counts['cannot be judged']} cannot be judged"
    )
    return not counts["cannot be judged"]


def show_judged_by(
    source: StoredScores,
    named: str,
    load: Callable[[str], LabelledDataset],
    splits: Sequence[str],
    form: BoardFormat | None,
) -> bool:
    """Judge all trials by one protocol, and print their tables; whether all could be judged.

    Raises
    ------
    UsageError
        If there is no such protocol, or no trial can be judged by it.
    """
    asked = parse_label(named)
    protocol, label = make_protocol(know_protocol(asked.target), asked.arguments)
    with progress_bar("Judging"):
        judged = [*judge_by(source, protocol, label, load)]
    failed = [one for one in judged if one.verdict == "cannot be judged"]
    records = [one.record for one in judged if one.record is not None and one.verdict != "cannot be judged"]
    for reason, alike in grouped(failed, _reason).items():
        trials = f"{one_line(alike[0].trial)}{in_words(alike[0].record)}"
        more = f" and {len(alike) - 1} more" if len(alike) > 1 else ""
        typer.echo(f"cannot be judged: {trials}{more}: {one_line(reason)}", err=True)
    if not records:
        raise UsageError(f"{source.path}: none of its {len(judged)} trials can be judged by {label}")
    show(Leaderboard.from_records(records, splits, checked_in=source.path), form or "table", 0, None)
    return not failed


def _reason(judged: Judged) -> str:
    return judged.reason
