"""Find detectors, protocols and data sets by name through entry points; import them on first use."""

from __future__ import annotations

import functools
import importlib
import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar
from weakref import WeakValueDictionary

from tsadbench.errors import PluginError, TsadbenchError, UsageError
from tsadbench.utils.error_place import own_place
from tsadbench.utils.import_text import import_text
from tsadbench.utils.parameters import nearest

if TYPE_CHECKING:
    from tsadbench.base import Detector, DetectorLibrary, Protocol

_Loaded = TypeVar("_Loaded")
Kind: TypeAlias = Literal["detectors", "families", "protocols", "datasets", "commands"]

# The detectors that every run adds; they are detectors like any other.
_FLOORS = "tsadbench.floors"
# Tuples of names: the detectors that a command takes by default.
_DEFAULTS = "tsadbench.defaults"
_OWN_DISTRIBUTION = "tsadbench"
# Pickle -> class of this program: unpickling here would overwrite the methods of the user's class.
_PICKLED_HERE: WeakValueDictionary[bytes, type] = WeakValueDictionary()
# Name in records -> protocol that the user of this program has named by file or module.
_OWN_PROTOCOLS: dict[str, type[Protocol]] = {}


@dataclass(frozen=True, slots=True)
class Source:
    """Describes a plugin so that another process can import it; `locate` makes one without importing anything."""

    target: str  # a name, LIBRARY:CLASS, package.module:Class or file.py:Class, as messages call it
    reference: str  # package.module:Class, or /path/file.py:Class
    owner: str  # a distribution, a library, a package or a file: owners do not trust each other's code
    library: str = ""  # package.module:attribute of the detector library that has the class
    text: bytes | None = field(default=None, repr=False)  # the contents of the file
    pickled: bytes | None = field(default=None, repr=False)  # a class of the calling program
    modules: tuple[str, ...] = ()  # of the class and its bases, where known and not given as text

    @property
    def class_name(self) -> str:
        """The class's name, without the names of enclosing classes."""
        return self.reference.rpartition(":")[2].rpartition(".")[2]

    @property
    def imported(self) -> bool:
        """Whether the calling program defined the class, or imported its file, outside a box."""
        place = self.reference.rpartition(":")[0]
        files = [] if self.text is None else [getattr(one, "__file__", None) for one in tuple(sys.modules.values())]
        return self.pickled is not None or place in files

    @property
    def runs_here(self) -> bool:
        """Whether its owner's code already runs in this process, imported by the calling program or as a protocol."""
        package = self.reference.partition(":")[0].partition(".")[0]
        own = self.owner.partition(",")[0] == _OWN_DISTRIBUTION
        return self.imported or (package in sys.modules and self.text is None and not own)

    def load(self, kind: Kind = "detectors") -> Any:
        """Return the object that the reference names, importing its module: this runs its code in this process.

        Raises a UsageError if there is no such file or class, or it is of another kind; a MissingExtraError or a
        PluginError if its module cannot be imported, or a registered name leads to nothing of this kind.
        """
        what = f"{singular(kind)} {self.target!r}"
        library, colon, name = self.target.partition(":")
        error = UsageError if colon else PluginError
        if (pickled := self.pickled) is not None:  # pickled by this program for its own boxes
            loaded: object = _PICKLED_HERE.get(pickled) or _guarded(lambda: pickle.loads(pickled), what)
        elif self.library:
            family = replace(self, target=library, reference=self.library, library="")
            loaded = _member(family.load("families"), library, name)
        else:
            loaded = _guarded(lambda: self._attribute(error), what)
        return _checked(loaded, kind, what, error)

    def _attribute(self, missing: type[TsadbenchError]) -> object:
        place, _, path = self.reference.rpartition(":")
        module = importlib.import_module(place) if self.text is None else import_text(place, self.text)
        try:
            return functools.reduce(getattr, path.split("."), module)
        except AttributeError:
            own = (one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__)
            raise missing(f"{place} has no class {path!r}{nearest(path, [one.__name__ for one in own])}") from None


