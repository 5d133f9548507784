"""A fitted detector as the parts of a model file, and a model file: an uncompressed zip archive with one checksum."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

from tsadbench.base.detector import Detector
from tsadbench.base.serialization.codec import Encoded, decode, encode
from tsadbench.errors import MissingExtraError, ModelFileError, UsageError
from tsadbench.utils.extras import extra

MAGIC = b"PK\x03\x04"
_DIGEST_BYTES = 64
_TREE, _ARRAYS, _ESTIMATORS = "learned.json", "arrays.safetensors", "estimators/"


def to_parts(detector: Detector, *, estimators: bool = True) -> dict[str, bytes]:
    """Return a fitted detector's parameters and learned state as parts, by name; parameters and errors as `encode`."""
    content = {"parameters": detector.get_params(deep=False), "learned": detector.learned()}
    encoded = encode(content, type(detector), estimators=estimators)
    return {
        _TREE: (json.dumps(encoded.tree, allow_nan=False) + "\n").encode(),
        _ARRAYS: _safetensors().save(encoded.arrays),
        **{f"{_ESTIMATORS}{path}.skops": data for path, data in encoded.estimators.items()},
    }


def from_parts(cls: type[Detector], parts: Mapping[str, bytes], changes: Mapping[str, object]) -> Detector:
    """Restore a fitted detector; ``changes`` replace parameters, for instance the device.

    Raises
    ------
    ModelFileError
        If the parts are not those of a fitted detector of this class.
    UsageError
        If a parameter is out of range.
    MissingExtraError
        If safetensors or skops is not installed.
    """
    safetensors = _safetensors()
    try:
        estimators = {
            name.removeprefix(_ESTIMATORS).removesuffix(".skops"): data
            for name, data in parts.items()
            if name.startswith(_ESTIMATORS)
        }
        content = decode(Encoded(json.loads(parts[_TREE]), safetensors.load(parts[_ARRAYS]), estimators), cls)
        learned = content["learned"]
        detector = cls(**content["parameters"] | dict(changes))
        detector.check(learned["sensors_"], elsewhere=True)
        try:
            detector.check(learned["sensors_"])
        except UsageError as error:
            raise UsageError(f"{error} with --device") from error
        return detector.restore(learned)
    except (ModelFileError, UsageError, MissingExtraError):
        raise
    except Exception as error:  # of safetensors, skops, dataclasses and detectors
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise ModelFileError(f"it holds no fitted {cls.__name__} ({reason})") from error


def require_packages() -> None:
    """Raise a MissingExtraError now if a model could not be written after its fit."""
    _safetensors()


def pack(parts: Mapping[str, bytes]) -> bytes:
    """Return the content of one file with these parts; equal parts give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content)
        archive.comment = bytes(_DIGEST_BYTES)
    before = buffer.getvalue()[:-_DIGEST_BYTES]
    return before + hashlib.sha256(before).hexdigest().encode()


def unpack(content: bytes) -> dict[str, bytes]:
    """Return the parts of a file's content; a ModelFileError if it is another kind of file, truncated, or changed."""
    if not content.startswith(MAGIC):
        raise ModelFileError("it is no model: expected a file that tsadbench fit has written")
    if hashlib.sha256(content[:-_DIGEST_BYTES]).hexdigest().encode() != content[-_DIGEST_BYTES:]:
        raise ModelFileError("its checksum differs: it was cut off or changed; copy it again from where it was fitted")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(member.file_size for member in archive.infolist()) > len(content):
                raise ValueError("they hold more than the file")
            return {name: archive.read(name) for name in archive.namelist()}
    except Exception as error:  # zipfile and the libraries that it calls have many
        raise ModelFileError(f"it is no model: its parts cannot be read ({error})") from error


def _safetensors() -> Any:
    with extra("a model file", "models"):
        import safetensors.numpy
    return safetensors.numpy
