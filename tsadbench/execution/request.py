"""What a run is asked to do: one object for `tsadbench.run`, the command line and configuration files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

import numpy as np
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, PlainValidator, ValidationError, ValidationInfo
from pydantic_core import PydanticCustomError
from sklearn.base import BaseEstimator

from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.base.detector import Detector
from tsadbench.datasets.suites import suite_named
from tsadbench.errors import UsageError, about_setting
from tsadbench.execution.estimators import Estimator
from tsadbench.sandbox import Construction
from tsadbench.utils.threads import default_jobs
from tsadbench.utils.toml import FOLDER, TABLE, fault_text

DEFAULT_PROTOCOL = "strict"

DetectorSpec: TypeAlias = str | Construction | type[Detector] | Detector | Estimator
DatasetSpec: TypeAlias = str | Path | LabelledDataset

_CLUSTER = re.compile(r"(tcp|tls)://[^/\s]+|local:0*[1-9][0-9]*")


def _checked_detector(value: object) -> object:
    if isinstance(value, type) and not issubclass(value, Detector) and issubclass(value, BaseEstimator):
        raise PydanticCustomError(
            "detector", "Expected an estimator object, such as {name}()", {"name": value.__name__}
        )
    # A class has the methods of its objects, too.
    if issubclass(value, Detector) if isinstance(value, type) else isinstance(value, str | Construction | Estimator):
        return value
    raise PydanticCustomError(
        "detector", "Input should be a name, a detector class, a detector or an estimator object, or a list of these"
    )


def _checked_dataset(value: object) -> object:
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, str | LabelledDataset):
        return value
    raise PydanticCustomError(
        "dataset", "Expected a name, the path of a card, or what dataset_from_frames or a loader returns"
    )


# NumPy's, scikit-learn's and torch's generators all take seeds below the first; nobody runs as many as the second.
SEEDS_BELOW, MOST_SEEDS = 2**32, 100_000


def _checked_seeds(value: object) -> int | list[int]:
    """Return a number of seeds, or a list of different seeds."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        number = _plain_integer(value)
        if not isinstance(number, int) or isinstance(number, bool):
            raise PydanticCustomError("seeds", "Input should be a valid integer, or a list of integers")
        if number < 1:
            raise PydanticCustomError("seeds", "Input should be greater than or equal to 1")
        if number > MOST_SEEDS:
            raise PydanticCustomError("seeds", f"Input should be less than or equal to {MOST_SEEDS}")
        return number
    numbers = map(_plain_integer, value)
    seeds = [number for number in numbers if isinstance(number, int) and not isinstance(number, bool)]
    if not seeds or len(seeds) < len(value):
        raise PydanticCustomError("seeds", "Expected a list of at least one integer")
    if min(seeds) < 0:
        raise PydanticCustomError("seeds", "Expected a list of integers of at least 0")
    if max(seeds) >= SEEDS_BELOW:
        raise PydanticCustomError("seeds", f"Expected a list of integers below {SEEDS_BELOW}")
    if len(set(seeds)) < len(seeds):
        raise PydanticCustomError("seeds", "Expected a list of different seeds")
    return seeds


def _checked_cluster(value: str) -> str:
    if not _CLUSTER.fullmatch(value):
        raise PydanticCustomError("cluster", "Expected tcp://host:port or local:N")
    return value


def _checked_path(value: object) -> object:
    """Return a path with the home folder in place of its ~; shells leave it as it is in ``--out=~/runs``."""
    if not isinstance(value, str | PurePath) or str(value) == "" or "\0" in str(value):
        raise PydanticCustomError("path", "Expected a path")
    try:
        return Path(value).expanduser()
    except RuntimeError:
        raise PydanticCustomError("path", "Expected a path below a home folder that exists") from None


def _in_place(value: Path, info: ValidationInfo) -> Path:
    """Return a path as seen from the working directory: those of a configuration are relative to its folder."""
    return value if info.context is None else info.context[FOLDER] / value.expanduser()


def _no_file(value: Path, info: ValidationInfo) -> Path:
    seen = _in_place(value, info)
    if seen.exists() and not seen.is_dir():
        raise PydanticCustomError("folder", "Expected a folder, which may be new, not a file")
    return value


def _existing(value: Path, info: ValidationInfo) -> Path:
    if not _in_place(value, info).is_dir():
        raise PydanticCustomError("folder", "Expected a folder that exists")
    return value


def _plain_integer(value: object) -> object:
    """Return NumPy's integers as Python's; types are strict otherwise."""
    return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else value


def _plain_number(value: object) -> object:
    """Return NumPy's numbers as Python's; types are strict otherwise."""
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else value


