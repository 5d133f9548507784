"""Figures, the report and the command line on trials of several entities."""

from __future__ import annotations

import json
import statistics

import pytest
from matplotlib.figure import Figure
from scipy.integrate import trapezoid

from tests.helpers.machines import DISTANCE, MACHINES, NOISY, Made, made_machines
from tsadbench.reporting.figures.curves import roc
from tsadbench.reporting.figures.style import style
from tsadbench.reporting.html.build import report_content

N_ROWS = 240


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


def test_the_report_has_means_spreads_and_the_threshold_of_every_entity(made):
    (board,) = report_content(made.store, lambda _: made.data)["boards"]
    overall = board["tables"][0]
    assert "3 entities" in overall["about_entities"]
    row = next(one for one in overall["rows"] if one["label"] == NOISY)
    aurocs = {name: metrics["auroc"]["mean"] for name, metrics in row["entities"].items()}
    assert list(aurocs) == list(MACHINES)
    assert row["spread"]["auroc"] == pytest.approx(statistics.stdev([aurocs["alpha"], aurocs["beta"]]))
    assert row["metrics"]["auroc"]["mean"] == pytest.approx(statistics.mean([aurocs["alpha"], aurocs["beta"]]))
    detector = board["detectors"][0]
    assert [one["episode"] for one in detector["thresholds"]] == list(MACHINES)
    assert detector["curves"]["overall"][0]["entities"] == 3
    assert any("gamma" in note for note in board["notes"])
    assert json.dumps(board, allow_nan=False)
