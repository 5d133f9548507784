"""``tsadbench judge``: stored scores, judged by today's rules."""

from __future__ import annotations

from collections import Counter

import typer

from tsadbench.cli.options import CardsOption, DataOption, RunsArgument


def judge(runs: RunsArgument, dataset: CardsOption = None, data: DataOption = None) -> None:
    """Judge the stored scores of every trial again, by today's protocols and labels; no detector runs.

    Records are written anew, scores stay. If a protocol's code has changed, `run`, `leaderboard` and `verify` do this
    by themselves. Exit code 1 if a trial cannot be judged.
    """
    from tsadbench.cli.live import progress_bar
    from tsadbench.cli.output import in_words
    from tsadbench.datasets.by_name import loader
    from tsadbench.execution.run_store import Store
    from tsadbench.results.judging import judge_store
    from tsadbench.utils.text import one_line

    counts: Counter[str] = Counter()
    with progress_bar("Judging", time_left=True):
        for judged in judge_store(Store.open(runs), loader(dataset or [], data)):
            counts[judged.verdict] += 1
            if judged.verdict != "same":
                reason = f": {one_line(judged.reason)}" if judged.reason else ""
                typer.echo(f"{judged.verdict}: {one_line(judged.trial)}{in_words(judged.record)}{reason}")
    typer.echo(
        f"{sum(counts.values())} trials: {counts['same']} as recorded, {counts['changed']} changed, "
        f"{counts['cannot be judged']} cannot be judged"
    )
    if counts["cannot be judged"]:
        raise typer.Exit(1)
