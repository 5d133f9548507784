"""Trials on a small plant with a fit per recording, and a figure."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from tests.helpers.trials import DISTANCE, Made, made
from tsadbench.reporting.figures.style import style


@pytest.fixture(scope="session")
def many_fits(tmp_path_factory) -> Made:
    return made(tmp_path_factory.mktemp("many") / "runs", "skab", ["skab.train_rows=90"], [DISTANCE])


@pytest.fixture
def figure():
    with style():
        yield Figure(layout="constrained")
