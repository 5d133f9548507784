"""A model file: a fitted detector with its threshold, its sensors, and the format of files with rows for it."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping
from contextlib import redirect_stderr
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from tsadbench.base.detector import Detector
from tsadbench.base.detector_library import AdaptedDetector
from tsadbench.base.file_format import FileFormat
from tsadbench.base.protocol import Threshold
from tsadbench.base.recording import Series
from tsadbench.base.serialization import MAGIC, from_parts, pack, unpack
from tsadbench.errors import ModelFileError, TsadbenchError, UsageError
from tsadbench.execution.identity import library_versions
from tsadbench.registry import is_registered, load_detector
from tsadbench.utils.arrays import BoolArray, FloatArray, IntArray
from tsadbench.utils.files import read_bytes
from tsadbench.utils.parameters import JsonValue, parameters_of
from tsadbench.utils.source_digest import source_of
from tsadbench.utils.threads import limited_threads
from tsadbench.utils.toml import dotted, fault_text

SCHEMA = 1
_CARD = "model.json"
_MOST_BYTES = 2**32
_MOST_THREADS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """What a model file says about itself.

    Parameters
    ----------
    detector, label
        Its name or reference, as `load_detector` takes it; the name with the parameters that differ from the defaults.
    class_name
        Name of its class.
    code_hash
        Of the detector's code when it was fitted.
    sensors
        In the order that the detector expects.
    threshold
        A row is flagged if its score exceeds it.
    protocol
        The protocol whose training rows it was fitted on, and whose rule set the threshold.
    dataset
        Name of the data set that it was fitted on.
    n_rows
        How many rows it was fitted on.
    layout
        How files with rows of that data set are written.
    manifest
        Seed, threads, versions, hash of the data, when and on what machine.
    schema
        Number of the file format.
    """

    detector: str
    label: str
    class_name: str
    code_hash: str
    sensors: tuple[str, ...]
    threshold: Threshold
    protocol: str
    dataset: str
    n_rows: int
    layout: FileFormat
    manifest: Mapping[str, JsonValue]
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True, eq=False)
class ScoredRows:
    """Rows of one recording, scored.

    Parameters
    ----------
    scores
        [n_rows], NaN if a row cannot be scored.
    flagged
        [n_rows], True where the score exceeds the threshold.
    contributions
        [n_rows, n_sensors], of each sensor to the score; None unless asked for.
    first_row
        Number of the first of these rows in its recording, counted from 0.
    time
        [n_rows] seconds since 1970; None if no column holds times.
    notes
        What a user should know of the recording; given once per recording.
    numbers
        [n_rows] their numbers in the input, counted from 0, if rows of it were skipped; None if they are consecutive.
    """

    scores: FloatArray
    flagged: BoolArray
    contributions: FloatArray | None = None
    first_row: int = 0
    time: FloatArray | None = None
    notes: tuple[str, ...] = ()
    numbers: IntArray | None = None

    def __len__(self) -> int:
        return len(self.scores)


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A fitted detector with its threshold.

    Parameters
    ----------
    detector
        The fitted detector.
    card
        What its file says about it.
    notes
        What is different on this machine from where it was fitted.
    """

    detector: Detector
    card: ModelCard
    notes: tuple[str, ...] = ()

    def score(self, rows: Series, *, contributions: bool = False) -> ScoredRows:
        """Return scores and flags of one series.

        Parameters
        ----------
        rows
            A recording, a data frame or an array [n_rows, n_sensors].
        contributions
            Whether to ask for each sensor's contribution as well.

        Raises
        ------
        DataError
            If it does not have the model's sensors.
        UsageError
            If the detector has no contributions.
        ModelFileError
            If the detector fails on them.
        """
        try:
            split = self.detector.contributions(rows) if contributions else None
            return self.flag(self.detector.score(rows), split)
        except TsadbenchError:
            raise
        except Exception as error:  # a forged file may hold anything of the right types
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise ModelFileError(f"{self.card.label} fails on these rows ({reason}); fit it again") from error

    def flag(self, scores: FloatArray, contributions: FloatArray | None) -> ScoredRows:
        """Return scores with their flags; a row without a score is not flagged."""
        return ScoredRows(scores, np.asarray(scores > self.card.threshold.value), contributions)


def model_bytes(card: ModelCard, parts: Mapping[str, bytes]) -> bytes:
    """Return a model file's content."""
    text = json.dumps(_adapter().dump_python(card, mode="json"), indent=1, ensure_ascii=False, allow_nan=False)
    return pack({_CARD: f"{text}\n".encode(), **parts})


def is_model(file: Path) -> bool:
    """Whether a file begins as models do."""
    with file.open("rb") as stream:
        return stream.read(len(MAGIC)) == MAGIC


