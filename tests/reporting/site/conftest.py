"""Three small sites: rows of the committed tables, rows with hostile names, and rows with scores."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.helpers.banked import bank_of
from tests.helpers.few_tables import few_tables
from tsadbench.datasets.loading import loader
from tsadbench.reporting.site.build import write_site
from tsadbench.utils.files import LEADERBOARDS

LABELS = (
    "t2", "t2[mean=10]", "pca", "cva", "isolation-forest", "dprgm", "gdn", "gdn[quirks=on]", "vanilla-ae",
    "all-positive", "max-z", "l2-z", "sensor-range[mean=10]", "nearest-neighbour",
)  # fmt: skip
BANKED = ("t2", "pca", "max-z", "all-positive")
SCRIPT = "<script>window.hit=1</script>"
QUOTES = "'\"><img src=x onerror='window.hit=1'>"
DATASET = "<img src=x onerror=window.hit=1>"


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    tables = few_tables(
        tmp_path_factory.mktemp("tables"), ("skab/strict", "skab/published", "gecco2018/strict"), LABELS
    )
    shutil.copytree(LEADERBOARDS / "suites" / "all", tables / "suites" / "all")
    return write_site(tables, tmp_path_factory.mktemp("site"), documentation="docs/").folder


@pytest.fixture(scope="session")
def hostile_site(tmp_path_factory) -> Path:
    tables = few_tables(
        tmp_path_factory.mktemp("hostile"),
        ("gecco2018/strict",),
        ("t2", "pca", "cva", "max-z", "l2-z"),
        {"t2": SCRIPT, "pca": QUOTES, "cva": "../../../cva"},
        DATASET,
    )
    return write_site(tables, tmp_path_factory.mktemp("hostile-site")).folder


@pytest.fixture(scope="session")
def scored_tables(tmp_path_factory) -> Path:
    """Tables of pumploop with a bank beside them, which has a label more and one less than they have."""
    tables = few_tables(tmp_path_factory.mktemp("scored"), ("pumploop/strict",), (*BANKED, "l2-z"))
    records = LEADERBOARDS / "pumploop" / "strict" / "records.jsonl"
    bank_of(tables / "bank", records, loader([], None)("pumploop"), (*BANKED, "l1-z"))
    return tables


@pytest.fixture(scope="session")
def scored_site(scored_tables, tmp_path_factory) -> Path:
    return write_site(scored_tables, tmp_path_factory.mktemp("scored-site"), bank=scored_tables / "bank").folder