# Not strict: Python callers pass tuples as well as lists.
_Several = Field(min_length=1, strict=False)
_Detector: TypeAlias = Annotated[DetectorSpec, PlainValidator(_checked_detector)]
_Datasets: TypeAlias = Annotated[list[Annotated[DatasetSpec, PlainValidator(_checked_dataset)]], _Several]
_Protocols: TypeAlias = Annotated[list[str], _Several]
_Texts: TypeAlias = Annotated[list[str], Field(strict=False)]
_Count: TypeAlias = Annotated[int, BeforeValidator(_plain_integer), Field(ge=1)]
_Seeds: TypeAlias = Annotated[int | list[int], PlainValidator(_checked_seeds)]
_Limit: TypeAlias = Annotated[float, BeforeValidator(_plain_number), Field(gt=0, allow_inf_nan=False)]
_Path: TypeAlias = Annotated[Path, BeforeValidator(_checked_path), Field(strict=False)]
_Folder: TypeAlias = Annotated[_Path, AfterValidator(_no_file)]
_Cluster: TypeAlias = Annotated[str, AfterValidator(_checked_cluster)]


class RunSettings(BaseModel):
    """Settings of a run, named like the keys of a configuration file and the options of ``tsadbench run``.

    An option that may be repeated is a list. Every detector runs on every data set under every protocol.

    Parameters
    ----------
    detectors
        Names (``NAME``, ``NAME[key=value,...]``, ``package.module:Class``, ``path/file.py:Class``), detector classes,
        detectors or estimator objects of scikit-learn (`tsadbench.execution.estimators`).
    datasets
        Names, paths of cards, or the data themselves.
    suite
        Name of a suite, to be used instead of ``datasets``: these are then its data sets.
    protocols
        Names.
    against
        Protocol whose leaderboard ships with the package, to be used instead of ``protocols``: its rows are shown
        beside, marked as stored, and none of them (floors included) is run again.
    splits
        Splits that tables show; each data set shows those of them that it has. None given: all.
    seeds
        A number, for the seeds 0 to ``seeds - 1``, or a list of seeds. A detector that is not stochastic runs once,
        with seed 0.
    threads
        Threads of a trial's libraries; part of the trial's identity.
    jobs
        Trials at a time. Each has a process of its own, so the results do not depend on it. By default as many as this
        process may use cores, or one for each 2 GiB of available memory if these are fewer.
    cluster
        A Dask cluster to be used instead of this machine: ``tcp://host:port`` or ``local:N``. Its workers read the data
        themselves, so the data sets must be named.
    floors
        Whether every registered floor takes part.
    contributions
        Whether to ask detectors that offer them for each sensor's contribution, up to 10^7 values per trial.
    timeout, memory
        What one trial may use: wall-clock seconds, resident MiB. None: no limit.
    require_seal
        Whether the kernel must seal every box: a machine that cannot, or a detector whose code the calling program has
        imported, is refused before anything starts, and kept trials that are guarded are run again.
    data
        Folder that holds the data sets' folders; None searches as the documentation says.
    allow_changed_data
        Whether to go on if files differ from the published ones.
    out
        Folder of the run store that keeps every trial.
    write
        Folder for tables; None writes none.
    tuned
        How ``tsadbench tune`` came to these settings; records keep it.
    """

    model_config = TABLE

    detectors: Annotated[list[_Detector], _Several] = []
    datasets: _Datasets = ["skab"]
    suite: str | None = None
    protocols: _Protocols = [DEFAULT_PROTOCOL]
    against: str | None = None
    splits: _Texts = []
    seeds: _Seeds = 5
    threads: _Count = 1
    jobs: _Count = Field(default_factory=default_jobs)
    cluster: _Cluster | None = None
    floors: bool = True
    contributions: bool = True
    timeout: _Limit | None = None
    memory: _Limit | None = None
    require_seal: bool = False
    data: Annotated[_Path, AfterValidator(_existing)] | None = None
    allow_changed_data: bool = False
    out: _Folder = Path("runs")
    write: _Folder | None = None
    tuned: dict[str, Any] = {}

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
    """A validated request for a run.

    Parameters
    ----------
    settings
        Parameters of detectors and protocols, ``NAME.key=value``; brackets in a detector's name win.
    config_hash
        SHA-256 of the configuration file that the request comes from, if any; records keep it.

    Raises
    ------
    UsageError
        If a setting is of a wrong type or out of range; the message names it. If there is no such suite, or data sets
        are given beside it.
    """

    # What messages call a setting, if not by its own name: Python's arguments have names of their own.
    called: ClassVar[Mapping[str, str]] = {}

    # No detector: the floors alone, which Python callers may ask for.
    detectors: Annotated[list[_Detector], Field(strict=False)] = []
    settings: _Texts = []
    config_hash: str | None = None

    if not TYPE_CHECKING:  # type checkers derive the constructor's signature from the fields

        def __init__(self, **settings: Any) -> None:
            if isinstance(settings.get("suite"), str):
                if settings.get("datasets"):
                    raise UsageError(
                        "a suite says which data sets are run: give either --suite or --dataset", setting="suite"
                    )
                with about_setting("suite"):
                    settings["datasets"] = suite_named(settings["suite"]).datasets
            try:
                super().__init__(**settings)
            except ValidationError as error:
                faults = [(str(fault["loc"][0]), fault_text(fault)) for fault in error.errors()]
                texts = dict.fromkeys(f"{self.called.get(name, name)}: {text}" for name, text in faults)
                wrong = UsageError("; ".join(texts), setting=faults[0][0])
            else:
                return
            raise wrong  # out of the handler: pydantic's own traceback would say nothing more
