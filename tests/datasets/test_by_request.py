"""Data sets whose files the tests lack: small files in the published layout, with its errors."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from tsadbench.base.dataset import DataOptions
from tsadbench.datasets.loading import load_dataset
from tsadbench.datasets.reader import load_card
from tsadbench.datasets.shipped import CATALOGUE, Source, find
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
    """Write both workbooks as CSV: a line of stages, spaces before names and times, the typo in the labels."""
    folder.mkdir(parents=True)
    for name, seed, labels in (
        ("Normal_v1", 0, ["Normal"] * N_ROWS),
        ("Attack_v0", 1, ["Normal"] * 40 + ["Attack"] * 20 + ["A ttack"] * 10 + ["Normal"] * 10),
    ):
        table = pd.DataFrame(np.random.default_rng(seed).normal(size=(N_ROWS, 51)), columns=SWAT)
        table = table.rename(columns={"MV101": " MV101", "P201": "P201 "})
        # Across midnight: AM and PM must be read.
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


class Layout(NamedTuple):
    """What a card should load from the files that one of the functions below writes."""

    n_sensors: int
    train: dict[str, int]  # recording -> rows
    test: dict[str, int]
    anomalous: dict[str, list[int]]  # recording -> rows
    entities: int = 0
    sessions: int = 1


def table(names: list[str], n_rows: int = N_ROWS, **columns: object) -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(len(names)).normal(size=(n_rows, len(names))), columns=names).assign(
        **columns
    )


def write_psm(folder: Path) -> Layout:
    """Times in minutes, empty cells in the training file, a file of labels."""
    names = [f"feature_{i}" for i in range(25)]
    for name, first in (("train", 0), ("test", 132480)):
        frame = table(names, index=np.arange(first, first + N_ROWS, dtype=float)).set_index("index")
        frame.rename_axis("timestamp_(min)").to_csv(folder / f"{name}.csv")
    gap = pd.read_csv(folder / "train.csv", index_col=0)
    gap.iloc[5:8, 3] = np.nan
    gap.to_csv(folder / "train.csv")
    label = pd.DataFrame({"timestamp_(min)": frame.index, "label": (np.arange(N_ROWS) // 10 == 4).astype(int)})
    label.to_csv(folder / "test_label.csv", index=False)
    return Layout(25, {"train": N_ROWS}, {"test": N_ROWS}, {"test": [*range(40, 50)]})


def write_hai(folder: Path) -> Layout:
    """Ten files with a column of labels in each."""
    names = ["P1_B2004", "P1_PP04SP", "P2_24Vdc", "P3_LIT01", "P4_ST_TT01"]
    parts = [f"train{i}" for i in range(1, 7)], [f"test{i}" for i in range(1, 5)]
    for number, part in enumerate([*parts[0], *parts[1]]):
        frame = table(names, Attack=(part == "test2") & (np.arange(N_ROWS) >= 70))
        times = pd.date_range(f"2021-07-{10 + number} 00:00:01", periods=N_ROWS, freq="s")
        frame.insert(0, "timestamp", times.strftime("%Y-%m-%d %H:%M:%S"))
        frame.assign(Attack=frame["Attack"].astype(int)).to_csv(folder / f"{part}.csv", index=False)
    lengths = [dict.fromkeys(part, N_ROWS) for part in parts]
    return Layout(5, *lengths, {part: [] for part in parts[1]} | {"test2": [*range(70, 80)]}, sessions=10)


def write_catsv2(folder: Path) -> Layout:
    """Labels as floats, and the category of an anomaly as text."""
    names = ["aimp", "amud", "arnd", "asin1", "asin2", "adbr", "adfl", "bed1", "bed2", "bfo1", "bfo2"]
    names += ["bso1", "bso2", "bso3", "ced1", "cfo1", "cso1"]
    y = (np.arange(N_ROWS) >= 60).astype(float)
    frame = table(names, y=y, category=np.where(y > 0, "2.0", "0.0"))
    frame.insert(0, "timestamp", pd.date_range("2023-01-01", periods=N_ROWS, freq="s"))
    frame.to_csv(folder / "data.csv", index=False)
    return Layout(17, {"data/train": 40}, {"data/test": 40}, {"data/test": [*range(20, 40)]})


def write_exathlon(folder: Path) -> Layout:
    """The published files, with run names in column names, converted by the pandas code in the card's comment.

    One event has no extended effect; another is in an application that the card leaves out.
    """
    names = [f"node{i}_CPU_ALL_Idle%" for i in range(5, 9)]
    names += ["driver_BlockManager_memory_memUsed_MB_value", "driver_jvm_heap_used_value", "node5_other"]
    counts = [f"executor_{one}_count" for one in ("cpuTime", "runTime", "shuffleRecordsRead", "shuffleRecordsWritten")]
    counts += ["executor_filesystem_hdfs_write_ops_value", "jvm_heap_used_value"]
    names += [f"{i}_{one}" for i in range(1, 6) for one in counts]
    own = [f"lastCompletedBatch_{one}Delay_value" for one in ("processing", "scheduling", "total")]
    own += [f"total{one}_value" for one in ("CompletedBatches", "ProcessedRecords", "ReceivedRecords")]
    own += ["lastReceivedBatch_records_value"]
    runs = {app: [f"{app}_0_10000_{app}", f"{app}_4_10000_{app + 20}"] for app in (1, 2, 3, 4, 5, 6, 7, 9, 10)}
    for app, both in runs.items():
        (folder / f"data/raw/app{app}").mkdir(parents=True)
        for run in both:
            frame = table([*names, *(f"driver_app_{run}_a_b_c_StreamingMetrics_streaming_{one}" for one in own)])
            frame.insert(0, "t", 1528900000 + np.arange(N_ROWS))
            frame.loc[10:20, [name for name in names if name[:2] == "5_"]] = np.nan  # an executor that is not active
            frame.to_csv(folder / f"data/raw/app{app}/{run}.csv", index=False)
    events = [(runs[1][1], 30, 35, 39), (runs[10][1], 50, 54, None), (runs[7][1], 30, 35, 39)]
    columns = ["trace_name", "root_cause_start", "root_cause_end", "extended_effect_end"]
    truth = pd.DataFrame(events, columns=columns)
    truth[columns[1:]] += 1528900000
    truth.to_csv(folder / "data/raw/ground_truth.csv", index=False)
    card = (CATALOGUE / "cards/exathlon.toml").read_text()
    lines = "\n".join(line[4:] for line in card.splitlines() if line.startswith("#   "))
    exec(
        lines.replace('Path("data/raw"), pathlib.Path("exathlon")', "Path(raw), pathlib.Path(out)"),
        {"raw": folder / "data/raw", "out": folder},
    )
    apps = [both for app, both in runs.items() if app != 7]
    anomalous = {both[1]: list[int]() for both in apps}
    anomalous |= {runs[1][1]: [*range(29, 39)], runs[10][1]: [*range(49, 54)]}  # the first row has no difference
    lengths = [{both[i]: N_ROWS - 1 for both in apps} for i in (0, 1)]
    return Layout(19, *lengths, anomalous, entities=8, sessions=16)


def write_metropt3(folder: Path) -> Layout:
    """A column without a name, rows every half hour across all four reported failures."""
    names = ["TP2", "TP3", "H1", "DV_pressure", "Reservoirs", "Oil_temperature", "Motor_current"]
    names += ["COMP", "DV_eletric", "Towers", "MPG", "LPS", "Pressure_switch", "Oil_level", "Caudal_impulses"]
    times = pd.date_range("2020-04-01", "2020-08-01", freq="30min")
    frame = table(names, len(times))
    frame.insert(0, "timestamp", times.strftime("%Y-%m-%d %H:%M:%S"))
    frame.to_csv(folder / "MetroPT3(AirCompressor).csv")
    rows = [17 * 48 + i for i in range(48)]  # all of 18 April
    rows += [58 * 48 + 47 + i for i in range(14)]  # 29 May 23:30 to 30 May 6:00
    rows += [65 * 48 + 20 + i for i in range(106)]  # 5 June 10:00 to 7 June 14:30
    rows += [105 * 48 + 29 + i for i in range(10)]  # 15 July 14:30 to 19:00
    file = "MetroPT3(AirCompressor)"
    return Layout(
        15, {f"{file}/train": 40}, {f"{file}/test": len(times) - 40}, {f"{file}/test": [i - 40 for i in rows]}
    )


@pytest.mark.parametrize("write", [write_psm, write_hai, write_catsv2, write_exathlon, write_metropt3])
def test_published_layout(tmp_path, write):
    """The card reads its files, with forty training rows where the real file has a million."""
    name = write.__name__.removeprefix("write_")
    for folder in ("cards", name):
        (tmp_path / folder).mkdir()
    layout = write(tmp_path / name)
    card = Path(shutil.copy(CATALOGUE / f"cards/{name}.toml", tmp_path / "cards"))
    card.write_text(re.sub(r"(?m)^rows = \d+$", "rows = 40", card.read_text()))
    for file in (CATALOGUE / "cards").glob(f"{name}.events.csv"):
        shutil.copy(file, tmp_path / "cards")
    data, labels = load_card(card, find(name, tmp_path))
    assert (data.name, len(data.sensors), data.licence) == (name, layout.n_sensors, Source.load(name).licence)
    assert {one.id: one.n_rows for one in data.train} == layout.train
    assert {one.id: one.n_rows for one in data.test} == layout.test
    assert {one: np.flatnonzero(rows).tolist() for one, rows in labels.rows.items()} == layout.anomalous
    assert len({*data.entities.values()}) == layout.entities
    assert len({*data.session_of.values()}) == layout.sessions
    first = next(iter(Source.load(name).sha256))
    (tmp_path / name / first).unlink()
    with pytest.raises(DataNotFoundError, match=re.escape(first)) as raised:
        load_dataset(name)(DataOptions(directory=tmp_path))
    assert "\n" not in str(raised.value)
