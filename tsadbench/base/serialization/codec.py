"""Encodes what a detector has learned as JSON, arrays and scikit-learn estimators. Decoding executes no stored code.

JSON holds None, booleans, integers, finite floats, strings and lists as they are; everything else is an object with one
of the keys in `_Decoder.decode`.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tsadbench.errors import MissingExtraError, ModelFileError
from tsadbench.utils.parameters import JsonValue

_DTYPES = frozenset(
    {"bool", "complex64", "float16", "float32", "float64"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_CORE = "tsadbench"


@dataclass(frozen=True, slots=True)
class Encoded:
    """An encoded value.

    Parameters
    ----------
    tree
        The value as JSON, with names instead of arrays and estimators.
    arrays
        By the value's path, for instance ``standardiser_.mean``.
    estimators
        scikit-learn's estimators as skops writes them, by the value's path.
    """

    tree: JsonValue
    arrays: dict[str, NDArray[np.generic]] = field(default_factory=dict)
    estimators: dict[str, bytes] = field(default_factory=dict)


def encode(value: object, owner: type, *, estimators: bool = True) -> Encoded:
    """Encode a value.

    Parameters
    ----------
    value
        None, booleans, integers, floats, strings, numpy arrays and numbers, scikit-learn estimators; tuples, lists,
        dictionaries and dataclasses of these.
    owner
        The detector's class. Dataclasses must belong to its package or to tsadbench.
    estimators
        Whether scikit-learn's estimators may occur: the library that writes them takes seconds to import.

    Raises
    ------
    ModelFileError
        If the value holds anything else; the message names its path.
    """
    encoder = _Encoder(owner, estimators)
    try:
        tree = encoder.encode(value, "")
    except RecursionError as error:
        raise ModelFileError(f"{owner.__name__}: what it has learned is nested too deeply, or holds itself") from error
    return Encoded(tree, encoder.arrays, encoder.estimators)


def decode(encoded: Encoded, owner: type) -> object:
    """Decode a value.

    Parameters
    ----------
    encoded
        What `encode` returned.
    owner
        The detector's class, imported with everything that its dataclasses need.

    Raises
    ------
    ModelFileError
        If `encode` returns nothing like it for this class.
    """
    try:
        return _Decoder(encoded, owner).decode(encoded.tree)
    except (ModelFileError, MissingExtraError):
        raise
    except Exception as error:  # a dataclass may validate its fields with any error
        raise ModelFileError(f"it holds what no {owner.__name__} has learned ({error})") from error


class _Encoder:
    def __init__(self, owner: type, estimators: bool) -> None:
        self._owner = owner
        self._may_hold_estimators = estimators
        self.arrays: dict[str, NDArray[np.generic]] = {}
        self.estimators: dict[str, bytes] = {}

    def encode(self, value: object, path: str) -> JsonValue:
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return cast("JsonValue", value)
        if kind is float:
            number = cast("float", value)
            return number if math.isfinite(number) else {"float": str(number)}
        if kind is list:
            return self._items(cast("list[object]", value), path)
        if kind is tuple:
            return {"tuple": self._items(list(cast("tuple[object, ...]", value)), path)}
        if kind is dict:
            pairs = cast("dict[object, object]", value).items()
            return {"dict": [[self.encode(key, path), self.encode(item, _below(path, key))] for key, item in pairs]}
        if kind is np.ndarray or isinstance(value, np.generic):
            return self._array(cast("NDArray[np.generic]", value), path)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._dataclass(value, path)
        sklearn = sys.modules.get("sklearn.base")  # without it, there is no estimator
        if sklearn is not None and isinstance(value, sklearn.BaseEstimator) and self._may_hold_estimators:
            from tsadbench.base.serialization.estimators import dump_estimator

            self.estimators[path] = dump_estimator(value, f"{self._owner.__name__}: {path}")
            return {"estimator": path}
        raise self._cannot(path, f"a {kind.__module__}.{kind.__qualname__}")

    def _items(self, values: list[object], path: str) -> list[JsonValue]:
        return [self.encode(value, _below(path, i)) for i, value in enumerate(values)]

    def _array(self, value: NDArray[np.generic], path: str) -> JsonValue:
        if value.dtype.name not in _DTYPES:
            raise self._cannot(path, f"an array of {value.dtype}")
        name = path
        while name in self.arrays:
            name += "'"
        self.arrays[name] = np.ascontiguousarray(value).reshape(value.shape)
        if isinstance(value, np.generic):
            return {"number": name}
        # The memory layout belongs to the value: numpy may sum rows and columns in the order of memory.
        by_column = value.flags.f_contiguous and not value.flags.c_contiguous
        return {"array": name, "order": "F" if by_column else "C"}

    def _dataclass(self, value: object, path: str) -> JsonValue:
        cls = type(value)
        if _find_dataclass(_reference(cls, self._owner), self._owner) is not cls:
            raise self._cannot(path, f"a {cls.__qualname__}, a dataclass of another package or inside a function")
        fields = {
            field_.name: self.encode(getattr(value, field_.name), _below(path, field_.name))
            for field_ in dataclasses.fields(cast("Any", value))
            if field_.init
        }
        return {"dataclass": _reference(cls, self._owner), "fields": fields}

    def _cannot(self, path: str, found: str) -> ModelFileError:
        return ModelFileError(
            f"{self._owner.__name__} cannot be kept in a file: its attribute {path} is {found}; expected arrays, "
            f"numbers, texts, scikit-learn's estimators, and tuples, lists, dictionaries and dataclasses of these; "
            f"write _learned and _restore (docs/using-a-model.md)"
        )


class _Decoder:
    def __init__(self, encoded: Encoded, owner: type) -> None:
        # Each is taken once: a tree that names one again and again would fill the memory with copies.
        self._arrays = dict(encoded.arrays)
        self._estimators = dict(encoded.estimators)
        self._owner = owner

    def decode(self, tree: JsonValue) -> object:
        if isinstance(tree, list):
            return [self.decode(item) for item in tree]
        if not isinstance(tree, dict):
            return tree
        kind = next(iter(tree), "none")
        content: Any = tree[kind]
        if kind == "float":
            return _FLOATS[content]
        if kind == "tuple":
            return tuple(self.decode(item) for item in content)
        if kind == "dict":
            return {self.decode(key): self.decode(value) for key, value in content}
        if kind == "array":
            # A copy: safetensors returns views of the file's bytes, and the last bits of sums depend on alignment.
            return np.array(self._arrays.pop(content), order="F" if tree["order"] == "F" else "C")
        if kind == "number":
            return self._arrays.pop(content)[()]
        if kind == "estimator":
            from tsadbench.base.serialization.estimators import load_estimator

            return load_estimator(self._estimators.pop(content))
        if kind == "dataclass":
            return self._dataclass(content, cast("Mapping[str, JsonValue]", tree["fields"]))
        raise ModelFileError(f"it holds a value of an unknown kind, {kind!r}")

    def _dataclass(self, reference: str, fields: Mapping[str, JsonValue]) -> object:
        cls = _find_dataclass(reference, self._owner)
        if cls is None:
            raise ModelFileError(f"it holds a {reference}, which is no dataclass that {self._owner.__name__} can have")
        return cls(**{name: self.decode(value) for name, value in fields.items()})


def _below(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


def _reference(cls: type, owner: type) -> str:
    """Return ``module:Class``, without the module if it is the detector's own: its name may differ elsewhere."""
    module = "" if cls.__module__ == owner.__module__ else cls.__module__
    return f"{module}:{cls.__qualname__}"


def _find_dataclass(reference: str, owner: type) -> Any:  # the class, whose fields only itself knows
    """Return a loaded dataclass of the detector's package or of tsadbench; nothing is imported."""
    module, _, name = reference.partition(":")
    module = module or owner.__module__
    package = module.partition(".")[0]
    if package not in (owner.__module__.partition(".")[0], _CORE) or module not in sys.modules:
        return None
    cls = getattr(sys.modules[module], name, None)
    return cls if isinstance(cls, type) and dataclasses.is_dataclass(cls) else None
