"""The request for a run: one model for `tsadbench.run`, the command line and configuration files (TOML)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np
from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    DirectoryPath,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.base.detector import Detector
from tsadbench.datasets.loading import CARD_ENDING, SUITES, load_dataset, suite_named
from tsadbench.errors import UsageError
from tsadbench.execution.estimators import Estimator
from tsadbench.registry import floors, load_protocol, locate
from tsadbench.sandbox import Construction, describe
from tsadbench.sandbox.description import with_files_read
from tsadbench.utils.issues import listed
from tsadbench.utils.numerics import default_jobs
from tsadbench.utils.parameters import Label, format_value, nearest, parse_arguments, parse_label
from tsadbench.utils.toml import FOLDER, TABLE, fault_text, read_toml

DEFAULT_PROTOCOL = "strict"
# NumPy's, scikit-learn's and torch's generators all take seeds below this.
SEEDS_BELOW, _MOST_SEEDS = 2**32, 100_000
# Key in the validation context: the options that override a configuration file.
_OPTIONS = "options"

DetectorSpec: TypeAlias = str | type[Detector] | Detector | Estimator
DatasetSpec: TypeAlias = str | Path | LabelledDataset


def _expected(what: str) -> PydanticCustomError:
    return PydanticCustomError("expected", "Expected {what}", {"what": what})


def _detector(value: object, info: ValidationInfo) -> object:
    if isinstance(value, type):  # classes have these methods too
        if not issubclass(value, Detector):
            raise _expected(f"a detector class, or an estimator object such as {value.__name__}()")
    elif not isinstance(value, str | Estimator):
        raise _expected("a name, a detector class, a detector or an estimator object, or a list of these")
    if info.context is None or not isinstance(value, str):
        return value
    label = parse_label(value)
    target = _target(label.target, info.context[FOLDER])
    return str(Label(target, _checked_arguments(target, label.arguments, info.context[FOLDER])))


def _dataset(value: object, info: ValidationInfo) -> object:
    if isinstance(value, LabelledDataset):
        return value
    if not isinstance(value, str | PurePath):
        raise _expected("a name, a card's path, or a result of dataset_from_frames or a loader")
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


def _not_empty(value: list[object], info: ValidationInfo) -> list[object]:
    if info.context is not None and not value:
        raise _expected("at least one detector")
    return value


def _seeds(value: object) -> int | list[int]:
    several = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes)
    given = list(value) if isinstance(value, Sequence | np.ndarray) and several else [value]
    seeds = [int(one) for one in given if isinstance(one, Integral) and not isinstance(one, bool)]
    below = SEEDS_BELOW if several else _MOST_SEEDS + 1
    if not seeds or len(set(seeds)) < len(given) or min(seeds) < (not several) or max(seeds) >= below:
        raise _expected(f"a number from 1 to {_MOST_SEEDS}, or a list of different seeds from 0 to {SEEDS_BELOW - 1}")
    return seeds if several else seeds[0]


def _path(value: object, info: ValidationInfo) -> object:
    """Expand ~, and make a configuration file's path relative to the working directory."""
    if not isinstance(value, str | PurePath) or str(value) == "" or "\0" in str(value):
        raise _expected("a path")
    return _beside(str(value), (info.context or {}).get(FOLDER, Path()))


def _settings(value: object, info: ValidationInfo) -> dict[str, str]:
    """Return settings by ``NAME.key``, from texts ``NAME.key=value`` or a file's tables."""
    if isinstance(value, Mapping):
        return _of_tables(value, info) if info.context else dict(value)
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise _expected("a list of texts NAME.key=value")
    settings = {}
    for setting in value:
        path, equals, text = str(setting).partition("=")
        name, _, key = path.rpartition(".")
        if not (equals and name and key):
            raise UsageError(f"expected NAME.key=value, found {setting!r}")
        settings[f"{name.strip()}.{key.strip()}"] = text.strip()
    return settings


def _of_tables(tables: Mapping[str, Any], info: ValidationInfo) -> dict[str, str]:
    """Return the settings in a file's tables, except for detectors and protocols that options left out."""
    import pandas as pd  # slow: `--help` imports this module

    settings: dict[str, str] = {}
    faults: list[InitErrorDetails] = []
    # If these are wrong, settings cannot be checked, and the file is refused anyway.
    known = tables and {"detectors", "protocols"} <= info.data.keys()
    for path, value in pd.json_normalize(dict(tables)).to_dict("records")[0].items() if known else ():
        try:
            settings |= _setting(str(path), value, info)
        except UsageError as error:
            faults.append({"type": "value_error", "loc": (str(path),), "input": value, "ctx": {"error": error}})
    if faults:
        raise ValidationError.from_exception_data("settings", faults)
    return settings


def _setting(path: str, value: object, info: ValidationInfo) -> dict[str, str]:
    """Return a file's setting, or nothing if options left out its detector or protocol."""
    folder, options = (info.context or {})[FOLDER], (info.context or {})[_OPTIONS]
    name, _, key = path.rpartition(".")
    if not name:
        raise UsageError('expected NAME.key, as in "t2.smoothing" = 5')
    if not isinstance(value, bool | int | float | str):
        raise UsageError(f"expected a number, a text, true or false, found {value!r}")
    run = {**info.data, **options}
    target, text = _target(name, folder), format_value(value)
    detectors = {parse_label(label).target for label in run["detectors"]} | set(floors() if run["floors"] else ())
    protocols = {run["against"]} if run["against"] else set(run["protocols"])
    if target in detectors:
        text = _checked_arguments(target, {key: text}, folder)[key]
    elif target in protocols:
        parse_arguments(load_protocol(target), {key: text}, target)
    elif options.keys() & {"detectors", "protocols", "against", "floors"}:
        return {}
    else:
        raise UsageError(f"this run has no {target!r}{nearest(target, tuple(detectors | protocols))}")
    return {f"{target}.{key}": text}


