"""Stored trials with hand-written flags."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from tests.helpers.flags import FLAGGED
from tests.helpers.records import record
from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.protocol import EpisodeThreshold, SplitJudgement, Threshold
from tsadbench.execution.judging import arrays_hash
from tsadbench.execution.record import Record
from tsadbench.execution.store import Store
from tsadbench.execution.trial import Outcome


@pytest.fixture
def store(tmp_path) -> Store:
    return Store.create(tmp_path / "runs")


@pytest.fixture
def add(store) -> Callable[..., Record]:
    """Return a function that stores a trial with the given flags (score 2 for "x", 0 for ".", NaN for "?")."""

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
        train = {f"train/all/{one.id}": np.zeros(one.n_rows) for one in data.dataset.train}
        kept = {f"all/{name}": values.astype(np.float32) for name, values in (contributions or {}).items()}
        made = replace(
            record(label, seed, floor=floor, status=status, dataset=data.dataset.name),
            trial=f"{label}-{seed}",
            look_ahead=2,
            protocol="strict[warm_up=2]",
            rows_scored=sum(one.n_rows for one in (*data.dataset.train, *data.dataset.test)),
            score_seconds=2.0,
            manifest={
                "data_hash": data.dataset.content_hash,
                "labels_hash": data.labels.content_hash,
                "scores_hash": arrays_hash({**train, **scores}),
                **({"contributions_hash": arrays_hash(kept)} if kept else {}),
            },
        )
        if status == "ok":
            judged = SplitJudgement({"auroc": 0.5, "auprc": 0.5, "prac_f1": 0.5}, 24, 7, 1.0)
            threshold = EpisodeThreshold("all", Threshold(value=1.0, method="pot", status="ok"))
            made = replace(made, splits=dict.fromkeys(data.labels.splits, judged), thresholds=(threshold,))
        store.add(Outcome(made, {**train, **scores} if status == "ok" else {}, kept))
        return made

    return call