def entries(kind: Kind) -> tuple[EntryPoint, ...]:
    """Return the registered entry points, sorted by name, without importing them."""
    return tuple(sorted(_points(kind), key=lambda point: (point.name, package_of(point))))


def package_of(entry: EntryPoint) -> str:
    """Return the name of the distribution that registers an entry point."""
    return entry.dist.name if entry.dist else "?"


def floors() -> tuple[str, ...]:
    """Return the names of the registered floors, sorted, without importing any of them."""
    return tuple(sorted({point.name for point in _group(_FLOORS)}))


def defaults(command: Literal["run", "fit"]) -> tuple[str, ...]:
    """Return the detectors that a command takes by default; a PluginError if no package registers any."""
    names = [name for point in _group(_DEFAULTS) if point.name == command for name in point.load()]
    if not names:
        raise PluginError(f"no package registers default detectors for `tsadbench {command}`: name a detector")
    return tuple(dict.fromkeys(names))


def is_registered(target: str) -> bool:
    """Whether a detector's name, or the library before its colon, is registered. Imports nothing."""
    prefix, colon, _ = target.partition(":")
    return any(point.name == prefix for point in _points("families" if colon else "detectors"))


def locate(target: str) -> Source:
    """Locate a name, ``LIBRARY:CLASS``, ``package.module:Class`` or ``path/file.py:Class`` without importing anything.

    Raises a UsageError if there is no such name or file, a PluginError if two packages claim the name.
    """
    place, colon, path = target.rpartition(":")
    if target.endswith(".py"):
        raise UsageError(f"{target}: expected a file and its class, path/to/file.py:Class")
    if not colon:
        return locate_entry("detectors", target)
    if is_registered(target):
        library = locate_entry("families", place)
        reference = f"{library.reference.partition(':')[0]}:{path}"
        return replace(library, target=target, reference=reference, library=library.reference)
    if not place.endswith(".py"):
        return Source(target, target, place.partition(".")[0], modules=(place,))
    file = Path(place).resolve()
    try:
        return Source(target, f"{file}:{path}", str(file), text=file.read_bytes())
    except OSError as error:
        raise UsageError(f"{file} cannot be read ({error.strerror}); expected path/to/file.py:Class") from None


def locate_entry(kind: Kind, name: str) -> Source:
    """Locate a plugin of any kind by its package's metadata; errors as for `locate`."""
    points = [point for point in _points(kind) if point.name == name]
    if not points:
        names = {entry.name for entry in _points(kind)}
        if not names:
            raise PluginError(f"no {kind} are registered: install tsadbench first (pip install -e .)")
        own = "; name your own by its card, path/card.toml (tsadbench data new FOLDER)" if kind == "datasets" else ""
        raise UsageError(f"there is no {singular(kind)} {name!r}{nearest(name, names)}{own}")
    if len(points) > 1:
        packages = " and ".join(sorted(map(package_of, points)))
        raise PluginError(f"{singular(kind)} {name!r} is registered by {packages}: uninstall one of them")
    point = points[0]
    # A library's code comes from others, so its owner differs from the package's.
    owner = f"{package_of(point)}, {name}" if kind == "families" else package_of(point)
    modules = () if point.module.startswith(".") else (point.module,)  # a relative name cannot be imported
    return Source(name, f"{point.module}:{point.attr}", owner, modules=modules)


def load_protocol(name: str) -> type[Protocol]:
    """Return the protocol class of this name; errors as for `locate` and `Source.load`."""
    own = _OWN_PROTOCOLS.get(name)
    return own or locate_entry("protocols", name).load("protocols")


