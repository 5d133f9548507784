"""Describes detectors: facts about a class, and about a detector with certain parameters.

A detector's code runs in a box that holds neither data nor labels. There it can tamper with the function that
describes it, so the answer is JSON that is validated here; an invalid answer is an error of that detector.
Descriptions are kept on disk until one of the detector's files changes.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import os
import platform
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar, get_args

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from tsadbench import errors
from tsadbench._version import __version__
from tsadbench.base.detector import Traits
from tsadbench.base.prior import Prior
from tsadbench.base.search_space import Space
from tsadbench.errors import PluginError, TsadbenchError
from tsadbench.registry import Source, locate
from tsadbench.sandbox.box import Box
from tsadbench.sandbox.construction import Construction
from tsadbench.sandbox.limits import BoxFailure, Limits
from tsadbench.sandbox.server import default_server
from tsadbench.utils.distributions import find_package
from tsadbench.utils.files import cache_folder, write_file
from tsadbench.utils.parameters import JsonValue, Parameter, as_json, changed_texts, parameters_of, parse_value
from tsadbench.utils.source_digest import Sources, source_of
from tsadbench.utils.text import one_line, printable, printable_values, without_folders

_Answer = TypeVar("_Answer")

UNKNOWN_SOURCE = (
    "the source of its class is not known (python -, exec, or it uses functions or values of the notebook or script), "
    "so its trials run again in every run; put the class into a file"
)
# Seconds for an import: a longer one hangs, or is not worth waiting for.
_SECONDS = 60.0
_MEMORY_MIB = 16 * 1024.0
_MOST_KEPT = 2000
# What a question may raise on purpose. Anything else is the plugin's fault.
_REFUSALS: dict[str, type[TsadbenchError]] = {
    name: item for name, item in vars(errors).items() if isinstance(item, type) and issubclass(item, TsadbenchError)
}


@dataclass(frozen=True, slots=True)
class DescribedParameter:
    """A constructor parameter: its default as JSON, and what its text names (a plain value, a prior or a path)."""

    name: str
    meaning: str
    default: JsonValue
    names: Literal["value", "prior", "path"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A detector's class and, if a construction was described, the detector with these parameters.

    Without a construction, ``declared`` are the class's own traits, ``changed`` and ``values`` are empty.
    """

    class_name: str
    doc: str
    parameters: tuple[DescribedParameter, ...]
    traits: Traits  # the class's own
    offers_contributions: bool
    offers_held_out_loss: bool
    offers_sensor_graph: bool
    sources: Sources
    libraries: tuple[str, ...]  # distributions that the class declares, because its files do not import them
    note: str  # the class's remark, and another if its source is unknown
    floor_variants: tuple[dict[str, str], ...]  # parameters as texts, for each variant that runs add
    search_space: dict[str, Space]
    changed: dict[str, str]  # the arguments that differ from their defaults, as texts; no seed
    values: dict[str, JsonValue]  # of all parameters but the seed
    declared: Traits  # with these parameters

    @property
    def defaults(self) -> dict[str, JsonValue]:
        """The defaults of the parameters, by name."""
        return {parameter.name: parameter.default for parameter in self.parameters}


def describe(
    detector: str | Source | Construction,
    *,
    sensors: Sequence[str] | None = None,
    prior: Prior | None = None,
    elsewhere: bool = False,
) -> Description:
    """Describe a detector's class and, for a construction, the detector with its parameters.

    Without ``sensors``, parameters are not checked against the data's sensors and this machine. The ``prior`` is used
    if the detector needs one and was given none; ``elsewhere`` is as for `Detector.check`. Raises a UsageError if there
    is no such detector or parameter, or a value is wrong or does not fit; MissingExtraError or PluginError if it cannot
    be loaded or constructed.
    """
    what = locate(detector) if isinstance(detector, str) else detector
    source = what.source if isinstance(what, Construction) else what
    asked = what, None if sensors is None else tuple(sensors), prior, elsewhere
    if source.imported:
        return described(*asked)
    # Descriptions with a GPU are not cached, because the machine's GPUs may change.
    file = None if isinstance(what, Construction) and what.device != "cpu" else _file(source, asked)
    found = _remembered(file)
    if found is None:
        default_server().preload(_imports(source))
        found = ask(what, described, Description, *asked)
        _remember(found, file)
    default_server().preload(found.sources.imports)
    return found


