"""``tsadbench run``: plan, run with progress, show the table."""

from __future__ import annotations

import sys
from collections.abc import Collection
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tsadbench.cli.output import Format, show

if TYPE_CHECKING:
    from tsadbench.plan import Plan
    from tsadbench.record import Record
    from tsadbench.store import Store


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
    detector: Annotated[
        list[str],
        typer.Option(
            "--detector",
            "-d",
            help="NAME, NAME[key=value,...], package.module:Class or path/file.py:Class. Repeat for several.",
        ),
    ],
    dataset: Annotated[str, typer.Option(help="Name of the data set.")] = "skab",
    protocol: Annotated[
        str | None,
        typer.Option(help="Name of the protocol: strict (the default), published (the paper's), skab, ..."),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            help="Protocol whose leaderboard ships with tsadbench: its rows stand beside, marked as stored, and none "
            "of them (floors included) is run again."
        ),
    ] = None,
    split: Annotated[
        list[str] | None, typer.Option(help="Rows of the table to show: overall, valve1, ... Repeat for several; all.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Seeds 0 to N-1 for stochastic detectors; the others run once.")] = 5,
    threads: Annotated[int, typer.Option(help="Threads of each trial's libraries; part of the trial's identity.")] = 1,
    jobs: Annotated[int, typer.Option(help="Trials at a time; the results do not depend on it.")] = 1,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="A Dask cluster: tcp://host:port, or local:N. Takes the place of --jobs."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME.key=value: a parameter of a detector or of the protocol. Repeat for several."),
    ] = None,
    floors: Annotated[bool, typer.Option("--floors/--no-floors", help="Whether the floors take part.")] = True,
    timeout: Annotated[float | None, typer.Option(help="Seconds that one trial may take.")] = None,
    memory: Annotated[
        float | None, typer.Option(help="MiB that one trial's process and its children may hold.")
    ] = None,
    contributions: Annotated[
        bool,
        typer.Option("--contributions/--no-contributions", help="Keep each sensor's contribution where it is offered."),
    ] = True,
    rerun: Annotated[
        list[Rerun] | None,
        typer.Option(
            help="Trials of this status in --out are run again; all but ok where not given. no-contributions: those "
            "that are ok and hold no contributions, although their detector offers them. Repeat for several."
        ),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder that holds the data sets' folders (skab/, ...).")] = None,
    allow_changed_data: Annotated[
        bool, typer.Option("--allow-changed-data", help="Go on where files differ from the published ones.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Run store that keeps every trial.")] = Path("runs"),
    write: Annotated[
        Path | None,
        typer.Option(help="Write <data set>/<protocol>/<split>.csv, .md and .json below this folder as well."),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="Format of standard output.")] = Format.table,
) -> None:
    """Run detectors on a data set under a protocol and show the ranked table, the floors beside them."""
    from tsadbench.cli.data import progress_bar
    from tsadbench.dataset import DataOptions
    from tsadbench.engine import ALL_BUT_OK, kept_records
    from tsadbench.errors import UsageError
    from tsadbench.leaderboard import Leaderboard
    from tsadbench.plan import make_plan
    from tsadbench.store import Store
    from tsadbench.stored import stored_beside

    if jobs < 1:
        raise UsageError(f"--jobs must be at least 1, found {jobs}")
    if not contributions and Rerun.no_contributions in (rerun or ()):
        raise UsageError("--rerun no-contributions asks for what --no-contributions leaves out; give one of them")
    with progress_bar(f"Reading {dataset}"):  # it may have to be downloaded first
        plan = make_plan(
            detector,
            dataset=dataset,
            protocol=_protocol(protocol, against),
            splits=split or (),
            seeds=seeds,
            threads=threads,
            settings=settings or (),
            floors=floors and against is None,
            data=DataOptions(directory=data, allow_changed=allow_changed_data),
            timeout=timeout,
            memory_mib=memory,
            contributions=contributions,
        )
    stored = () if against is None else stored_beside(plan)
    store = Store.create(out)
    try:
        records, n_kept = _run_watched(plan, store, jobs, frozenset(rerun) if rerun else ALL_BUT_OK, cluster)
    except KeyboardInterrupt:
        kept = len(kept_records(plan, store))
        print(
            f"interrupted: {kept} of {len(plan.trials)} trials are kept in {out}; the same command goes on from there",
            file=sys.stderr,
        )
        raise typer.Exit(130) from None
    board = Leaderboard.from_records(records, plan.splits, stored=stored)
    show(board, form)
    if write is not None:
        board.write(write)
    earlier = f", {n_kept} of them from an earlier run" if n_kept else ""
    print(f"{len(records)} trials are kept in {out}{earlier}", file=sys.stderr)
    if any(record.status != "ok" for record in records):
        raise typer.Exit(1)


def _protocol(protocol: str | None, against: str | None) -> str:
    from tsadbench.errors import UsageError

    if protocol is not None and against is not None and protocol != against:
        raise UsageError(
            f"--against {against} shows rows made under the protocol {against!r}, found --protocol {protocol}; rows of "
            f"two protocols cannot be compared: leave --protocol out"
        )
    return against or protocol or "strict"


def _run_watched(
    plan: Plan, store: Store, jobs: int, rerun: Collection[str], cluster: str | None
) -> tuple[tuple[Record, ...], int]:
    """Return all trials' records, and how many of them are an earlier run's."""
    from tsadbench.cli.progress import watching
    from tsadbench.engine import run_plan

    with watching(len(plan.trials)) as observer:
        return run_plan(plan, store, observer, jobs=jobs, rerun=rerun, cluster=cluster), observer.n_kept
