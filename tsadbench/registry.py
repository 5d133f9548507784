"""From names to detectors, protocols and data sets, by entry points; nothing is imported before it is used."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from tsadbench.errors import PluginError, TsadbenchError, UsageError
from tsadbench.utils.parameters import nearest

if TYPE_CHECKING:
    from tsadbench.base.dataset import Loader
    from tsadbench.base.detector import Detector
    from tsadbench.base.detector_library import DetectorLibrary
    from tsadbench.base.protocol import Protocol

Kind: TypeAlias = Literal["detectors", "families", "protocols", "datasets"]

# What every table shows beside the detectors, best known one-liners included.
FLOORS = ("all-positive", "random", "max-z", "l2-z", "sensor-range", "nearest-neighbour")

# A data set of this ending is the path of a card.
CARD_ENDING = ".toml"


@dataclass(frozen=True, slots=True)
class Request:
    """A detector as the user names it: ``target[key=value,...]``, values still text."""

    target: str
    arguments: Mapping[str, str]

    def __str__(self) -> str:
        arguments = ",".join(f"{key}={value}" for key, value in self.arguments.items())
        return f"{self.target}[{arguments}]" if arguments else self.target


@dataclass(frozen=True, slots=True)
class Entry:
    """One registered name, from a package's metadata alone."""

    name: str
    reference: str
    package: str
    version: str


def parse_request(text: str) -> Request:
    """Return ``NAME[key=value,...]`` taken apart; a value may hold brackets and commas inside brackets.

    Raises
    ------
    UsageError
        If the brackets or a ``key=value`` are malformed.
    """
    target, bracket, rest = text.partition("[")
    if not target.strip() or (bracket and not rest.endswith("]")):
        raise UsageError(f"expected NAME or NAME[key=value,...], found {text!r}")
    arguments = {}
    for part in _split_at_commas(rest[:-1]) if bracket else ():
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"expected key=value inside the brackets of {text!r}, found {part!r}")
        arguments[key.strip()] = value.strip()
    return Request(target.strip(), arguments)


def entries(kind: Kind) -> tuple[Entry, ...]:
    """Return what is registered, sorted by name, without importing any of it."""
    found = [
        Entry(
            name=point.name,
            reference=point.value,
            package=point.dist.name if point.dist else "?",
            version=point.dist.version if point.dist else "?",
        )
        for point in _points(kind)
    ]
    return tuple(sorted(found, key=lambda entry: (entry.name, entry.package)))


def is_registered(target: str) -> bool:
    """Whether a detector's name, or the family before its colon, is registered; nothing is imported."""
    prefix, colon, _ = target.partition(":")
    return any(point.name == prefix for point in _points("families" if colon else "detectors"))


def load_detector(target: str) -> type[Detector]:
    """Return the class that a name, ``FAMILY:CLASS``, ``package.module:Class`` or ``path/file.py:Class`` names.

    Raises
    ------
    UsageError
        If there is no such name, module, file or class, or the class is not a detector.
    MissingExtraError
        If it needs packages that are not installed.
    PluginError
        If the plugin cannot be imported, or two packages claim the name.
    """
    from tsadbench.base.detector import Detector

    prefix, colon, name = target.partition(":")
    if not colon:
        found = _load_point("detectors", target)
    elif is_registered(target):
        found = _load_member(prefix, name)
    else:
        found = _load_reference(target)
    if not (isinstance(found, type) and issubclass(found, Detector)):
        raise UsageError(f"{target!r} is not a detector: expected a subclass of tsadbench.Detector, found {found!r}")
    return found


def load_family(name: str) -> DetectorLibrary:
    """Return the family of this name; errors as `load_detector`'s."""
    from tsadbench.base.detector_library import DetectorLibrary

    found = _load_point("families", name)
    if not isinstance(found, DetectorLibrary):
        raise PluginError(f"family {name!r}: expected a DetectorLibrary (tsadbench.base), found {found!r}")
    return found


def load_protocol(name: str) -> type[Protocol]:
    """Return the protocol class of this name; errors as `load_detector`'s."""
    from tsadbench.base.protocol import Protocol

    found = _load_point("protocols", name)
    if not (isinstance(found, type) and issubclass(found, Protocol)):
        raise PluginError(f"protocol {name!r}: expected a subclass of tsadbench.Protocol, found {found!r}")
    return found


