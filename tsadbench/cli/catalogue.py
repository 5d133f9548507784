"""``tsadbench list`` and ``tsadbench info``: every registered plugin, and the description of one."""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from textwrap import indent
from typing import TYPE_CHECKING, Annotated

import typer

from tsadbench.cli import complete
from tsadbench.datasets.loading import CARD_ENDING, SUITES
from tsadbench.errors import TsadbenchError, UsageError
from tsadbench.registry import Kind, Source, entries, package_of
from tsadbench.utils.parameters import nearest

if TYPE_CHECKING:
    from tsadbench.base.wrapping import LibraryDetector

_KINDS: tuple[Kind, ...] = ("detectors", "families", "protocols", "datasets")


def list_all(
    kind: Annotated[
        bool, typer.Option("--kind", help="Detectors by kind of method, each with its paper; imports them.")
    ] = False,
) -> None:
    """List detectors, families of them, protocols, data sets and suites; imports nothing without --kind."""
    origins = {group: _origins(group) for group in _KINDS}
    if kind:
        _list_by_kind([name for name, _ in origins["detectors"]])
        return
    width = max((len(name) for group in _KINDS for name, _ in origins[group]), default=0)
    for group in _KINDS:
        typer.echo("\n".join([f"{group}:", *(f"  {name:<{width}} {origin}" for name, origin in origins[group])]))
    typer.echo("suites:")
    for name, suite in SUITES.items():
        typer.echo(f"  {name:<{width}} version {suite.version}: {', '.join(suite.datasets)}")


def info(
    name: Annotated[
        str,
        typer.Argument(
            help="A detector, family, protocol or data set, FAMILY:CLASS, path/file.py:Class, or a card's path.",
            autocompletion=complete.names,
        ),
    ],
) -> None:
    """Describe a detector, family, protocol or data set: its text, parameters with defaults, traits, paper.

    Of a detector, also the equations, what differs from the paper, and how defaults were chosen.
    """
    inform = {
        "detectors": _inform_of_detector,
        "families": _inform_of_family,
        "protocols": _inform_of_protocol,
        "datasets": _inform_of_data_set,
    }
    for place, kind in enumerate(_kinds(name)):
        if place:
            typer.echo("")
        inform[kind](name)


def _origins(kind: Kind) -> list[tuple[str, str]]:
    """Return each registered name with its origin, from packages' metadata."""
    registered = entries(kind)
    names = dict.fromkeys(entry.name for entry in registered)
    return [(name, _origin([entry for entry in registered if entry.name == name])) for name in names]


def _origin(same_name: list[EntryPoint]) -> str:
    if len(same_name) > 1:
        packages = " and ".join(map(package_of, same_name))
        return f"registered by {packages}: uninstall one of them"
    (entry,) = same_name
    missing = "" if _importable(entry) else "  CANNOT BE FOUND: its package is not on the import path"
    return f"{entry.value}  ({package_of(entry)} {entry.dist.version if entry.dist else '?'}){missing}"


def _importable(entry: EntryPoint) -> bool:
    """Whether the entry's top-level package can be found, without importing anything."""
    try:
        return importlib.util.find_spec(entry.value.partition(":")[0].partition(".")[0]) is not None
    except ValueError:  # the reference names no package, or __main__: nothing that can be imported
        return False


def _kinds(name: str) -> list[Kind]:
    """Return all that a name stands for: ``skab`` is a data set and a protocol."""
    if name.endswith(CARD_ENDING):
        return ["datasets"]
    if ":" in name:
        return ["detectors"]
    names = {kind: {entry.name for entry in entries(kind)} for kind in _KINDS}
    kinds = [kind for kind in _KINDS if name in names[kind]]
    if not kinds:
        known = tuple(sorted(set().union(*names.values())))
        raise UsageError(f"there is no detector, family, protocol or data set {name!r}{nearest(name, known)}")
    return kinds


