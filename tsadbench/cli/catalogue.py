"""``tsadbench list`` and ``tsadbench info``: what there is, and what one of them is."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer

from tsadbench.errors import UsageError
from tsadbench.parameters import format_value, nearest, parameters_of
from tsadbench.registry import Entry, Kind, entries, load_dataset, load_detector, load_protocol

_KINDS: tuple[Kind, ...] = ("detectors", "protocols", "datasets")


def list_all() -> None:
    """List detectors, protocols and data sets, from their packages' metadata alone."""
    for kind in _KINDS:
        print(f"{kind}:")
        found = entries(kind)
        for name in dict.fromkeys(entry.name for entry in found):
            print(f"  {name:<20} {_origin([entry for entry in found if entry.name == name])}")


def info(
    name: Annotated[str, typer.Argument(help="A detector, protocol or data set, or path/file.py:Class.")],
) -> None:
    """Tell what a detector, protocol or data set is: its text, parameters with defaults, traits, paper."""
    kind = _kind(name)
    if kind == "datasets":
        print(inspect.getdoc(load_dataset(name)))
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


def _origin(found: list[Entry]) -> str:
    if len(found) > 1:
        packages = " and ".join(entry.package for entry in found)
        return f"registered by {packages}: uninstall one of them"
    return f"{found[0].reference}  ({found[0].package} {found[0].version})"
