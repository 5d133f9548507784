"""Figures, the report and the command line on trials of several entities."""

from __future__ import annotations

import json
import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.integrate import trapezoid

from tests.helpers.machines import DISTANCE, MACHINES, NOISY, Made, made_machines
from tsadbench.reporting.figures.curves import precision_recall, roc
from tsadbench.reporting.figures.densities import density
from tsadbench.reporting.figures.style import style
from tsadbench.reporting.figures.threshold import threshold
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
    axes = roc([result], axes=figure.add_subplot())
    overall = result.record.splits["overall"]
    curve = line(axes, f"{overall.metrics['auroc']:.3f}"[1:])
    assert trapezoid(curve.get_ydata(), curve.get_xdata()) == pytest.approx(overall.metrics["auroc"], abs=2e-3)
    (_,), (recall,) = line(axes, "_threshold").get_data()
    assert recall == pytest.approx(overall.metrics["recall"])
    assert "the mean of 3 fits' curves" in axes.get_legend().get_title().get_text()


def test_the_line_of_chance_is_the_mean_share_of_anomalous_rows(made, figure):
    axes = precision_recall(made.results()[:1], axes=figure.add_subplot())
    shares = [(40 + 15) / 420, 50 / 420]  # of alpha and beta, without the 30 rows of the warm-ups
    assert line(axes, "_chance").get_ydata()[0] == pytest.approx(statistics.mean(shares))


def test_distributions_share_an_axis_in_units_of_the_thresholds(made, figure):
    assert density(made.results()[0], axes=figure.add_subplot()).get_xlabel() == "score / its fit's threshold"


def test_a_threshold_is_drawn_for_one_entity_which_is_named(made, figure):
    threshold(made.results()[:1], "beta/2", figure=figure)
    (part,) = figure.subfigs
    assert "fit of beta" in part.get_suptitle()


def test_the_report_has_means_spreads_and_the_threshold_of_every_entity(made):
    (board,) = report_content(made.store, lambda _: made.data)["boards"]
    overall = board["tables"][0]
    assert overall["about_entities"] == ", mean over 3 entities, one model each"
    row = next(one for one in overall["rows"] if one["label"] == NOISY)
    aurocs = {name: metrics["auroc"]["mean"] for name, metrics in row["entities"].items()}
    assert list(aurocs) == list(MACHINES)
    assert row["spread"]["auroc"] == pytest.approx(statistics.stdev([aurocs["alpha"], aurocs["beta"]]))
    assert row["metrics"]["auroc"]["mean"] == pytest.approx(statistics.mean([aurocs["alpha"], aurocs["beta"]]))
    detector = board["detectors"][0]
    assert [one["episode"] for one in detector["thresholds"]] == list(MACHINES)
    assert detector["curves"]["overall"][0]["entities"] == 3
    assert any("gamma are not of both classes" in note for note in board["notes"])
    assert json.dumps(board, allow_nan=False)


def test_a_page_of_a_data_set_without_entities_has_none(made, tmp_path):
    data = made.data._replace(dataset=replace(made.data.dataset, entities={}))
    one = made_machines(tmp_path, DISTANCE, data=data)
    (board,) = report_content(one.store, lambda _: data)["boards"]
    assert board["tables"][0]["about_entities"] == ""
    (row,) = board["tables"][0]["rows"]
    assert (row["entities"], row["spread"]) == ({}, {})


CARD = """
schema = 1
name = "machines"
[train]
files = ["*/train.csv"]
[test]
files = ["*/run.csv"]
[columns]
label = "anomaly"
[entities]
alpha = ["alpha/*"]
beta = ["beta/*"]
"""


@pytest.fixture
def card(made, tmp_path) -> Path:
    by_id = {one.id: one for one in (*made.data.dataset.train, *made.data.dataset.test)}
    for machine in ("alpha", "beta"):
        (tmp_path / machine).mkdir()
        for part, file in (("a", "train"), ("1", "run")):
            values = by_id[f"{machine}/{part}"].values
            labels = made.data.labels.rows.get(f"{machine}/{part}", np.zeros(N_ROWS, dtype=bool)).astype(int)
            rows = [f"{a!r},{b!r},{label}" for (a, b), label in zip(values.tolist(), labels, strict=True)]
            (tmp_path / machine / f"{file}.csv").write_text("\n".join(["load,memory,anomaly", *rows]) + "\n")
    path = tmp_path / "card.toml"
    path.write_text(CARD)
    return path


def test_a_card_with_entities_is_run_ranked_and_fitted_entity_by_entity(card, tmp_path, tsadbench):
    arguments = ("--dataset", card, "-d", "t2", "--no-floors", "--out", tmp_path / "runs")
    done = tsadbench("run", *arguments, "--format", "json")
    assert done.code == 0, done.err
    (row,) = json.loads(done.out)["rows"]
    assert list(row["entities"]) == ["alpha", "beta"]
    assert {one["episode"] for one in row["threshold"]} == {"alpha", "beta"}
    fit = ("fit", "-d", "t2", "--dataset", card, "--out", tmp_path / "t2.model")
    refused = tsadbench(*fit)
    assert refused.code == 2
    assert "choose an entity by --entity: alpha, beta" in refused.err
    assert tsadbench(*fit, "--entity", "beta").out.startswith(
        f"{tmp_path}/t2.model: t2, fitted on 240 rows of machines, beta,"
    )
    refused = tsadbench("run", *arguments, "--protocol", "published")
    assert refused.code == 2
    assert "has 2 entities: choose strict" in refused.err
    assert "Traceback" not in refused.err
