"""A run's configuration: a TOML file that holds what ``tsadbench run`` is told, for one data set or many."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_args

from pydantic import BaseModel, Field

from tsadbench.base.prior import Prior
from tsadbench.datasets.loading import CARD_ENDING, load_dataset
from tsadbench.errors import TsadbenchError, UsageError
from tsadbench.registry import floors, load_detector, load_protocol
from tsadbench.utils.issues import Issues, listed
from tsadbench.utils.parameters import Label, format_value, nearest, parameters_of, parse_arguments, parse_label
from tsadbench.utils.toml import TABLE, checked, dotted, line_of, read_toml

_Names: TypeAlias = Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]
_Count: TypeAlias = Annotated[int, Field(ge=1)]
_Limit: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_File: TypeAlias = Annotated[Path, Field(strict=False)]


class RunConfig(BaseModel):
    """What a run is told, each key as the option of ``tsadbench run`` that overrides it; a list where that repeats.

    Parameters
    ----------
    detectors, datasets, protocols
        Every detector runs on every data set under every protocol.
    against
        Protocol whose leaderboard ships with the package; it takes the place of ``protocols``.
    splits
        Splits that tables show; a data set shows those of them that it has. None given: all.
    seeds, threads, jobs
        Seeds 0 to ``seeds - 1``; threads of a trial's libraries; trials at a time.
    cluster
        A Dask cluster in the place of this machine.
    floors, contributions
        Whether the floors take part; whether contributions are kept.
    timeout, memory
        What one trial may use: seconds, MiB.
    data, allow_changed_data
        The folder that holds the data sets' folders; whether to go on where files differ from the published ones.
    out, write
        The run store; the folder for tables.
    settings
        Parameters of detectors and protocols by ``NAME.key``, or by tables in tables. Written ``set``.
    tuned
        How ``tsadbench tune`` came to these settings; records keep it.
    """

    model_config = TABLE

    detectors: _Names = []
    datasets: _Names = ["skab"]
    protocols: _Names = ["strict"]
    against: str | None = None
    splits: list[str] = []
    seeds: _Count = 5
    threads: _Count = 1
    jobs: _Count = 1
    cluster: str | None = None
    floors: bool = True
    contributions: bool = True
    timeout: _Limit | None = None
    memory: _Limit | None = None
    data: _File | None = None
    allow_changed_data: bool = False
    out: _File = Path("runs")
    write: _File | None = None
    settings: Annotated[dict[str, Any], Field(alias="set")] = {}
    tuned: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Configured:
    """What a file, and the command line above it, ask for.

    Parameters
    ----------
    config
        Every key; its paths are as seen from the working directory.
    settings
        Its settings, as ``--set`` takes them.
    sha256
        Of the file; None where there is none.
    """

    config: RunConfig
    settings: tuple[str, ...] = ()
    sha256: str | None = None


def read_config(path: Path, given: Mapping[str, object] | None = None) -> Configured:
    """Read a configuration.

    Paths in it (cards, Python files, priors, folders) are relative to the file's folder.

    Parameters
    ----------
    path
        The file.
    given
        Values of keys that take the place of the file's. Settings of detectors and protocols that are not among them
        are left out then.

    Raises
    ------
    UsageError
        If anything is wrong with the file; the message lists all of it, with lines.
    """
    given = given or {}
    issues = Issues()
    found = read_toml(path, issues, "docs/configuration.md shows one")
    config = None if found is None else checked(RunConfig, *found, path.name, "the configuration", issues)
    if config is None or found is None:
        raise _wrong(path, issues)
    reader = _Reader(path, found[0], issues)
    config = config.model_copy(update={**reader.own(config, given), **given})
    whole = not issues and not given.keys() & {"detectors", "protocols", "against", "floors"}
    settings = reader.settings(config, whole=whole)
    if issues:
        raise _wrong(path, issues)
    return Configured(config, tuple(settings), hashlib.sha256(path.read_bytes()).hexdigest())


def _wrong(path: Path, issues: Issues) -> UsageError:
    return UsageError(listed(f"configuration {path}", issues, len(issues)))


@dataclass(frozen=True, slots=True)
class _Reader:
    """A file whose keys are of the right types: names are looked up, and paths brought to the working directory."""

    path: Path
    text: str
    issues: Issues

    def own(self, config: RunConfig, given: Mapping[str, object]) -> dict[str, object]:
        """Return the values that hold names or paths, of the keys that are not given."""
        readers = {"detectors": self._detector, "datasets": self._dataset, "protocols": self._protocol}
        found: dict[str, object] = {}
        for key in (one for one in RunConfig.model_fields if one in config.model_fields_set - given.keys()):
            value = getattr(config, key)
            if isinstance(value, Path):
                found[key] = Path(self._from_here(str(value)))
            elif key in readers:
                names: list[str] = []
                for text in value:
                    with self._noting((key,)):
                        names.append(readers[key](text))
                found[key] = names
        return found

    def settings(self, config: RunConfig, *, whole: bool) -> list[str]:
        """Return the settings as ``NAME.key=value``.

        Parameters
        ----------
        config
            The whole configuration.
        whole
            Whether its detectors and protocols are the file's own: a setting of another one is a mistake then, and
            left out else.
        """
        detectors = {parse_label(text).target for text in config.detectors} | set(floors() if config.floors else ())
        protocols = {config.against} if config.against else set(config.protocols)
        texts = []
        for keys, value in _leaves(config.settings):
            place = ("set", *keys)
            name, dot, key = dotted(keys).rpartition(".")
            target = self._target(name)
            if not dot:
                self._note(place, 'expected NAME.key, as in "t2.smoothing" = 5')
            elif not isinstance(value, bool | int | float | str):
                self._note(place, f"expected a number, a text, true or false, found {value!r}")
            elif target in detectors | protocols:
                with self._noting(place):
                    cls = load_detector(target) if target in detectors else load_protocol(target)
                    arguments = self._arguments(cls, {key: format_value(value)}, target)
                    texts.append(f"{target}.{key}={arguments[key]}")
            elif whole:
                self._note(place, f"this run has no {target!r}{nearest(target, tuple(detectors | protocols))}")
        return texts

    def _detector(self, text: str) -> str:
        request = parse_label(text)
        target = self._target(request.target)
        return str(Label(target, self._arguments(load_detector(target), request.arguments, target)))

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

    def _arguments(self, cls: type, texts: Mapping[str, str], owner: str) -> dict[str, str]:
        """Return arguments, each of them checked, files as seen from the working directory."""
        files = {parameter.name for parameter in parameters_of(cls) if _is_file(parameter.annotation)}
        found = {
            key: self._from_here(text) if key in files and text.lower() != "none" else text
            for key, text in texts.items()
        }
        parse_arguments(cls, found, owner)
        return found

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
        self.issues.add(self.path.name, f"{dotted(keys)}: {fault}", line_of(self.text, keys))


def _leaves(table: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """Give the values of tables in tables, each with its keys."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*above, key))
        else:
            yield (*above, key), value


def _is_file(annotation: object) -> bool:
    """Whether a parameter's values are read from files."""
    return bool({annotation, *get_args(annotation)} & {Path, Prior})
