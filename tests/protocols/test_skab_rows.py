"""`published` and `strict` on SKAB's files: the paper's row counts, and those under the stricter rules."""

from __future__ import annotations

import pytest

from tests.helpers.protocol_plant import pressure, trial
from tsadbench.base.dataset import LabelledDataset
from tsadbench_protocols.published import Published
from tsadbench_protocols.strict import Strict

pytestmark = pytest.mark.skab


def test_published_evaluates_the_papers_windows(skab: LabelledDataset) -> None:
    found = trial(Published(), skab, pressure)
    assert {name: split.n_rows for name, split in found.splits.items()} == {
        "overall": 37_362,
        "valve1": 18_130,
        "valve2": 4_312,
        "other": 14_920,
    }
    assert found.splits["overall"].n_anomalous == 13_067
    assert found.thresholds[0].threshold.n == 9_366


def test_strict_evaluates_each_file_after_its_warm_up(skab: LabelledDataset) -> None:
    found = trial(Strict(), skab, pressure)
    assert {name: split.n_rows for name, split in found.splits.items()} == {
        "overall": 36_381,
        "valve1": 17_680,
        "valve2": 4_192,
        "other": 14_509,
    }
    assert found.splits["overall"].n_anomalous == 13_067
    assert found.thresholds[0].threshold.n == 8_803


def test_strict_drops_the_572_training_rows_that_are_also_in_a_test_file(skab: LabelledDataset) -> None:
    (episode,) = Strict().episodes(skab.dataset)
    assert [(one.id, one.n_rows) for one in episode.train] == [("anomaly-free[0:8833]", 8_833)]
    (whole,) = skab.dataset.train
    dropped = {(t, *row) for t, row in zip(whole.time[8_833:], whole.values[8_833:].tolist(), strict=True)}
    in_test = {(t, *row) for one in skab.dataset.test for t, row in zip(one.time, one.values.tolist(), strict=True)}
    assert len(dropped) == 572
    assert dropped <= in_test
