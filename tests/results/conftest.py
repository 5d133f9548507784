"""A run store, and a score bank built from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.plans import make_plan
from tsadbench.execution.runner import run_plan
from tsadbench.execution.store import Store
from tsadbench.results.bank import build_bank


@pytest.fixture(scope="session")
def store(tmp_path_factory) -> Store:
    """pumploop with t2, t2[mean=10] and two floors, one with a fixed threshold."""
    store = Store.create(tmp_path_factory.mktemp("stores") / "runs")
    detectors = ["t2", "t2[mean=10]", "all-positive", "max-z"]
    run_plan(make_plan(detectors, dataset="pumploop", floors=False, contributions=False), store)
    return store


@pytest.fixture(scope="session")
def built(store, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("bank") / "built"
    assert build_bank([store], folder) == {}
    return folder
