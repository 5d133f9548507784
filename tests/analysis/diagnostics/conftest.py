"""A stored trial whose flags were put down by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from tsadbench import Dataset, Labels, Recording
from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.protocol import EpisodeThreshold, SplitJudgement, Threshold
from tsadbench.execution.record import SCHEMA, Record
from tsadbench.execution.run_store import Store
from tsadbench.execution.trial import Outcome

# Rows 0 and 1 are not evaluated. "x" stands for an anomalous row, and for a flagged one.
ANOMALOUS = {"a": ".....xxx....", "b": "xxxx....xx", "c": "........"}
FLAGGED = {"a": "x..x..xxx..x", "b": "..x..xxx..", "c": "........"}
MINUTES = {"a": list(range(12)), "b": [0, 1, 2, 3, 4, 5, 6, 7, 8, 52], "c": list(range(8))}
SPLITS = {"overall": ("a", "b", "c"), "a": ("a",), "b": ("b",), "c": ("c",)}


def rows(text: str) -> np.ndarray:
    return np.array([character == "x" for character in text])


def make_dataset(timeless: tuple[str, ...] = ()) -> LabelledDataset:
    """The data set "hand": a row a minute, but for a gap in b; some recordings without time where asked for."""

    def recording(name: str, minutes: list[int]) -> Recording:
        values = np.random.default_rng(len(minutes)).normal(size=(len(minutes), 2))
        time = None if name in timeless else 60.0 * np.array(minutes)
        return Recording(name, values, ("p", "q"), time)

    train = (recording("normal", list(range(40))),)
    dataset = Dataset("hand", train, tuple(recording(name, minutes) for name, minutes in MINUTES.items()), SPLITS)
    return LabelledDataset(dataset, Labels({name: rows(text) for name, text in ANOMALOUS.items()}, SPLITS))


@pytest.fixture
def store(tmp_path) -> Store:
    return Store.create(tmp_path / "runs")


@pytest.fixture
def add(store) -> Callable[..., Record]:
    """Puts a trial of a detector into the store that flags what is asked for (score 2, else 0, NaN for "?")."""

    def call(
        data: LabelledDataset,
        flagged: Mapping[str, str] = FLAGGED,
        *,
        label: str = "mine",
        seed: int = 0,
        look_ahead: int = 2,
        protocol: str = "strict[warm_up=2]",
        status: str = "ok",
        score_seconds: float = 2.0,
    ) -> Record:
        values = {".": 0.0, "x": 2.0, "?": np.nan}
        scores = {f"test/all/{name}": np.array([values[one] for one in text]) for name, text in flagged.items()}
        judged = SplitJudgement({"auroc": 0.5, "auprc": 0.5, "prac_f1": 0.5}, 24, 7, 1.0)
        threshold = Threshold(value=1.0, method="pot", status="ok")
        record = Record(
            schema=SCHEMA,
            trial=f"{label}-{seed}",
            detector=label,
            label=label,
            family="statistics",
            parameters={},
            floor=False,
            look_ahead=look_ahead,
            dataset=data.dataset.name,
            protocol=protocol,
            notes=(),
            seed=seed,
            threads=1,
            status=status,
            reason=None if status == "ok" else "it broke",
            splits=dict.fromkeys(data.labels.splits, judged) if status == "ok" else {},
            thresholds=(EpisodeThreshold("all", threshold),) if status == "ok" else (),
            fit_seconds=1.0,
            score_seconds=score_seconds,
            peak_memory_mib=1.0,
            manifest={"data_hash": data.dataset.content_hash, "labels_hash": data.labels.content_hash},
        )
        train = {f"train/all/{one.id}": np.zeros(one.n_rows) for one in data.dataset.train}
        store.add(Outcome(record, {**train, **scores} if status == "ok" else {}))
        return record

    return call


@pytest.fixture
def folder(store) -> Path:
    return store.path
