"""From names to detectors, protocols and data sets by entry points; nothing is imported before it is used."""

from __future__ import annotations

import ast
import importlib
import os
import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, cast
from weakref import WeakValueDictionary

from tsadbench.errors import PluginError, TsadbenchError, UsageError
from tsadbench.utils.error_place import own_place, short
from tsadbench.utils.import_text import import_text
from tsadbench.utils.parameters import nearest

if TYPE_CHECKING:
    from tsadbench.base import Detector, DetectorLibrary, Protocol

_Loaded = TypeVar("_Loaded")
Kind: TypeAlias = Literal["detectors", "families", "protocols", "datasets", "commands"]

# The group of the detectors that every run adds; they are detectors like any other.
_FLOORS = "tsadbench.floors"
# The group of tuples of names: the detectors that a command takes if none is named.
_DEFAULTS = "tsadbench.defaults"
_OWN_DISTRIBUTION = "tsadbench"
# Classes of this program by their pickles. Reading such a pickle here would put copies of its methods, with copies of
# the globals that they use, into the very class that the user goes on working with.
_PICKLED_HERE: WeakValueDictionary[bytes, type] = WeakValueDictionary()
# Protocols that the user of this program has named by file or module, by their names in records.
_OWN_PROTOCOLS: dict[str, type[Protocol]] = {}
_SINGULAR: dict[Kind, str] = {
    "detectors": "detector", "families": "family", "protocols": "protocol", "datasets": "data set",
    "commands": "command",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """One registered name, from a package's metadata alone."""

    name: str
    reference: str
    package: str
    version: str


@dataclass(frozen=True, slots=True)
class Source:
    """Where another process finds a detector's class; `locate` returns it without importing anything."""

    # What messages call the detector: its name, LIBRARY:CLASS, package.module:Class or file.py:Class.
    target: str
    # package.module:Class, or /path/file.py:Class
    reference: str
    # A distribution, a library, a package or a file: code of one owner is trusted by no other.
    owner: str
    # package.module:attribute of the library that has the class, if one has
    library: str = ""
    # The contents of the file.
    text: bytes | None = field(default=None, repr=False)
    # A class of the calling program, by reference or by value.
    pickled: bytes | None = field(default=None, repr=False)
    # Whether the calling program has imported or made it, outside of any box.
    imported: bool = False
    # Of the class and its bases, as far as they are known and not given as text.
    modules: tuple[str, ...] = ()

    @property
    def class_name(self) -> str:
        """The class's name, without those of classes around it."""
        return self.reference.rpartition(":")[2].rpartition(".")[2]

    @property
    def runs_here(self) -> bool:
        """Whether code of its owner runs in this process: imported by the calling program, or as a protocol is."""
        if self.imported or self.owner.partition(",")[0] == _OWN_DISTRIBUTION:
            return self.imported
        place = self.reference.rpartition(":")[0]
        if self.text is not None:
            return any(getattr(module, "__file__", None) == place for module in tuple(sys.modules.values()))
        return place.partition(".")[0] in sys.modules

    def load(self) -> type[Detector]:
        """Return the class, importing its module; errors as for `load_detector`."""
        return cast("type[Detector]", _kept(self.loaded(), "detectors", self.target, UsageError))

    def _member(self, name: str) -> object:
        library_name = self.target.partition(":")[0]
        library = cast("DetectorLibrary", import_plugin("families", library_name, self.library))
        members = {member.name: member for member in library.members()}
        if name not in members:
            raise UsageError(f"family {library_name!r} has no detector {name!r}{nearest(name, members)}")
        if members[name].refusal:
            raise UsageError(f"{self.target} cannot be run: {members[name].refusal}")
        return _guarded(lambda: library.load(name), f"detector {self.target!r}")

    def loaded(self, kind: Kind = "detectors") -> object:
        """Return what the reference stands for, whatever it is; errors as for `load_detector`."""
        place, _, path = self.reference.rpartition(":")
        what = f"{_SINGULAR[kind]} {self.target!r}"
        if self.pickled is not None:
            pickled = self.pickled  # written by this program for its own boxes
            here = _PICKLED_HERE.get(pickled)
            return _guarded(lambda: pickle.loads(pickled), what) if here is None else here
        if self.library:
            return self._member(path)
        if ":" not in self.target:
            return _imported(self.reference, f"{what} ({self.reference})")
        text = self.text
        module = _guarded(lambda: importlib.import_module(place) if text is None else import_text(place, text), what)
        loaded: object = module
        for part in path.split("."):
            loaded = getattr(loaded, part, None)
        if loaded is None:
            own = [one for one in vars(module).values() if getattr(one, "__module__", "") == module.__name__]
            classes = tuple(one.__name__ for one in own if isinstance(one, type))
            raise UsageError(f"{place} has no class {path!r}{nearest(path, classes)}")
        return loaded


def entries(kind: Kind) -> tuple[Entry, ...]:
    """Return what is registered, sorted by name, without importing any of it."""
    registered = (
        Entry(point.name, point.value, _package(point), point.dist.version if point.dist else "?")
        for point in _points(kind)
    )
    return tuple(sorted(registered, key=lambda entry: (entry.name, entry.package)))


def floors() -> tuple[str, ...]:
    """Return the names of the registered floors, sorted, without importing any of them."""
    return tuple(sorted({point.name for point in _group(_FLOORS)}))


def defaults(command: Literal["run", "fit"]) -> tuple[str, ...]:
    """Return the detectors that a command takes if none is named; a PluginError if no package registers any."""
    names = [name for point in _group(_DEFAULTS) if point.name == command for name in point.load()]
    if not names:
        raise PluginError(f"no package registers default detectors for `tsadbench {command}`: name a detector")
    return tuple(dict.fromkeys(names))


def is_registered(target: str, kind: Kind = "detectors") -> bool:
    """Whether a name, or the library before the colon of a detector's, is registered; nothing is imported."""
    prefix, colon, _ = target.partition(":")
    return any(point.name == prefix for point in _points("families" if colon else kind))


def locate(target: str) -> Source:
    """Return where a name, ``LIBRARY:CLASS``, ``package.module:Class`` or ``path/file.py:Class`` is; imports nothing.

    A UsageError if there is no such name or file, a PluginError if two packages claim the name.
    """
    prefix, colon, name = target.partition(":")
    if not colon and target.endswith(".py"):
        raise UsageError(f"{target}: expected a file and its class, {target}:CLASS; {_classes_in(Path(target))}")
    if not colon:
        return locate_entry("detectors", target)
    if is_registered(target):
        library = locate_entry("families", prefix)
        reference = f"{library.reference.partition(':')[0]}:{name}"
        return replace(library, target=target, reference=reference, library=library.reference)
    place, _, path = target.rpartition(":")
    if not place.endswith(".py"):
        return Source(target, target, place.partition(".")[0], modules=(place,))
    file = Path(place).resolve()
    if not file.is_file():
        raise UsageError(f"there is no file {file}; expected path/to/file.py:Class")
    try:
        return Source(target, f"{file}:{path}", str(file), text=file.read_bytes())
    except OSError as error:
        raise UsageError(f"{file} cannot be read ({error.strerror})") from error


def _classes_in(file: Path) -> str:
    """Return which classes a file defines, in words, without running it."""
    try:
        classes = [one.name for one in ast.parse(file.read_bytes()).body if isinstance(one, ast.ClassDef)]
    except (OSError, SyntaxError, ValueError) as error:
        return f"it cannot be read ({getattr(error, 'strerror', None) or error})"
    return f"its classes: {', '.join(classes) or 'none'}"


def locate_entry(kind: Kind, name: str) -> Source:
    """Return where a plugin of any kind is, from its package's metadata; errors as for `locate`."""
    point = _point(kind, name)
    # A library brings the code of others: it is kept apart from its package's own.
    owner = f"{_package(point)}, {name}" if kind == "families" else _package(point)
    modules = () if point.module.startswith(".") else (point.module,)  # a module that cannot be imported
    return Source(name, f"{point.module}:{point.attr}", owner, modules=modules)


def load_detector(target: str) -> type[Detector]:
    """Return the class that a name, ``LIBRARY:CLASS``, ``package.module:Class`` or ``path/file.py:Class`` names.

    This runs the detector's code in this process: for the inside of a box, and for code that the user trusts. A
    UsageError if there is no such name, module, file or class, or the class is not a detector; a MissingExtraError or
    a PluginError if it cannot be imported.
    """
    return locate(target).load()


def load_library(name: str) -> DetectorLibrary:
    """Return the detector library that is registered under this name; errors as for `load_detector`."""
    return cast("DetectorLibrary", load_entry("families", name))


def load_protocol(name: str) -> type[Protocol]:
    """Return the protocol class of this name; errors as for `load_detector`."""
    own = _OWN_PROTOCOLS.get(name)
    return cast("type[Protocol]", load_entry("protocols", name)) if own is None else own


def know_protocol(target: str) -> str:
    """Return the name under which `load_protocol` then knows a protocol that the user gives by file or module.

    A protocol's code runs here, so this is for what the user has typed, never for a name that a record holds.
    """
    if ":" not in target and not target.endswith(".py"):
        return target
    source = locate(target)
    loaded = _kept(source.loaded("protocols"), "protocols", target, UsageError)
    place, _, path = source.reference.rpartition(":")
    name = f"{Path(place).name}:{path}"
    _OWN_PROTOCOLS[name] = cast("type[Protocol]", loaded)
    return name


def load_entry(kind: Kind, name: str) -> object:
    """Return what one entry point refers to; errors as for `load_detector`."""
    return import_plugin(kind, name, locate_entry(kind, name).reference)


def import_plugin(kind: Kind, name: str, reference: str) -> object:
    """Return what a reference of an entry point stands for; errors as for `load_detector`."""
    loaded = _imported(reference, f"{_SINGULAR[kind]} {name!r} ({reference})")
    return _kept(loaded, kind, name, PluginError) if kind in ("families", "protocols") else loaded


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


def remember_pickled(cls: type, pickled: bytes) -> None:
    """Have `Source.load` return this class, and no copy of it, for its pickle as long as this program holds it."""
    _PICKLED_HERE[pickled] = cls


def singular(kind: Kind) -> str:
    """Return what messages call one of a kind."""
    return _SINGULAR[kind]


def _point(kind: Kind, name: str) -> EntryPoint:
    points = [point for point in _points(kind) if point.name == name]
    if not points:
        names = tuple({entry.name for entry in entries(kind)})
        if not names:
            raise PluginError(f"no {kind} are registered: install tsadbench first (pip install -e .)")
        raise UsageError(f"there is no {_SINGULAR[kind]} {name!r}{nearest(name, names)}")
    if len(points) > 1:
        packages = " and ".join(sorted(map(_package, points)))
        raise PluginError(f"{_SINGULAR[kind]} {name!r} is registered by {packages}: uninstall one of them")
    return points[0]


def _points(kind: Kind) -> Sequence[EntryPoint]:
    points = _group(f"tsadbench.{kind}")
    return (*points, *_group(_FLOORS)) if kind == "detectors" else points


def _group(name: str) -> tuple[EntryPoint, ...]:
    """Return an entry point group; the files of all packages are read again only if one was installed since."""
    folders = [path or "." for path in sys.path]
    return _read_group(name, tuple((path, os.path.exists(path) and os.path.getmtime(path)) for path in folders))


@lru_cache
def _read_group(name: str, _: tuple[tuple[str, float], ...]) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=name))


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "?"


