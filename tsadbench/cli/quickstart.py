"""``tsadbench quickstart``: a first table in about a minute."""

from __future__ import annotations

from pathlib import Path

import typer

from tsadbench.cli.live import progress_bar
from tsadbench.cli.options import DataOption, RunStoreOption, ThreadsOption
from tsadbench.errors import DataNotFoundError

DETECTORS = ("dprgm", "t2-q", "isolation-forest")
# The second command takes the leaderboard that ships for the data of the first table.
_AGAINST = {"skab": "--against published", "pumploop": "--dataset pumploop --against strict"}


def quickstart(threads: ThreadsOption = 2, data: DataOption = None, out: RunStoreOption = Path("runs")) -> None:
    """Run DPR-GM, two baselines and the floors on SKAB with one seed; on simulated data if SKAB is not available.

    The table's title names the data. A detector whose packages are not installed is left out, and a line says how to
    install them.
    """
    from tsadbench.cli.actions.board import show
    from tsadbench.cli.actions.catalogue import installed
    from tsadbench.cli.actions.run import run_watched
    from tsadbench.execution.plan import Plan, make_plan
    from tsadbench.execution.request import RunRequest
    from tsadbench.execution.run_store import Store
    from tsadbench.leaderboard.board import Leaderboard
    from tsadbench.testing.suite import all_checks

    detectors, missing = installed(DETECTORS)

    def plan_on(dataset: str, folder: Path | None = None) -> Plan:
        request = RunRequest(
            detectors=list(detectors),
            datasets=[dataset],
            splits=["overall"],
            seeds=1,
            threads=threads,
            data=folder,
            contributions=False,
        )
        return make_plan(request)

    try:
        with progress_bar("Reading skab"):
            plan = plan_on("skab", data)
    except DataNotFoundError as error:
        typer.echo(
            f"SKAB is not available ({error}).\nThis table is over pumploop instead: simulated data, not SKAB.",
            err=True,
        )
        plan = plan_on("pumploop")
    (records,), _ = run_watched([plan], Store.create(out))
    show(Leaderboard.from_records(records, plan.splits, checked_in=out), "table")
    for lack in missing:
        typer.echo(f"left out: {lack}", err=True)
    typer.echo(_what_next(plan.data.dataset.name, len(all_checks())), err=True)
    if any(record.status != "ok" for record in records):
        raise typer.Exit(1)


def _what_next(dataset: str, n_checks: int) -> str:
    commands = {
        "tsadbench list": "every detector, protocol and data set",
        f"tsadbench run -d YOURS.py:Class {_AGAINST[dataset]}": "your detector among rows that nobody runs again",
        "tsadbench check YOURS.py:Class": f"is it honest? {n_checks} checks",
        f"tsadbench data audit {dataset}": "what the data set itself gives away",
        f"tsadbench fit --out my.model --dataset {dataset}": "a model for new files: tsadbench score my.model FILE",
    }
    width = max(map(len, commands))
    return "\nWhat next:\n" + "\n".join(f"  {name:<{width}}  {what}" for name, what in commands.items())
