"""The commands, and how one of them is run."""

from __future__ import annotations

import sys
from typing import Annotated

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
from tsadbench.cli.broken import broken_trials_told
from tsadbench.cli.ending import Commands, complain, flushed, interruption, prepare_streams, stream_code
from tsadbench.errors import TsadbenchError

app = typer.Typer(
    name="tsadbench",
    help="Benchmark anomaly detectors for multivariate sensor series under a protocol that people can believe.",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(run.run)
app.command("list")(catalogue.list_all)
app.command()(catalogue.info)
app.command()(leaderboard.leaderboard)
app.command()(compare.compare)
app.command()(rank.rank)
app.command()(report.report)
app.command()(plot.plot)
app.command()(explain.explain)
app.command()(verify.verify)
app.command()(judge.judge)
app.command()(regress.regress)
app.command()(check.check)
app.command()(doctor.doctor)
app.command()(fit.fit)
app.command()(score.score)
app.command()(tune.tune)
app.add_typer(runs.app, name="runs")
app.add_typer(bank.app, name="bank")
app.add_typer(data.app, name="data")


def _version(requested: bool) -> None:
    if requested:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _top(
    context: typer.Context,
    _requested: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Benchmark anomaly detectors for multivariate sensor series under a protocol that people can believe."""
    context.with_resource(broken_trials_told())


def main() -> None:
    """Run the command line; a wrong option or file is one message and exit code 2, never a traceback."""
    prepare_streams()
    try:
        app()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except KeyboardInterrupt:  # before Typer has begun
        code = interruption()
    except OSError as error:  # after a command has ended
        if not (code := stream_code(error)):
            raise
    except TsadbenchError as error:
        complain(error)
        code = 2
    sys.exit(flushed(code))
