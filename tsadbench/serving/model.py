"""A model file: a fitted detector with its threshold, its sensors, and the format of files with rows for it."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pandas as pd
from annotated_types import Interval
from pydantic import ConfigDict, TypeAdapter, ValidationError
from threadpoolctl import threadpool_limits

from tsadbench.base.detector import Detector, Traits
from tsadbench.base.file_format import FileFormat
from tsadbench.base.protocol import Threshold
from tsadbench.base.recording import Series, as_recording
from tsadbench.base.serialization import from_parts
from tsadbench.errors import DataError, ModelFileError, UsageError
from tsadbench.execution.identity import library_versions
from tsadbench.registry import Source, is_registered, locate
from tsadbench.sandbox import Box, BoxFailure, Construction, Description, Limits, describe
from tsadbench.sandbox.description import described
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.files import read_bytes
from tsadbench.utils.parameters import JsonValue, parse_label
from tsadbench.utils.toml import fault_text

MAGIC = b"PK\x03\x04\x14" + bytes(7) + b"!\0"  # a zip archive, its first file stored and dated 1980
_CARD = "model.json"
_MOST_BYTES = 2**32


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """The description in a model file."""

    detector: str  # its name or reference for `locate`
    label: str  # the name with the parameters that differ from the defaults
    class_name: str
    code_hash: str  # of the detector's code when it was fitted
    sensors: tuple[str, ...]  # in the order that the detector expects
    threshold: Threshold  # a row is flagged if its score exceeds it
    protocol: str  # chose the training rows and set the threshold
    dataset: str
    n_rows: int  # of the training rows
    layout: FileFormat  # the format of that data set's files
    threads: Annotated[int, Interval(ge=1, le=1024)]  # of the fit
    manifest: Mapping[str, JsonValue]  # seed, versions, hash of the data, time and machine
    schema: Literal[1] = 1

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(allow_inf_nan=False)


_CARDS = TypeAdapter(ModelCard)


@dataclass(frozen=True, slots=True)
class BoxedDetector:
    """A detector restored in a box, with the methods of `Detector`; a BoxFailure if the detector fails."""

    box: Box
    traits: Traits

    def declared_traits(self) -> Traits:
        """Return its traits, which limit how far its scores reach."""
        return self.traits

    def score(self, rows: Series) -> FloatArray:
        """Return scores [n_rows]."""
        with refused("DataError", DataError):
            return self.box.score(as_recording(rows))

    def contributions(self, rows: Series) -> FloatArray:
        """Return each sensor's contribution [n_rows, n_sensors]."""
        with refused("UsageError", UsageError), refused("DataError", DataError):
            return self.box.contributions(as_recording(rows))

    def offers_contributions(self) -> bool:
        """Whether `contributions` is available."""
        return self.box.offers_contributions


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A fitted detector with its threshold."""

    detector: Detector | BoxedDetector
    card: ModelCard  # from its file
    notes: tuple[str, ...] = ()  # differences between this machine and the one that fitted it

    def score(self, rows: Series, *, contributions: bool | None = False) -> pd.DataFrame:
        """Score one series: a recording, a data frame or an array [n_rows, n_sensors].

        Returns
        -------
        pandas.DataFrame
            For each row its ``score`` (NaN if it cannot be scored) and whether it is ``flagged``: the score exceeds the
            threshold. With contributions, a column ``contribution_SENSOR`` for each sensor; with None, only if a row is
            flagged and the detector offers them.
        """
        scores = self.detector.score(rows)
        if contributions is None:
            contributions = bool((scores > self.card.threshold.value).any()) and self.detector.offers_contributions()
        return self.answers(scores, self.detector.contributions(rows) if contributions else None)

    def answers(self, scores: FloatArray, contributions: FloatArray | None) -> pd.DataFrame:
        """Return scores [n_rows], with contributions [n_rows, n_sensors] if there are any, as `score` does."""
        columns: dict[str, object] = {"score": scores, "flagged": scores > self.card.threshold.value}
        if contributions is not None:
            columns |= {f"contribution_{name}": contributions[:, i] for i, name in enumerate(self.card.sensors)}
        return pd.DataFrame(columns)


def model_bytes(card: ModelCard, parts: Mapping[str, bytes]) -> bytes:
    """Return a model file's content."""
    return pack({_CARD: _CARDS.dump_json(card, indent=1), **parts})


def load_model(
    path: Path | str, *, detector: str | None = None, device: str | None = None, allow_changed_code: bool = False
) -> Model:
    """Read a model file that you trust; its detector runs in this process.

    For untrusted files use `tsadbench score`, which restores the detector in a box.

    Parameters
    ----------
    path, device
        The file; another device for a network.
    detector
        Its class, as ``path/file.py:Class``, if it is not registered: a file must not choose what is imported.
    allow_changed_code
        Continue if the detector's code has changed since it was fitted.

    Raises
    ------
    ModelFileError, UsageError, PluginError, MissingExtraError
        If the model is incomplete, or its detector must be named, cannot be imported, or has changed.
    """
    with _named(path):
        card, parts = card_and_parts(read_bytes(Path(path), _MOST_BYTES))
        source = _source(card, detector)
        facts = described(source, None, None, elsewhere=False)
        notes, changes = _checked(card, facts, device, allow_changed_code=allow_changed_code)
        # Some detectors are fitted again: the thread count decides the order of sums; hide their progress reports.
        with threadpool_limits(limits=card.threads), redirect_stderr(io.StringIO()):
            return Model(from_parts(source.load(), parts, changes), card, notes)


