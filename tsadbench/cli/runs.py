"""``tsadbench runs``: inspect a run store, and tidy it up."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from tsadbench.cli.ending import Listing
from tsadbench.cli.options import DataOption, RunsArgument
from tsadbench.errors import TsadbenchError, UsageError
from tsadbench.utils.text import one_line

if TYPE_CHECKING:
    from tsadbench.execution.record import Record
    from tsadbench.execution.store import Store

app = typer.Typer(cls=Listing, help="Inspect a run store, and tidy it up.", no_args_is_help=True)

# In JSON: line feeds are its layout there.
_UNPRINTABLE = re.compile(r"[^ -~\n]+")

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
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per trial and line.")] = False,
) -> None:
    """List the trials of a store, oldest first; broken ones are reported on standard error, and exit code 1."""
    from tsadbench.execution.store import Store

    store = Store.open(runs)
    lines = [_line(trial) for trial in _chosen(store, [], detector, status)]
    if as_json:
        typer.echo("".join(f"{json.dumps(line)}\n" for line in lines), nl=False)
        return
    cells = [[str(value) for value in line.values()] for line in lines]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    layout = "  ".join(f"{{:<{width}}}" for width in widths)
    typer.echo("".join(f"{layout.format(*of_line).rstrip()}\n" for of_line in cells), nl=False)
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
    from tsadbench.leaderboard.checks import kept

    store = Store.open(runs)
    reports = list(kept(store.path))
    if trial is None:
        typer.echo("".join(f"{line}\n" for line in report_lines(reports)), nl=False)
        typer.echo(f"{len(reports)} reports of checks in {runs}", err=True)
        return
    if named := [one for one in reports if trial and one.identity.startswith(trial)]:
        for report in named:
            typer.echo(_UNPRINTABLE.sub(_escaped, report.model_dump_json(indent=2) + "\n"), nl=False)
        return
    (one,) = _chosen(store, [trial], None, None, only_one=True)
    record = store.record(one.trial)
    typer.echo(_UNPRINTABLE.sub(_escaped, record.to_json()), nl=False)
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


def _escaped(characters: re.Match[str]) -> str:
    return "".join(character if character.isprintable() else json.dumps(character)[1:-1] for character in characters[0])


@app.command()
def rm(
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
    seconds = sum(part or 0.0 for part in (record.fit_seconds, record.score_seconds))
    started = record.manifest.get("started")
    return {
        "trial": record.trial,
        "dataset": record.dataset,
        "protocol": record.protocol,
        "label": record.label,
        "seed": record.seed,
        "threads": record.threads,
        "status": record.status,
        "seconds": round(seconds, 1),
        "started": None if started is None else one_line(str(started)),
    }
