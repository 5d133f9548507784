"""Compares the pages of the site with the committed tables."""

from __future__ import annotations

import json
import re
import shutil

import pandas as pd
import pytest

from tests.helpers.hostile import QUOTES, SCRIPT
from tests.reporting.test_tables import column, html_tables
from tsadbench.errors import UsageError
from tsadbench.reporting.pages import first_page, headline, pages, read_tables
from tsadbench.utils.files import LEADERBOARDS

LABELS = ("t2", "t2[mean=10]", "dprgm", "max-z", "all-positive")


def few_tables(folder, tables, renamed=None):
    """Copy committed records of `LABELS`, under other labels if wanted, and the ranking."""
    for name in (f"{table}/records.jsonl" for table in tables):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        lines = [json.loads(line) for line in (LEADERBOARDS / name).read_text(encoding="utf-8").splitlines()]
        kept = [one for one in lines if one["label"] in LABELS]
        for one in kept:
            one["label"] = (renamed or {}).get(one["label"], one["label"])
        (folder / name).write_text("".join(json.dumps(one) + "\n" for one in kept), encoding="utf-8")
    shutil.copyfile(LEADERBOARDS / "checks.jsonl", folder / "checks.jsonl")
    shutil.copytree(LEADERBOARDS / "suites" / "all", folder / "suites" / "all")
    return read_tables(folder)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    return few_tables(tmp_path_factory.mktemp("tables"), ("skab/strict", "skab/published", "gecco2018/strict"))


@pytest.fixture(scope="module")
def made(tables):
    return pages(tables)


def test_there_is_a_page_for_each_data_set_and_each_detector(made):
    assert set(made) == {
        "tables/index.md", "tables/skab.md", "tables/gecco2018.md",
        *(f"tables/detectors/{name}.md" for name in ("t2", "dprgm", "max-z", "all-positive")),
    }  # fmt: skip


def test_a_data_sets_page_shows_the_committed_numbers_best_first(made):
    committed = pd.read_csv(LEADERBOARDS / "skab" / "strict" / "overall.csv").set_index("detector")
    first, *others = html_tables(made["tables/skab.md"])
    assert len(others) == 7, "four splits under each of two protocols"
    shown = column(first, "detector")
    assert shown == list(committed.loc[list(LABELS), "auprc_mean"].sort_values(ascending=False).index)
    for label, value in zip(shown, column(first, "AUPRC", "data-order"), strict=True):
        assert float(value) == pytest.approx(committed.loc[label, "auprc_mean"], abs=0.005)
    assert made["tables/skab.md"].index("strict 2") < made["tables/skab.md"].index("published 2")


def test_a_detectors_page_tells_where_it_beats_the_best_floor(tables, made):
    (cells,) = html_tables(made["tables/detectors/t2.md"])
    main = tables.main
    own = main[main["detector"].isin(["t2", "t2[mean=10]"])]
    found = zip(column(cells, "data set"), column(cells, "protocol"), column(cells, "row"), strict=True)
    assert set(found) == set(own[["dataset", "rules", "detector"]].itertuples(index=False, name=None))
    margins = [float(value) for value in column(cells, "vs floor", "data-order")]
    assert margins == sorted(margins, reverse=True)
    n_won = own[own["sound"] & (own["to_floor"] > 0)]["dataset"].nunique()
    assert f"on {n_won} of 2 data sets" in made["tables/detectors/t2.md"]


def test_the_first_page_has_a_dot_for_each_data_set(tables):
    ranking = pd.read_csv(LEADERBOARDS / "suites" / "all" / "rank.csv")
    ranking = ranking[ranking["complete"]]
    page = first_page(tables)
    (cells,) = html_tables(page)
    assert column(cells, "detector") == list(ranking["detector"])
    names = [name.removesuffix("_value") for name in ranking if name.endswith("_value")]
    floors = ranking[ranking["floor"]]
    for name in names:
        best = floors[f"{name}_value"].max()
        values = zip(ranking[f"{name}_value"], ranking["floor"], strict=True)
        assert column(cells, name) == ["·" if floor else "●" if value > best else "○" for value, floor in values]
    assert page.count("<svg") == 1
    svg = page[page.index("<svg") : page.index("</svg>")]
    assert svg.count("<a ") == len(ranking)


def test_the_headline_is_computed():
    row = {"floor": False, "rank_low": 1.0, "rank_high": 2.0, "a_beats_floors": 1.0, "b_beats_floors": 0.0}
    rows = [
        row | {"detector": "good"},
        row | {"detector": "near", "rank_low": 1.5},
        row | {"detector": "max-z", "floor": True, "rank_low": 2.0},
        row | {"detector": "far", "rank_low": 2.5},
    ]
    said = headline(pd.DataFrame(rows))
    assert said.startswith("good ")
    assert [int(number) for number in re.findall(r"\d+", said)] == [2, 1, 2]


def test_hostile_names_stay_text(tmp_path):
    names = {"t2": SCRIPT, "dprgm": QUOTES, "max-z": "../../../max-z"}
    made = pages(few_tables(tmp_path, ("gecco2018/strict",), names))
    assert all(re.fullmatch(r"tables/(detectors/)?[a-z0-9-]*\.md", path) for path in made)
    for text in made.values():
        assert "<script" not in text
        assert "<img" not in text
    (shown, *_) = html_tables(made["tables/gecco2018.md"])
    assert set(column(shown, "detector")) >= set(names.values())


def test_a_folder_without_tables_is_refused(tmp_path):
    with pytest.raises(UsageError, match=re.escape(str(tmp_path))):
        read_tables(tmp_path)
