"""``tsadbench list`` and ``tsadbench info``: every registered plugin, and the description of one."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from textwrap import indent
from typing import Annotated, Any

import typer

from tsadbench import api
from tsadbench.cli import data, options
from tsadbench.errors import DataNotFoundError, UsageError

_KINDS: tuple[api.Kind, ...] = ("detectors", "families", "protocols", "datasets")


def list_all() -> None:
    """List detectors, detector families, protocols, data sets and suites. Imports none of them."""
    width = max((len(entry.name) for kind in _KINDS for entry in api.entries(kind)), default=0)
    for kind in _KINDS:
        typer.echo(f"{kind}:")
        registered = api.entries(kind)
        for name in dict.fromkeys(entry.name for entry in registered):
            typer.echo(f"  {name:<{width}} {_origin([entry for entry in registered if entry.name == name])}")
    typer.echo("suites:")
    for name, suite in api.SUITES.items():
        typer.echo(f"  {name:<{width}} version {suite.version}: {', '.join(suite.datasets)}")


def _origin(same_name: list[Any]) -> str:
    """Return a plugin's origin from packages' metadata."""
    entry, *others = same_name
    if others:
        return f"registered by {' and '.join(map(api.package_of, same_name))}: uninstall one of them"
    return f"{entry.value}  ({api.package_of(entry)} {entry.dist.version if entry.dist else '?'})"


def info(
    name: Annotated[
        str,
        typer.Argument(
            help="A detector, family, protocol or data set, FAMILY:CLASS, path/file.py:Class, or a card's path.",
            autocompletion=options.names,
        ),
    ],
) -> None:
    """Describe a detector, family, protocol or data set: its text, parameters with defaults, traits, paper.

    For a detector, also its equations, differences from the paper, and the origin of its defaults.
    """
    describe = {"detectors": _detector, "families": _family, "protocols": _protocol, "datasets": _data_set}
    typer.echo("\n\n".join(describe[kind](name) for kind in _kinds(name)))


def _kinds(name: str) -> list[api.Kind]:
    """Return everything with this name: ``skab`` is a data set and a protocol."""
    if name.endswith(".toml"):
        return ["datasets"]
    if ":" in name:
        return ["detectors"]
    names = {kind: {entry.name for entry in api.entries(kind)} for kind in _KINDS}
    kinds = [kind for kind in _KINDS if name in names[kind]]
    if not kinds:
        known = tuple(sorted(set().union(*names.values())))
        raise UsageError(f"there is no detector, family, protocol or data set {name!r}{api.nearest(name, known)}")
    return kinds


def _text(first: str, sections: Mapping[str, str]) -> str:
    """Return a text and its non-empty sections, each with its heading."""
    return "\n\n".join([first, *(f"{heading}\n{indent(text, '  ')}" for heading, text in sections.items() if text)])


def _parameters(parameters: Iterable[Any]) -> str:
    """Return a line for each parameter with its default, and one with its meaning."""
    lines = (
        (f"{one.name}={api.format_value(one.default)}", one.meaning and f"    {one.meaning}") for one in parameters
    )
    return "\n".join(line for pair in lines for line in pair if line)


def _detector(name: str) -> str:
    detector = api.describe(api.Construction(api.locate(name)))
    sections, traits = api.sections(detector.doc), detector.declared
    told = {
        "Parameters": _parameters(detector.parameters),
        "Note": detector.note,
        "Variants that runs add": ", ".join(str(api.Label(name, one)) for one in detector.floor_variants),
        **api.definitions(sections.get("Notes", "")),
        "Paper": traits.paper,
        "References": sections.get("References", ""),
        "Traits": "\n".join(
            f"{field:<20} {api.format_value(getattr(traits, field))}" for field in traits.__dataclass_fields__
        ),
    }
    return _text(sections[""], told)


def _protocol(name: str) -> str:
    protocol = api.load_protocol(name)
    text = api.sections(inspect.getdoc(protocol) or "")[""]
    parameters = _parameters(api.parameters_of(protocol))
    return _text(text, {"Parameters": parameters, "Version of its rules": str(protocol.version)})


def _family(name: str) -> str:
    source = api.locate_entry("families", name)
    description, members = api.ask(source, _library, tuple[str, tuple[api.LibraryDetector, ...]], source)
    width = max((len(f"{name}:{member.name}") for member in members), default=0)
    sections = {}
    for heading, refused in (("Detectors", False), ("Cannot be run", True)):
        chosen = [member for member in members if bool(member.refusal) == refused]
        lines = [f"{f'{name}:{one.name}':<{width}} {one.refusal or one.note}".rstrip() for one in chosen]
        sections[f"{heading} ({len(lines)})"] = "\n".join(lines)
    return _text(description, sections)


def _library(source: api.Source) -> tuple[str, tuple[api.LibraryDetector, ...]]:
    """Return the description and the detectors of a library. Runs in a box."""
    library = source.load("families")
    return str(library.description), tuple(library.members())


def _data_set(name: str) -> str:
    texts: list[str] = []
    if name.endswith(".toml"):
        loader: Any = api.card_loader(Path(name))
    else:
        loader = api.locate_entry("datasets", name).load("datasets")
        if getattr(loader, "__name__", "") == "load":  # the only loader of its module
            texts.append(inspect.getdoc(inspect.getmodule(loader)) or "")
        texts.append(re.split(r"\n(?:Parameters|Raises)\n", inspect.getdoc(loader) or "")[0].strip())
    try:
        # With a named folder, nothing is downloaded.
        folder = api.place(name, None).parent if name in api.published() else None
        lines = list(data.contents(loader(api.DataOptions(folder, allow_changed=True))))
    except DataNotFoundError as error:
        lines = [f"files     {error}"]
    if note := api.shipped_note(name):
        lines.append(f"audit     {note.removeprefix(f'{name}: ')}")
    return _text("\n\n".join(texts), {"Contents": "\n".join(lines)}).strip()
