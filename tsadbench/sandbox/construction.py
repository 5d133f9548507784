"""How a detector is described to the process that constructs it."""

from __future__ import annotations

import contextlib
import inspect
import pickle
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast, get_type_hints

import cloudpickle

from tsadbench.base.detector import Detector
from tsadbench.errors import UsageError
from tsadbench.registry import Source, registered_name, remember_pickled
from tsadbench.utils.distributions import find_package
from tsadbench.utils.import_text import imported_texts
from tsadbench.utils.parameters import parse_arguments


@dataclass(frozen=True, slots=True)
class Construction:
    """A detector as the user requested it. Creating this description runs none of the detector's code.

    Parameters are ``texts`` from the command line, or ``arguments`` from Python, which take precedence; ``cheap`` uses
    the class's `test_params` as defaults.
    """

    source: Source
    texts: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, object] = field(default_factory=dict)
    cheap: bool = False

    @classmethod
    def of(cls, detector: type[Detector], arguments: Mapping[str, object] | None = None) -> Construction:
        """Describe a class that this process has imported or made (`source_of`)."""
        return cls(source_of(detector), arguments=arguments or {})

    @property
    def given(self) -> dict[str, object]:
        """The arguments, some as texts."""
        return {**self.texts, **self.arguments}

    @property
    def device(self) -> str:
        """The device that it requests."""
        return str(self.given.get("device", "cpu"))

    def values(self, detector: type[Detector]) -> dict[str, object]:
        """Return the constructor's arguments; errors as for `parse_arguments`."""
        cheap = detector.test_params() if self.cheap else {}
        return {**cheap, **parse_arguments(detector, self.texts, self.source.target), **self.arguments}

    def construct(self) -> Detector:
        """Return the detector, importing its module: for the inside of a box."""
        detector: type[Detector] = self.source.load()
        return detector(**self.values(detector))


def source_of(detector: type[Detector]) -> Source:
    """Describe a class of this process so that another process can import it; a UsageError if that is impossible.

    An importable class crosses by name, one from another file by its text, one from a notebook or script by value.
    """
    name = registered_name(detector)
    reference = f"{detector.__module__}:{detector.__qualname__}"
    owner = detector.__module__.partition(".")[0]
    module = sys.modules.get(detector.__module__)
    lasting = "<locals>" not in detector.__qualname__ and module is not None and detector.__module__ != "__main__"
    file = getattr(module, "__file__", None)
    modules = tuple(dict.fromkeys(base.__module__ for base in detector.__mro__))
    if lasting and find_package(owner) is None and file and file.endswith(".py"):
        try:
            text = imported_texts[file] if file in imported_texts else Path(file).read_bytes()
        except OSError as error:
            raise UsageError(f"{name} cannot be sent to a box: {file} cannot be read ({error.strerror})") from error
        return Source(name, f"{file}:{detector.__qualname__}", file, text=text, modules=modules)
    constructor = inspect.getattr_static(detector, "__init__")
    if isinstance(constructor, types.FunctionType):
        # Annotations may be strings, and a pickle does not contain what these strings name.
        with contextlib.suppress(Exception):
            constructor.__annotations__ = get_type_hints(constructor, include_extras=True)
    by_value = pickled(detector, name)
    remember_pickled(detector, by_value)
    return Source(name, reference, owner, pickled=by_value, modules=modules)


def pickled(value: object, what: str, apart: Callable[[pickle.PickleBuffer], object] | None = None) -> bytes:
    """Pickle a value for a box of this process; a UsageError that begins with ``what`` if that is impossible.

    ``apart`` receives the buffer of each array, so that arrays are not copied.
    """
    try:
        return cast("bytes", cloudpickle.dumps(value, buffer_callback=apart))
    except Exception as error:  # objects may raise anything here
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise UsageError(f"{what} cannot be sent to a box ({reason})") from error
