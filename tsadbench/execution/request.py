"""What a run is asked to do: one model for `tsadbench.run`, the command line and configuration files (TOML)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    DirectoryPath,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import PydanticCustomError

from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.base.detector import Detector
from tsadbench.datasets.loading import CARD_ENDING, load_dataset
from tsadbench.datasets.suites import suite_named
from tsadbench.errors import TsadbenchError, UsageError
from tsadbench.execution.estimators import Estimator
from tsadbench.registry import floors, load_protocol, locate
from tsadbench.sandbox import Construction, describe
from tsadbench.sandbox.description import with_files_read
from tsadbench.utils.issues import Issue, listed
from tsadbench.utils.parameters import Label, format_value, nearest, parse_arguments, parse_label
from tsadbench.utils.threads import default_jobs
from tsadbench.utils.toml import FOLDER, TABLE, dotted, fault_text, line_of, read_toml

DEFAULT_PROTOCOL = "strict"
# NumPy's, scikit-learn's and torch's generators all take seeds below this.
SEEDS_BELOW, _MOST_SEEDS = 2**32, 100_000

DetectorSpec: TypeAlias = str | Construction | type[Detector] | Detector | Estimator
DatasetSpec: TypeAlias = str | Path | LabelledDataset


def _expected(what: str) -> PydanticCustomError:
    return PydanticCustomError("expected", "Expected {what}", {"what": what})


def _detector(value: object, info: ValidationInfo) -> object:
    if isinstance(value, type):  # a class has the methods of its objects, too
        if not issubclass(value, Detector):
            raise _expected(f"a detector class, or an estimator object such as {value.__name__}()")
    elif not isinstance(value, str | Construction | Estimator):
        raise _expected("a name, a detector class, a detector or an estimator object, or a list of these")
    if info.context is None or not isinstance(value, str):
        return value
    label = parse_label(value)
    target = _target(label.target, info.context[FOLDER])
    return str(Label(target, _checked_arguments(target, label.arguments, info.context[FOLDER])))


def _dataset(value: object, info: ValidationInfo) -> object:
    if not isinstance(value, str | PurePath | LabelledDataset):
        raise _expected("a name, the path of a card, or what dataset_from_frames or a loader returns")
    if isinstance(value, LabelledDataset):
        return value
    if info.context is None:
        return str(value)
    if not str(value).endswith(CARD_ENDING):
        load_dataset(str(value))
        return value
    card = _beside(str(value), info.context[FOLDER])
    if not Path(card).is_file():
        raise UsageError(f"there is no card {card}; paths are relative to the configuration's folder")
    return card


def _protocol(value: str, info: ValidationInfo) -> str:
    if info.context is not None:
        load_protocol(value)
    return value


def _seeds(value: object) -> int | list[int]:
    several = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes)
    given = list(value) if isinstance(value, Sequence | np.ndarray) and several else [value]
    seeds = [int(one) for one in given if isinstance(one, Integral) and not isinstance(one, bool)]
    below = SEEDS_BELOW if several else _MOST_SEEDS + 1
    if not seeds or len(set(seeds)) < len(given) or min(seeds) < (not several) or max(seeds) >= below:
        raise _expected(f"a number from 1 to {_MOST_SEEDS}, or a list of different seeds from 0 to {SEEDS_BELOW - 1}")
    return seeds if several else seeds[0]


def _cluster(value: str) -> str:
    if not re.fullmatch(r"(tcp|tls)://[^/\s]+|local:0*[1-9][0-9]*", value):
        raise _expected("tcp://host:port, tls://host:port or local:N")
    return value


def _path(value: object, info: ValidationInfo) -> object:
    """Return a path without ~, as seen from the working directory: a file's are relative to its folder."""
    if not isinstance(value, str | PurePath) or str(value) == "" or "\0" in str(value):
        raise _expected("a path")
    try:
        return Path(value).expanduser() if info.context is None else Path(_beside(str(value), info.context[FOLDER]))
    except RuntimeError:
        raise _expected("a path below a home folder that exists") from None


def _no_file(value: Path) -> Path:
    if value.exists() and not value.is_dir():
        raise PydanticCustomError("folder", "Expected a folder, which may be new, not a file")
    return value


