"""The commands and their exit codes: an error or a broken stored trial is one line, Ctrl-C is exit code 130."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from tsadbench import api
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
from tsadbench.cli.interrupts import EXIT_CODE, interrupted
from tsadbench.errors import BrokenTrialWarning, PluginError, TsadbenchError, UsageError

# The shell's exit code for a program whose output pipe was closed, such as by `| head`.
_BROKEN_PIPE = 141
_ABOUT = "Benchmark anomaly detectors for multivariate sensor series under a protocol that people can believe."


class Group(TyperGroup):
    """A command group that turns exceptions into exit codes; errors name the wrong options."""

    def invoke(self, ctx: Any) -> Any:  # Typer's own class of contexts, which differs by version
        """Run the command that the user has named."""
        try:
            return super().invoke(ctx)
        except BaseException as error:
            # Some libraries turn an interrupt during their import into another error.
            if isinstance(error, KeyboardInterrupt) or (interrupted() and not isinstance(error, typer.Exit)):
                _say("; ".join(["interrupted", *getattr(error, "__notes__", ())]))
                raise typer.Exit(EXIT_CODE) from None
            options: dict[str, str] = _options(self.commands.get(ctx.invoked_subcommand))
            if isinstance(error, UsageError):
                error.field = options.get(error.field or "", error.field)
            elif "detector" in options and str(getattr(error, "message", "")).startswith("Got unexpected extra"):
                error.message += "; name detectors with -d"  # type: ignore[attr-defined]
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands, in their groups, each with its whole first line."""
        lines: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            group = getattr(command, "rich_help_panel", None)
            text = command.short_help or (command.help or "").strip().partition("\n")[0]
            lines.setdefault(group if isinstance(group, str) else "Commands", []).append((name, text))
        for group, of_group in lines.items():
            with formatter.section(group):
                formatter.write_dl(of_group)


def _options(command: Any) -> dict[str, str]:
    """Return the option of each Python argument."""
    found: dict[str, str] = {}
    for one in getattr(command, "params", ()):
        option = one.opts[0] if one.opts[0].startswith("-") else (one.metavar or str(one.name)).strip(".")
        found |= dict.fromkeys((f"{one.name}s", str(one.name), one.opts[0].lstrip("-").replace("-", "_")), option)
    return found


class Commands(Group):
    """The commands, and those of plugins, which are imported when they are called."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, those of plugins last."""
        return list(dict.fromkeys([*super().list_commands(ctx), *(entry.name for entry in api.entries("commands"))]))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or the placeholder of a plugin's command."""
        if command := super().get_command(ctx, cmd_name):
            return command
        about = [f"Added by {one.value.partition('.')[0]}." for one in api.entries("commands") if one.name == cmd_name]
        return TyperCommand(cmd_name, short_help=about[0], rich_help_panel="Plugins") if about else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the called command.

        Raises a PluginError if a plugin cannot be imported or is not a Typer app, or two packages claim the name.
        """
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and name not in self.commands:
            loaded = api.locate_entry("commands", str(name)).load("commands")
            if not isinstance(loaded, typer.Typer):
                raise PluginError(f"command {name!r}: expected a typer.Typer, found {loaded!r}")
            command = typer.main.get_command(loaded)
            command.params = [
                one for one in command.params if one.name not in ("install_completion", "show_completion")
            ]
        return name, command, rest


app = typer.Typer(
    name="tsadbench",
    help=_ABOUT,
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


_GROUPS: dict[str, dict[str, tuple[Any, str]]] = {  # grouped by task
    "Run": {"run": (run.run, "Run detectors on data sets and show the ranked table.")},
    "Read": {
        "leaderboard": (leaderboard.leaderboard, "Show the table of one or several run stores."),
        "compare": (compare.compare, "Compare detectors, session by session, with intervals."),
        "rank": (rank.rank, "Rank detectors, on one data set or over several."),
        "report": (report.report, "Write a store as one page: tables, figures, recordings."),
        "plot": (plot.plot, "Draw a figure for a paper."),
        "explain": (explain.explain, "Explain a detector's alarms on one recording."),
    },
    "Check": {
        "check": (check.check, "Check a detector for leaks and broken promises."),
        "verify": (verify.verify, "Check a store: records, scores, metrics, labels."),
        "judge": (judge.judge, "Judge stored scores again, or by your own rules."),
        "regress": (regress.regress, "Run committed rows again, and fail if a cell has moved."),
    },
    "Data": {
        "data": (data.app, "Fetch, validate and audit data sets; draft a card."),
        "list": (catalogue.list_all, "List detectors, protocols, data sets and suites."),
        "info": (catalogue.info, "Describe a detector, protocol or data set."),
    },
    "Use": {
        "fit": (fit.fit, "Fit a detector and write it to a file."),
        "score": (score.score, "Score new rows with it, from files or as they arrive."),
        "tune": (tune.tune, "Choose parameters without labels."),
    },
    "Keep": {
        "runs": (runs.app, "List, show and remove the trials of a store."),
        "bank": (bank.app, "Keep scores as small, checked files."),
        "doctor": (doctor.doctor, "Say what is installed, missing or broken."),
    },
}
for _group, _commands in _GROUPS.items():
    for _name, (_command, _help) in _commands.items():
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, name=_name, cls=Group, short_help=_help, rich_help_panel=_group)
        else:
            app.command(_name, short_help=_help, rich_help_panel=_group)(_command)


def _version(requested: bool) -> None:
    if requested:
        typer.echo(api.__version__)
        raise typer.Exit


@app.callback(help=_ABOUT)
def _top(
    _requested: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None: ...


def main() -> None:
    """Run the command line; a wrong option or file is one message and exit code 2, never a traceback."""
    sys.stdout, sys.stderr = (one or open(os.devnull, "w") for one in (sys.stdout, sys.stderr))  # noqa: SIM115 - closed
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # unencodable characters must not end a command
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        code = _run()
    told = {str(one.message): issubclass(one.category, BrokenTrialWarning) for one in caught}
    for text, broken in told.items():
        _say(f"{'broken' if broken else 'note'}: {api.one_line(text)}")
    code = code or int(any(told.values()))
    try:
        sys.stdout.flush()
    except OSError as error:
        code = code or _stream_code(error)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes again at exit
    sys.exit(code)


def _run() -> int:
    try:
        app()
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):
            return _BROKEN_PIPE
        return stop.code if isinstance(stop.code, int) else 1
    except TsadbenchError as error:
        _say(f"tsadbench: {error}")
        return 2
    except OSError as error:
        if code := _stream_code(error):
            return code
        raise
    return 0


def _stream_code(error: OSError) -> int:
    """Report a stream or file that cannot be used; return the exit code, or 0 for other errors."""
    if error.errno == errno.EPIPE:
        return _BROKEN_PIPE
    if error.filename is None and error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EBADF):
        return 0
    _say(f"tsadbench: {error.filename or 'the output cannot be written'}: {error.strerror}")
    return 1 if error.filename is None else 2


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        typer.echo(api.printable(text, lines=True), err=True)
