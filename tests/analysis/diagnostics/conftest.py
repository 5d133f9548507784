"""A stored trial whose flags were put down by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from tests.helpers.flags import FLAGGED
from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.protocol import EpisodeThreshold, SplitJudgement, Threshold
from tsadbench.execution.record import SCHEMA, Record
from tsadbench.execution.store import Store
from tsadbench.execution.trial import Outcome


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
        status: str = "ok",
        floor: bool = False,
        contributions: Mapping[str, np.ndarray] | None = None,
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
            floor=floor,
            look_ahead=2,
            dataset=data.dataset.name,
            protocol="strict[warm_up=2]",
            notes=(),
            seed=seed,
            threads=1,
            status=status,
            reason=None if status == "ok" else "it broke",
            splits=dict.fromkeys(data.labels.splits, judged) if status == "ok" else {},
            thresholds=(EpisodeThreshold("all", threshold),) if status == "ok" else (),
            fit_seconds=1.0,
            score_seconds=2.0,
            rows_scored=sum(one.n_rows for one in (*data.dataset.train, *data.dataset.test)),
            peak_memory_mib=1.0,
            protocol_version=2,
            scoring=f"{label}-{seed}",
            judging="rules",
            manifest={
                "data_hash": data.dataset.content_hash,
                "labels_hash": data.labels.content_hash,
                **({"contributions_hash": "made by hand"} if contributions else {}),
            },
        )
        train = {f"train/all/{one.id}": np.zeros(one.n_rows) for one in data.dataset.train}
        kept = {f"all/{name}": values.astype(np.float32) for name, values in (contributions or {}).items()}
        store.add(Outcome(record, {**train, **scores} if status == "ok" else {}, kept))
        return record

    return call
