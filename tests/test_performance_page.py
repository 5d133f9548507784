"""docs/performance.md: its tables are those of the committed measurements, and the script that writes them."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

from tests.helpers.scripts import load_script

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/performance.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def measure() -> ModuleType:
    return load_script(ROOT / "docs/performance/measure.py")


def cost(fit: float, unit: float) -> dict[str, object]:
    return {"seconds": {"fit": fit, "score": 2.0}, "unit": unit, "product_rate": 2e11, "epochs": 3}


def test_ratios_are_those_of_reference_loops(measure):
    # Before: 40 s, 400 loops. Now: 12 s on a machine that is half as fast at that time, 60 loops.
    work = {
        "before": cost(38.0, 0.1),
        "now": cost(10.0, 0.2),
        "operations": 6e11,
        "shares": {"products": 0.7, "copies": 0.26, "other": 0.04},
        "others": {},
    }
    row = measure.table({"gdn": work})[-1]
    assert [cell.strip() for cell in row.strip("|").split("|")] == [
        "`gdn`", "0.60 TFLOP", "3.0 s", "40.0 s", "12.0 s", "3 → 3", "0.15", "4.0", "products 70%, copies 26%",
    ]  # fmt: skip


def test_metrics_before_and_now_are_compared_in_deviations(measure):
    def row(auroc: str, std: str) -> dict[str, str]:
        others = {f"{metric}_{part}": "0.5" for metric in ("auprc", "bf_f1", "mcc") for part in ("mean", "std")}
        return {"auroc_mean": auroc, "auroc_std": std, "seeds": "5", **others}

    lines = measure.quality_table({"gdn": row("0.60", "0.02")}, {"gdn": row("0.63", "0.01")})
    assert ".6000(.0200) → .6300(.0100)" in lines[-1]
    assert "1.5 std (AUROC)" in lines[-1]


def test_the_page_holds_what_was_measured(measure):
    assert "\n".join(measure.table(json.loads(measure.MEASURED.read_text(encoding="utf-8")))) in PAGE
    assert "\n".join(measure.overhead_table(json.loads(measure.MEASURED_OVERHEAD.read_text(encoding="utf-8")))) in PAGE


@pytest.mark.parametrize("words", [["--epochs", "0"], ["--write", "--epochs", "1"]])
def test_wrong_options(measure, words, capsys):
    with pytest.raises(SystemExit) as ended:
        measure.main(words)
    assert ended.value.code == 2
    assert "expected" in capsys.readouterr().err


def test_a_version_that_git_does_not_know(measure, tmp_path):
    with pytest.raises(SystemExit, match="expected a version in this repository's history"):
        measure.export("0123456789abcdef", tmp_path)
