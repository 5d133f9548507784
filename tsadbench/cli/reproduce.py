"""``tsadbench reproduce``: the paper's tables beside ours."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def reproduce(
    docs: Annotated[Path, typer.Option(help="Folder of reproduction.md and, below reproduction/, its figures.")] = Path(
        "docs"
    ),
    tables: Annotated[Path, typer.Option(help="Folder of the tables as CSV and Markdown.")] = Path(
        "leaderboards/paper"
    ),
    out: Annotated[Path, typer.Option(help="Run store; what it holds already is not run again.")] = Path(
        "runs/published"
    ),
    jobs: Annotated[int, typer.Option(help="Fits at a time, one thread each.")] = 2,
    data: Annotated[Path | None, typer.Option(help="Folder that holds the data sets' folders (skab/, ...).")] = None,
    run: Annotated[
        bool, typer.Option("--run/--no-run", help="Whether to run what is missing, or to write what there is.")
    ] = True,
) -> None:
    """Run what is missing of the paper's tables (about an hour on two cores), and write them beside ours."""
    from tsadbench.cli.progress import watching
    from tsadbench.execution.plan import make_plan
    from tsadbench.execution.request import RunRequest
    from tsadbench.execution.run_store import Store
    from tsadbench.execution.runner import kept_records, run_plan
    from tsadbench.studies.reproduction.paper import PROTOCOL, SEEDS, labels
    from tsadbench.studies.reproduction.write import write

    request = RunRequest(
        detectors=list(labels()), protocols=[PROTOCOL], seeds=SEEDS, jobs=jobs, data=data, contributions=False
    )
    plan = make_plan(request)
    store = Store.create(out)
    if run:
        try:
            with watching(len(plan.trials)) as observer:
                records = run_plan(plan, store, observer, jobs=jobs)
        except KeyboardInterrupt:
            print(f"interrupted: the trials that had ended are kept in {out}; run again to go on", file=sys.stderr)
            raise typer.Exit(130) from None
    else:
        records = kept_records(plan, store)
    written, unexplained = write(records, docs, tables)
    for file in written:
        print(file, file=sys.stderr)
    if unexplained:
        print(f"off, and not explained yet: {', '.join(unexplained)}", file=sys.stderr)
    failed = [record for record in records if record.status != "ok"]
    for record in failed:
        print(f"{record.label}, seed {record.seed}: {record.status}: {record.reason}", file=sys.stderr)
    if failed:
        raise typer.Exit(1)
