"""Load the data sets, priors and sensors that a command line names."""

from __future__ import annotations

import json
from pathlib import Path

from tsadbench import datasets
from tsadbench.base.dataset import DataOptions
from tsadbench.base.prior import Prior, Sensor
from tsadbench.cli.actions.data import load_here
from tsadbench.datasets.loading import load_dataset
from tsadbench.errors import UsageError
from tsadbench.registry import entries
from tsadbench.utils.bounded_files import read_text

_MOST_BYTES = 2**24
_PRIOR_ENDING = ".prior.json"
_DATASETS = Path(datasets.__file__).parent


def load_prior(text: str) -> Prior:
    """Return the prior in a file, or that of a data set; its files are read only if the prior does not ship.

    Raises
    ------
    UsageError
        If it is neither, or the data set has no prior.
    DataNotFoundError
        If the prior lies among the data set's files, and these are not here.
    """
    if Path(text).is_file():
        return Prior.load(text)
    shipped = {file.name.removesuffix(_PRIOR_ENDING): file for file in _DATASETS.rglob(f"*{_PRIOR_ENDING}")}
    if text in shipped:
        return Prior.load(shipped[text], origin=text)
    if text in {entry.name for entry in entries("datasets")}:
        prior = load_here(text, None).dataset.prior
        if prior is not None:
            return prior
        raise UsageError(f"{text}: the data set has no prior; name a prior's file, or one of {sorted(shipped)}")
    raise UsageError(f"{text}: expected a prior's file or one of {sorted(shipped)}; there is no such file")


def load_sensors(dataset: str | None, file: Path | None, directory: Path | None) -> tuple[Sensor, ...]:
    """Return the sensors of a data set, as its prior describes them, or those listed in a file.

    Raises
    ------
    UsageError
        If not exactly one of the two is given, or the file cannot be read.
    """
    if dataset is not None and file is None:
        loaded = load_dataset(dataset)(DataOptions(directory=directory)).dataset
        described = {sensor.name: sensor for sensor in (loaded.prior.sensors if loaded.prior else ())}
        return tuple(described.get(name, Sensor(name)) for name in loaded.sensors)
    if file is not None and dataset is None:
        return _sensors_of_file(file)
    raise UsageError("give either --dataset or --sensors: the prior needs to know whose sensors it is about")


def _sensors_of_file(file: Path) -> tuple[Sensor, ...]:
    try:
        text = read_text(file, _MOST_BYTES, "utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--sensors {file}: cannot be read as text in UTF-8 ({error})") from error
    if not text.lstrip().startswith("["):
        return tuple(Sensor(line.strip()) for line in text.splitlines() if line.strip())
    try:
        return tuple(
            Sensor(str(entry["name"]), str(entry.get("quantity", "")), str(entry.get("subsystem", "")))
            for entry in json.loads(text)
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(f"--sensors {file}: expected a JSON list of objects with a name ({error})") from error
