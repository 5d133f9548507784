"""The Tennessee Eastman process: a simulated chemical plant, 52 variables, one row every three minutes.

Source: Downs and Vogel, A plant-wide industrial process control problem, Computers and Chemical Engineering 17(3),
1993; the simulated records of Chiang, Russell and Braatz, Fault detection and diagnosis in industrial systems, 2001;
repository camaramm/tennessee-eastman-profBraatz. The files stay out of this package: they are found or downloaded.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np

from tsadbench.base.dataset import Cause, DataOptions, Dataset, LabelledDataset, Labels
from tsadbench.base.file_format import FileFormat
from tsadbench.base.prior import Prior
from tsadbench.base.recording import Recording
from tsadbench.datasets.shipped import load_published
from tsadbench.errors import DataError
from tsadbench.utils.arrays import FloatArray

_SENSORS = (*(f"XMEAS({i})" for i in range(1, 42)), *(f"XMV({i})" for i in range(1, 12)))
TEST = tuple(f"d{fault:02}" for fault in range(22))
# Faults 3, 9 and 15 leave hardly a trace in any variable: the literature knows them as all but undetectable.
_UNDETECTABLE = ("d03", "d09", "d15")
# Each recording is a run of its own of the simulator, but these two are one until their faults begin.
_ONE_RUN = ("d04", "d05")
_SPLITS = {
    "overall": TEST,
    "normal": TEST[:1],
    **{f"fault{name[1:]}": (name,) for name in TEST[1:]},
    "detectable": tuple(name for name in TEST if name not in _UNDETECTABLE),
}

_TRAIN_ROWS, _TEST_ROWS = 500, 960
_NORMAL_ROWS = 160  # before a fault: eight hours
_SECONDS = 180.0  # from row to row
_HERE = Path(__file__).parent
CITATION = (
    "Downs, J. J. and Vogel, E. F. (1993). A plant-wide industrial process control problem. Computers and Chemical "
    "Engineering 17(3), 245-255. Records: Chiang, L. H., Russell, E. L. and Braatz, R. D. (2001). Fault detection and "
    "diagnosis in industrial systems. Springer."
)


def load(options: DataOptions) -> LabelledDataset:
    """Return the Tennessee Eastman process: 500 normal rows to train on, 22 recordings of 960 rows to test on.

    The first test recording is normal; in each of the others, one of 21 faults begins with row 160. Each run of the
    simulator is a session; ``d04`` and ``d05`` are one, because their first 160 rows are equal to the bit.
    """
    return load_published("tep", options, _load)


def _load(folder: Path) -> LabelledDataset:
    # Each line of the training file holds a variable, each line of the others a row.
    train = _read(folder / "d00.dat", (len(_SENSORS), _TRAIN_ROWS)).T
    dataset = Dataset(
        name="tep",
        train=(_recording("normal", train),),
        test=tuple(_recording(id_, _read(folder / f"{id_}_te.dat", (_TEST_ROWS, len(_SENSORS)))) for id_ in TEST),
        splits=_SPLITS,
        description=(_HERE / "tep.description.md").read_text(encoding="utf-8"),
        prior=Prior.load(_HERE / "tep.prior.json", origin="tep"),
        citation=CITATION,
        licence="University of Illinois (free use with notice)",
        folder=folder.resolve(),
        layout=FileFormat(period=_SECONDS),
        sessions={name: name for name in ("normal", *TEST)} | dict.fromkeys(_ONE_RUN, " and ".join(_ONE_RUN)),
    )
    labels = {name: (np.arange(_TEST_ROWS) >= _NORMAL_ROWS) & (name != "d00") for name in TEST}
    # The sensors that each fault shows in first; the file has the reasons.
    faults = tomllib.loads((_HERE / "tep.causes.toml").read_text(encoding="utf-8"))
    causes = {
        f"d{int(number):02}": (Cause(_NORMAL_ROWS, _TEST_ROWS, tuple(fault["sensors"])),)
        for number, fault in faults.items()
        if fault["sensors"]
    }
    return LabelledDataset(dataset, Labels(labels, _SPLITS, causes))


def _recording(name: str, values: FloatArray) -> Recording:
    return Recording(id=name, values=values, sensors=_SENSORS, time=np.arange(0.0, _SECONDS * len(values), _SECONDS))


def _read(file: Path, shape: tuple[int, int]) -> FloatArray:
    try:
        values = np.loadtxt(file)
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: {error}; fetch the file again") from error
    if values.shape != shape or not np.isfinite(values).all():
        raise DataError(f"{file}: expected {shape} finite numbers, found {values.shape}; fetch the file again")
    return values