def _checked_arguments(detector: str, texts: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return a detector's checked arguments, with file paths relative to the working directory."""
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
    return str(folder / os.path.expanduser(path))


# Not strict: Python callers pass tuples as well as lists.
_Several = Field(min_length=1, strict=False)
_Detectors: TypeAlias = list[Annotated[DetectorSpec, PlainValidator(_detector)]]
# NumPy numbers count as Python numbers; all other types are strict.
_PLAIN = BeforeValidator(lambda value: value.item() if isinstance(value, np.generic) else value)
_Count: TypeAlias = Annotated[int, _PLAIN, Field(ge=1)]
_Limit: TypeAlias = Annotated[float, _PLAIN, Field(gt=0, allow_inf_nan=False)]
_Path: TypeAlias = Annotated[Path, BeforeValidator(_path), Field(strict=False)]


class RunRequest(BaseModel):
    """Settings of a run; docs/configuration.md explains them by these names.

    Detectors are names, classes, detectors, or scikit-learn estimator objects; without any, only the floors run. A
    UsageError names each wrong setting.
    """

    model_config = TABLE

    detectors: Annotated[_Detectors, AfterValidator(_not_empty), Field(strict=False)] = []
    datasets: Annotated[list[Annotated[DatasetSpec, PlainValidator(_dataset)]], _Several] = ["skab"]
    suite: Annotated[str, AfterValidator(lambda name: suite_named(name) and name)] | None = None
    protocols: Annotated[list[Annotated[str, AfterValidator(_protocol)]], _Several] = [DEFAULT_PROTOCOL]
    against: str | None = None
    splits: Annotated[list[str], Field(strict=False)] = []
    seeds: Annotated[int | list[int], PlainValidator(_seeds)] = 5
    threads: Annotated[_Count, Field(le=1024)] = 1
    jobs: Annotated[int, _PLAIN] = Field(default_factory=default_jobs, ge=1)
    cluster: Annotated[str, Field(pattern=r"^((tcp|tls)://[^/\s]+|local:[1-9]\d*)$")] | None = None
    floors: bool = True
    contributions: bool = True
    timeout: _Limit | None = None
    memory: _Limit | None = None
    require_seal: bool = False
    data: Annotated[DirectoryPath, BeforeValidator(_path), Field(strict=False)] | None = None
    allow_changed_data: bool = False
    out: _Path = Path("runs")
    tuned: dict[str, Any] = {}
    # By ``NAME.key``, of detectors and protocols; brackets in a detector's name win.
    settings: Annotated[
        dict[str, str], PlainValidator(_settings), Field(validation_alias=AliasChoices("settings", "set"))
    ] = {}
    config_hash: str | None = None  # SHA-256 of the configuration file, kept in records

    if not TYPE_CHECKING:  # type checkers derive the constructor's signature from the fields

        def __init__(self, **settings: Any) -> None:
            try:
                super().__init__(**settings)
            except ValidationError as error:
                # an error without a place is about a suite
                faults = [(str((*fault["loc"], "suite")[0]), fault_text(fault)) for fault in error.errors()]
                first, *more = dict.fromkeys(faults)
                wrong = UsageError("; ".join([first[1], *map(": ".join, more)]), field=first[0])
            else:
                return
            raise wrong  # outside the handler, to leave out pydantic's traceback

        __init__.__pydantic_base_init__ = True  # else model_validate would call it without the context

    @model_validator(mode="before")
    @classmethod
    def _of_suite(cls, values: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        values = {key: value for key, value in values.items() if key not in (info.context or {}).get(_OPTIONS, ())}
        suite = SUITES.get(str(values.get("suite")))
        if suite and values.get("datasets"):
            raise UsageError("a suite replaces the data sets: leave them out", field="suite")
        return {**values, "datasets": suite.datasets} if suite else values

    @property
    def elsewhere(self) -> bool:
        """Whether other machines run the trials; ``local:N`` is this machine."""
        return self.cluster is not None and not self.cluster.startswith("local:")

    @property
    def data_options(self) -> DataOptions:
        """Where loaders look for files, and how strict they are."""
        return DataOptions(directory=self.data, allow_changed=self.allow_changed_data)


def requested(file: Path | None, options: Mapping[str, Any]) -> RunRequest:
    """Return the request of a configuration file, if any, and of the options that override it.

    Paths in the file (cards, Python files, priors, folders) are relative to its folder. The option ``settings`` is
    added to the file's. A UsageError lists all that is wrong with the file, with line numbers.
    """
    given = RunRequest(**options)
    if file is None:
        return given
    own = {name: getattr(given, name) for name in given.model_fields_set}
    if "datasets" in own:
        own = {"suite": None, **own}
    what = "the configuration", "docs/configuration.md shows one"
    found, _, issues = read_toml(file, RunRequest, *what, {_OPTIONS: own})
    if found is None:
        raise UsageError(listed(f"configuration {file}", issues))
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    return found.model_copy(update={**own, "settings": found.settings | given.settings, "config_hash": sha256})
