"""The commands, and how one of them is run."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from tsadbench._version import __version__
from tsadbench.cli import (
    bank,
    catalogue,
    check,
    compare,
    data,
    doctor,
    explain,
    fit,
    judge,
    leaderboard,
    plot,
    rank,
    regress,
    report,
    run,
    runs,
    score,
    tune,
    verify,
)
from tsadbench.cli.ending import Commands, exit_code

app = typer.Typer(
    name="tsadbench",
    help="Benchmark anomaly detectors for multivariate sensor series under a protocol that people can believe.",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
# By what people do; --help has a line for each.
_GROUPS: dict[str, dict[Any, str]] = {
    "Run": {run.run: "Run detectors on data sets and show the ranked table."},
    "Read": {
        leaderboard.leaderboard: "Show the table of one or several run stores.",
        compare.compare: "Compare detectors, session by session, with intervals.",
        rank.rank: "Rank detectors, on one data set or over several.",
        report.report: "Write a store as one page: tables, figures, recordings.",
        plot.plot: "Draw a figure for a paper.",
        explain.explain: "Explain a detector's alarms on one recording.",
    },
    "Check": {
        check.check: "Check a detector for leaks and broken promises.",
        verify.verify: "Check a store: records, scores, metrics, labels.",
        judge.judge: "Judge stored scores again, or by rules of your own.",
        regress.regress: "Run committed rows again: does a cell move?",
    },
    "Data": {
        data.app: "Fetch, validate and audit data sets; draft a card.",
        catalogue.list_all: "List detectors, protocols, data sets and suites.",
        catalogue.info: "Describe a detector, protocol or data set.",
    },
    "Use": {
        fit.fit: "Fit a detector and write it to a file.",
        score.score: "Score new rows with it, from files or as they arrive.",
        tune.tune: "Choose parameters without labels.",
    },
    "Keep": {
        runs.app: "List, show and remove the trials of a store.",
        bank.app: "Keep scores as small, checked files.",
        doctor.doctor: "Say what is installed, missing or broken.",
    },
}
_NAMES: dict[Any, str] = {catalogue.list_all: "list", runs.app: "runs", bank.app: "bank", data.app: "data"}
for _group, _commands in _GROUPS.items():
    for _command, _help in _commands.items():
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, name=_NAMES[_command], short_help=_help, rich_help_panel=_group)
        else:
            app.command(_NAMES.get(_command), short_help=_help, rich_help_panel=_group)(_command)


def _version(requested: bool) -> None:
    if requested:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _top(
    _requested: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Benchmark anomaly detectors for multivariate sensor series under a protocol that people can believe."""


def main() -> None:
    """Run the command line; a wrong option or file is one message and exit code 2, never a traceback."""
    sys.exit(exit_code(app))
