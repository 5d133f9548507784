"""Makes detectors of the classes of an installed library."""

from __future__ import annotations

import contextlib
import importlib
import io
from collections.abc import Mapping
from dataclasses import dataclass, field

from tsadbench import MissingExtraError, PluginError
from tsadbench.base import DetectorLibrary, LibraryDetector, find_package, seeded
from tsadbench_detectors.adapters.foreign import ForeignDetector, Known, made_of

# Installed by the extra "deep"; any other package that a class needs must be installed by its own name.
_DEEP = frozenset({"torch", "torch_geometric"})


@dataclass(eq=False, kw_only=True)
class InstalledLibrary(DetectorLibrary):
    """The known classes of a library, each turned into a detector on demand.

    Parameters
    ----------
    name
        The library's name, the part before the colon.
    description
        The text of ``tsadbench info``.
    package
        The package that contains its modules.
    adapter
        The base class of the detectors, which become attributes of its module.
    known
        Its classes, by name.
    extra
        The pip extra that installs the library.
    """

    name: str
    description: str
    package: str
    adapter: type[ForeignDetector]
    known: Mapping[str, Known]
    extra: str | None = None
    _made: dict[str, type[ForeignDetector]] = field(default_factory=dict)

    def members(self) -> tuple[LibraryDetector, ...]:  # noqa: D102
        if find_package(self.name) is None:
            raise MissingExtraError(f"the family {self.name!r}", self.extra or self.name)
        names = sorted(self.known, key=str.lower)
        return tuple(LibraryDetector(name, self.known[name].summary, self.known[name].refusal) for name in names)

    def load(self, name: str) -> type[ForeignDetector]:  # noqa: D102
        if name not in self._made:
            known = self.known[name]
            foreign = self._imported(f"{self.package}.{known.module or name.lower()}", name)
            self._made[name] = made_of(foreign, self.adapter, known, self.name, self.extra)
        return self._made[name]

    def attribute(self, name: str) -> type[ForeignDetector]:
        """Return a detector class for the ``__getattr__`` of the adapter's module."""
        if name not in self.known or self.known[name].refusal:
            raise AttributeError(f"module {self.adapter.__module__!r} has no attribute {name!r}")
        return self.load(name)

    def _imported(self, module: str, name: str) -> type:
        """Import the library's class, without its output and its effects on random generators."""
        try:
            with seeded(0), contextlib.redirect_stdout(io.StringIO()):
                foreign: type = getattr(importlib.import_module(module), name)
        except ModuleNotFoundError as error:
            package = (error.name or "?").partition(".")[0]
            if package == self.name or package in _DEEP:
                extra = "deep" if package in _DEEP else self.extra or self.name
                raise MissingExtraError(f"{self.name}:{name}", extra) from error
            raise PluginError(
                f"{self.name}:{name} needs the package {package!r}, which is not installed: run  pip install {package}"
            ) from error
        return foreign
