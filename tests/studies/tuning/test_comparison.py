"""The page: defaults, winners and the oracle, from a real comparison on the small data set."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from tests.helpers.data import make_data
from tests.tuning.conftest import Listens
from tsadbench import UsageError
from tsadbench.execution.run_store import Store
from tsadbench.execution.runner import run_plan
from tsadbench.studies.tuning.comparison import _offered, compare
from tsadbench.studies.tuning.page import _signed, page
from tsadbench.tuning.objective import OBJECTIVES
from tsadbench.tuning.task import Settings


@pytest.fixture
def compared(tmp_path):
    def make(detector):
        return compare(
            detector,
            make_data(),
            Settings(trials=3, folds=2),
            seeds=2,
            out=tmp_path / "tuning",
            run=partial(run_plan, store=Store.create(tmp_path / "runs")),
            watch=lambda task: Listens(),
        )

    return make


@pytest.mark.slow
def test_the_oracle_is_never_worse_and_every_row_is_what_the_store_holds(compared, tmp_path):
    one = compared("mset")
    assert set(one.studies) == {"injection", "heldout"}
    labels = {one.default, one.oracle, *(study.label for study in one.studies.values())}
    assert labels == set(one.records)
    assert one.mean(one.oracle) == max(one.mean(label) for label in labels)
    kept: Mapping = {record.label: record for record in Store.open(tmp_path / "runs").records()}
    assert one.n_points == len(kept)
    assert one.mean(one.oracle) == max(record.splits["overall"].metrics["auprc"] for record in kept.values())
    for study in one.studies.values():
        assert kept[study.label].manifest["tuning"]["study"]
    text = page([one], "tsadbench tune report")
    assert "not by hand" in text
    assert "*oracle, of test labels*" in text
    for label in labels:
        mean = one.mean(label)
        assert f"| `{label}` |" in text
        assert f"| {mean:.4f} |".replace(" 0.", " .") in text
    gain = one.mean(one.studies["heldout"].label) - one.mean("mset")
    assert f"`heldout`: of 1 cases better than the defaults in {int(gain > 0.005)}" in text
    # What does not depend on results is up to date in docs/tuning.md.
    committed = (Path(__file__).parents[3] / "docs/tuning.md").read_text(encoding="utf-8")
    assert text.partition("## How it is done")[2] in committed
    for kind in ("spike", "level-shift", "drift", "stuck", "noise-burst", "broken-coupling"):
        assert f"| {kind} |" in text


def test_a_detector_without_a_loss_is_tuned_by_injection_alone():
    assert _offered("t2-q", OBJECTIVES) == ["injection"]
    assert _offered("mset[ridge=0.001]", OBJECTIVES) == ["injection", "heldout"]
    assert _offered("mset", ["heldout"]) == ["heldout"]
    with pytest.raises(UsageError, match="t2-q has no held-out loss"):
        _offered("t2-q", ["heldout"])


def test_a_floor_is_not_tuned(compared):
    with pytest.raises(UsageError, match="declares no search space"):
        compared("max-z")


def test_a_difference_that_is_none_has_no_minus():
    assert [_signed(value, 4) for value in (-0.00004, -0.00006, 0.25)] == ["+.0000", "-.0001", "+.2500"]