def know_protocol(target: str) -> str:
    """Register a protocol that the user names by file or module; return its name for `load_protocol`.

    This runs the protocol's code here: pass only what the user typed, never a name from a record.
    """
    if ":" not in target and not target.endswith(".py"):
        return target
    source = locate(target)
    place, _, path = source.reference.rpartition(":")
    name = f"{Path(place).name}:{path}"
    _OWN_PROTOCOLS[name] = source.load("protocols")
    return name


def registered_name(cls: type) -> str:
    """Return the name under which a detector class, or its library, is registered, else ``package.module:Class``."""
    reference = f"{cls.__module__}:{cls.__qualname__}"
    for point in _points("detectors"):
        if point.value == reference:
            return point.name
    for point in _points("families"):
        if point.module == cls.__module__:
            members = locate_entry("families", point.name).load("families").members()
            if any(member.name == cls.__qualname__ for member in members):
                return f"{point.name}:{cls.__qualname__}"
    return reference


def remember_pickled(cls: type, pickled: bytes) -> None:
    """Make `Source.load` return this class, not a copy, for its pickle while this program holds it."""
    _PICKLED_HERE[pickled] = cls


def singular(kind: Kind) -> str:
    """Return the singular of a kind, for messages."""
    return {"families": "family", "datasets": "data set"}.get(kind, kind.removesuffix("s"))


def _points(kind: Kind) -> Sequence[EntryPoint]:
    points = _group(f"tsadbench.{kind}")
    return (*points, *_group(_FLOORS)) if kind == "detectors" else points


@functools.cache
def _group(name: str) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=name))


def _member(library: DetectorLibrary, prefix: str, name: str) -> type[Detector]:
    members = {member.name: member for member in library.members()}
    if name not in members:
        raise UsageError(f"family {prefix!r} has no detector {name!r}{nearest(name, members)}")
    if members[name].refusal:
        raise UsageError(f"{prefix}:{name} cannot be run: {members[name].refusal}")
    return _guarded(lambda: library.load(name), f"detector '{prefix}:{name}'")


def _checked(loaded: object, kind: Kind, what: str, error: type[TsadbenchError]) -> object:
    """Return the object that a plugin registered, after checking its kind."""
    if kind in ("datasets", "commands"):
        return loaded
    from tsadbench import base  # late, because the contracts import numpy, which `tsadbench list` does not need
    from tsadbench.base import wrapping

    contract: type = {"detectors": base.Detector, "protocols": base.Protocol}.get(kind, base.DetectorLibrary)
    wanted = type(loaded) if kind == "families" else loaded  # a family is an instance
    if not (isinstance(wanted, type) and issubclass(wanted, contract)):
        scores = hasattr(wanted, "score_samples") or hasattr(wanted, "decision_function")
        if kind == "detectors" and isinstance(wanted, type) and hasattr(wanted, "fit") and scores:
            return wrapping.wrapped_class(wanted)
        found = getattr(loaded, "__qualname__", repr(loaded))
        how = "; to wrap another class, see docs/wrapping-a-library.md" if kind == "detectors" else ""
        raise error(f"{what}: expected a subclass of {contract.__name__} (tsadbench.base), found {found}{how}")
    if kind == "protocols" and (lacks := [name for name in ("metrics", "summary") if not hasattr(loaded, name)]):
        raise error(f"{what}: it has no {' and no '.join(lacks)} (tsadbench.base.Protocol)")
    return loaded


def _guarded(load: Callable[[], _Loaded], what: str) -> _Loaded:
    try:
        return load()
    except TsadbenchError:
        raise
    except (Exception, SystemExit) as error:  # importing a plugin may raise anything
        place = "" if isinstance(error, SyntaxError) else Path(own_place(error)).name  # the text already has the place
        where = f" ({place})" if place else ""
        where += "; install it, or put its folder on PYTHONPATH" if isinstance(error, ModuleNotFoundError) else ""
        raise PluginError(f"{what} cannot be loaded: {type(error).__name__}: {error}{where}") from error
