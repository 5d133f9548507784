"""``tsadbench list`` and ``tsadbench info``: what there is, and what one of them is."""

from __future__ import annotations

import importlib.util
import inspect
from typing import Annotated

import typer

from tsadbench.errors import TsadbenchError, UsageError
from tsadbench.parameters import format_value, nearest, parameters_of
from tsadbench.registry import Entry, Kind, entries, load_dataset, load_detector, load_protocol

_KINDS: tuple[Kind, ...] = ("detectors", "protocols", "datasets")


def list_all(
    load: Annotated[
        bool, typer.Option("--load", help="Import every plugin: shows families, and why a plugin cannot be imported.")
    ] = False,
    family: Annotated[str | None, typer.Option(help="Only detectors of this family; implies --load.")] = None,
) -> None:
    """List detectors, protocols and data sets, from their packages' metadata alone unless told to load them."""
    for kind in ("detectors",) if family else _KINDS:
        print(f"{kind}:")
        found = entries(kind)
        for name in dict.fromkeys(entry.name for entry in found):
            same = [entry for entry in found if entry.name == name]
            loaded = _loaded(kind, name) if load or family else ""
            if not family or loaded.partition(",")[0] == family:
                print(f"  {name:<20} {loaded:<28} {_origin(same)}" if loaded else f"  {name:<20} {_origin(same)}")


def info(
    name: Annotated[str, typer.Argument(help="A detector, protocol or data set, or path/file.py:Class.")],
) -> None:
    """Tell what a detector, protocol or data set is: its text, parameters with defaults, traits, paper."""
    kind = _kind(name)
    if kind == "datasets":
        loader = load_dataset(name)
        print(inspect.getdoc(inspect.getmodule(loader)) or "")
        print((inspect.getdoc(loader) or "").partition("\n")[0])
    elif kind == "protocols":
        _print_class(load_protocol(name))
    else:
        cls = load_detector(name)
        _print_class(cls)
        print("\nTraits")
        for field in cls.traits.__dataclass_fields__:
            print(f"  {field:<20} {format_value(getattr(cls.traits, field))}")


def _kind(name: str) -> Kind:
    if ":" in name:
        return "detectors"
    known = {entry.name: kind for kind in _KINDS for entry in entries(kind)}
    if name not in known:
        raise UsageError(f"there is no detector, protocol or data set {name!r}{nearest(name, known)}")
    return known[name]


def _print_class(cls: type) -> None:
    print((inspect.getdoc(cls) or "").partition("\nParameters\n")[0].strip())
    print("\nParameters")
    for parameter in parameters_of(cls):
        print(f"  {parameter.name}={format_value(parameter.default)}")
        if parameter.meaning:
            print(f"      {parameter.meaning}")


def _loaded(kind: Kind, name: str) -> str:
    """Return a detector's family and extra, or why the plugin cannot be loaded, on one line."""
    try:
        if kind == "detectors":
            traits = load_detector(name).traits
            return f"{traits.family}, extra {traits.extra}" if traits.extra else traits.family
        _ = load_protocol(name) if kind == "protocols" else load_dataset(name)
    except TsadbenchError as error:
        return f"CANNOT BE LOADED: {' '.join(str(error).split())}"
    return "loads"


def _origin(found: list[Entry]) -> str:
    if len(found) > 1:
        packages = " and ".join(entry.package for entry in found)
        return f"registered by {packages}: uninstall one of them"
    entry = found[0]
    missing = "" if _importable(entry) else "  CANNOT BE FOUND: its package is not on the import path"
    return f"{entry.reference}  ({entry.package} {entry.version}){missing}"


def _importable(entry: Entry) -> bool:
    """Whether the entry's top-level package can be found, without importing anything."""
    return importlib.util.find_spec(entry.reference.partition(":")[0].partition(".")[0]) is not None
