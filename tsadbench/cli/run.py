"""``tsadbench run``: plan, run with progress, show the table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tsadbench.api.live import RunProgress
from tsadbench.cli import complete
from tsadbench.cli.live import interruptible, progress_bar
from tsadbench.cli.options import (
    AllowChangedDataOption,
    DataOption,
    DiagnosticsOption,
    MemoryOption,
    RequireSealOption,
    SettingsOption,
    SplitsOption,
    TimeoutOption,
    WideOption,
    detectors_option,
    format_option,
    seeds_of,
)
from tsadbench.cli.output import BoardFormat
from tsadbench.errors import DataNotFoundError, MissingExtraError, UsageError

if TYPE_CHECKING:
    from tsadbench.execution.plan import Plan
    from tsadbench.execution.record import Record
    from tsadbench.execution.request import RunRequest
    from tsadbench.execution.store import Store

# Of how many failed trials the log is pointed out.
_LOGS = 5


class Rerun(StrEnum):
    """Which stored trials are run again: how they ended, or what they lack."""

    ok = "ok"
    error = "error"
    timeout = "timeout"
    memory = "memory"
    killed = "killed"
    invalid = "invalid"
    no_contributions = "no-contributions"


def run(
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A TOML file with the settings of a run (docs/configuration.md); options override it.",
        ),
    ] = None,
    detector: Annotated[list[str] | None, detectors_option] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            help="Name of a data set, or the path of a card; may be repeated.",
            show_default="skab",
            autocompletion=complete.datasets,
        ),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            help="All data sets of this suite, instead of --dataset: plants, servers or all.",
            autocompletion=complete.suites,
        ),
    ] = None,
    protocol: Annotated[
        list[str] | None,
        typer.Option(
            help="Name of a protocol: strict, published (the paper's), skab, ...; may be repeated.",
            show_default="strict",
            autocompletion=complete.protocols,
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            help="Protocol whose leaderboard ships with tsadbench: its rows are shown as well, marked as stored, and "
            "none of them (floors included) is run again.",
            autocompletion=complete.protocols,
        ),
    ] = None,
    split: SplitsOption = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Seeds 0 to N-1 for stochastic detectors; the others run once. Or the seeds themselves, with commas: "
            "0,3, or 3, for one.",
            show_default="5",
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(help="Threads of each trial's libraries; part of the trial's identity.", show_default="1"),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            help="Trials to run at a time, fewer if memory is short; no result changes.", show_default="cores"
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="A Dask cluster instead of --jobs: tcp://..., tls://... or local:N."),
    ] = None,
    settings: SettingsOption = None,
    floors: Annotated[
        bool | None, typer.Option("--floors/--no-floors", help="Whether to add the floors.", show_default="floors")
    ] = None,
    timeout: TimeoutOption = None,
    memory: MemoryOption = None,
    require_seal: RequireSealOption = False,
    contributions: Annotated[
        bool | None,
        typer.Option(
            "--contributions/--no-contributions",
            help="Whether to keep each sensor's contribution, if the detector offers it.",
            show_default="contributions",
        ),
    ] = None,
    rerun: Annotated[
        list[Rerun] | None,
        typer.Option(
            help="Run trials of this status in --out again; may be repeated (default: all but ok). no-contributions: "
            "those that are ok and lack the contributions that their detector offers."
        ),
    ] = None,
    data: DataOption = None,
    allow_changed_data: AllowChangedDataOption = False,
    out: Annotated[Path | None, typer.Option(help="Run store that keeps every trial.", show_default="runs")] = None,
    write: Annotated[
        Path | None,
        typer.Option(
            help="Also write <data set>/<protocol>/<split>.csv and .md below this folder. Trials whose records "
            "lie there already are not run again; the tables then hold the rows of this run alone."
        ),
    ] = None,
    form: Annotated[BoardFormat, format_option] = "table",
    wide: WideOption = False,
    diagnostics: DiagnosticsOption = None,
) -> None:
    """Run detectors on data sets under protocols and show the ranked tables with the floors.

    Without --detector, the registered defaults run with one seed: DPR-GM and two baselines, on SKAB, or on simulated
    data if SKAB is not available. A default whose packages are not installed is left out, and a line names it.
    """
    from tsadbench.sandbox.server import default_server

    default_server().warm()  # its server imports while this process does
    from tsadbench.execution.request import requested
    from tsadbench.leaderboard.columns import groups_of

    options = {
        "detectors": detector,
        "datasets": dataset,
        "suite": suite,
        "protocols": protocol,
        "against": against,
        "splits": split,
        "seeds": None if seeds is None else seeds_of(seeds),
        "threads": threads,
        "jobs": jobs,
        "cluster": cluster,
        "settings": settings,
        "floors": floors,
        "timeout": timeout,
        "memory": memory,
        "require_seal": require_seal or None,
        "contributions": contributions,
        "data": data,
        "allow_changed_data": allow_changed_data or None,
        "out": out,
        "write": write,
    }
    groups = groups_of(diagnostics or ())
    request = requested(config, {name: value for name, value in options.items() if value not in (None, [])})
    _run_request(request, rerun or (), form, groups, wide=wide)


def _run_request(
    given: RunRequest,
    rerun: Sequence[str],
    form: BoardFormat,
    diagnostics: Sequence[str],
    *,
    wide: bool,
) -> None:
    """Run every trial that is not stored yet, and print the tables; exit code 1 if a trial failed.

    Tables mark the rows of detectors that were asked for.
    """
    from tsadbench.api.running import ranked, stored_beside
    from tsadbench.cli.leaderboard import add_diagnostics, show
    from tsadbench.execution.plan import make_plans
    from tsadbench.execution.store import Store, require_outside_stores

    request = given
    if not request.contributions and "no-contributions" in rerun:
        raise UsageError("--rerun no-contributions asks for what --no-contributions leaves out; give one of them")
    missing: list[MissingExtraError] = []
    if not request.detectors:
        request, missing = _with_defaults(request)
    with progress_bar(f"Reading {', '.join(map(str, request.datasets))}"):  # it may have to be downloaded first
        try:
            plans = make_plans(request)
        except DataNotFoundError as error:
            if given.detectors or {"datasets", "suite"} & given.model_fields_set:
                raise
            typer.echo(f"SKAB is not available ({error}).\nThis table is over simulated data instead.", err=True)
            plans = make_plans(request.model_copy(update={"datasets": ["pumploop"]}))
    stored = stored_beside(plans, request.against)
    for trial in {trial.contender.label: trial for plan in plans for trial in plan.trials}.values():
        one = trial.contender
        if "seed" in one.description.defaults and not one.traits.stochastic:
            typer.echo(f"{one.label}: takes a seed, but its traits do not say stochastic=True: it runs once", err=True)
    store = Store.create(request.out)
    if request.write is not None:
        require_outside_stores(request.write)
    records, n_earlier = run_watched(
        plans,
        store,
        jobs=request.jobs,
        rerun=frozenset(rerun) or None,
        cluster=request.cluster,
        # Diagnostics need scores, which a committed table does not hold.
        committed=None if diagnostics else request.write,
    )
    splits = request.splits or [] if wide or form != "table" else request.splits or ["overall"]
    board = ranked(plans, records, stored, store, splits)
    data = {plan.data.dataset.name: plan.data for plan in plans}
    named = {label for plan in plans for label in plan.named}
    own = named if {*board.frame.loc[~board.frame["floor"], "detector"]} - named else set()
    show(add_diagnostics(board, diagnostics, store, data.__getitem__), form, wide=wide, own=own)
    for line in _changes(store, [record for of_plan in records for record in of_plan if record.label in named]):
        typer.echo(line, err=True)
    if request.write is not None:
        ranked(plans, records, stored, store).write(request.write)
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


def _changes(store: Store, records: Sequence[Record]) -> list[str]:
    """Return how the AUPRC of rows differs from that of the same row by older code, which the store still has."""
    from tsadbench.leaderboard.board import Leaderboard
    from tsadbench.leaderboard.formatting import number

    now = {record.trial for record in records}
    rows = {(record.dataset, record.protocol, record.label) for record in records}
    older = [one for one in store.records() if (one.dataset, one.protocol, one.label) in rows and one.trial not in now]
    if not older:
        return []
    keys = ["dataset", "rules", "split", "detector"]
    before, after = (Leaderboard.from_records(some).frame.set_index(keys) for some in (older, records))
    both = after.join(before["auprc_mean"].rename("was"), how="inner").reset_index()
    first = both.sort_values("split", key=lambda split: split != "overall").drop_duplicates(
        ["dataset", "rules", "detector"]
    )
    both = first.dropna(subset=["auprc_mean", "was"])
    changes = zip(both["detector"], both["auprc_mean"], both["was"], strict=True)
    return [f"{label}: AUPRC {number(now)} (was {number(was)})" for label, now, was in changes]


def _with_defaults(request: RunRequest) -> tuple[RunRequest, list[MissingExtraError]]:
    """Complete a request that names no detector: the default ones, with one seed and the split `overall`.

    Returns
    -------
    tuple
        The request, and what the detectors lack that cannot be run here.
    """
    from tsadbench.registry import defaults
    from tsadbench.sandbox import asking, describe

    found, missing = [], []
    with asking():
        for name in defaults("run"):
            try:
                describe(name)
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
    rerun: Collection[str] | None = None,
    cluster: str | None = None,
    committed: Path | None = None,
) -> tuple[list[tuple[Record, ...]], int]:
    """Run plans and show their trials; Ctrl-C ends the command with exit code 130.

    Parameters
    ----------
    plans, store, jobs, rerun, cluster
        As `tsadbench.execution.runner.run_plan` takes them; None of ``rerun``: all but those that are ok.
    committed
        A folder of tables that `tsadbench run --write` has written: trials with a record there are not run again.

    Returns
    -------
    tuple
        The records of each plan's trials, and how many of all of them an earlier run made.
    """
    from tsadbench.execution.record import committed_records
    from tsadbench.execution.runner import ALL_BUT_OK, n_kept, run_plan

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
                rerun=ALL_BUT_OK if rerun is None else rerun,
                cluster=cluster,
                done=committed_records(committed, plan.data.dataset.name, plan.protocol_label),
            )
            for plan in plans
        ]
        return records, observer.n_kept
