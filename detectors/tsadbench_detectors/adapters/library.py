"""Makes detectors of the classes of an installed library."""

from __future__ import annotations

import contextlib
import importlib
import io
import types
from collections.abc import Mapping
from functools import cached_property
from typing import cast

from tsadbench import MissingExtraError, PluginError
from tsadbench.base import DetectorLibrary, LibraryDetector, Traits
from tsadbench_detectors.adapters.constructor import constructor, documentation, seed_name
from tsadbench_detectors.adapters.foreign import ForeignDetector
from tsadbench_detectors.adapters.known import UNKNOWN, Known
from tsadbench_detectors.adapters.sources import classes_derived_from
from tsadbench_detectors.adapters.surroundings import contained

# Installed by the extra "deep"; any other package that a class needs must be installed by its own name.
_DEEP = frozenset({"torch", "torch_geometric"})


class InstalledLibrary(DetectorLibrary):
    """The public classes of a library that derive from given bases, each turned into a detector on demand.

    Parameters
    ----------
    name
        The library's name, which stands before the colon.
    description
        The text of ``tsadbench info``.
    package
        The package in which its classes are searched for.
    bases
        Names of the base classes of its detectors; they are not detectors themselves.
    adapter
        The base class of the detectors, which become attributes of its module.
    known
        What is known of its classes, by name.
    extra
        The pip extra that brings the library.
    """

    def __init__(
        self,
        name: str,
        *,
        description: str,
        package: str,
        bases: frozenset[str],
        adapter: type[ForeignDetector],
        known: Mapping[str, Known],
        extra: str | None = None,
    ) -> None:
        self.name = name
        self.description = description
        self.package = package
        self.bases = bases
        self.adapter = adapter
        self.known = known
        self.extra = extra
        self._made: dict[str, type[ForeignDetector]] = {}

    @cached_property
    def modules(self) -> Mapping[str, str]:
        """The library's module of each class, by the class's name, sorted.

        Raises
        ------
        MissingExtraError
            If the library is not installed.
        """
        try:
            modules = classes_derived_from(self.bases, self.package)
        except ModuleNotFoundError as error:
            raise MissingExtraError(f"the family {self.name!r}", self.extra or self.name) from error
        return {name: modules[name] for name in sorted(modules.keys() - self.bases, key=str.lower)}

    def members(self) -> tuple[LibraryDetector, ...]:  # noqa: D102
        classes = {name: self.known.get(name, UNKNOWN) for name in self.modules}
        return tuple(LibraryDetector(name, known.summary, known.refusal) for name, known in classes.items())

    def load(self, name: str) -> type[ForeignDetector]:  # noqa: D102
        if name not in self._made:
            self._made[name] = self._detector_of(self._imported(name), self.known.get(name, UNKNOWN))
        return self._made[name]

    def attribute(self, name: str) -> type[ForeignDetector]:
        """Return a detector class for the ``__getattr__`` of the adapter's module.

        Raises
        ------
        AttributeError
            If there is no such class.
        """
        if name.startswith("_") or name not in self.modules or self.known.get(name, UNKNOWN).refusal:
            raise AttributeError(f"module {self.adapter.__module__!r} has no attribute {name!r}")
        return self.load(name)

    def _imported(self, name: str) -> type:
        """Import the library's class, without its output and its effects on random generators."""
        try:
            with contained(0), contextlib.redirect_stdout(io.StringIO()):
                foreign: type = getattr(importlib.import_module(self.modules[name]), name)
        except ModuleNotFoundError as error:
            package = (error.name or "?").partition(".")[0]
            if package in _DEEP:
                raise MissingExtraError(f"{self.name}:{name}", "deep") from error
            raise PluginError(
                f"{self.name}:{name} needs the package {package!r}, which is not installed: run  pip install {package}"
            ) from error
        return foreign

    def _detector_of(self, foreign: type, known: Known) -> type[ForeignDetector]:
        seeded = known.global_chance or seed_name(foreign) is not None
        attributes = {
            "__module__": self.adapter.__module__,
            "__qualname__": foreign.__name__,
            "__doc__": documentation(foreign, seeded=seeded),
            "__init__": constructor(foreign, seeded=seeded),
            "foreign": foreign,
            "known": known,
            "note": known.summary,
            "traits": Traits(family=self.name, stochastic=seeded and not known.chance_with, extra=self.extra),
        }
        made = types.new_class(foreign.__name__, (self.adapter,), exec_body=lambda body: body.update(attributes))
        return cast("type[ForeignDetector]", made)
