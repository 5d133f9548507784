"""The page on version 2 of the rules: it is made of today's leaderboards and of the rows that version 1 had."""

from __future__ import annotations

import csv
from pathlib import Path
from types import ModuleType

import pytest

from tests.helpers.scripts import load_script

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/studies/rules.md"


@pytest.fixture
def study() -> ModuleType:
    return load_script(PAGE.with_suffix(".py"))


def test_the_committed_page_comes_from_the_committed_rows_and_leaderboards(study: ModuleType) -> None:
    assert study.page() == PAGE.read_text(encoding="utf-8")


def test_it_has_every_row_of_today_with_the_value_of_its_table(study: ModuleType) -> None:
    lines = PAGE.read_text(encoding="utf-8").partition("## SKAB, `strict`")[2].partition("\n## ")[0].splitlines()
    with (ROOT / "leaderboards/skab/strict/overall.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            (line,) = (line for line in lines if line.startswith(f"| `{row['detector']}` |"))
            assert f"{float(row['auprc_mean']):.4f}".removeprefix("0") in line.split("|")[5]


def test_a_value_that_changed_is_shown_twice_and_one_that_did_not_once(study: ModuleType) -> None:
    board = (
        "detector,seeds,auroc_mean,auroc_std,auprc_mean,auprc_std,mcc_mean,mcc_std,prac_f1_mean,prac_f1_std\n"
        "a,{seeds},{auroc},,.7,,.3,,.2,\n"
    )
    fit = '{{"label":"a","training":[{{"facts":{{"steps":{steps}}}}}]}}'
    old, new = (
        study.rows_of("t", "overall", board.format(seeds=seeds, auroc=auroc), fit.format(steps=steps))
        for seeds, auroc, steps in ((2, ".8", 36), (1, ".6", 500))
    )
    assert study.lines("t", old, new)[-1] == "| `a` | 2 → 1 | 36 → 500 | .8000 → .6000 | .7000 | .3000 | .2000 |"