def _plain(value: object) -> object:
    """Return NumPy's numbers as Python's; types are strict otherwise."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def _of_file(check: Callable[[Any, ValidationInfo], Any]) -> Callable[[Any, ValidationInfo], Any]:
    """Let a name of a configuration file that cannot be loaded be one of its faults."""

    def checked(value: object, info: ValidationInfo) -> object:
        try:
            return check(value, info)
        except TsadbenchError as error:
            raise UsageError(str(error)) from error

    return checked


# Not strict: Python callers pass tuples as well as lists.
_Several = Field(min_length=1, strict=False)
_Detectors: TypeAlias = list[Annotated[DetectorSpec, PlainValidator(_of_file(_detector))]]
_Datasets: TypeAlias = list[Annotated[DatasetSpec, PlainValidator(_of_file(_dataset))]]
_Protocols: TypeAlias = list[Annotated[str, AfterValidator(_of_file(_protocol))]]
_Texts: TypeAlias = Annotated[list[str], Field(strict=False)]
_Count: TypeAlias = Annotated[int, BeforeValidator(_plain), Field(ge=1)]
_Limit: TypeAlias = Annotated[float, BeforeValidator(_plain), Field(gt=0, allow_inf_nan=False)]
_Path: TypeAlias = Annotated[Path, BeforeValidator(_path), Field(strict=False)]
_Folder: TypeAlias = Annotated[_Path, AfterValidator(_no_file)]


class RunSettings(BaseModel):
    """Settings of a run; docs/configuration.md explains them by these names.

    Detectors are names, classes, detectors, or estimator objects of scikit-learn; none: the floors alone.
    """

    model_config = TABLE

    detectors: Annotated[_Detectors, Field(strict=False)] = []
    datasets: Annotated[_Datasets, _Several] = ["skab"]
    suite: Annotated[str, AfterValidator(lambda name: suite_named(name) and name)] | None = None
    protocols: Annotated[_Protocols, _Several] = [DEFAULT_PROTOCOL]
    against: str | None = None
    splits: _Texts = []
    seeds: Annotated[int | list[int], PlainValidator(_seeds)] = 5
    threads: _Count = 1
    jobs: _Count = Field(default_factory=default_jobs)
    cluster: Annotated[str, AfterValidator(_cluster)] | None = None
    floors: bool = True
    contributions: bool = True
    timeout: _Limit | None = None
    memory: _Limit | None = None
    require_seal: bool = False
    data: Annotated[DirectoryPath, BeforeValidator(_path), Field(strict=False)] | None = None
    allow_changed_data: bool = False
    out: _Folder = Path("runs")
    write: _Folder | None = None
    tuned: dict[str, Any] = {}

    @model_validator(mode="before")
    @classmethod
    def _of_suite(cls, values: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(values.get("suite"), str):
            return values
        if values.get("datasets"):
            raise UsageError("a suite says which data sets are run: give either --suite or --dataset")
        with suppress(UsageError):  # the field says that there is no such suite
            values = {**values, "datasets": suite_named(values["suite"]).datasets}
        return values

    @property
    def seed_numbers(self) -> tuple[int, ...]:
        """The seeds of a stochastic detector."""
        return tuple(range(self.seeds)) if isinstance(self.seeds, int) else tuple(self.seeds)

    @property
    def elsewhere(self) -> bool:
        """Whether other machines run the trials; ``local:N`` is this one."""
        return self.cluster is not None and not self.cluster.startswith("local:")

    @property
    def data_options(self) -> DataOptions:
        """Where loaders look for files, and how strict they are."""
        return DataOptions(directory=self.data, allow_changed=self.allow_changed_data)


class RunRequest(RunSettings):
    """A validated request for a run; a UsageError names each setting that is wrong."""

    # What messages call a setting, if not by its own name: Python's arguments have names of their own.
    called: ClassVar[Mapping[str, str]] = {}

    settings: _Texts = []  # of detectors and protocols, NAME.key=value; brackets in a detector's name win
    config_hash: str | None = None  # SHA-256 of the configuration file, which records keep

    if not TYPE_CHECKING:  # type checkers derive the constructor's signature from the fields

        def __init__(self, **settings: Any) -> None:
            try:
                super().__init__(**settings)
            except ValidationError as error:
                # Without a place it is a suite's.
                faults = [(str((*fault["loc"], "suite")[0]), fault_text(fault)) for fault in error.errors()]
                texts = dict.fromkeys(f"{self.called.get(name, name)}: {text}" for name, text in faults)
                wrong = UsageError("; ".join(texts), setting=faults[0][0])
            else:
                return
            raise wrong  # out of the handler: pydantic's own traceback would say nothing more


class _RunFile(RunSettings):
    """The keys of a configuration file: settings are nested tables, and detectors must be named."""

    overridden: ClassVar[frozenset[str]] = frozenset()

    detectors: Annotated[_Detectors, _Several] = []
    settings: Annotated[dict[str, Any], Field(alias="set", default_factory=dict)]

    @model_validator(mode="before")
    @classmethod
    def _without_overridden(cls, values: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in values.items() if key not in cls.overridden}


def requested(file: Path | None, options: Mapping[str, Any]) -> RunRequest:
    """Return what a configuration file, if any, and the options that override it ask for.

    Paths in the file (cards, Python files, priors, folders) are relative to its folder. The option ``settings`` is
    added to the file's. A UsageError lists all that is wrong with the file, with lines.
    """
    given = RunRequest(**options)
    if file is None:
        return given
    asked = frozenset(options)
    if asked & {"datasets", "suite"}:
        asked |= {"datasets", "suite"}

    class RunFile(_RunFile):
        overridden = asked

    found, text, issues = read_toml(file, RunFile, "the configuration", "docs/configuration.md shows one")
    settings: list[str] = []
    if found is not None:
        values = {name: getattr(found, name) for name in found.model_fields_set - {"settings"}}
        if found.suite:
            del values["datasets"]
        # Options that change which detectors and protocols run leave settings of others without use.
        whole = not issues and not options.keys() & {"detectors", "protocols", "against", "floors"}
        run = {**dict(found), **options}
        for keys, value in _leaves(found.settings):
            try:
                settings += _setting(keys, value, run, file.parent, whole=whole)
            except TsadbenchError as error:
                place = ("set", *keys)
                issues.append(Issue(file.name, f"{dotted(place)}: {error}", line_of(text, place)))
    if issues or found is None:
        raise UsageError(listed(f"configuration {file}", issues))
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    settings += options.get("settings", ())
    return RunRequest(**{**values, **options, "settings": settings, "config_hash": sha256})


def _setting(keys: tuple[str, ...], value: object, run: Mapping[str, Any], folder: Path, *, whole: bool) -> list[str]:
    """Return a file's setting as ``NAME.key=value``; nothing if the run has no such detector or protocol."""
    name, dot, key = dotted(keys).rpartition(".")
    target = _target(name, folder)
    if not dot:
        raise UsageError('expected NAME.key, as in "t2.smoothing" = 5')
    if not isinstance(value, bool | int | float | str):
        raise UsageError(f"expected a number, a text, true or false, found {value!r}")
    detectors = {parse_label(label).target for label in run["detectors"]} | set(floors() if run["floors"] else ())
    protocols = {run["against"]} if run["against"] else set(run["protocols"])
    text = format_value(value)
    if target in detectors:
        text = _checked_arguments(target, {key: text}, folder)[key]
    elif target in protocols:
        parse_arguments(load_protocol(target), {key: text}, target)
    elif whole:
        raise UsageError(f"this run has no {target!r}{nearest(target, tuple(detectors | protocols))}")
    else:
        return []
    return [f"{target}.{key}={text}"]


def _leaves(table: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """Yield the values of nested tables, each with its keys."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*above, key))
        else:
            yield (*above, key), value


def _checked_arguments(detector: str, texts: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return a detector's checked arguments, with the paths of files as seen from the working directory."""
    own = Construction(locate(detector), texts)
    files = {parameter.name for parameter in describe(own.source).parameters if parameter.names != "value"}
    arguments = {
        key: _beside(text, folder) if key in files and text.lower() != "none" else text
        for key, text in own.texts.items()
    }
    describe(with_files_read(replace(own, texts=arguments)))
    return arguments


def _target(name: str, folder: Path) -> str:
    return _beside(name, folder) if ".py:" in name else name


def _beside(path: str, folder: Path) -> str:
    return str(folder / Path(path).expanduser())
