"""``tsadbench reproduce``: the paper's tables beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tsadbench.cli.options import DataOption, JobsOption, RequireSealOption, RunStoreOption


def reproduce(
    docs: Annotated[Path, typer.Option(help="Folder of reproduction.md and, below reproduction/, its figures.")] = Path(
        "docs"
    ),
    tables: Annotated[Path, typer.Option(help="Folder of the tables as CSV and Markdown.")] = Path(
        "leaderboards/paper"
    ),
    out: RunStoreOption = Path("runs-published"),
    jobs: JobsOption = 2,
    require_seal: RequireSealOption = False,
    data: DataOption = None,
    run: Annotated[
        bool, typer.Option("--run/--no-run", help="Run what is missing, or write the tables from what is stored.")
    ] = True,
) -> None:
    """Run the missing trials of the paper's tables (half an hour on two cores), and write both tables side by side."""
    from tsadbench.cli.actions.run import run_watched
    from tsadbench.execution.plan import make_plan
    from tsadbench.execution.run_store import Store
    from tsadbench.execution.runner import kept_records
    from tsadbench.studies.reproduction.paper import paper_request
    from tsadbench.studies.reproduction.write import write

    plan = make_plan(paper_request(jobs=jobs, data=data, require_seal=require_seal))
    store = Store.create(out)
    records = run_watched([plan], store, jobs=jobs)[0][0] if run else kept_records(plan, store)
    written, unexplained = write(records, docs, tables)
    for file in written:
        typer.echo(file, err=True)
    if unexplained:
        typer.echo(f"differs from the paper without an explanation yet: {', '.join(unexplained)}", err=True)
    failed = [record for record in records if record.status != "ok"]
    for record in failed:
        typer.echo(f"{record.label}, seed {record.seed}: {record.status}: {record.reason}", err=True)
    if failed:
        raise typer.Exit(1)
