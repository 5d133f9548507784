"""``tsadbench list`` and ``tsadbench info``: every registered plugin, and the description of one."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated

import typer

from tsadbench.cli import complete
from tsadbench.datasets.loading import load_dataset
from tsadbench.errors import TsadbenchError, UsageError
from tsadbench.registry import Entry, Kind, entries, load_detector, load_library, load_protocol
from tsadbench.utils.parameters import format_label, format_value, nearest, parameters_of

_KINDS: tuple[Kind, ...] = ("detectors", "families", "protocols", "datasets")
_BROKEN = "CANNOT BE LOADED"


def list_all(
    load: Annotated[
        bool, typer.Option("--load", help="Import every plugin, to show families and why a plugin cannot be imported.")
    ] = False,
    family: Annotated[
        str | None, typer.Option(help="Only detectors of this family, or of this other library; imports them.")
    ] = None,
) -> None:
    """List detectors, families of them, protocols and data sets; without imports, unless options need them."""
    if family is not None:
        if family in {entry.name for entry in entries("families")}:
            _list_members(family)
        else:
            _list_family(family)
        return
    width = max((len(entry.name) for kind in _KINDS for entry in entries(kind)), default=0)
    for kind in _KINDS:
        typer.echo(f"{kind}:")
        for name, origin in _origins(kind):
            loaded = f"{_loaded(kind, name):<28} " if load else ""
            typer.echo(f"  {name:<{width}} {loaded}{origin}")


def info(
    name: Annotated[
        str,
        typer.Argument(
            help="A detector, family, protocol or data set, FAMILY:CLASS, or path/file.py:Class.",
            autocompletion=complete.names,
        ),
    ],
) -> None:
    """Describe a detector, family, protocol or data set: its text, parameters with defaults, traits, paper."""
    for place, kind in enumerate(_kinds(name)):
        if place:
            typer.echo("")
        _INFORM[kind](name)


def _inform_of_data_set(name: str) -> None:
    loader = load_dataset(name)
    typer.echo(inspect.getdoc(inspect.getmodule(loader)) or "")
    typer.echo((inspect.getdoc(loader) or "").partition("\n")[0])


def _inform_of_protocol(name: str) -> None:
    protocol = load_protocol(name)
    _print_class(protocol)
    typer.echo(f"\nVersion of its rules\n  {protocol.version}")


def _inform_of_family(name: str) -> None:
    typer.echo(load_library(name).description)
    typer.echo(f"\ntsadbench list --family {name}  shows its detectors")


def _inform_of_detector(name: str) -> None:
    cls = load_detector(name)
    _print_class(cls)
    note = getattr(cls, "note", "")
    if note:
        typer.echo(f"\nNote\n  {note}")
    if variants := cls.floor_variants():
        labels = ", ".join(format_label(name, cls, variant) for variant in variants)
        typer.echo(f"\nFloors that runs add beside it\n  {labels}")
    typer.echo("\nTraits")
    traits = cls().declared_traits()
    for field in traits.__dataclass_fields__:
        typer.echo(f"  {field:<20} {format_value(getattr(traits, field))}")


_INFORM: Mapping[Kind, Callable[[str], None]] = {
    "detectors": _inform_of_detector,
    "families": _inform_of_family,
    "protocols": _inform_of_protocol,
    "datasets": _inform_of_data_set,
}


def _list_family(family: str) -> None:
    detectors = [(name, origin, _loaded("detectors", name)) for name, origin in _origins("detectors")]
    own = {loaded.partition(",")[0] for _, _, loaded in detectors if not loaded.startswith(_BROKEN)}
    families = tuple(own | {entry.name for entry in entries("families")})
    if family not in families:
        raise UsageError(f"there is no detector of the family {family!r}{nearest(family, families)}")
    of_family = [detector for detector in detectors if detector[2].partition(",")[0] == family]
    width = max(len(name) for name, _, _ in of_family)
    typer.echo("detectors:")
    for name, origin, loaded in of_family:
        typer.echo(f"  {name:<{width}} {loaded:<28} {origin}")


def _list_members(family: str) -> None:
    members = load_library(family).members()
    width = max((len(f"{family}:{member.name}") for member in members), default=0)
    lines_by_kind: dict[str, list[str]] = {"detectors": [], "cannot be loaded": [], "cannot be run": []}
    for member in members:
        name = f"{family}:{member.name}"
        loaded = "" if member.refusal else _loaded("detectors", name)
        kind = "cannot be run" if member.refusal else "cannot be loaded" if loaded.startswith(_BROKEN) else "detectors"
        text = member.refusal or (loaded if kind == "cannot be loaded" else member.note)
        lines_by_kind[kind].append(f"  {name:<{width}} {text}".rstrip())
    for kind, lines in lines_by_kind.items():
        if lines:
            typer.echo("\n".join([f"{kind} ({len(lines)}):", *lines]))


def _origins(kind: Kind) -> list[tuple[str, str]]:
    """Return each registered name with its origin, from packages' metadata."""
    registered = entries(kind)
    names = dict.fromkeys(entry.name for entry in registered)
    return [(name, _origin([entry for entry in registered if entry.name == name])) for name in names]


def _kinds(name: str) -> list[Kind]:
    """Return all that a name stands for: ``skab`` is a data set and a protocol."""
    if ":" in name:
        return ["detectors"]
    names = {kind: {entry.name for entry in entries(kind)} for kind in _KINDS}
    kinds = [kind for kind in _KINDS if name in names[kind]]
    if not kinds:
        known = tuple(sorted(set().union(*names.values())))
        raise UsageError(f"there is no detector, family, protocol or data set {name!r}{nearest(name, known)}")
    return kinds


def _print_class(cls: type) -> None:
    typer.echo((inspect.getdoc(cls) or "").partition("\nParameters\n")[0].strip())
    typer.echo("\nParameters")
    for parameter in parameters_of(cls):
        typer.echo(f"  {parameter.name}={format_value(parameter.default)}")
        if parameter.meaning:
            typer.echo(f"      {parameter.meaning}")


def _loaded(kind: Kind, name: str) -> str:
    """Return a detector's family and extra, or why the plugin cannot be loaded, on one line."""
    try:
        if kind == "detectors":
            traits = load_detector(name).traits
            if not hasattr(traits, "family"):
                return f"{_BROKEN}: its traits are no tsadbench.Traits, found {type(traits).__name__}"
            return f"{traits.family}, extra {traits.extra}" if traits.extra else traits.family
        load: dict[str, Callable[[str], object]] = {
            "families": load_library,
            "protocols": load_protocol,
            "datasets": load_dataset,
        }
        load[kind](name)
    except TsadbenchError as error:
        return f"{_BROKEN}: {' '.join(str(error).split())}"
    return "loads"


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
