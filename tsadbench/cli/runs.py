"""``tsadbench runs``: lists, shows and removes the trials of a run store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, TypeAlias

import typer

from tsadbench import api
from tsadbench.cli import options, output
from tsadbench.errors import TsadbenchError, UsageError

app = typer.Typer(help="Inspect a run store, and tidy it up.", no_args_is_help=True)

_Label: TypeAlias = Annotated[
    list[str] | None, typer.Option("--detector", "-d", help="Trials of this detector or label; repeatable.")
]
_Status: TypeAlias = Annotated[list[str] | None, typer.Option(help="Trials of this status; repeatable.")]


@app.command("list")
def list_trials(
    runs: options.Runs, detector: _Label = None, status: _Status = None, form: options.TableForm = "table"
) -> None:
    """List the trials of a store, oldest first. Broken trials are reported on standard error, with exit code 1."""
    names = ("trial", "dataset", "protocol", "label", "seed", "threads", "status")
    lines = [
        {
            **{name: getattr(record, name) for name in names},
            "seconds": round((record.fit_seconds or 0.0) + (record.score_seconds or 0.0), 1),
            "started": str(record.manifest.get("started") or ""),
        }
        for record in _chosen(api.Store.open(runs), (), detector, status)
    ]
    if form == "json":
        output.show_json({"schema": 1, "trials": lines})
    elif lines:
        output.show_table("", lines, {"seconds": 1})
    output.say([f"{api.counted(len(lines), 'trial')} in {runs}"])


@app.command()
def show(
    runs: options.Runs,
    trial: Annotated[
        str | None, typer.Argument(metavar="[TRIAL]", help="Beginning of the name of a trial or a check report.")
    ] = None,
    detector: options.Trusted = None,
    data: options.Data = None,
) -> None:
    """Print a trial's record as JSON, with its log and later changes on standard error; or a check report.

    Without TRIAL, list the check reports. If a module of the detector, a library, the data or a prior has changed,
    `tsadbench run` runs the trial again; if only the rules have changed, it is judged again.
    """
    store = api.Store.open(runs)
    reports = api.read_reports(store.path)
    if trial is None:
        for one in reports:
            result = f"failed: {', '.join(one.failed)}" if one.failed else "passed"
            typer.echo(f"{one.identity}  {one.label}  {one.day}  {result}{' (--full)' if one.full else ''}")
        output.say([f"{api.counted(len(reports), 'check report')} in {runs}"])
        return
    if named := [one.model_dump() for one in reports if trial and one.identity.startswith(trial)]:
        for content in named:
            output.show_json(content)
        return
    record, *more = _chosen(store, [trial], None, None)
    if more:
        raise UsageError(f"{trial!r} matches {1 + len(more)} trials of {store.path}; give more of its name")
    output.show_json(json.loads(record.to_json()))
    try:
        named_here = {api.normal_label(one) for one in detector or ()}
        why = api.why_new(record, api.loader((), data)[1], named_here)
        changed = f"Changed since this trial: {'; '.join(why) or 'nothing relevant'}"
    except TsadbenchError as error:
        changed = f"Changes since this trial are unknown: {error}"
    output.say([*filter(None, [store.log(record.trial)]), api.one_line(changed)])


@app.command()
def remove(
    runs: options.Runs,
    trials: Annotated[
        list[str] | None, typer.Argument(metavar="[TRIAL]...", help="Beginnings of trials' names.")
    ] = None,
    detector: _Label = None,
    status: _Status = None,
    broken: Annotated[bool, typer.Option("--broken", help="Remove trials whose record cannot be read.")] = False,
) -> None:
    """Remove trials by name, detector or status, or broken ones."""
    store = api.Store.open(runs)
    if not (trials or detector or status or broken):
        raise UsageError("nothing to remove: give names of trials, --detector, --status or --broken")
    records = _chosen(store, trials or (), detector, status) if trials or detector or status else []
    names = [record.trial for record in records] + ([*store.read()[1]] if broken else [])
    store.remove(names)
    output.say([f"{api.counted(len(names), 'trial')} removed from {runs}"])


def _chosen(
    store: api.Store, names: Sequence[str], labels: list[str] | None, statuses: list[str] | None
) -> list[api.Record]:
    """Return the trials that match everything given; a UsageError if a name matches none."""
    api.require_known(statuses or (), ("ok", *api.ALL_BUT_OK), "there is no status", "status")
    readable = store.records()
    for name in names:
        if not name or not any(record.trial.startswith(name) for record in readable):
            raise UsageError(f"{store.path} has no trial {name!r}: `tsadbench runs list {store.path}` lists them")
    return [
        record
        for record in readable
        if (not names or record.trial.startswith(tuple(names)))
        and (not labels or record.label in labels or record.detector in labels)
        and (not statuses or record.status in statuses)
    ]