def with_files_read(construction: Construction) -> Construction:
    """Load the priors that a construction's texts name, since a box cannot read files; errors as for `parse_value`."""
    parameters = describe(construction.source).parameters
    texts, priors = dict(construction.texts), dict[str, object]()
    for name in [one.name for one in parameters if one.names == "prior" and one.name in texts]:
        value = parse_value(name, Prior | None, texts.pop(name), construction.source.target)
        priors[name] = replace(value, origin=without_folders(value.origin)) if isinstance(value, Prior) else value
    return replace(construction, texts=texts, arguments={**priors, **construction.arguments})


_scope = threading.local()  # boxes of `asking`: one per owner of code, so that no owner changes another's answers


@contextlib.contextmanager
def asking() -> Iterator[dict[object, Box]]:
    """Keep boxes until the end of the block, so that each owner's code is imported once."""
    if hasattr(_scope, "boxes"):
        yield _scope.boxes
        return
    boxes: dict[object, Box] = {}
    _scope.boxes = boxes
    try:
        yield boxes
    finally:
        del _scope.boxes
        for box in boxes.values():
            box.close()


def ask(
    what: Source | Construction,
    question: Callable[..., object],
    returns: type[_Answer],
    *arguments: object,
    seconds: float = _SECONDS,
) -> _Answer:
    """Call a function of tsadbench in a box, together with the code of a detector or a library.

    Arguments are pickled; the answer crosses as JSON, read as ``returns``. A construction that requests a GPU gets
    one. A TsadbenchError of the function is raised here. Raises a PluginError if the function fails otherwise, ends or
    blocks its process, or returns an answer of another type.
    """
    construction = what if isinstance(what, Construction) else Construction(what)
    source = construction.source
    with asking() as boxes:
        who = source.owner, tuple(name.partition(".")[0] for name in source.modules), construction.device != "cpu"
        if who not in boxes:
            boxes[who] = Box(construction, construct=False)
        try:
            answered = boxes[who].answer(question, arguments, Limits(seconds, _MEMORY_MIB))
        except BoxFailure as failure:
            boxes.pop(who).close()
            reason = f"it gave no answer within {seconds:g} s" if failure.status == "timeout" else failure.reason
            raise PluginError(f"{source.target} cannot be used: {one_line(reason)}") from failure
        if answered.refused is not None:
            refusal = _REFUSALS.get(answered.refused, PluginError)
            if issubclass(refusal, PluginError):
                boxes.pop(who).close()  # its process may be half-initialised; do not reuse it
            error: TsadbenchError = refusal.__new__(refusal)
            super(refusal, error).__init__(printable(answered.text, lines=True))  # its own constructor may add text
            raise error
    try:
        clean = json.dumps(printable_values(from_json(answered.answer)))  # its docstrings are printed, for instance
        return TypeAdapter(returns).validate_json(clean, strict=True)
    except ValueError as error:
        raise PluginError(f"{source.target} cannot be used: no valid answer ({one_line(str(error), 200)})") from error


# --- Functions that run in the detector's process


def described(
    what: Source | Construction, sensors: tuple[str, ...] | None, prior: Prior | None, elsewhere: bool
) -> Description:
    """Do the work of `describe`."""
    if isinstance(what, Source):
        return _of_class(what)
    cls = what.source.load()
    values = what.values(cls)
    changed = changed_texts(cls, {name: value for name, value in values.items() if name != "seed"})
    if prior is not None and values.get("prior") is None:
        values = {**values, "prior": prior}
    detector = cls(**values)
    if sensors is not None:
        detector.check(sensors, elsewhere=elsewhere)
    parameters = {one.name: as_json(values.get(one.name, one.default)) for one in parameters_of(cls)}
    parameters.pop("seed", None)
    return replace(_of_class(what.source), changed=changed, values=parameters, declared=detector.declared_traits())


