"""Tasks over the small data set."""

from __future__ import annotations

import pytest

from tests.helpers.data import make_data
from tests.helpers.plans import make_plan
from tsadbench.tuning.task import Settings, Task, make_task


@pytest.fixture
def task():
    """A function that makes a task on the small data set, in two folds, for a shipped detector or one of `tunable`."""

    def make(detector, **settings) -> Task:
        own = detector.partition("[")[0].isalpha()
        name = f"tests.helpers.tunable:{detector}" if own else detector
        plan = make_plan([name], dataset=make_data(), seeds=1, floors=False)
        return make_task(plan, Settings(**{"folds": 2, "trials": 4, **settings}))

    return make


@pytest.fixture
def storage(tmp_path) -> str:
    return f"sqlite:///{tmp_path}/studies.sqlite3"
