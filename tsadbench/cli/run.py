"""``tsadbench run``: plan, run with progress, show the table."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tsadbench.cli import complete
from tsadbench.cli.options import (
    AllFloorsOption,
    AllowChangedDataOption,
    DataOption,
    DiagnosticsOption,
    MemoryOption,
    RequireSealOption,
    SettingsOption,
    SplitsOption,
    TimeoutOption,
    detectors_option,
    format_option,
    seeds_of,
)
from tsadbench.cli.output import BoardFormat


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
        typer.Option(help="Trials to run at the same time; results do not depend on it.", show_default="1"),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="A Dask cluster instead of --jobs: tcp://host:port, or local:N."),
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
            help="Also write <data set>/<protocol>/<split>.csv, .md and .json below this folder. Trials whose records "
            "lie there already are not run again; the tables then hold the rows of this run alone."
        ),
    ] = None,
    form: Annotated[BoardFormat, format_option] = "table",
    all_floors: AllFloorsOption = False,
    diagnostics: DiagnosticsOption = None,
) -> None:
    """Run detectors on data sets under protocols and show the ranked tables with the floors.

    Without --detector, the registered defaults run with one seed: DPR-GM and two baselines, on SKAB, or on simulated
    data if SKAB is not available. A default whose packages are not installed is left out, and a line names it.
    """
    from tsadbench.cli.actions.run import run_request
    from tsadbench.execution.config import requested
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
    run_request(request, rerun or (), form, groups, all_floors=all_floors)