def _of_class(source: Source) -> Description:
    cls = source.load()
    if not isinstance(cls.traits, Traits):
        found = type(cls.traits).__name__
        raise PluginError(f"detector {source.target!r}: expected traits to be a tsadbench.Traits, found {found}")
    sources = source_of(cls)
    return Description(
        class_name=cls.__qualname__,
        doc=inspect.getdoc(cls) or "",
        parameters=tuple(map(_described, parameters_of(cls))),
        traits=cls.traits,
        offers_contributions=cls.offers_contributions(),
        offers_held_out_loss=cls.offers_held_out_loss(),
        offers_sensor_graph=callable(getattr(cls, "sensor_graph", None)),
        sources=sources,
        libraries=cls.libraries,
        note=" ".join(filter(None, [cls.note, "" if sources.known else UNKNOWN_SOURCE])),
        floor_variants=tuple(changed_texts(cls, variant) for variant in cls.floor_variants()),
        search_space=dict(cls.search_space()),
        changed={},
        values={},
        declared=cls.traits,
    )


def _described(one: Parameter) -> DescribedParameter:
    types = {one.annotation, *get_args(one.annotation)}
    names: Literal["value", "prior", "path"] = "prior" if Prior in types else "path" if Path in types else "value"
    return DescribedParameter(one.name, one.meaning, as_json(one.default), names)


def _imports(source: Source) -> list[str]:
    """Return the imports in the text of a class's module, without running it; the server preloads them."""
    top, *inner = source.modules[0].split(".") if source.modules else [""]
    folders = (top and (spec := find_package(top)) and spec.submodule_search_locations) or ()
    files = [Path(folder, *inner).with_suffix(".py") for folder in folders]
    text = source.text or b"".join(file.read_bytes() for file in files if file.is_file())
    return re.findall(r"^ *(?:from|import) +([\w.]+)", text.decode(errors="replace"), re.MULTILINE)


# --- The cache on disk


def _file(source: Source, asked: object) -> Path | None:
    """Return the cache file of an answer; None if the question cannot be written as JSON."""
    package = find_package(source.modules[0].partition(".")[0]) if source.modules else None
    place = package and [package.origin, list(package.submodule_search_locations or ())]
    about = [source, place, asked, __version__, platform.python_version()]
    try:
        digest = hashlib.sha256(to_json(about, bytes_mode="base64", inf_nan_mode="constants")).hexdigest()
    except ValueError:
        return None
    return cache_folder() / "detectors" / f"{digest[:32]}.json"


def _remembered(file: Path | None) -> Description | None:
    """Return a cached description; None if it is damaged or a file that it depends on has changed."""
    with contextlib.suppress(OSError, ValidationError):
        if file is not None:
            states, found = _KEPT.validate_json(file.read_bytes(), strict=True)
            if states and states == _states(states):
                return found
    return None


def _remember(found: Description, file: Path | None) -> None:
    # Without a writable cache or a known source, the next process asks again.
    with contextlib.suppress(OSError, TsadbenchError):
        if file is not None and found.sources.files:
            write_file(file, to_json([_states(found.sources.files), found]))
            for old in sorted(file.parent.iterdir(), key=lambda one: one.stat().st_mtime)[:-_MOST_KEPT]:
                old.unlink(missing_ok=True)


def _states(files: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return the size and modification time of each file."""
    return {file: ((state := os.stat(file)).st_size, state.st_mtime_ns) for file in files}


_KEPT = TypeAdapter(tuple[dict[str, tuple[int, int]], Description])
