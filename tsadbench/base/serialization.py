"""Converts a fitted detector to and from the parts of a model file.

Learned state becomes JSON, arrays and scikit-learn's estimators; decoding executes no stored code. JSON holds None,
booleans, numbers, strings and lists directly; everything else is an object with one of the keys in `_Decoder.decode`.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tsadbench.base.detector import Detector
from tsadbench.errors import MissingExtraError, ModelFileError, UsageError
from tsadbench.utils.extras import extra
from tsadbench.utils.parameters import JsonValue

_TREE, _ARRAYS = "learned.json", "arrays.safetensors"
_DTYPES = frozenset(
    {"bool", "complex64", "float16", "float32", "float64"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
# scikit-learn types that skops does not trust by default.
_TRUSTED = ["sklearn.tree._tree.Tree"]


@dataclass(frozen=True, slots=True)
class _Encoder:
    """Collects arrays and estimators, numbered in order; JSON refers to them by number."""

    owner: type
    may_hold_estimators: bool
    arrays: dict[str, NDArray[np.generic]] = field(default_factory=dict)
    estimators: dict[str, bytes] = field(default_factory=dict)

    def attributes(self, values: Mapping[str, object]) -> JsonValue:
        pairs: list[JsonValue] = []
        for name, value in values.items():
            try:
                pairs.append([name, self.encode(value)])
            except (TypeError, RecursionError) as error:
                found = "nested too deeply, or holds itself" if isinstance(error, RecursionError) else f"found {error}"
                raise ModelFileError(
                    f"{self.owner.__name__} cannot be kept in a file: its attribute {name} is to hold arrays, numbers, "
                    f"texts, scikit-learn's estimators, and tuples, lists, dictionaries and dataclasses of these, "
                    f"{found}; write _learned and _restore (docs/using-a-model.md)"
                ) from error
        return {"dict": pairs}

    def encode(self, value: Any) -> JsonValue:
        kind = type(value)
        if value is None or kind in (bool, int, float, str):
            return value  # type: ignore[no-any-return]
        if kind is list:
            return [self.encode(item) for item in value]
        if kind is tuple:
            return {"tuple": [self.encode(item) for item in value]}
        if kind is dict:
            return {"dict": [[self.encode(key), self.encode(item)] for key, item in value.items()]}
        if isinstance(value, np.ndarray | np.generic) and value.dtype.name in _DTYPES:
            return self._array(value)
        # Omit the detector's own module, whose name may differ elsewhere.
        reference = f"{'' if kind.__module__ == self.owner.__module__ else kind.__module__}:{kind.__qualname__}"
        if _find_dataclass(reference, self.owner) is kind:
            names = [one.name for one in dataclasses.fields(value) if one.init]
            return {"dataclass": reference, "fields": {name: self.encode(getattr(value, name)) for name in names}}
        sklearn = sys.modules.get("sklearn.base")  # if not imported, there are no estimators
        if sklearn is not None and isinstance(value, sklearn.BaseEstimator) and self.may_hold_estimators:
            name = str(len(self.estimators))
            self.estimators[f"estimators/{name}.skops"] = _skops().dumps(value)
            return {"estimator": name}
        raise TypeError(f"a {kind.__module__}.{kind.__qualname__} {getattr(value, 'dtype', '')}".rstrip())

    def _array(self, value: Any) -> JsonValue:
        name = str(len(self.arrays))
        self.arrays[name] = np.ascontiguousarray(value).reshape(value.shape)
        if isinstance(value, np.generic):
            return {"number": name}
        # Keep the memory layout, because numpy may sum in memory order.
        by_column = value.flags.f_contiguous and not value.flags.c_contiguous
        return {"array": name, "order": "F" if by_column else "C"}


@dataclass(frozen=True, slots=True)
class _Decoder:
    owner: type
    arrays: Mapping[str, NDArray[np.generic]]
    parts: Mapping[str, bytes]

    def decode(self, tree: Any) -> Any:
        if isinstance(tree, list):
            return [self.decode(item) for item in tree]
        if not isinstance(tree, dict):
            return tree
        kind, content = next(iter(tree.items()))
        match kind:
            case "tuple":
                return tuple(self.decode(item) for item in content)
            case "dict":
                return {self.decode(key): self.decode(value) for key, value in content}
            case "array":
                # A copy: safetensors returns views of the file's bytes, and the last bits of sums depend on alignment.
                return np.array(self.arrays[content], order="F" if tree["order"] == "F" else "C")
            case "number":
                return self.arrays[content][()]
            case "estimator":
                return _skops().loads(self.parts[f"estimators/{content}.skops"], trusted=_TRUSTED)
            case "dataclass" if cls := _find_dataclass(content, self.owner):
                return cls(**{name: self.decode(value) for name, value in tree["fields"].items()})
        raise ModelFileError(f"it holds a {kind} {content!r:.80}, which no {self.owner.__name__} can have learned")


def _find_dataclass(reference: str, owner: type) -> Any:
    """Return a loaded dataclass of the detector's package or of tsadbench, else None. Imports nothing."""
    module, _, name = reference.partition(":")
    module = module or owner.__module__
    if module.partition(".")[0] not in (owner.__module__.partition(".")[0], "tsadbench"):
        return None
    cls = getattr(sys.modules.get(module), name, None)
    return cls if isinstance(cls, type) and dataclasses.is_dataclass(cls) else None


def _skops() -> Any:
    with extra("keeping scikit-learn's estimators in a file", "models"):
        import skops.io
    return skops.io


def to_parts(detector: Detector, *, estimators: bool = True) -> dict[str, bytes]:
    """Return a fitted detector's parameters and learned state as parts, by name.

    Without ``estimators``, no scikit-learn estimators are allowed, because importing skops takes seconds. A
    ModelFileError names an attribute that cannot be written.
    """
    encoder = _Encoder(type(detector), estimators)
    state = {"parameters": detector.get_params(deep=False), "learned": detector.learned()}
    tree = {"dict": [[name, encoder.attributes(values)] for name, values in state.items()]}
    return {_TREE: json.dumps(tree).encode(), _ARRAYS: safetensors_package().save(encoder.arrays), **encoder.estimators}


def from_parts(cls: type[Detector], parts: Mapping[str, bytes], changes: Mapping[str, object]) -> Detector:
    """Restore a fitted detector; ``changes`` replace parameters, for instance the device.

    Raises a ModelFileError if the parts are not from a fitted detector of this class, a UsageError if a parameter is
    out of range, a MissingExtraError if safetensors or skops is not installed.
    """
    safetensors = safetensors_package()
    try:
        content = _Decoder(cls, safetensors.load(parts[_ARRAYS]), parts).decode(json.loads(parts[_TREE]))
        learned = content["learned"]
        detector = cls(**content["parameters"] | dict(changes))
        detector.check(learned["sensors_"])
        return detector.restore(learned)
    except UsageError as error:  # in a file that tsadbench wrote, only the device can be wrong
        raise UsageError(str(error).removeprefix("device "), field="device") from error
    except (ModelFileError, MissingExtraError):
        raise
    except Exception as error:  # errors of safetensors, skops, dataclasses and detectors
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise ModelFileError(f"it holds no fitted {cls.__name__} ({reason})") from error


def safetensors_package() -> Any:
    """Return the package that every model file needs; a MissingExtraError if it is not installed."""
    with extra("a model file", "models"):
        import safetensors.numpy
    return safetensors.numpy