def load_model(
    path: Path | str, *, detector: str | None = None, device: str | None = None, allow_changed_code: bool = False
) -> Model:
    """Read a model file. Nothing in it is executed.

    Parameters
    ----------
    path
        The file.
    detector
        The detector's class, as ``package.module:Class`` or ``path/file.py:Class``: needed if it is not
        registered under a name, because a file must not choose which code is imported.
    device
        The device for its network; None for the one that it was fitted on.
    allow_changed_code
        Continue if the detector's code has changed since it was fitted.

    Raises
    ------
    ModelFileError
        If it is not a model, was cut off or changed, or if the detector's code has changed.
    UsageError
        If the detector must be named, is a different one, or has no such device.
    PluginError, MissingExtraError
        If the detector cannot be imported.
    """
    if not isinstance(path, str | Path):
        raise UsageError(f"path: expected the path of a model file, found {path!r}")
    try:
        content = read_bytes(Path(path), _MOST_BYTES)
    except FileNotFoundError as error:
        raise ModelFileError(f"{path}: there is no such file; `tsadbench fit` writes one") from error
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read ({error.strerror or error})") from error
    try:
        return from_bytes(content, detector=detector, device=device, allow_changed_code=allow_changed_code)
    except (ModelFileError, UsageError) as error:
        raise type(error)(f"{path}: {error}") from error


def from_bytes(
    content: bytes, *, detector: str | None = None, device: str | None = None, allow_changed_code: bool = False
) -> Model:
    """Read a model file's content; as `load_model`."""
    card, parts = _card_and_parts(unpack(content))
    cls = _detector_class(card, detector)
    notes = list(_other_libraries(card, cls))
    changed = _changed_code(card, cls)
    if changed:
        if not allow_changed_code:
            raise ModelFileError(
                f"{changed}: its scores may differ, and the threshold may not fit them; fit it again, use the "
                f"former version, or continue with --allow-changed-code"
            )
        notes.append(f"{changed}: its scores may differ")
    changes = {} if device is None else {"device": device}
    if device is not None and "device" not in {parameter.name for parameter in parameters_of(cls)}:
        raise UsageError(f"--device {device}: {card.detector} has no parameter 'device'; leave it out")
    threads = card.manifest.get("threads")
    threads = threads if isinstance(threads, int) and 1 <= threads <= _MOST_THREADS else 1
    # Some are fitted again: the thread count decides the order of their sums, and they print their progress again.
    with limited_threads(threads), redirect_stderr(io.StringIO()):
        fitted = from_parts(cls, parts, changes)
    if fitted.sensors_ != card.sensors:
        raise ModelFileError("it is no model: its detector was fitted on other sensors than it says")
    return Model(fitted, card, tuple(notes))


def _card_and_parts(members: Mapping[str, bytes]) -> tuple[ModelCard, dict[str, bytes]]:
    parts = {name: content for name, content in members.items() if name != _CARD}
    try:
        content = json.loads(members[_CARD])
        schema = content["schema"]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"it is no model: its {_CARD} is missing or cannot be read") from error
    if schema != SCHEMA:
        raise ModelFileError(
            f"expected a model of schema {SCHEMA}, found {schema!r}: another version of tsadbench wrote it; use that"
        )
    try:
        card = _adapter().validate_python(content)
    except ValidationError as error:
        raise ModelFileError(f"it is no model: {_CARD} is invalid ({_first_fault(error)})") from error
    require_finite(card.threshold)
    return card, parts


def _detector_class(card: ModelCard, reference: str | None) -> type[Detector]:
    if reference is None and not is_registered(card.detector):
        raise UsageError(
            f"it was fitted with {card.detector}, which is not registered here; a file must not choose what is "
            f"imported: if you trust that code, name it yourself with --detector {card.detector}"
        )
    cls = load_detector(reference or card.detector)
    if cls.__qualname__ != card.class_name:
        raise UsageError(
            f"it was fitted with a {card.class_name}, found {cls.__qualname__} ({reference or card.detector})"
        )
    return cls


def _changed_code(card: ModelCard, cls: type[Detector]) -> str:
    """Return what has changed in the detector's code or in the library that does its work; empty if nothing has."""
    if source_of(cls).digest != card.code_hash:
        return f"the code of {card.detector} has changed since it was fitted"
    other = _other_versions(card, cls, named=True)
    return f"{card.detector} was fitted with {other}" if other else ""


def _other_libraries(card: ModelCard, cls: type[Detector]) -> list[str]:
    other = _other_versions(card, cls, named=False)
    return [f"fitted with {other}: scores may differ in their last digits"] if other else []


def _other_versions(card: ModelCard, cls: type[Detector], *, named: bool) -> str:
    """Return which libraries have other versions than the model's: those that the class names, or all others."""
    made: Any = card.manifest.get("versions")
    made = made if isinstance(made, dict) else {}
    libraries = cls.libraries if issubclass(cls, AdaptedDetector) else ()
    return ", ".join(
        f"{name} {made[name]} (here {found})"
        for name, found in library_versions(source_of(cls).packages, libraries).items()
        if made.get(name) is not None and made[name] != found and (name in libraries) == named
    )


def require_finite(threshold: Threshold) -> None:
    """Raise a ModelFileError if every score, or none, exceeds a threshold."""
    if not math.isfinite(threshold.value):
        raise ModelFileError(f"expected a finite threshold, found {threshold.value}: it tells no rows apart")


def _first_fault(error: ValidationError) -> str:
    fault = error.errors()[0]
    return " ".join(f"{dotted(tuple(map(str, fault['loc'])))}: {fault_text(fault)}".split())[:200]


@cache
def _adapter() -> TypeAdapter[ModelCard]:
    return TypeAdapter(ModelCard)