def _kept(loaded: object, kind: Kind, name: str, error: type[TsadbenchError]) -> object:
    """Return what a plugin registered, if it is what its kind asks for."""
    from tsadbench import base  # late: `tsadbench list` reads metadata alone, and the contracts import numpy

    contracts: dict[Kind, type] = {"detectors": base.Detector, "protocols": base.Protocol}
    if kind == "families":
        kept, expected = isinstance(loaded, base.DetectorLibrary), "a DetectorLibrary"
    else:
        contract = contracts[kind]
        kept, expected = isinstance(loaded, type) and issubclass(loaded, contract), f"a subclass of {contract.__name__}"
    if not kept:
        raise error(f"{_SINGULAR[kind]} {name!r}: expected {expected} (tsadbench.base), found {loaded!r}")
    return loaded


def _imported(reference: str, what: str) -> object:
    module, _, path = reference.partition(":")
    return _guarded(lambda: reduce(getattr, path.split("."), cast("object", importlib.import_module(module))), what)


def _guarded(load: Callable[[], _Loaded], what: str) -> _Loaded:
    try:
        return load()
    except TsadbenchError:
        raise
    except (Exception, SystemExit) as error:  # a plugin may raise anything while it is imported
        place = "" if isinstance(error, SyntaxError) else short(own_place(error))  # its text has the place
        where = f" ({place})" if place else ""
        raise PluginError(f"{what} cannot be loaded: {type(error).__name__}: {error}{where}") from error
