"""Makes another Python fit for the inside of a box: lends it modules, and stands in for scikit-learn's base classes."""

from __future__ import annotations

import datetime
import importlib
import inspect
import json
import platform
import sys
import typing
from collections.abc import Iterator, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import distributions, packages_distributions
from importlib.util import find_spec, spec_from_file_location
from types import ModuleType

from tsadbench.sandbox.walls import libraries_of
from tsadbench.utils.linux.namespaces import keepers_or_reason
from tsadbench.utils.threads import loaded_blas

# What the core derives from, or compares with, of scikit-learn.
_STOOD_IN = {
    "sklearn": (),
    "sklearn.base": ("BaseEstimator",),
    "sklearn.ensemble": ("IsolationForest",),
    "sklearn.tree": ("BaseDecisionTree",),
}
# What imports them.
_OF_CORE = ("tsadbench.base", "tsadbench.base.serialization.parts")


class LentModules(MetaPathFinder):
    """Finds, after everything that the interpreter itself has, modules of the Python that runs tsadbench.

    Parameters
    ----------
    places
        By top-level name: a package's folder, or a file.
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self.places = dict(places)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the interface of finders
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Return where a lent module is."""
        place = self.places.get(fullname)
        if place is None:
            return None
        if place.endswith(".py"):
            return spec_from_file_location(fullname, place)
        return spec_from_file_location(fullname, f"{place}/__init__.py", submodule_search_locations=[place])


_lent = LentModules({})


def lend(places: Mapping[str, str]) -> None:
    """Make more modules importable that the interpreter lacks."""
    _lent.places.update(places)


def begin(places: Mapping[str, str], order: Sequence[str]) -> None:
    """Do what the outside orders: ``describe``, ``serve`` as the server that boxes are forked from, or be a ``box``.

    Parameters
    ----------
    places
        The modules that are lent, as for `LentModules`.
    order
        Its name, then its arguments.
    """
    lend(places)
    sys.meta_path.append(_lent)
    if sys.version_info < (3, 11):  # noqa: UP036 - it may be older than the one that runs tsadbench
        # Names that the core imports: the first for annotations alone.
        vars(typing)["Self"] = importlib.import_module("typing_extensions").Self
        vars(datetime)["UTC"] = datetime.timezone.utc  # noqa: UP017 - see above
    kind, *arguments = order
    if kind == "describe":
        json.dump(described(), sys.stdout)
        return
    fd = int(arguments[0])
    if kind == "serve":
        # Before numpy and all else is loaded.
        keepers = keepers_or_reason(wanted=arguments[1] == "sealed")
        _import_core()
        importlib.import_module("tsadbench.sandbox.server").main(fd, keepers)
    else:
        _import_core()
        closing = importlib.import_module("tsadbench.sandbox.closing")
        box = closing.opened_box(arguments[1], "only Linux can seal a process", fd)
        importlib.import_module("tsadbench.sandbox.child").main(fd, box)


def described() -> dict[str, object]:
    """Return what `environment.Environment` holds, as JSON; its own path is not known here."""
    told: dict[str, object] = {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "prefix": sys.prefix,
        "search_path": [entry for entry in dict.fromkeys(sys.path) if entry],
        "libraries": libraries_of(tuple(sys.path)),
        "distributions": {str(one.metadata["Name"]): one.version for one in distributions() if one.metadata["Name"]},
        "packages": {name: sorted(set(found)) for name, found in packages_distributions().items()},
        "blas": [],
        "fault": "",
    }
    try:
        importlib.import_module("numpy")
        told["blas"] = loaded_blas()
    except Exception as error:  # a broken installation may raise anything
        told["fault"] = f"{type(error).__name__}: {error}"
    return told


def _import_core() -> None:
    """Import the core's classes; if scikit-learn is not there, beside stand-ins for its own, which are gone afterwards.

    A library that asks whether scikit-learn is installed must get a true answer.
    """
    made = {} if find_spec("sklearn") is not None else dict(_stand_ins())
    sys.modules.update(made)
    try:
        for module in _OF_CORE:
            importlib.import_module(module)
    finally:
        for name in made:
            del sys.modules[name]


def _stand_ins() -> Iterator[tuple[str, ModuleType]]:
    for name, classes in _STOOD_IN.items():
        module = ModuleType(name)
        module.__path__ = []
        for each in classes:
            setattr(module, each, BaseEstimator if each == "BaseEstimator" else type(each, (), {"__module__": name}))
        yield name, module


class BaseEstimator:
    """What detectors use of scikit-learn's class of this name: parameters, which are the constructor's."""

    # The fingerprint of a detector's code leaves scikit-learn's classes out: the same code has one fingerprint.
    __module__ = "sklearn.base"

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """Return the names of the constructor's parameters, sorted."""
        if cls.__init__ is object.__init__:
            return []
        own = list(inspect.signature(cls.__init__).parameters.values())[1:]
        return sorted(one.name for one in own if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL))

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """Return the parameters by name; ``deep`` adds those of nested estimators, as ``name__parameter``."""
        found: dict[str, object] = {}
        for name in self._get_param_names():
            value = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                found |= {f"{name}__{key}": inner for key, inner in value.get_params().items()}
            found[name] = value
        return found

    def set_params(self, **params: object) -> BaseEstimator:
        """Set parameters by name; a ValueError if there is none of a name."""
        known = self._get_param_names()
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"Invalid parameter {name!r} for estimator {self}. Valid parameters are: {known!r}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._get_param_names())
        return f"{type(self).__name__}({values})"
