"""``tsadbench run``: plan, run with progress, show the table."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tsadbench.cli import complete
from tsadbench.cli.diagnostics import DiagnosticsOption, VusBufferOption, add_diagnostics, check_options
from tsadbench.cli.output import Format, show

if TYPE_CHECKING:
    from tsadbench.execution.plan import Plan
    from tsadbench.execution.record import Record
    from tsadbench.execution.request import RunRequest
    from tsadbench.execution.run_store import Store


class Rerun(StrEnum):
    """Which kept trials are run again: how they ended, or what they lack."""

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
            help="A TOML file with all that a run is told (docs/configuration.md); options override it.",
        ),
    ] = None,
    detector: Annotated[
        list[str] | None,
        typer.Option(
            "--detector",
            "-d",
            help="NAME, NAME\\[key=value,...], package.module:Class or path/file.py:Class. Repeat for several.",
            autocompletion=complete.detectors,
        ),
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            help="Name of the data set, or the path of a card. Repeat for several.",
            show_default="skab",
            autocompletion=complete.datasets,
        ),
    ] = None,
    protocol: Annotated[
        list[str] | None,
        typer.Option(
            help="Name of the protocol: strict, published (the paper's), skab, ... Repeat for several.",
            show_default="strict",
            autocompletion=complete.protocols,
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            help="Protocol whose leaderboard ships with tsadbench: its rows stand beside, marked as stored, and none "
            "of them (floors included) is run again.",
            autocompletion=complete.protocols,
        ),
    ] = None,
    split: Annotated[
        list[str] | None,
        typer.Option(
            help="Rows of the table to show: overall, valve1, ... Repeat for several; all.",
            autocompletion=complete.splits,
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(help="Seeds 0 to N-1 for stochastic detectors; the others run once.", show_default="5"),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(help="Threads of each trial's libraries; part of the trial's identity.", show_default="1"),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Trials at a time; the results do not depend on it.", show_default="1")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="A Dask cluster: tcp://host:port, or local:N. Takes the place of --jobs."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME.key=value: a parameter of a detector or of the protocol. Repeat for several."),
    ] = None,
    floors: Annotated[
        bool | None, typer.Option("--floors/--no-floors", help="Whether the floors take part.", show_default="floors")
    ] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds that one trial may take.")] = None,
    memory: Annotated[
        float | None, typer.Option(help="MiB that one trial's process and its children may hold.")
    ] = None,
    contributions: Annotated[
        bool | None,
        typer.Option(
            "--contributions/--no-contributions",
            help="Keep each sensor's contribution where it is offered.",
            show_default="contributions",
        ),
    ] = None,
    rerun: Annotated[
        list[Rerun] | None,
        typer.Option(
            help="Trials of this status in --out are run again; all but ok where not given. no-contributions: those "
            "that are ok and hold no contributions, although their detector offers them. Repeat for several."
        ),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder that holds the data sets' folders (skab/, ...).")] = None,
    allow_changed_data: Annotated[
        bool | None,
        typer.Option("--allow-changed-data", help="Go on where files differ from the published ones."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Run store that keeps every trial.", show_default="runs")] = None,
    write: Annotated[
        Path | None,
        typer.Option(help="Write <data set>/<protocol>/<split>.csv, .md and .json below this folder as well."),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="Format of standard output.")] = Format.table,
    diagnostics: DiagnosticsOption = None,
    vus_buffer: VusBufferOption = None,
) -> None:
    """Run detectors on data sets under protocols and show the ranked tables, the floors beside them."""
    options = {
        "detectors": detector,
        "datasets": dataset,
        "protocols": protocol,
        "against": against,
        "splits": split,
        "seeds": seeds,
        "threads": threads,
        "jobs": jobs,
        "cluster": cluster,
        "settings": settings,
        "floors": floors,
        "timeout": timeout,
        "memory": memory,
        "contributions": contributions,
        "data": data,
        "allow_changed_data": allow_changed_data,
        "out": out,
        "write": write,
    }
    from tsadbench.execution.config import requested

    request = requested(config, {name: value for name, value in options.items() if value not in (None, [])})
    _run(request, rerun or (), _Shown(form, diagnostics, vus_buffer))


@dataclass(frozen=True, slots=True)
class _Shown:
    """What is shown of the trials, and how."""

    form: Format
    diagnostics: list[str] | None
    vus_buffer: int | None


def _run(request: RunRequest, rerun: Sequence[Rerun], shown: _Shown) -> None:
    from tsadbench.cli.data import progress_bar
    from tsadbench.errors import UsageError
    from tsadbench.execution.plan import make_plans
    from tsadbench.execution.run_store import Store
    from tsadbench.execution.runner import ALL_BUT_OK, kept_records
    from tsadbench.leaderboard.board import Leaderboard
    from tsadbench.results.shipped import stored_beside

    if not request.contributions and Rerun.no_contributions in rerun:
        raise UsageError("--rerun no-contributions asks for what --no-contributions leaves out; give one of them")
    check_options(shown.diagnostics, shown.vus_buffer)
    with progress_bar(f"Reading {', '.join(map(str, request.datasets))}"):  # it may have to be downloaded first
        plans = make_plans(request)
    stored = [() if request.against is None else stored_beside(plan) for plan in plans]
    store = Store.create(request.out)
    try:
        records, n_kept = _run_watched(plans, store, request, frozenset(rerun) or ALL_BUT_OK)
    except KeyboardInterrupt:
        kept = sum(len(kept_records(plan, store)) for plan in plans)
        print(
            f"interrupted: {kept} of {sum(len(plan.trials) for plan in plans)} trials are kept in {request.out}; "
            f"the same command goes on from there",
            file=sys.stderr,
        )
        raise typer.Exit(130) from None
    board = Leaderboard.joined(
        [
            Leaderboard.from_records(found, plan.splits, stored=beside)
            for plan, found, beside in zip(plans, records, stored, strict=True)
        ]
    )
    data = {plan.data.dataset.name: plan.data for plan in plans}
    board = add_diagnostics(board, store, data.__getitem__, shown.diagnostics, shown.vus_buffer)
    show(board, shown.form)
    if request.write is not None:
        board.write(request.write)
    earlier = f", {n_kept} of them from an earlier run" if n_kept else ""
    print(f"{sum(map(len, records))} trials are kept in {request.out}{earlier}", file=sys.stderr)
    if any(record.status != "ok" for found in records for record in found):
        raise typer.Exit(1)


def _run_watched(
    plans: Sequence[Plan], store: Store, request: RunRequest, rerun: Collection[str]
) -> tuple[list[tuple[Record, ...]], int]:
    """Return the records of each plan's trials, and how many of them all are an earlier run's."""
    from tsadbench.cli.progress import watching
    from tsadbench.execution.runner import run_plan

    with watching(sum(len(plan.trials) for plan in plans), several=len(plans) > 1) as observer:
        records = [
            run_plan(plan, store, observer, jobs=request.jobs, rerun=rerun, cluster=request.cluster) for plan in plans
        ]
        return records, observer.n_kept
