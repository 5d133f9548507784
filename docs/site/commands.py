"""Pages about every command, from the Typer application itself: what ``--help`` says, with links."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
from typer.main import get_command

from tsadbench.cli.app import app

FOLDER = "reference/commands"
_PAGE = re.compile(r"docs/([\w/-]+\.md(?:#[\w-]+)?)")


def _prose(text: str) -> str:
    """Return a help text as Markdown: pages that it names become links, everything else is escaped."""
    paragraphs = (" ".join(part.split()) for part in text.split("\n\n"))
    escaped = "\n\n".join(re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", part) for part in paragraphs)
    # Pages are named from the repository's root; these pages are two folders below docs/.
    return _PAGE.sub(lambda found: f"[docs/{found[1]}](../../{found[1]})", escaped)


def _parameters(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yield the lines of a definition list of the arguments and options that are not hidden."""
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is None:
            continue
        name, text = record
        yield f"`{name.strip()}`\n:   {_prose(text) or 'Required.'}\n"


def _section(command: click.Command, names: tuple[str, ...], parent: click.Context, level: int) -> Iterator[str]:
    """Yield the paragraphs about a command and, one level deeper, about the members of a group."""
    context = click.Context(command, info_name=names[-1], parent=parent)
    yield f"{'#' * level} `tsadbench {' '.join(names)}`"
    yield _prose(command.help or "")
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"```text\ntsadbench {' '.join(names)} {usage}\n```"
    yield from _parameters(command, context)
    for name, member in getattr(command, "commands", {}).items():
        yield from _section(member, (*names, name), context, level + 1)


def pages() -> dict[str, str]:
    """Return a page for each command, those of plugins included, by its path below docs/."""
    top = get_command(app)
    root = top.make_context("tsadbench", [], resilient_parsing=True)
    found = (top.resolve_command(root, [name])[:2] for name in top.list_commands(root))
    return {
        f"{FOLDER}/{name}.md": "\n\n".join(part for part in _section(command, (name,), root, 1) if part) + "\n"
        for name, command in found
    }


def linked(table: str) -> str:
    """Return the page with the table of all commands, each name linked to its own page."""
    return re.sub(r"^\| `([\w-]+)` \|", r"| [`\1`](\1.md) |", table, flags=re.M)