@contextmanager
def boxed_model(
    path: Path,
    *,
    detector: str | None = None,
    device: str | None = None,
    allow_changed_code: bool = False,
) -> Iterator[Model]:
    """Provide a model whose detector runs in a box until the block ends; parameters and errors as for `load_model`."""
    with ExitStack() as stack:
        with _named(path):
            card, parts = card_and_parts(read_bytes(Path(path), _MOST_BYTES))
            found = boxed(card, parts, _source(card, detector), device=device, allow_changed_code=allow_changed_code)
            model = stack.enter_context(found)
        yield model


@contextmanager
def boxed(
    card: ModelCard,
    parts: Mapping[str, bytes],
    source: Source,
    *,
    device: str | None = None,
    allow_changed_code: bool = False,
    limits: Limits | None = None,
    forbidden: Sequence[Path] = (),
) -> Iterator[Model]:
    """Provide the model of a file's card and parts, of a class that is known, as `boxed_model` does."""
    with refused("", ModelFileError):
        notes, changed = _checked(card, describe(source), device, allow_changed_code=allow_changed_code)
        # Give the box a GPU if the model uses one.
        kept = {name: text for name, text in parse_label(card.label).arguments.items() if name == "device"}
        box = Box(Construction(source, {**kept, **changed}), limits=limits, forbidden=forbidden)
    with box:
        with refused("", ModelFileError):
            traits = box.restore(parts, tuple(changed), card.threads)
        yield Model(BoxedDetector(box, traits), card, notes)


@contextmanager
def _named(path: Path | str) -> Iterator[None]:
    """Add the file's name to errors in the block."""
    try:
        yield
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (ModelFileError, UsageError) as error:
        error.args = (f"{path}: {error.args[0]}",)
        raise


@contextmanager
def refused(name: str, kind: type[DataError | ModelFileError | UsageError]) -> Iterator[None]:
    """Turn a box's error of this name ("": any name) into an error of this kind; others stay a BoxFailure."""
    try:
        yield
    except BoxFailure as failure:
        found, _, text = failure.reason.partition(": ")
        if failure.status != "error" or name not in ("", found):
            raise
        raise kind(text or found) from failure


def card_and_parts(content: bytes) -> tuple[ModelCard, dict[str, bytes]]:
    """Return the card and the other parts of a file's content; a ModelFileError if it is no model file."""
    parts = unpack(content)
    try:
        return _CARDS.validate_json(parts.pop(_CARD, b"")), parts
    except ValidationError as error:
        fault = error.errors()[0]
        text = " ".join(f"{'.'.join(map(str, fault['loc']))}: {fault_text(fault)}".split())[:200]
        raise ModelFileError(f"not a model, or written by another version of tsadbench: {_CARD}, {text}") from error


def _source(card: ModelCard, reference: str | None) -> Source:
    if reference is None and not is_registered(card.detector):
        why = "a file must not choose what is imported: name it yourself if you trust that code"
        raise UsageError(f"{card.detector}, which fitted it, is not registered here; {why}", field="detector")
    return locate(reference or card.detector)


def _checked(
    card: ModelCard, facts: Description, device: str | None, *, allow_changed_code: bool
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return notes and changed parameters; raise an error if the installed class differs from the fitted one."""
    if facts.class_name != card.class_name:
        raise UsageError(f"it was fitted with a {card.class_name}, found {facts.class_name}")
    if device is not None and "device" not in facts.defaults:
        raise UsageError(f"{card.detector} has no parameter 'device'; leave it out", field="device")
    made: Any = card.manifest.get("versions")
    made = made if isinstance(made, dict) else {}
    other = {
        name: f"{name} {made[name]} (here {found})"
        for name, found in library_versions(facts.sources.packages, facts.libraries).items()
        if made.get(name) is not None and made[name] != found
    }
    own = [other.pop(name) for name in facts.libraries if name in other]  # libraries that the class declares
    notes = [f"fitted with {', '.join(other.values())}: scores may differ in their last digits"] if other else []
    changed = f"{card.detector} was fitted with {', '.join(own)}" if own else ""
    if facts.sources.digest != card.code_hash:
        changed = f"the code of {card.detector} has changed since it was fitted"
    if changed and not allow_changed_code:
        advice = "fit it again, use the former version, or allow changed code"
        raise ModelFileError(f"{changed}: its scores may differ, and the threshold may not fit them; {advice}")
    notes += [f"{changed}: its scores may differ"] if changed else []
    return tuple(notes), {} if device is None else {"device": device}


def pack(parts: Mapping[str, bytes]) -> bytes:
    """Return the content of a file with these parts; equal parts give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def unpack(content: bytes) -> dict[str, bytes]:
    """Return the parts of a file's content; a ModelFileError if it is another kind of file, or a part is damaged."""
    if not content.startswith(MAGIC):
        raise ModelFileError("not a model file; expected the output of `tsadbench fit`")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            if sum(one.file_size for one in members) > len(content):
                raise ValueError("they hold more than the file")
            if not members or any(one.comment or one.extra for one in members):
                raise ValueError("its list of them is damaged")
            return {name: archive.read(name) for name in archive.namelist()}
    except Exception as error:  # zipfile raises many kinds
        raise ModelFileError(f"its parts cannot be read ({error}); copy it again from its source") from error
