"""``tsadbench verify``: whether the tables are what the stored scores and the labels give."""

from __future__ import annotations

from collections import Counter

import typer

from tsadbench.cli.options import CardsOption, DataOption, RunsArgument, TrustCodeOption


def verify(
    runs: RunsArgument,
    dataset: CardsOption = None,
    data: DataOption = None,
    trust_code: TrustCodeOption = False,
) -> None:
    """Compute every threshold and metric again from the stored scores and the labels; no detector runs.

    Exit code 1 if one differs, if data or labels are not those that the trial was run on, or if a trial cannot be
    checked. A detector's code that has changed since is reported, but does not count. A trial that other rules than
    today's have judged is judged again, and its record written anew.
    """
    from tsadbench.cli.actions.loading import loader
    from tsadbench.cli.live import progress_bar
    from tsadbench.cli.output import in_words
    from tsadbench.execution.run_store import Store
    from tsadbench.results.verification import verify as verified

    load = loader(dataset or [], data)
    counts: Counter[str] = Counter()
    remarks: Counter[str] = Counter()
    with progress_bar("Verifying", time_left=True):
        for checked in verified(Store.open(runs), load, trust_code=trust_code):
            counts[checked.verdict] += 1
            remarks.update(checked.remarks)
            for fault in checked.faults:
                typer.echo(f"{checked.verdict}: {checked.trial}{in_words(checked.record)}: {fault}")
    for remark, count in remarks.items():
        typer.echo(f"note: {remark} ({count} trials)")
    total = sum(counts.values())
    typer.echo(
        f"{total} trials: {counts['same']} as recorded, {counts['differs']} differ, "
        f"{counts['cannot be checked']} cannot be checked"
    )
    if counts["same"] != total:
        raise typer.Exit(1)