def _list_by_kind(names: Sequence[str]) -> None:
    """Print all detectors by their kind of method, each with its publication, or else with what it does."""
    from tsadbench.leaderboard.columns import KINDS, kind_place
    from tsadbench.sandbox import asking, describe
    from tsadbench.utils.docstrings import sections, year_of
    from tsadbench.utils.text import one_line

    kinds: dict[str, list[tuple[str, str, str]]] = {}
    broken: list[tuple[str, str]] = []
    with asking():
        for name in names:
            try:
                told = describe(name)
            except TsadbenchError as error:
                broken.append((name, one_line(str(error))))
                continue
            paper = told.traits.paper
            about = paper or one_line(sections(told.doc)[""].partition("\n\n")[0])
            kinds.setdefault(told.traits.family, []).append((year_of(paper), name, one_line(about)))
    width = max(map(len, names), default=0)
    for kind in sorted(kinds, key=kind_place):
        typer.echo(KINDS.get(kind, kind))
        for _, name, about in sorted(kinds[kind], key=lambda one: (one[0] or "9999", one[1])):
            typer.echo(f"  {name:<{width}} {about}".rstrip())
    if broken:
        typer.echo("Cannot be loaded")
        for name, reason in broken:
            typer.echo(f"  {name:<{width}} {reason}")


def _inform_of_data_set(name: str) -> None:
    from tsadbench.cli.data import description
    from tsadbench.datasets.loading import load_dataset

    loader = load_dataset(name)
    if not name.endswith(CARD_ENDING):
        if getattr(loader, "__name__", "") == "load":  # the only one of its module, whose text describes the data set
            typer.echo(f"{inspect.getdoc(inspect.getmodule(loader)) or ''}\n")
        typer.echo(re.split(r"\n(?:Parameters|Raises)\n", inspect.getdoc(loader) or "")[0].strip() + "\n")
    typer.echo("\n".join(["Contents", *(f"  {line}" for line in description(name, None))]))


def _inform_of_protocol(name: str) -> None:
    from tsadbench.registry import load_protocol
    from tsadbench.utils.parameters import format_value, parameters_of

    protocol = load_protocol(name)
    parameters = [(one.name, format_value(one.default), one.meaning) for one in parameters_of(protocol)]
    _print_text(inspect.getdoc(protocol) or "", parameters)
    _print_section("Version of its rules", str(protocol.version))


def _inform_of_family(name: str) -> None:
    """Print a library's description, and its detectors."""
    from tsadbench.base.wrapping import LibraryDetector
    from tsadbench.registry import locate_entry
    from tsadbench.sandbox import ask

    source = locate_entry("families", name)
    description, members = ask(source, _library, tuple[str, tuple[LibraryDetector, ...]], source)
    typer.echo(description)
    width = max((len(f"{name}:{member.name}") for member in members), default=0)
    for heading, refused in (("Detectors", False), ("Cannot be run", True)):
        chosen = [member for member in members if bool(member.refusal) == refused]
        lines = [f"{f'{name}:{one.name}':<{width}} {one.refusal or one.note}".rstrip() for one in chosen]
        if lines:
            _print_section(f"{heading} ({len(lines)})", "\n".join(lines))


def _inform_of_detector(name: str) -> None:
    from dataclasses import fields

    from tsadbench.registry import locate
    from tsadbench.sandbox import Construction, describe
    from tsadbench.utils.docstrings import method_notes, sections
    from tsadbench.utils.parameters import Label, format_value

    detector = describe(Construction(locate(name)))
    traits = detector.declared
    _print_text(detector.doc, [(one.name, format_value(one.default), one.meaning) for one in detector.parameters])
    variants = ", ".join(str(Label(name, variant)) for variant in detector.floor_variants)
    told = {
        "Note": detector.note,
        "Floors that runs add beside it": variants,
        **method_notes(detector.doc),
        "Paper": traits.paper,
        "References": sections(detector.doc).get("References", ""),
        "Traits": "\n".join(
            f"{field.name:<20} {format_value(getattr(traits, field.name))}" for field in fields(traits)
        ),
    }
    for heading, text in told.items():
        if text:
            _print_section(heading, text)


def _print_section(heading: str, text: str) -> None:
    typer.echo(f"\n{heading}\n{indent(text, '  ')}")


def _print_text(doc: str, parameters: Sequence[tuple[str, str, str]]) -> None:
    """Print a docstring up to its parameters, then each with its default and its meaning."""
    from tsadbench.utils.docstrings import sections

    typer.echo(sections(doc)[""])
    typer.echo("\nParameters")
    for name, default, meaning in parameters:
        typer.echo(f"  {name}={default}")
        if meaning:
            typer.echo(f"      {meaning}")


def _library(source: Source) -> tuple[str, tuple[LibraryDetector, ...]]:
    """Return the description and the detectors of a library, from beside its code in a box."""
    library = source.load("families")
    return str(library.description), tuple(library.members())
