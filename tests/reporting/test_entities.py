"""Figures, the report and the command line on trials of several entities."""

from __future__ import annotations

import re
import statistics

import pytest

from tests.helpers.machines import DISTANCE, MACHINES, NOISY, Made, made_machines
from tests.reporting.test_tables import Cells, column
from tsadbench.reporting.report import write_report


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Made:
    return made_machines(tmp_path_factory.mktemp("made"), DISTANCE, NOISY, seeds=2)


def test_the_report_has_the_means_over_entities(made, tmp_path):
    text = write_report(made.store, lambda _: made.data, tmp_path).read_text(encoding="utf-8")
    cells = Cells(re.search(r"<table.*?</table>", text, re.S)[0])
    seeds = [one.splits["overall"].entities for one in made.store.records() if one.label == NOISY]
    assert all(set(entities) == set(MACHINES) for entities in seeds)
    aurocs = [of["auroc"] for entities in seeds for of in entities.values() if of["auroc"] is not None]
    found = dict(zip(column(cells, "detector"), column(cells, "AUROC", "data-order"), strict=True))
    assert float(found[NOISY]) == pytest.approx(statistics.mean(aurocs), abs=0.005)
    assert "3 entities" in text
    assert "gamma" in text
