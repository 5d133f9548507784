"""Asks boxes for descriptions of detectors, and remembers the answers on disk until one of the files changes."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pooch
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from tsadbench._version import __version__
from tsadbench.base.prior import Prior
from tsadbench.errors import TsadbenchError
from tsadbench.registry import Source, locate
from tsadbench.sandbox.construction import Construction
from tsadbench.sandbox.description import Configured, Description, configured, described, parsed
from tsadbench.sandbox.launch import default_launcher
from tsadbench.sandbox.questions import Interview
from tsadbench.utils.atomic_files import write_file
from tsadbench.utils.import_lookup import find_package
from tsadbench.utils.names import without_folders
from tsadbench.utils.parameters import JsonValue, Parameter, as_json, parse_value

_Answer = TypeVar("_Answer")

_MOST_ANSWERS = 2000


def describe(detector: str | Source, interview: Interview | None = None) -> Description:
    """Return the description of a detector's class.

    Parameters
    ----------
    detector
        Its name or reference, as `locate` takes it, or where it is.
    interview
        Holds the boxes of several questions; None: a box of its own, if one is needed.

    Raises
    ------
    UsageError, MissingExtraError, PluginError
        If there is no such detector, or it cannot be loaded.
    """
    source = locate(detector) if isinstance(detector, str) else detector
    if source.imported:
        return described(source)
    key = _key(source, [])
    found = _remembered(Description, key)
    if found is None:
        with _or_new(interview) as asked:
            found = asked.ask(source, described, Description, source)
        _remember(found, key, found.files)
    default_launcher().preload(found.modules)
    return found


def configure(
    construction: Construction,
    description: Description,
    *,
    prior: Prior | None = None,
    sensors: Sequence[str] | None = None,
    elsewhere: bool = False,
    interview: Interview | None = None,
) -> Configured:
    """Have a detector constructed and checked; return what it is.

    Parameters
    ----------
    construction, description
        How to construct it; the description of its class.
    prior, sensors, elsewhere
        As for `configured`.
    interview
        As for `describe`.

    Raises
    ------
    UsageError
        If a parameter is wrong, or does not fit the sensors or this machine.
    """
    names = None if sensors is None else tuple(sensors)
    return _asked(configured, Configured, construction, (prior, names, elsewhere), description.files, interview)


def parse(
    construction: Construction, description: Description, interview: Interview | None = None
) -> dict[str, JsonValue]:
    """Return a detector's arguments as values that JSON knows.

    Parameters
    ----------
    construction, description, interview
        As for `configure`.

    Raises
    ------
    UsageError
        If there is no such parameter, or a text is not of its type.
    """
    if not construction.texts:
        return {name: as_json(value) for name, value in construction.arguments.items()}
    return _asked(parsed, dict[str, JsonValue], construction, (), description.files, interview)


def _asked(
    question: Callable[..., _Answer],
    returns: type[_Answer],
    construction: Construction,
    asked: tuple[object, ...],
    files: Sequence[str],
    interview: Interview | None,
) -> _Answer:
    source = construction.source
    if source.imported:
        return question(construction, *asked)
    key: Path | None = None
    # What a machine has may change from one hour to the next.
    if not construction.on_gpu:
        with contextlib.suppress(ValueError):  # an argument that JSON does not know
            key = _key(
                source, [question.__name__, construction.texts, construction.arguments, construction.cheap, *asked]
            )
    found = None if key is None else _remembered(returns, key)
    if found is None:
        with _or_new(interview) as interview:
            found = interview.ask(source, question, returns, construction, *asked, gpu=construction.on_gpu)
        if key is not None:
            _remember(found, key, files)
    return found


def with_files_read(construction: Construction, description: Description) -> Construction:
    """Return a construction with the priors that its texts name, which a box cannot read; errors as `parse_value`'s."""
    names = {one.name for one in description.parameters if one.names == "prior"} & construction.texts.keys()
    annotation = Prior | None
    priors: dict[str, object] = {}
    for name in names:
        value = parse_value(Parameter(name, annotation, None, ""), construction.texts[name], construction.source.target)
        priors[name] = replace(value, origin=without_folders(value.origin)) if isinstance(value, Prior) else value
    texts = {name: text for name, text in construction.texts.items() if name not in names}
    return replace(construction, texts=texts, arguments={**priors, **construction.arguments})


def _or_new(interview: Interview | None) -> AbstractContextManager[Interview]:
    return Interview() if interview is None else nullcontext(interview)


def _key(source: Source, asked: Sequence[object]) -> Path:
    """Return the file of an answer; ValueError if JSON does not know what was asked."""
    top = source.modules[0].partition(".")[0] if source.modules else ""
    package = find_package(top) if top else None
    place = package and [package.origin, list(package.submodule_search_locations or ())]
    versions = [__version__, platform.python_version()]
    about = {"source": source, "place": place, "asked": asked, "versions": versions}
    return (
        _folder()
        / f"{hashlib.sha256(to_json(about, bytes_mode='base64', inf_nan_mode='constants')).hexdigest()[:32]}.json"
    )


def _folder() -> Path:
    return Path(pooch.os_cache("tsadbench")) / "detectors"


def _remembered(returns: type[_Answer], file: Path) -> _Answer | None:
    """Return a kept answer if the files that it depends on are what they were; a damaged one is none."""
    try:
        files, answer = TypeAdapter(tuple[dict[str, tuple[int, int]], str]).validate_json(file.read_bytes())
        if files and all(_state(name) == state for name, state in files.items()):
            return TypeAdapter(returns).validate_json(answer, strict=True)
    except (OSError, ValidationError):
        pass
    return None


def _remember(answer: object, file: Path, files: Sequence[str]) -> None:
    # A cache that cannot be written to is none; a source that is not known may be another one next time.
    with contextlib.suppress(OSError, TsadbenchError):
        if files:
            write_file(file, to_json([{name: _state(name) for name in files}, to_json(answer).decode()]))
            kept = sorted(file.parent.iterdir(), key=lambda one: one.stat().st_mtime)
            for old in kept[:-_MOST_ANSWERS]:
                old.unlink(missing_ok=True)


def _state(file: str) -> tuple[int, int]:
    """Return the size of a file and when it was changed."""
    state = os.stat(file)
    return state.st_size, state.st_mtime_ns
