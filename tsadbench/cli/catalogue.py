"""``tsadbench list`` and ``tsadbench info``: every registered plugin, and the description of one."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Annotated

import typer

from tsadbench.cli import complete
from tsadbench.datasets.loading import CARD_ENDING
from tsadbench.datasets.suites import SUITES
from tsadbench.errors import UsageError
from tsadbench.registry import Entry, Kind, entries
from tsadbench.utils.parameters import nearest

_KINDS: tuple[Kind, ...] = ("detectors", "families", "protocols", "datasets")


def list_all(
    load: Annotated[
        bool, typer.Option("--load", help="Import every plugin, to show families and why a plugin cannot be imported.")
    ] = False,
    kind: Annotated[
        bool, typer.Option("--kind", help="Detectors by kind of method, each with its paper; imports them.")
    ] = False,
    family: Annotated[
        str | None, typer.Option(help="Only detectors of this family, or of this other library; imports them.")
    ] = None,
) -> None:
    """List detectors, families of them, protocols, data sets and suites; imports nothing, unless options need it."""
    if kind + load + (family is not None) > 1:
        raise UsageError("expected one of --kind, --load and --family, found more; leave out all but one")
    origins = {group: _origins(group) for group in _KINDS}
    if kind:
        from tsadbench.cli.actions.catalogue import list_by_kind

        list_by_kind([name for name, _ in origins["detectors"]])
        return
    if family is not None:
        from tsadbench.cli.actions.catalogue import list_family, list_members

        if family in dict(origins["families"]):
            list_members(family)
        else:
            list_family(family, origins["detectors"])
        return
    loaded: Mapping[tuple[Kind, str], str] = {}
    if load:
        from tsadbench.cli.actions.catalogue import load_all

        loaded = load_all([(group, name) for group in _KINDS for name, _ in origins[group]])
    width = max((len(name) for group in _KINDS for name, _ in origins[group]), default=0)
    for group in _KINDS:
        typer.echo(f"{group}:")
        for name, origin in origins[group]:
            text = f"{loaded[group, name]:<28} " if load else ""
            typer.echo(f"  {name:<{width}} {text}{origin}")
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

    Of a detector, also the equations, what differs from the paper, how defaults were chosen, and what it costs in
    the tables that ship.
    """
    from tsadbench.cli.actions.catalogue import INFORM

    for place, kind in enumerate(_kinds(name)):
        if place:
            typer.echo("")
        INFORM[kind](name)


def _origins(kind: Kind) -> list[tuple[str, str]]:
    """Return each registered name with its origin, from packages' metadata."""
    registered = entries(kind)
    names = dict.fromkeys(entry.name for entry in registered)
    return [(name, _origin([entry for entry in registered if entry.name == name])) for name in names]


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


def _origin(same_name: list[Entry]) -> str:
    if len(same_name) > 1:
        packages = " and ".join(entry.package for entry in same_name)
        return f"registered by {packages}: uninstall one of them"
    (entry,) = same_name
    missing = "" if _importable(entry) else "  CANNOT BE FOUND: its package is not on the import path"
    return f"{entry.reference}  ({entry.package} {entry.version}){missing}"


def _importable(entry: Entry) -> bool:
    """Whether the entry's top-level package can be found, without importing anything."""
    try:
        return importlib.util.find_spec(entry.reference.partition(":")[0].partition(".")[0]) is not None
    except ValueError:  # the reference names no package, or __main__: nothing that can be imported
        return False
