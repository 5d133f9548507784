"""``tsadbench run``: plans and runs trials, shows progress and the table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from tsadbench import api
from tsadbench.cli import options, output
from tsadbench.errors import UsageError

_Config: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="TOML file of a run (docs/configuration.md); options override it.")
]
_Dataset: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        help="Data set: its name, or the path of its card; repeatable.",
        show_default="skab",
        autocompletion=options.datasets,
    ),
]
_Suite: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Replaces --dataset: the suite plants, servers, core or all.", autocompletion=options.suites),
]
_Protocol: TypeAlias = Annotated[
    list[str] | None, typer.Option(help="Protocol.", show_default="strict", autocompletion=options.protocols)
]
_Against: TypeAlias = Annotated[
    str | None, typer.Option(help="Use this protocol, and show its shipped rows as well; they do not run.")
]
_Seeds: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="N", help="Seeds 0 to N-1 of stochastic detectors; or seeds: 0,3 or 3,", show_default="5"),
]
_Threads: TypeAlias = Annotated[
    int | None, typer.Option(help="Threads of a trial's libraries; part of its identity.", show_default="1")
]
_Cluster: TypeAlias = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Replaces --jobs: a Dask cluster (tcp://..., tls://..., local:N).")
]
_Floors: TypeAlias = Annotated[
    bool | None, typer.Option("--floors/--no-floors", help="Whether to add the floors.", show_default="floors")
]
_Rerun: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="STATUS", help="Trials of --out to run again; repeatable.", show_default="all but ok"),
]
_Out: TypeAlias = Annotated[Path | None, typer.Option(help="Run store that keeps every trial.", show_default="runs")]


def run(
    config: _Config = None,
    detector: options.Detectors = None,
    dataset: _Dataset = None,
    suite: _Suite = None,
    protocol: _Protocol = None,
    against: _Against = None,
    split: options.Splits = None,
    seeds: _Seeds = None,
    threads: _Threads = None,
    jobs: options.Jobs = None,
    cluster: _Cluster = None,
    settings: options.Set = None,
    floors: _Floors = None,
    timeout: options.Timeout = None,
    memory: options.Memory = None,
    require_seal: options.RequireSeal = None,
    rerun: _Rerun = None,
    data: options.Data = None,
    out: _Out = None,
    form: options.ResultForm = "table",
) -> None:
    """Run detectors on data sets under protocols and show the ranked tables with the floors.

    Without --detector, the registered defaults run with one seed: DPR-GM and two baselines. Those whose packages are
    not installed are skipped, with a message.
    The table shows the split overall; --format csv and json have all splits. Exit code 1 if a trial failed.

    --rerun takes ok, error, timeout, memory, killed, invalid, or no-contributions: ok trials that lack the sensors'
    contributions although their detector offers them.
    """
    given = {name: value for name, value in locals().items() if value not in (None, [])}  # fields of the request
    given = {name: value for name, value in given.items() if name not in ("config", "rerun", "form")}
    api.default_server().warm()  # the server imports in parallel
    if seeds is not None:
        given["seeds"] = _seeds(seeds)
    names = {"detector": "detectors", "dataset": "datasets", "protocol": "protocols", "split": "splits"}
    request = api.requested(config, {names.get(name, name): value for name, value in given.items()})
    if not request.detectors:
        request, said = api.completed(request)
        output.say(said)
    if form == "table" and not request.splits:
        request = request.model_copy(update={"splits": ["overall"]})
    board = api.run_request(request, rerun=frozenset(rerun or ()) or api.ALL_BUT_OK)
    output.show_board(board, form, own=board.own)
    output.say(board.said)
    if any(record.status != "ok" for record in board.ran):
        raise typer.Exit(1)


def _seeds(text: str) -> int | list[int]:
    """Return the number of seeds, or a list of seeds.

    >>> _seeds("5"), _seeds("0,3"), _seeds("3,")
    (5, [0, 3], [3])
    """
    try:
        return [int(seed) for seed in text.removesuffix(",").split(",")] if "," in text else int(text)
    except ValueError:
        message = f"expected a number N, or seeds separated by commas (0,3), found {text!r}"
        raise UsageError(message, field="seeds") from None
