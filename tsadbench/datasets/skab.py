"""SKAB, the Skoltech Anomaly Benchmark v0.9: a water pump's testbed, eight sensors, about one row a second.

Source: Katser and Kozitsin (2020), doi 10.34740/KAGGLE/DSV/1693952; repository waico/SKAB, commit b2c0d46, GPL-3.0.
The files stay out of this package: they are found or downloaded (`tsadbench.datasets.location`).
"""

from __future__ import annotations

from pathlib import Path

from tsadbench.base.dataset import DataOptions, Dataset, LabelledDataset, Labels
from tsadbench.base.file_format import FileFormat
from tsadbench.base.prior import Prior
from tsadbench.base.recording import Recording
from tsadbench.datasets.csv_file import Table, read_csv
from tsadbench.datasets.csv_layout import Layout
from tsadbench.datasets.location import find_or_download
from tsadbench.datasets.source import Source
from tsadbench.errors import DataError
from tsadbench.utils.arrays import BoolArray

SENSORS = (
    "Accelerometer1RMS",
    "Accelerometer2RMS",
    "Current",
    "Pressure",
    "Temperature",
    "Thermocouple",
    "Voltage",
    "Volume Flow RateRMS",
)
# The order matters: protocol `published` cuts windows across the files' borders.
SPLITS = {
    "valve1": tuple(f"valve1/{i}" for i in range(16)),
    "valve2": tuple(f"valve2/{i}" for i in range(4)),
    "other": tuple(f"other/{i}" for i in range(1, 15)),
}
TEST = (*SPLITS["valve1"], *SPLITS["valve2"], *SPLITS["other"])

_TRAIN_FILE = "anomaly-free/anomaly-free.csv"
_TIME_FORMAT = "%Y-%m-%d %H:%M:%S"
_TRAIN = Layout(separator=";", sensors=SENSORS, time="datetime", time_format=_TIME_FORMAT)
_TEST = Layout(
    separator=";",
    sensors=SENSORS,
    time="datetime",
    time_format=_TIME_FORMAT,
    label="anomaly",
    unread=("changepoint",),
)
_LAYOUT = FileFormat(
    separator=_TEST.separator,
    time=("datetime",),
    time_formats=(_TIME_FORMAT,),
    unused=("anomaly", *_TEST.unread),
)
_HERE = Path(__file__).parent
_CITATION = (
    "Katser, I. D. and Kozitsin, V. O. (2020). Skoltech Anomaly Benchmark (SKAB), version 0.9. Kaggle. "
    "doi:10.34740/KAGGLE/DSV/1693952. Files: repository waico/SKAB, commit b2c0d46."
)


def load(options: DataOptions) -> LabelledDataset:
    """Return SKAB: 9,405 anomaly-free rows to train on, 34 labelled recordings to test on.

    Parameters
    ----------
    options
        Where to look for the files; whether to go on where they are not the published ones.

    Raises
    ------
    DataNotFoundError
        If the files are not on this machine and cannot be downloaded.
    DataError
        If a file is not what it has to be, or parses but differs from the published one.
    """
    source = Source.load("skab")
    folder = find_or_download(source, options.directory)
    source.require(folder)
    train = read_csv(folder / _TRAIN_FILE, _TRAIN)
    tests = {name: read_csv(folder / f"{name}.csv", _TEST) for name in TEST}
    found = {_TRAIN_FILE: train.sha256} | {f"{name}.csv": table.sha256 for name, table in tests.items()}
    notes = source.notes(found, folder, allow_changed=options.allow_changed)
    splits = {"overall": TEST, **SPLITS}
    dataset = Dataset(
        name="skab",
        train=(_recording("anomaly-free", train),),
        test=tuple(_recording(name, table) for name, table in tests.items()),
        splits=splits,
        description=(_HERE / "skab.description.md").read_text(encoding="utf-8"),
        prior=Prior.load(_HERE / "skab.prior.json", origin="skab"),
        citation=_CITATION,
        licence="GPL-3.0",
        notes=notes,
        folder=folder.resolve(),
        layout=_LAYOUT,
    )
    labels = Labels(rows={name: _labels(table) for name, table in tests.items()}, splits=splits)
    return LabelledDataset(dataset, labels)


def _recording(name: str, table: Table) -> Recording:
    return Recording(id=name, values=table.values, sensors=SENSORS, time=table.time)


def _labels(table: Table) -> BoolArray:
    if table.labels is None:
        raise DataError("skab: a test file was read without its labels")
    return table.labels
