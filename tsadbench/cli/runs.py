"""``tsadbench runs``: inspect a run store, and tidy it up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from tsadbench.cli.ending import Listing
from tsadbench.cli.options import DataOption, RunsArgument, format_option
from tsadbench.cli.output import wide_console
from tsadbench.errors import TsadbenchError, UsageError
from tsadbench.utils.text import one_line

if TYPE_CHECKING:
    from tsadbench.execution.record import Record
    from tsadbench.execution.store import Store

app = typer.Typer(cls=Listing, help="Inspect a run store, and tidy it up.", no_args_is_help=True)

_Trials: TypeAlias = Annotated[
    list[str] | None, typer.Argument(metavar="[TRIAL]...", help="Beginnings of trials' names.")
]
_Label: TypeAlias = Annotated[
    list[str] | None, typer.Option("--detector", help="Trials of this detector or label; may be repeated.")
]
_Status: TypeAlias = Annotated[
    list[str] | None, typer.Option("--status", help="Trials of this status; may be repeated.")
]


@app.command("list")
def list_trials(
    runs: RunsArgument,
    detector: _Label = None,
    status: _Status = None,
    form: Annotated[Literal["table", "json"], format_option] = "table",
) -> None:
    """List the trials of a store, oldest first; broken ones are reported on standard error, and exit code 1."""
    import pandas as pd

    from tsadbench.execution.store import Store
    from tsadbench.leaderboard.render import Table, print_tables

    lines = [_line(trial) for trial in _chosen(Store.open(runs), [], detector, status)]
    if form == "json":
        typer.echo(json.dumps({"schema": 1, "trials": lines}, indent=1))
    elif lines:
        print_tables(wide_console(), [Table("", pd.DataFrame(lines), decimals={"seconds": 1})])
    typer.echo(f"{len(lines)} trials in {runs}", err=True)


@app.command()
def show(
    runs: RunsArgument,
    trial: Annotated[
        str | None,
        typer.Argument(
            metavar="[TRIAL]",
            help="Beginning of a trial's name, or of that of a report of checks; without it, the reports are listed.",
        ),
    ] = None,
    detector: Annotated[
        list[str] | None,
        typer.Option("--detector", help="Also load this detector, if the trial's is named by file or module."),
    ] = None,
    data: DataOption = None,
) -> None:
    """Print a trial's record as JSON, and on standard error its log and what has changed since; or a report of checks.

    A trial of which a module of the detector, a library, the data or a prior has changed is new to `tsadbench run`; one
    of which only the rules have changed is judged again.
    """
    from tsadbench.cli.check import report_lines
    from tsadbench.execution.store import Store
    from tsadbench.leaderboard.checks import read_reports

    store = Store.open(runs)
    reports = read_reports(store.path)
    if trial is None:
        typer.echo("".join(f"{line}\n" for line in report_lines(reports)), nl=False)
        typer.echo(f"{len(reports)} reports of checks in {runs}", err=True)
        return
    named = [one.model_dump_json() for one in reports if trial and one.identity.startswith(trial)]
    if named:
        typer.echo("\n".join(json.dumps(json.loads(text), indent=2) for text in named))
        return
    (one,) = _chosen(store, [trial], None, None, only_one=True)
    record = store.record(one.trial)
    typer.echo(json.dumps(json.loads(record.to_json()), indent=2))
    if log := store.log(record.trial):
        typer.echo(log, err=True)
    typer.echo(_standing(record, detector or [], data), err=True)


def _standing(record: Record, named: list[str], data: Path | None) -> str:
    """List the changes since a trial ran."""
    from tsadbench.datasets.loading import loader
    from tsadbench.results.verification import why_new
    from tsadbench.utils.parameters import normal_label

    try:
        why = why_new(record, loader([], data), set(map(normal_label, named)))
    except TsadbenchError as error:
        return one_line(f"What has changed since this trial is not known: {error}")
    return one_line(f"Changed since this trial: {'; '.join(why) or 'nothing that decides it'}")


@app.command()
def remove(
    runs: RunsArgument,
    trials: _Trials = None,
    detector: _Label = None,
    status: _Status = None,
    broken: Annotated[bool, typer.Option("--broken", help="Remove trials whose record cannot be read.")] = False,
) -> None:
    """Remove trials by name, detector or status, or broken ones."""
    from tsadbench.execution.store import Store

    store = Store.open(runs)
    if not (trials or detector or status or broken):
        raise UsageError("expected what to remove: names of trials, --detector, --status or --broken")
    named = _chosen(store, trials or [], detector, status) if trials or detector or status else []
    chosen = [record.trial for record in named]
    if broken:
        chosen += store.read()[1]
    store.remove(chosen)
    typer.echo(f"{len(chosen)} trials removed from {runs}", err=True)


def _chosen(
    store: Store,
    names: list[str],
    labels: list[str] | None,
    statuses: list[str] | None,
    *,
    only_one: bool = False,
) -> list[Record]:
    """Return the trials that match everything given.

    A UsageError if a name matches no trial, or several although only one may match.
    """
    readable = store.records()
    for name in names:
        matching = [record.trial for record in readable if record.trial.startswith(name)]
        if not matching:
            raise UsageError(f"{store.path} has no trial {name!r}: `tsadbench runs list {store.path}` lists them")
        if only_one and len(matching) > 1:
            raise UsageError(f"{name!r} matches {len(matching)} trials of {store.path}; give more of its name")
    return [
        record
        for record in readable
        if (not names or any(record.trial.startswith(name) for name in names))
        and (not labels or record.label in labels or record.detector in labels)
        and (not statuses or record.status in statuses)
    ]


def _line(record: Record) -> dict[str, object]:
    names = ("trial", "dataset", "protocol", "label", "seed", "threads", "status")
    seconds = sum(part or 0.0 for part in (record.fit_seconds, record.score_seconds))
    started = str(record.manifest.get("started") or "")
    return {**{name: getattr(record, name) for name in names}, "seconds": round(seconds, 1), "started": started}
