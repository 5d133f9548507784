"""Figures, the report and the command line on trials of several entities."""

from __future__ import annotations

import re
import statistics

import pytest
from matplotlib.figure import Figure
from scipy.integrate import trapezoid

from tests.helpers.machines import DISTANCE, MACHINES, NOISY, Made, made_machines
from tests.reporting.test_tables import Cells, column
from tsadbench.reporting.figures.curves import roc
from tsadbench.reporting.figures.style import style
from tsadbench.reporting.report import write_report


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Made:
    return made_machines(tmp_path_factory.mktemp("made"), DISTANCE, NOISY, seeds=2)


@pytest.fixture
def figure():
    with style():
        yield Figure(layout="constrained")


def line(axes, label):
    (found,) = (one for one in axes.get_lines() if str(one.get_label()).startswith(label))
    return found


def test_a_roc_curve_is_the_mean_over_entities_and_its_marker_lies_by_the_tables_recall(made, figure):
    result = made.results()[0]
    axes = roc([result], ax=figure.add_subplot())
    overall = result.record.splits["overall"]
    curve = line(axes, f"{overall.metrics['auroc']:.3f}"[1:])
    assert trapezoid(curve.get_ydata(), curve.get_xdata()) == pytest.approx(overall.metrics["auroc"], abs=2e-3)
    (_,), (recall,) = line(axes, "_threshold").get_data()
    assert recall == pytest.approx(overall.metrics["recall"])
    assert "3 fits" in axes.get_legend().get_title().get_text()


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
