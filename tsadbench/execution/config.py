"""Configuration files: TOML files that hold the settings of a run, for one data set or many."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from tsadbench.datasets.loading import CARD_ENDING, load_dataset
from tsadbench.datasets.suites import suite_named
from tsadbench.errors import TsadbenchError, UsageError
from tsadbench.execution.request import RunRequest, RunSettings
from tsadbench.registry import floors, load_protocol, locate
from tsadbench.sandbox import Construction, describe
from tsadbench.sandbox.description import with_files_read
from tsadbench.utils.issues import Issue, listed
from tsadbench.utils.parameters import Label, format_value, nearest, parse_arguments, parse_label
from tsadbench.utils.toml import dotted, line_of, read_toml

# Options that change which detectors and protocols run: the file's settings of others are left out then.
_CHOOSING = {"detectors", "protocols", "against", "floors"}


class RunFile(RunSettings):
    """The keys of a configuration file.

    Parameters
    ----------
    settings
        Parameters of detectors and protocols by ``NAME.key``, or by nested tables. The key is written ``set``.
    """

    settings: Annotated[dict[str, Any], Field(alias="set", default_factory=dict)]


def requested(file: Path | None, options: Mapping[str, Any]) -> RunRequest:
    """Return what a configuration file, if any, and the options that override it ask for.

    Paths in the file (cards, Python files, priors, folders) are relative to its folder.

    Parameters
    ----------
    file
        The configuration file.
    options
        Values of `RunRequest`'s settings, which override the file's; ``settings`` are added to the file's, and win. The
        file's settings of detectors and protocols that the options leave out are left out, too.

    Raises
    ------
    UsageError
        If anything is wrong with the file (the message lists all of it, with lines), or an option is out of range.
    """
    return RunRequest(**options) if file is None else _read(file, options)


def _read(path: Path, options: Mapping[str, Any]) -> RunRequest:
    file, text, issues = read_toml(path, RunFile, "the configuration", "docs/configuration.md shows one")
    if file is None:
        raise _faulty(path, issues)
    reader = _Reader(path, text, issues)
    values = {**reader.values(file, options), **options}
    whole = not issues and not options.keys() & _CHOOSING
    settings = reader.settings(file.settings, {**dict(RunSettings()), **values}, whole=whole)
    if issues:
        raise _faulty(path, issues)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return RunRequest(**{**values, "settings": [*settings, *options.get("settings", ())], "config_hash": sha256})


def _faulty(path: Path, issues: list[Issue]) -> UsageError:
    return UsageError(listed(f"configuration {path}", issues))


@dataclass(frozen=True, slots=True)
class _Reader:
    """A file whose keys are of the right types: looks names up, and makes paths relative to the working directory."""

    path: Path
    text: str
    issues: list[Issue]

    def values(self, file: RunFile, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of the file's keys that no option overrides, settings of detectors and protocols aside."""
        readers = {"detectors": self._detector, "datasets": self._dataset, "protocols": self._protocol}
        values: dict[str, Any] = {}
        # Which data sets are run: two keys, and an option overrides both.
        chosen = {"datasets", "suite"} & file.model_fields_set
        overridden = options.keys() | (chosen if options.keys() & {"datasets", "suite"} else set())
        if len(chosen - overridden) > 1:
            self._note(("suite",), "a suite says which data sets are run: expected either suite or datasets")
        # In the order of the fields, so that issues are listed in that order.
        for key in RunSettings.model_fields:
            if key not in file.model_fields_set or key in overridden:
                continue
            value = getattr(file, key)
            if key == "suite":
                with self._noting((key,)):
                    suite_named(value)
            if isinstance(value, Path):
                value = Path(self._from_here(str(value)))
            elif key in readers:
                names: list[str] = []
                for name in value:
                    with self._noting((key,)):
                        names.append(readers[key](name))
                value = names
            values[key] = value
        return values

    def settings(self, tables: Mapping[str, Any], run: Mapping[str, Any], *, whole: bool) -> list[str]:
        """Return the settings of detectors and protocols as ``NAME.key=value``.

        Parameters
        ----------
        tables
            As the file has them.
        run
            The other settings of the run.
        whole
            Whether its detectors and protocols are the file's own: a setting of any other one is a mistake then, and
            is left out otherwise.
        """
        detectors = {parse_label(name).target for name in run["detectors"]}
        detectors |= set(floors() if run["floors"] else ())
        protocols = {run["against"]} if run["against"] else set(run["protocols"])
        texts = []
        for keys, value in _leaves(tables):
            place = ("set", *keys)
            name, dot, key = dotted(keys).rpartition(".")
            target = self._target(name)
            if not dot:
                self._note(place, 'expected NAME.key, as in "t2.smoothing" = 5')
            elif not isinstance(value, bool | int | float | str):
                self._note(place, f"expected a number, a text, true or false, found {value!r}")
            elif target in detectors | protocols:
                with self._noting(place):
                    text = format_value(value)
                    if target in detectors:
                        text = self._arguments(target, {key: text})[key]
                    else:
                        parse_arguments(load_protocol(target), {key: text}, target)
                    texts.append(f"{target}.{key}={text}")
            elif whole:
                self._note(place, f"this run has no {target!r}{nearest(target, tuple(detectors | protocols))}")
        return texts

    def _detector(self, text: str) -> str:
        label = parse_label(text)
        target = self._target(label.target)
        return str(Label(target, self._arguments(target, label.arguments)))

    def _dataset(self, text: str) -> str:
        if not text.endswith(CARD_ENDING):
            load_dataset(text)
            return text
        card = self._from_here(text)
        if not Path(card).is_file():
            raise UsageError(f"there is no card {card}; paths are relative to the configuration's folder")
        return card

    def _protocol(self, text: str) -> str:
        load_protocol(text)
        return text

    def _arguments(self, detector: str, texts: Mapping[str, str]) -> dict[str, str]:
        """Return a detector's checked arguments, with the paths of files as seen from the working directory."""
        own = Construction(locate(detector), texts)
        description = describe(own.source)
        files = {parameter.name for parameter in description.parameters if parameter.names != "value"}
        arguments = {
            key: self._from_here(text) if key in files and text.lower() != "none" else text
            for key, text in own.texts.items()
        }
        describe(with_files_read(replace(own, texts=arguments)))
        return arguments

    def _target(self, name: str) -> str:
        return self._from_here(name) if ".py:" in name else name

    def _from_here(self, path: str) -> str:
        return str(self.path.parent / Path(path).expanduser())

    @contextmanager
    def _noting(self, keys: tuple[str, ...]) -> Iterator[None]:
        try:
            yield
        except TsadbenchError as error:
            self._note(keys, str(error))

    def _note(self, keys: tuple[str, ...], fault: str) -> None:
        self.issues.append(Issue(self.path.name, f"{dotted(keys)}: {fault}", line_of(self.text, keys)))


def _leaves(table: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """Yield the values of nested tables, each with its keys."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*above, key))
        else:
            yield (*above, key), value
