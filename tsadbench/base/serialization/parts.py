"""The parts of a model file that hold a fitted detector."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from tsadbench.base.detector import Detector
from tsadbench.base.serialization.bounds import bounded_networks
from tsadbench.base.serialization.codec import Encoded, decode, encode
from tsadbench.errors import ModelFileError, TsadbenchError, UsageError
from tsadbench.utils.extras import extra

_TREE, _ARRAYS, _ESTIMATORS = "learned.json", "arrays.safetensors", "estimators/"


def to_parts(detector: Detector, *, estimators: bool = True) -> dict[str, bytes]:
    """Return a fitted detector's parameters and learned state as parts, by name.

    Parameters
    ----------
    detector
        The detector.
    estimators
        Whether it may hold scikit-learn's estimators, which take long to write.

    Raises
    ------
    ModelFileError
        If it has learned something that a file cannot hold.
    MissingExtraError
        If safetensors or skops is not installed.
    """
    content = {"parameters": detector.get_params(deep=False), "learned": detector.learned()}
    encoded = encode(content, type(detector), estimators=estimators)
    return {
        _TREE: (json.dumps(encoded.tree, allow_nan=False) + "\n").encode(),
        _ARRAYS: _safetensors().save(encoded.arrays),
        **{f"{_ESTIMATORS}{path}.skops": data for path, data in encoded.estimators.items()},
    }


def from_parts(cls: type[Detector], parts: Mapping[str, bytes], changes: Mapping[str, object]) -> Detector:
    """Restore a fitted detector.

    Parameters
    ----------
    cls
        Its class.
    parts
        What `to_parts` returned.
    changes
        Parameters to replace, for instance the device.

    Raises
    ------
    ModelFileError
        If the parts are not those of a fitted detector of this class.
    UsageError
        If a parameter is out of range.
    MissingExtraError
        If safetensors or skops is not installed.
    """
    encoded = _encoded(parts)
    content = decode(encoded, cls)
    try:
        fields = cast("dict[str, Any]", content)
        parameters, learned = dict(fields["parameters"]), dict(fields["learned"])
        _check_names(cls, learned)
        with bounded_networks(encoded.arrays):
            detector = cls(**parameters | dict(changes))
            detector.check(learned["sensors_"], elsewhere=True)
            try:
                detector.check(learned["sensors_"])
            except UsageError as error:
                raise UsageError(f"{error} with --device") from error
            return detector.restore(learned)
    except TsadbenchError:
        raise
    except Exception as error:  # a detector may refuse state that is not its own with any error
        reason = " ".join(str(error).split())[:200]
        raise ModelFileError(f"it holds no fitted {cls.__name__}: {reason}") from error


def require_packages() -> None:
    """Raise a MissingExtraError now if a model could not be written after its fit."""
    _safetensors()


def _encoded(parts: Mapping[str, bytes]) -> Encoded:
    safetensors = _safetensors()
    try:
        tree, arrays = json.loads(parts[_TREE]), safetensors.load(parts[_ARRAYS])
    except Exception as error:  # safetensors has its own error for a file that it cannot read
        raise ModelFileError(f"its parts cannot be read ({error})") from error
    estimators = {
        name.removeprefix(_ESTIMATORS).removesuffix(".skops"): data
        for name, data in parts.items()
        if name.startswith(_ESTIMATORS)
    }
    return Encoded(tree, arrays, estimators)


def _check_names(cls: type[Detector], learned: Mapping[str, object]) -> None:
    """Raise a ValueError if a learned attribute would replace one of the class's methods or properties."""
    for name in learned:
        own = getattr(cls, name, None)
        if not name.isidentifier() or name.startswith("__") or callable(own) or isinstance(own, property):
            raise ValueError(f"{name!r} is no attribute that it learns")


def _safetensors() -> Any:
    with extra("a model file", "models"):
        import safetensors.numpy
    return safetensors.numpy
