"""``tsadbench quickstart``: a first table in about a minute."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tsadbench.cli.output import Format, show

if TYPE_CHECKING:
    from tsadbench.execution.plan import Plan

DETECTORS = ("dprgm", "t2-q", "isolation-forest")
_NEXT = """
What next:
  tsadbench list                                             every detector, protocol and data set
  tsadbench run -d YOURS.py:Class --against published        your detector among rows that nobody runs again
  tsadbench check YOURS.py:Class                             is it honest? 39 checks
  tsadbench data audit {dataset:<38} what the data set itself gives away"""


def quickstart(
    threads: Annotated[int, typer.Option(help="Threads of each trial's libraries.")] = 2,
    data: Annotated[Path | None, typer.Option(help="Folder that holds the data sets' folders (skab/, ...).")] = None,
    out: Annotated[Path, typer.Option(help="Run store that keeps every trial.")] = Path("runs"),
) -> None:
    """DPR-GM, two baselines and the floors on SKAB with one seed; where SKAB cannot be had, on simulated data.

    Which data it was stands in the table's title.
    """
    from tsadbench.cli.progress import watching
    from tsadbench.execution.run_store import Store
    from tsadbench.execution.runner import run_plan
    from tsadbench.leaderboard.board import Leaderboard

    plan = _plan(threads, data)
    store = Store.create(out)
    try:
        with watching(len(plan.trials)) as observer:
            records = run_plan(plan, store, observer)
    except KeyboardInterrupt:
        print(f"interrupted: the trials that had ended are kept in {out}", file=sys.stderr)
        raise typer.Exit(130) from None
    show(Leaderboard.from_records(records, plan.splits), Format.table)
    print(_NEXT.format(dataset=plan.data.dataset.name), file=sys.stderr)
    if any(record.status != "ok" for record in records):
        raise typer.Exit(1)


def _plan(threads: int, data: Path | None) -> Plan:
    from tsadbench.cli.data import progress_bar
    from tsadbench.errors import DataNotFoundError
    from tsadbench.execution.plan import make_plan
    from tsadbench.execution.request import RunRequest

    def on(dataset: str, folder: Path | None = None) -> Plan:
        return make_plan(
            RunRequest(
                detectors=list(DETECTORS),
                datasets=[dataset],
                splits=["overall"],
                seeds=1,
                threads=threads,
                data=folder,
                contributions=False,
            )
        )

    try:
        with progress_bar("Reading skab"):
            return on("skab", data)
    except DataNotFoundError as error:
        print(
            f"SKAB is not to be had here ({error}).\nThis table is over pumploop instead: simulated data, not SKAB.",
            file=sys.stderr,
        )
        return on("pumploop")
