"""Takes a detector's class and arguments to the process that constructs it."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import cloudpickle

from tsadbench.base.detector import Detector
from tsadbench.registry import load_reference
from tsadbench.utils.import_lookup import find_package


@dataclass(frozen=True, slots=True)
class Construction:
    """How to construct a detector: its class and its constructor's arguments."""

    cls: type[Detector]
    arguments: Mapping[str, object]

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules and the file that the class and its bases come from."""
        reference = _reference(self.cls) or ""
        modules = (base.__module__ for base in self.cls.__mro__)
        return tuple(dict.fromkeys((reference.rpartition(":")[0] or self.cls.__module__, *modules)))

    def construct(self) -> Detector:
        """Return the detector."""
        return self.cls(**self.arguments)

    def dumps(self, *, portable: bool = False) -> bytes:
        """Return bytes that another process with the same import path can read.

        A class that such a process can import crosses by name; one from a notebook or a script crosses by value.

        Parameters
        ----------
        portable
            For another machine, which does not have the file: a class from a file crosses by value too.
        """
        reference = _reference(self.cls)
        if portable and reference is not None and reference.partition(":")[0].endswith(".py"):
            module = sys.modules[self.cls.__module__]
            cloudpickle.register_pickle_by_value(module)
            try:
                return cast("bytes", cloudpickle.dumps((self.cls, dict(self.arguments))))
            finally:
                cloudpickle.unregister_pickle_by_value(module)
        named = reference if reference is not None else self.cls
        return cast("bytes", cloudpickle.dumps((named, dict(self.arguments))))

    def __reduce__(self) -> tuple[object, ...]:
        """Be pickled for another machine, as a part of a plan is."""
        return Construction.loads, (self.dumps(portable=True),)

    @classmethod
    def loads(cls, data: bytes) -> Construction:
        """Read what `dumps` wrote; imports the detector's module."""
        # The parent wrote these bytes. The other direction, from the box to the parent, is never unpickled.
        named, arguments = pickle.loads(data)
        return cls(load_reference(named) if isinstance(named, str) else named, arguments)


def _reference(cls: type) -> str | None:
    module = sys.modules.get(cls.__module__)
    if "<locals>" in cls.__qualname__ or module is None or cls.__module__ == "__main__":
        return None
    if find_package(cls.__module__.partition(".")[0]) is not None:
        return f"{cls.__module__}:{cls.__qualname__}"
    file = getattr(module, "__file__", None)
    return f"{file}:{cls.__qualname__}" if file and file.endswith(".py") else None
