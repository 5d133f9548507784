"""SWaT and WADI: small files in the format of those that iTrust sends, faults included."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tsadbench.base.dataset import DataOptions
from tsadbench.datasets.loading import load_dataset
from tsadbench.errors import DataError, DataNotFoundError

SWAT_NAMES = (
    "FIT101 LIT101 MV101 P101 P102 AIT201 AIT202 AIT203 FIT201 MV201 P201 P202 P203 P204 P205 P206 DPIT301 FIT301 "
    "LIT301 MV301 MV302 MV303 MV304 P301 P302 AIT401 AIT402 FIT401 LIT401 P401 P402 P403 P404 UV401 AIT501 AIT502 "
    "AIT503 AIT504 FIT501 FIT502 FIT503 FIT504 P501 P502 PIT501 PIT502 PIT503 FIT601 P601 P602 P603"
)
SWAT = SWAT_NAMES.split()
EMPTY = ["2_LS_001_AL", "2_LS_002_AL", "2_P_001_STATUS", "2_P_002_STATUS"]
WADI = ["1_AIT_001_PV", "1_MV_001_STATUS", "2_DPIT_001_PV", *EMPTY, "2A_AIT_001_PV", "2B_AIT_001_PV", "3_FIT_001_PV"]
WADI += ["LEAK_DIFF_PRESSURE", "PLANT_START_STOP_LOG", "TOTAL_CONS_REQUIRED_FLOW"]
N_ROWS = 80


def write_swat(folder: Path, *, stages: bool, form: str) -> None:
    """Write both workbooks as CSV: a line of stages, spaces before names and times, the slip in the labels."""
    folder.mkdir(parents=True)
    for name, seed, labels in (
        ("Normal_v1", 0, ["Normal"] * N_ROWS),
        ("Attack_v0", 1, ["Normal"] * 40 + ["Attack"] * 20 + ["A ttack"] * 10 + ["Normal"] * 10),
    ):
        table = pd.DataFrame(np.random.default_rng(seed).normal(size=(N_ROWS, 51)), columns=SWAT)
        table = table.rename(columns={"MV101": " MV101", "P201": "P201 "})
        # Past noon and midnight: the half of the day must be read.
        times = pd.date_range("2015-12-22 23:59:30", periods=N_ROWS, freq="s")
        table.insert(0, " Timestamp", times.strftime(form))
        text = table.assign(**{"Normal/Attack": labels}).to_csv(index=False)
        first = "," + ",".join("P1" if i < 5 else "" for i in range(52)) + "\n"
        (folder / f"SWaT_Dataset_{name}.csv").write_text(first + text if stages else text)


@pytest.mark.parametrize(("stages", "form"), [(True, " %d/%m/%Y %I:%M:%S %p"), (False, "%Y-%m-%d %H:%M:%S")])
def test_swat(tmp_path, stages, form):
    write_swat(tmp_path / "swat", stages=stages, form=form)
    data, labels = load_dataset("swat")(DataOptions(directory=tmp_path))
    assert data.sensors == tuple(SWAT)
    assert np.array_equal(data.train[0].values, np.random.default_rng(0).normal(size=(N_ROWS, 51)))
    assert np.flatnonzero(labels.rows["SWaT_Dataset_Attack_v0"]).tolist() == list(range(40, 70))
    start = pd.Timestamp("2015-12-22 23:59:30", tz="UTC").timestamp()
    assert np.array_equal(data.test[0].time, start + np.arange(N_ROWS))


def test_wadi(tmp_path):
    """A line above the names of one file, empty columns, gaps, empty lines at the end, times without hours."""
    (tmp_path / "wadi").mkdir()
    for seed, name in enumerate(("WADI_14days_new", "WADI_attackdataLABLE")):
        table = pd.DataFrame(np.random.default_rng(seed).normal(size=(N_ROWS, len(WADI))), columns=WADI)
        table[EMPTY] = np.nan
        table.loc[10:12, "3_FIT_001_PV"] = np.nan
        table.insert(0, "Time", [f"{i // 60:02}:{i % 60:02}.0" for i in range(N_ROWS)])
        table.insert(0, "Date " if seed else "Date", "9/25/2017")
        table.insert(0, "Row " if seed else "Row", np.arange(1, N_ROWS + 1))
        if seed:
            table["Attack LABLE (1:No Attack, -1:Attack)"] = np.where(np.arange(N_ROWS) < 50, 1, -1)
        text, commas = table.to_csv(index=False), "," * (len(table.columns) - 1) + "\n"
        (tmp_path / f"wadi/{name}.csv").write_text(f"{commas}{text}{commas}{commas}" if seed else text)
    data, labels = load_dataset("wadi")(DataOptions(directory=tmp_path))
    assert data.sensors == tuple(name for name in WADI if name not in EMPTY)
    expected = pd.DataFrame(np.random.default_rng(1).normal(size=(N_ROWS, len(WADI))), columns=WADI)
    expected.loc[10:12, "3_FIT_001_PV"] = expected.loc[9, "3_FIT_001_PV"]
    assert np.array_equal(data.test[0].values, expected[list(data.sensors)].to_numpy())
    assert np.flatnonzero(labels.rows["WADI_attackdataLABLE"]).tolist() == list(range(50, N_ROWS))
    assert np.array_equal(data.test[0].time, np.arange(N_ROWS))


def test_without_a_file_or_the_folder(tmp_path):
    with pytest.raises(DataNotFoundError, match="iTrust"):
        load_dataset("swat")(DataOptions(directory=tmp_path))
    write_swat(tmp_path / "swat", stages=True, form="%Y-%m-%d %H:%M:%S")
    (tmp_path / "swat/SWaT_Dataset_Attack_v0.csv").unlink()
    with pytest.raises(DataError, match=r"SWaT_Dataset_Attack_v0\.csv"):
        load_dataset("swat")(DataOptions(directory=tmp_path))
