"""How a command ends: an error is one line, Ctrl-C exit code 130, broken trials of a store a line each."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperGroup

from tsadbench.cli.interrupts import EXIT_CODE, interrupted
from tsadbench.cli.plugins import PluginCommand, plugin_commands
from tsadbench.errors import BrokenTrialWarning, TsadbenchError
from tsadbench.utils.text import one_line, printable

# What a shell reports of a program that was ended because nobody reads its output, such as one before `| head`.
BROKEN_PIPE = 141
_WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EBADF)


class Listing(TyperGroup):
    """Commands that --help lists with their whole first line; Typer cuts it."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # Typer's own classes, which differ by version
        """Write the list of commands."""
        for command in self.commands.values():
            if not command.short_help and command.help:
                command.short_help = command.help.strip().splitlines()[0]
        super().format_commands(ctx, formatter)


class Commands(Listing):
    """The commands, and those of plugins; each ends as `_told` says, for Typer's ends are silent or of other codes."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # Typer's own classes, which differ by version
        """Write the list of commands, in their groups."""
        lines: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            group = getattr(command, "rich_help_panel", None)
            lines.setdefault(group if isinstance(group, str) else "Plugins", []).append((name, command.short_help))
        for group, of_group in lines.items():
            with formatter.section(group):
                formatter.write_dl(of_group)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, those of plugins last."""
        return list(dict.fromkeys([*super().list_commands(ctx), *plugin_commands()]))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or what stands for a plugin's."""
        return super().get_command(ctx, cmd_name) or plugin_commands().get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is called; a plugin's is imported now."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, PluginCommand) else command, rest

    def make_context(self, *arguments: Any, **options: Any) -> Any:  # as Typer's, which differ by version
        """Read the command line; --help and --version print here."""
        with _told():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:  # Typer's own class of contexts, which differs by version
        """Run the command."""
        with _told():
            return super().invoke(ctx)


def exit_code(app: typer.Typer) -> int:
    """Run the command line and return its exit code; whatever ends it is told in a line, never by a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # no character that an encoding lacks ends a command
    code = 0
    with _broken_trials() as broken:
        try:
            app()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        except TsadbenchError as error:
            complain(error)
            code = 2
        for reason in dict.fromkeys(broken):  # some commands read a store twice
            typer.echo(f"broken: {one_line(reason)}", err=True)
    code = code or int(bool(broken))
    for number, stream in enumerate((sys.stdout, sys.stderr), start=1):
        try:
            stream.flush()
        except OSError as error:
            code = code or _stream_code(error)
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)  # Python flushes once more when it ends
    return code


def complain(error: object) -> None:
    """Print an error on standard error, as far as that can be written to."""
    with contextlib.suppress(OSError):
        typer.echo(f"tsadbench: {printable(str(error), lines=True)}", err=True)


@contextlib.contextmanager
def _broken_trials() -> Iterator[list[str]]:
    """Collect what is said of broken trials; other warnings are shown as ever."""
    told: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always", BrokenTrialWarning)
        show: Any = warnings.showwarning

        def note(message: Warning | str, category: type[Warning], *more: Any, **named: Any) -> None:
            if issubclass(category, BrokenTrialWarning):
                told.append(str(message))
            else:
                show(message, category, *more, **named)

        warnings.showwarning = note
        yield told


@contextlib.contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise _interruption() from None
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # Rich's way to end
            raise typer.Exit(BROKEN_PIPE) from stop
        raise
    except OSError as error:
        if code := _stream_code(error):
            raise typer.Exit(code) from error
        raise
    except Exception as error:
        # Some libraries make another error of an interrupt that hits their imports.
        if interrupted() and not isinstance(error, typer.Exit | typer.Abort):
            raise _interruption() from error
        _hint_at_option(error)
        raise


def _interruption() -> typer.Exit:
    with contextlib.suppress(OSError):
        typer.echo("interrupted", err=True)
    return typer.Exit(EXIT_CODE)


def _stream_code(error: OSError) -> int:
    """Complain about a stream or file that cannot be used; return the exit code, 0 if the error is of another kind."""
    if error.errno == errno.EPIPE:
        return BROKEN_PIPE
    if error.filename is not None:
        complain(
            f"{error.filename if isinstance(error.filename, int) else os.fsdecode(error.filename)}: {error.strerror}"
        )
        return 2
    if error.errno in _WRITE_ERRORS:
        complain(f"the output cannot be written: {error.strerror}")
        return 1
    return 0


def _hint_at_option(error: Exception) -> None:
    """Extend the message about an argument that is none where a detector is named by an option."""
    extra = re.match(
        r"Got unexpected extra arguments? ?(?:\(s\))? ?\((\S+)", message := str(getattr(error, "message", ""))
    )
    parameters = getattr(getattr(getattr(error, "ctx", None), "command", None), "params", ())
    if extra and any("--detector" in parameter.opts for parameter in parameters):
        error.message = f"{message}; a detector is named with -d: -d {extra[1].rstrip(')')}"  # type: ignore[attr-defined]
