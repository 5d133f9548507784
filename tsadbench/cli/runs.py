"""``tsadbench runs``: look into a run store, tidy it up, take trials out of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tsadbench.execution.record import Record
    from tsadbench.execution.run_store import Store

app = typer.Typer(help="Look into a run store, tidy it up, take trials out of it.", no_args_is_help=True)

_Runs = Annotated[Path, typer.Argument(metavar="RUNS", help="A run store: what `tsadbench run --out` has written.")]
_Trials = Annotated[list[str] | None, typer.Argument(metavar="[TRIAL]...", help="Beginnings of trials' names.")]
_Label = Annotated[
    list[str] | None, typer.Option("--detector", help="Trials of this detector or label. Repeat for several.")
]
_Status = Annotated[list[str] | None, typer.Option("--status", help="Trials of this status. Repeat for several.")]
_COLUMNS = ("trial", "dataset", "protocol", "label", "seed", "threads", "status", "seconds", "started")


@app.command("list")
def list_trials(
    runs: _Runs,
    detector: _Label = None,
    status: _Status = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a trial and line.")] = False,
) -> None:
    """List the trials of a store, oldest first; broken ones are told on standard error."""
    from tsadbench.execution.run_store import Store

    store = Store.open(runs)
    records = _chosen(store, [], detector, status)
    lines = [_line(record) for record in records]
    if as_json:
        for line in lines:
            typer.echo(json.dumps(line))
        return
    widths = {name: max((len(str(line[name])) for line in lines), default=0) for name in _COLUMNS}
    for line in lines:
        typer.echo("  ".join(str(line[name]).ljust(widths[name]) for name in _COLUMNS).rstrip())
    typer.echo(f"{len(lines)} trials in {runs}", err=True)


@app.command()
def show(
    runs: _Runs, trial: Annotated[str, typer.Argument(metavar="TRIAL", help="Beginning of the trial's name.")]
) -> None:
    """Print a trial's record as JSON, and its log on standard error."""
    from tsadbench.execution.run_store import Store

    store = Store.open(runs)
    (record,) = _chosen(store, [trial], None, None, only_one=True)
    typer.echo(record.to_json(), nl=False)
    log = store.log(record.trial)
    if log:
        typer.echo(log, err=True)


@app.command()
def rm(
    runs: _Runs,
    trials: _Trials = None,
    detector: _Label = None,
    status: _Status = None,
    broken: Annotated[bool, typer.Option("--broken", help="Trials whose record cannot be read.")] = False,
) -> None:
    """Remove trials: named ones, those of a detector or a status, or broken ones."""
    from tsadbench.errors import UsageError
    from tsadbench.execution.run_store import Store

    store = Store.open(runs)
    if not (trials or detector or status or broken):
        raise UsageError("say which: names of trials, --detector, --status or --broken")
    wanted = _chosen(store, trials or [], detector, status) if trials or detector or status else []
    chosen = [record.trial for record in wanted]
    if broken:
        chosen += list(store.readable()[1])
    for name in chosen:
        store.remove(name)
    typer.echo(f"{len(chosen)} trials removed from {runs}", err=True)


@app.command()
def export(
    runs: _Runs,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The archive to write: .zip, .tar or .tar.gz.")],
    trials: _Trials = None,
    detector: _Label = None,
    status: _Status = None,
) -> None:
    """Pack trials into an archive: unpacked, it is a run store, which `leaderboard` and `verify` read."""
    from tsadbench.execution.run_store import Store

    store = Store.open(runs)
    chosen = _chosen(store, trials or [], detector, status)
    store.export([record.trial for record in chosen], file)
    typer.echo(f"{len(chosen)} trials packed into {file}", err=True)


def _chosen(
    store: Store,
    names: list[str],
    labels: list[str] | None,
    statuses: list[str] | None,
    *,
    only_one: bool = False,
) -> list[Record]:
    """Return the records that fit all that is given.

    Raises
    ------
    UsageError
        If a name fits no trial, or only one is wanted and it fits several.
    """
    from tsadbench.errors import UsageError

    readable, broken = store.readable()
    for trial, reason in broken.items():
        typer.echo(f"broken: {trial}: {reason}", err=True)
    for name in names:
        fitting = [record.trial for record in readable if record.trial.startswith(name)]
        if not fitting:
            raise UsageError(f"{store.path} has no trial {name!r}: `tsadbench runs list {store.path}` lists them")
        if only_one and len(fitting) > 1:
            raise UsageError(f"{name!r} fits {len(fitting)} trials of {store.path}; give more of its name")
    return [
        record
        for record in readable
        if (not names or any(record.trial.startswith(name) for name in names))
        and (not labels or record.label in labels or record.detector in labels)
        and (not statuses or record.status in statuses)
    ]


def _line(record: Record) -> dict[str, object]:
    seconds = sum(part or 0.0 for part in (record.fit_seconds, record.score_seconds))
    return {
        "trial": record.trial,
        "dataset": record.dataset,
        "protocol": record.protocol,
        "label": record.label,
        "seed": record.seed,
        "threads": record.threads,
        "status": record.status,
        "seconds": round(seconds, 1),
        "started": record.manifest.get("started"),
    }
