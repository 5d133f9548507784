"""Plan and run what is requested, with progress, and show the tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import typer

from tsadbench.api.live import RunProgress
from tsadbench.cli.actions.board import add_diagnostics, show
from tsadbench.cli.live import interruptible, progress_bar
from tsadbench.cli.output import BoardFormat
from tsadbench.errors import DataNotFoundError, MissingExtraError, UsageError
from tsadbench.execution.plan import Plan, make_plans
from tsadbench.execution.record import Record
from tsadbench.execution.records_file import committed_records
from tsadbench.execution.request import RunRequest
from tsadbench.execution.run_store import Store, require_outside_stores
from tsadbench.execution.runner import ALL_BUT_OK, n_kept, run_plan
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.registry import defaults
from tsadbench.results.shipped import stored_beside
from tsadbench.sandbox import Interview
from tsadbench.sandbox.describing import describe

# Of how many failed trials the log is pointed out.
_LOGS = 5


def run_request(
    given: RunRequest,
    rerun: Sequence[str],
    form: BoardFormat,
    diagnostics: Sequence[str],
    *,
    all_floors: bool,
) -> None:
    """Run every trial that is not stored yet, and print the tables; exit code 1 if a trial failed.

    Tables show the floors that were asked for by name, and the best one in each metric, unless they show all.
    """
    request = given
    if not request.contributions and "no-contributions" in rerun:
        raise UsageError("--rerun no-contributions asks for what --no-contributions leaves out; give one of them")
    missing: list[MissingExtraError] = []
    if not request.detectors:
        request, missing = with_defaults(request)
    with progress_bar(f"Reading {', '.join(map(str, request.datasets))}"):  # it may have to be downloaded first
        try:
            plans = make_plans(request)
        except DataNotFoundError as error:
            if given.detectors or {"datasets", "suite"} & given.model_fields_set:
                raise
            typer.echo(f"SKAB is not available ({error}).\nThis table is over simulated data instead.", err=True)
            plans = make_plans(request.model_copy(update={"datasets": ["pumploop"]}))
    stored = [() if request.against is None else stored_beside(plan) for plan in plans]
    store = Store.create(request.out)
    if request.write is not None:
        require_outside_stores(request.write)
    records, n_earlier = run_watched(
        plans,
        store,
        jobs=request.jobs,
        rerun=frozenset(rerun) or ALL_BUT_OK,
        cluster=request.cluster,
        # Diagnostics need scores, which a committed table does not hold.
        committed=None if diagnostics else request.write,
    )
    board = Leaderboard.joined(
        [
            Leaderboard.from_records(records_of_plan, plan.splits, stored=stored_rows, checked_in=store.path)
            for plan, records_of_plan, stored_rows in zip(plans, records, stored, strict=True)
        ]
    )
    data = {plan.data.dataset.name: plan.data for plan in plans}
    named = {label for plan in plans for label in plan.named}
    show(add_diagnostics(board, diagnostics, store, data.__getitem__), form, floors=None if all_floors else named)
    if request.write is not None:
        board.write(request.write)
    n_trials = sum(map(len, records))
    n_committed = sum(store.find(record.trial) is None for of_plan in records for record in of_plan)
    earlier = f", {n_earlier - n_committed} of them from an earlier run" if n_earlier > n_committed else ""
    committed = f"; {n_committed} in {request.write} counted as done" if n_committed else ""
    n_here = n_trials - n_committed
    kept = "1 trial is" if n_here == 1 else f"{n_here} trials are"
    typer.echo(f"{kept} kept in {request.out}{earlier}{committed}", err=True)
    for lack in missing:
        typer.echo(f"left out: {lack}", err=True)
    failed = [record for of_plan in records for record in of_plan if record.status != "ok"]
    for record in failed[:_LOGS]:
        typer.echo(
            f"log of {record.label}, seed {record.seed}: tsadbench runs show {request.out} {record.trial[:12]}",
            err=True,
        )
    if failed:
        raise typer.Exit(1)


def with_defaults(request: RunRequest) -> tuple[RunRequest, list[MissingExtraError]]:
    """Complete a request that names no detector: the default ones, with one seed and the split `overall`.

    Returns
    -------
    tuple
        The request, and what the detectors lack that cannot be run here.
    """
    found, missing = [], []
    with Interview() as interview:
        for name in defaults("run"):
            try:
                describe(name, interview)
            except MissingExtraError as error:
                missing.append(error)
            else:
                found.append(name)
    instead = {"detectors": found, "seeds": 1, "splits": ["overall"], "contributions": False}
    own = request.model_fields_set - {"detectors"}
    return request.model_copy(update={name: value for name, value in instead.items() if name not in own}), missing


def run_watched(
    plans: Sequence[Plan],
    store: Store | None,
    *,
    jobs: int = 1,
    rerun: Collection[str] = ALL_BUT_OK,
    cluster: str | None = None,
    committed: Path | None = None,
) -> tuple[list[tuple[Record, ...]], int]:
    """Run plans and show their trials; Ctrl-C ends the command with exit code 130.

    Parameters
    ----------
    plans, store, jobs, rerun, cluster
        As `tsadbench.execution.runner.run_plan` takes them.
    committed
        A folder of tables that `tsadbench run --write` has written: trials with a record there are not run again.

    Returns
    -------
    tuple
        The records of each plan's trials, and how many of all of them an earlier run made.
    """
    observer = RunProgress(plans)

    def kept() -> str:
        if store is None:
            return "nothing is kept"
        n_trials = f"{n_kept(plans, store)} of {observer.total} trials"
        return f"{n_trials} are kept in {store.path}; run the same command to continue"

    with interruptible(kept), observer:
        records = [
            run_plan(
                plan,
                store,
                observer,
                jobs=jobs,
                rerun=rerun,
                cluster=cluster,
                done=committed_records(committed, plan.data.dataset.name, plan.protocol_label),
            )
            for plan in plans
        ]
        return records, observer.n_kept
