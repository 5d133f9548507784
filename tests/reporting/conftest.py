"""A real browser, stores with hostile names, and trials on small plants."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.browser import Opened
from tests.helpers.hostile import BRACKETS, DETECTORS, LONG, QUOTES, SCRIPT, hostile_data
from tests.helpers.plans import make_plan, run_trial
from tests.helpers.reported import Reported, reported
from tests.helpers.trials import Made, made
from tsadbench.base.dataset import LabelledDataset
from tsadbench.execution.store import Store
from tsadbench.execution.trial import Outcome


@pytest.fixture
def open_page(browser):
    opened: list[Opened] = []

    def call(file: Path, **context) -> Opened:
        opened.append(Opened(browser, file, **context))
        return opened[-1]

    yield call
    for one in opened:
        one.context.close()


@pytest.fixture(scope="session")
def hostile() -> LabelledDataset:
    return hostile_data()


@pytest.fixture(scope="session")
def hostile_store(tmp_path_factory, hostile) -> Store:
    """Five detectors with contributions where they offer them; labels are hostile, one trial failed."""
    store = Store.create(tmp_path_factory.mktemp("hostile") / "runs")
    plan = make_plan(list(DETECTORS), dataset=hostile, floors=False, seeds=2, contributions=True)
    names = {"t2": SCRIPT, "max-z": QUOTES, "isolation-forest": LONG, "sensor-range": BRACKETS}
    for trial in plan.trials:
        outcome = run_trial(trial, plan)
        assert outcome.record.status == "ok"
        label = names.get(trial.contender.name, trial.contender.label)
        store.add(replace(outcome, record=replace(outcome.record, label=label)))
    failed = replace(
        outcome.record, trial="f" * 24, label="broken", status="error", reason=SCRIPT, splits={}, thresholds=()
    )
    store.add(Outcome(failed, {}, log="log"))
    return store


@pytest.fixture(scope="session")
def reported_store(tmp_path_factory) -> Reported:
    return reported(tmp_path_factory.mktemp("reported"))


@pytest.fixture(scope="session")
def plant(tmp_path_factory) -> Made:
    """Trials on a small plant for figures, with one fit."""
    return made(tmp_path_factory.mktemp("plant") / "runs", "strict")
