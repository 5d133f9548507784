"""``tsadbench verify``: are the tables what the stored scores and the labels give."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer


def verify(
    runs: Annotated[Path, typer.Argument(help="A run store: what `tsadbench run --out` has written.")],
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="Card of a data set of your own that trials were made with. Repeat for several."),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder that holds the data sets' folders (skab/, ...).")] = None,
) -> None:
    """Compute every threshold and metric again from the stored scores and the labels; no detector runs.

    Exit code 1 where one differs, where data or labels are not those it was made with, or where a trial cannot be
    checked. That a detector's code has changed since is told, but does not count.
    """
    from tsadbench.cli.data_loading import loader
    from tsadbench.execution.run_store import Store
    from tsadbench.results.verification import verify as verified

    load = loader(dataset or [], data)
    counts: Counter[str] = Counter()
    remarks: Counter[str] = Counter()
    for one in verified(Store.open(runs), load):
        counts[one.verdict] += 1
        remarks.update(one.remarks)
        record = one.record
        for fault in one.faults:
            name = f"{record.label}, seed {record.seed}, {record.dataset}, {record.protocol}"
            typer.echo(f"{one.verdict}: {record.trial} ({name}): {fault}")
    for remark, count in remarks.items():
        typer.echo(f"note: {remark} ({count} trials)")
    total = sum(counts.values())
    typer.echo(
        f"{total} trials: {counts['same']} as recorded, {counts['differs']} differ, "
        f"{counts['cannot be checked']} cannot be checked"
    )
    if counts["same"] != total:
        raise typer.Exit(1)