def load_dataset(name: str) -> Loader:
    """Return the loader of the data set of this name, or of the card at this path; errors as `load_detector`'s."""
    if name.endswith(CARD_ENDING):
        from tsadbench.datasets.cards.reader import card_loader

        return card_loader(Path(name))
    if "/" in name or "\\" in name:
        raise UsageError(
            f"data set {name!r}: expected the name of one, or the path of a card, which ends in {CARD_ENDING}; "
            f"tsadbench data new FOLDER  writes a card for a folder of CSV or Parquet files"
        )
    found = _load_point("datasets", name)
    if not callable(found):
        raise PluginError(f"data set {name!r}: expected a function that loads it, found {found!r}")
    return cast("Loader", found)


def registered_name(cls: type) -> str:
    """Return the name under which a detector class, or its family, is registered, else ``package.module:Class``."""
    reference = f"{cls.__module__}:{cls.__qualname__}"
    own = (point.name for point in _points("detectors") if point.value == reference)
    of_family = (
        f"{point.name}:{cls.__qualname__}"
        for point in _points("families")
        if point.module == cls.__module__ and any(m.name == cls.__qualname__ for m in load_family(point.name).members())
    )
    return next(own, None) or next(of_family, reference)


def _points(kind: Kind) -> Sequence[EntryPoint]:
    return tuple(entry_points(group=f"tsadbench.{kind}"))


def _load_point(kind: Kind, name: str) -> object:
    points = [point for point in _points(kind) if point.name == name]
    if not points:
        known = tuple({entry.name for entry in entries(kind)})
        if not known:
            raise PluginError(f"no {kind} are registered: install tsadbench first (pip install -e .)")
        raise UsageError(f"there is no {singular(kind)} {name!r}{nearest(name, known)}")
    if len(points) > 1:
        packages = " and ".join(sorted(str(point.dist.name if point.dist else "?") for point in points))
        raise PluginError(f"{singular(kind)} {name!r} is registered by {packages}: uninstall one of them")
    return _guarded(points[0].load, f"{singular(kind)} {name!r} ({points[0].value})")


def _load_member(family_name: str, name: str) -> object:
    family = load_family(family_name)
    members = {member.name: member for member in family.members()}
    if name not in members:
        raise UsageError(f"family {family_name!r} has no detector {name!r}{nearest(name, members)}")
    if members[name].refusal:
        raise UsageError(f"{family_name}:{name} cannot be run: {members[name].refusal}")
    return _guarded(lambda: family.load(name), f"detector '{family_name}:{name}'")


def _load_reference(target: str) -> object:
    module_name, _, qualified_name = target.rpartition(":")
    if module_name.endswith(".py"):
        module = _guarded(lambda: _import_file(Path(module_name)), f"detector {target!r}")
    else:
        module = _guarded(lambda: importlib.import_module(module_name), f"detector {target!r}")
    found: object = module
    for part in qualified_name.split("."):
        found = getattr(found, part, None)
    if found is None:
        classes = tuple(name for name, value in vars(module).items() if isinstance(value, type))
        raise UsageError(f"{module_name} has no class {qualified_name!r}{nearest(qualified_name, classes)}")
    return found


def _import_file(path: Path) -> object:
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
    # No compiled copy beside the user's file: on a full disk it would be cut off, and in the way of every later run.
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.dont_write_bytecode = before
    return module


def _guarded(load: Callable[[], object], what: str) -> object:
    try:
        return load()
    except TsadbenchError:
        raise
    except (Exception, SystemExit) as error:  # a plugin may raise anything while it is imported
        raise PluginError(f"{what} cannot be loaded: {type(error).__name__}: {error}") from error


def singular(kind: Kind) -> str:
    """Return what messages call one of a kind."""
    return {"detectors": "detector", "families": "family", "protocols": "protocol", "datasets": "data set"}[kind]


def _split_at_commas(text: str) -> list[str]:
    parts, depth = [""], 0
    for character in text:
        depth += {"[": 1, "]": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part.strip()]
