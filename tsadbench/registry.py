"""From names to detectors, protocols and data sets by entry points; nothing is imported before it is used."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, cast

from tsadbench.errors import PluginError, TsadbenchError, UsageError
from tsadbench.utils.parameters import nearest

if TYPE_CHECKING:
    from tsadbench.base import Detector, DetectorLibrary, Protocol

_Loaded = TypeVar("_Loaded")
Kind: TypeAlias = Literal["detectors", "families", "protocols", "datasets"]

# The group of the detectors that every run adds; they are detectors like any other.
_FLOORS = "tsadbench.floors"
_SINGULAR: dict[Kind, str] = {
    "detectors": "detector", "families": "family", "protocols": "protocol", "datasets": "data set",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """One registered name, from a package's metadata alone."""

    name: str
    reference: str
    package: str
    version: str


def entries(kind: Kind) -> tuple[Entry, ...]:
    """Return what is registered, sorted by name, without importing any of it."""
    registered = (
        Entry(point.name, point.value, _package(point), point.dist.version if point.dist else "?")
        for point in _points(kind)
    )
    return tuple(sorted(registered, key=lambda entry: (entry.name, entry.package)))


def floors() -> tuple[str, ...]:
    """Return the names of the registered floors, sorted, without importing any of them."""
    return tuple(sorted({point.name for point in entry_points(group=_FLOORS)}))


def is_registered(target: str) -> bool:
    """Whether a detector's name, or the library before its colon, is registered; nothing is imported."""
    prefix, colon, _ = target.partition(":")
    return any(point.name == prefix for point in _points("families" if colon else "detectors"))


def load_detector(target: str) -> type[Detector]:
    """Return the class that a name, ``LIBRARY:CLASS``, ``package.module:Class`` or ``path/file.py:Class`` names.

    Raises
    ------
    UsageError
        If there is no such name, module, file or class, or the class is not a detector.
    MissingExtraError
        If it needs packages that are not installed.
    PluginError
        If the plugin cannot be imported, or two packages claim the name.
    """
    prefix, colon, name = target.partition(":")
    if not colon:
        loaded = load_entry("detectors", target)
    elif is_registered(target):
        loaded = _load_member(prefix, name)
    else:
        return load_reference(target)
    return _detector(target, loaded)


def load_reference(target: str) -> type[Detector]:
    """Return the class that ``package.module:Class`` or ``path/file.py:Class`` names; errors as for `load_detector`.

    It does not look at what is registered, which would take many times as long as an import.
    """
    return _detector(target, _load_reference(target))


def _detector(target: str, loaded: object) -> type[Detector]:
    if not _keeps_contract(loaded, "detectors"):
        raise UsageError(f"{target!r} is not a detector: expected a subclass of tsadbench.Detector, found {loaded!r}")
    return cast("type[Detector]", loaded)


def load_library(name: str) -> DetectorLibrary:
    """Return the detector library that is registered under this name; errors as for `load_detector`."""
    loaded = load_entry("families", name)
    if not _keeps_contract(loaded, "families"):
        raise PluginError(f"family {name!r}: expected a DetectorLibrary (tsadbench.base), found {loaded!r}")
    return cast("DetectorLibrary", loaded)


def load_protocol(name: str) -> type[Protocol]:
    """Return the protocol class of this name; errors as for `load_detector`."""
    loaded = load_entry("protocols", name)
    if not _keeps_contract(loaded, "protocols"):
        raise PluginError(f"protocol {name!r}: expected a subclass of tsadbench.Protocol, found {loaded!r}")
    return cast("type[Protocol]", loaded)


def load_entry(kind: Kind, name: str) -> object:
    """Return what one entry point refers to; errors as for `load_detector`."""
    points = [point for point in _points(kind) if point.name == name]
    if not points:
        names = tuple({entry.name for entry in entries(kind)})
        if not names:
            raise PluginError(f"no {kind} are registered: install tsadbench first (pip install -e .)")
        raise UsageError(f"there is no {_SINGULAR[kind]} {name!r}{nearest(name, names)}")
    if len(points) > 1:
        packages = " and ".join(sorted(map(_package, points)))
        raise PluginError(f"{_SINGULAR[kind]} {name!r} is registered by {packages}: uninstall one of them")
    return _guarded(points[0].load, f"{_SINGULAR[kind]} {name!r} ({points[0].value})")


def registered_name(cls: type) -> str:
    """Return the name under which a detector class, or its library, is registered, else ``package.module:Class``."""
    reference = f"{cls.__module__}:{cls.__qualname__}"
    for point in _points("detectors"):
        if point.value == reference:
            return point.name
    for point in _points("families"):
        members = load_library(point.name).members() if point.module == cls.__module__ else ()
        if any(member.name == cls.__qualname__ for member in members):
            return f"{point.name}:{cls.__qualname__}"
    return reference


def singular(kind: Kind) -> str:
    """Return what messages call one of a kind."""
    return _SINGULAR[kind]


def _points(kind: Kind) -> Sequence[EntryPoint]:
    points = tuple(entry_points(group=f"tsadbench.{kind}"))
    return (*points, *entry_points(group=_FLOORS)) if kind == "detectors" else points


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "?"


def _keeps_contract(loaded: object, kind: Kind) -> bool:
    """Whether what a plugin registered is what its kind asks for."""
    from tsadbench import base  # late: `tsadbench list` reads metadata alone, and the contracts import scikit-learn

    if kind == "families":
        return isinstance(loaded, base.DetectorLibrary)
    return isinstance(loaded, type) and issubclass(loaded, base.Detector if kind == "detectors" else base.Protocol)


def _load_member(library_name: str, name: str) -> object:
    library = load_library(library_name)
    members = {member.name: member for member in library.members()}
    if name not in members:
        raise UsageError(f"family {library_name!r} has no detector {name!r}{nearest(name, members)}")
    if members[name].refusal:
        raise UsageError(f"{library_name}:{name} cannot be run: {members[name].refusal}")
    return _guarded(lambda: library.load(name), f"detector '{library_name}:{name}'")


def _load_reference(target: str) -> object:
    module_name, _, qualified_name = target.rpartition(":")

    def load() -> ModuleType:
        return _import_file(Path(module_name)) if module_name.endswith(".py") else importlib.import_module(module_name)

    module = _guarded(load, f"detector {target!r}")
    loaded: object = module
    for part in qualified_name.split("."):
        loaded = getattr(loaded, part, None)
    if loaded is None:
        classes = tuple(name for name, value in vars(module).items() if isinstance(value, type))
        raise UsageError(f"{module_name} has no class {qualified_name!r}{nearest(qualified_name, classes)}")
    return loaded


def _import_file(path: Path) -> ModuleType:
    """Import a file as a module of its own; the same file gives the same module."""
    path = path.resolve()
    if not path.is_file():
        raise UsageError(f"there is no file {path}; expected path/to/file.py:Class")
    name = f"_tsadbench_file_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    # Write no compiled copy beside the user's file: a full disk would truncate it, and every later run would read it.
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.dont_write_bytecode = before
    return module


def _guarded(load: Callable[[], _Loaded], what: str) -> _Loaded:
    try:
        return load()
    except TsadbenchError:
        raise
    except (Exception, SystemExit) as error:  # a plugin may raise anything while it is imported
        raise PluginError(f"{what} cannot be loaded: {type(error).__name__}: {error}") from error
