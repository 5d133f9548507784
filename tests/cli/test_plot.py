"""`tsadbench plot` and `tsadbench explain` as a user types them."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest

from tests.helpers.plans import make_plan
from tsadbench.base.dataset import DataOptions
from tsadbench.datasets.loading import load_dataset
from tsadbench.execution.run_store import Store
from tsadbench.execution.runner import run_plan


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A store of trials on pumploop; that of max-z kept no contributions."""
    store = Store.create(tmp_path_factory.mktemp("made") / "runs")
    for names, kept in ((["t2", "random"], True), (["max-z"], False)):
        plan = make_plan(names, dataset="pumploop", floors=False, seeds=2, contributions=kept)
        assert {record.status for record in run_plan(plan, store)} == {"ok"}
    return store.path


@pytest.fixture(autouse=True)
def loaded_once(monkeypatch):
    """Every command loads pumploop: here it is the same one."""
    monkeypatch.setattr("tsadbench.leaderboard.selection.load_dataset", lambda name: lambda options: _load(name))


@cache
def _load(name):
    return load_dataset(name)(DataOptions())


KINDS = pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("roc", ["--split", "valve2"]),
        ("precision-recall", ["--detector", "t2"]),
        ("recording", ["--recording", "valve1/3", "--detector", "t2"]),
        ("densities", ["--seed", "1"]),
        ("threshold", ["--detector", "t2", "--recording", "leak/3"]),
        ("seeds", ["--metric", "mcc", "--metric", "auroc"]),
        ("speed", ["--metric", "mcc", "--metric", "auroc"]),
        ("graph", []),
    ],
)


@KINDS
@pytest.mark.slow
def test_every_kind_is_drawn(runs, tmp_path, tsadbench, kind, options):
    from matplotlib.image import imread

    file = tmp_path / "figure.png"
    done = tsadbench("plot", kind, runs, *options, "--out", file)
    assert (done.code, done.out, done.err) == (0, "", f"{file}\n")
    pixels = imread(file)
    assert pixels.shape[0] > 300
    assert np.unique(pixels.reshape(-1, pixels.shape[-1]), axis=0).shape[0] > 20, "not blank"


@KINDS
@pytest.mark.slow
def test_every_kind_shows_the_name_that_a_detector_is_given(runs, tmp_path, tsadbench, kind, options):
    file = tmp_path / "figure.svg"
    done = tsadbench("plot", kind, runs, *options, "--alias", "t2=Hotelling's $T^2$", "--out", file)
    assert (done.code, done.out) == (0, "")
    text = file.read_text()
    assert "Hotelling's $T^2$" in text
    assert ">t2" not in text


def test_order_and_wrong_names_of_figures(runs, tmp_path, tsadbench):
    file = tmp_path / "figure.svg"
    shown = ("plot", "seeds", runs, "--out", file)
    orders = {}
    for order in ("auprc", "label", "given"):
        assert tsadbench(*shown, "-d", "max-z", "-d", "t2", "--alias", "t2=AAA", "--order", order).code == 0
        text = file.read_text()
        orders[order] = text.index("AAA") < text.index("max-z")
    assert orders == {"auprc": True, "label": True, "given": False}
    for wrong, said in ((("--alias", "t3=X"), "there is no row 't3'"), (("--columns", "mmc"), "no metric 'mmc'")):
        done = tsadbench(*shown, *wrong)
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert said in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rocc", "{runs}", "--out", "x.svg"], "'rocc' is not one of"),
        (["roc", "{runs}"], "Missing option '--out'"),
        (["roc", "{runs}", "--out", "x.gif"], "expected a name that ends in .svg"),
        (["seeds", "{runs}", "--out", "{runs}/store.json/x.svg"], "x.svg: cannot be written"),
        (["roc", "nowhere", "--out", "x.svg"], "nowhere is not a run store"),
        (["roc", "{runs}", "--out", "x.svg", "--split", "valve"], "no split 'valve' in these records; did you mean"),
        (["roc", "{runs}", "--out", "x.svg", "--detector", "t3"], "no detector 't3' among these trials; did you mean"),
        (["roc", "{runs}", "--out", "x.svg", "--seed", "9"], "no trial has the seed 9; there are: 0, 1"),
        (["roc", "{runs}", "--out", "x.svg", "--dataset", "pump"], "data set 'pump'; did you mean 'pumploop'"),
        (["roc", "{runs}", "--out", "x.svg", "--protocol", "stric"], "protocol 'stric'; did you mean 'strict'"),
        (["roc", "{runs}", "--out", "x.svg", "--recording", "leak/3"], "--recording is for the kinds recording"),
        (["roc", "{runs}", "--out", "x.svg", "--metric", "mcc"], "--metric is for the kinds seeds and speed"),
        (["seeds", "{runs}", "--out", "x.svg", "--metric", "mc"], "has no metric 'mc'; did you mean 'mcc'"),
        (["recording", "{runs}", "--out", "x.svg"], "name it with --recording ID"),
        (["recording", "{runs}", "--out", "x.svg", "--recording", "valve3/1"], "no test recording 'valve3/1'; did you"),
    ],
)
def test_wrong_input(runs, tmp_path, tsadbench, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    done = tsadbench("plot", *(one.format(runs=runs) for one in arguments))
    assert done.code == 2
    assert message in " ".join(done.err.replace("│", " ").split())
    assert not (tmp_path / "x.svg").exists()


def test_explain_in_words_and_as_json(runs, tmp_path, tsadbench):
    done = tsadbench("explain", runs, "t2", "--recording", "valve2/2", "--figure", tmp_path / "why.svg")
    assert done.code == 0
    assert "Its first flagged row is 231" in done.out  # where the valve closes
    assert "What is known of these sensors (the prior):" in done.out
    assert "<svg" in (tmp_path / "why.svg").read_text()
    found = json.loads(tsadbench("explain", runs, "t2", "--recording", "valve2/2", "--format", "json").out)
    (event,) = found["events"]
    assert event["first_alarm"]["row"] == 231
    shares = [one["share"] for one in event["first_alarm"]["sensors"]]
    assert sum(shares) == pytest.approx(1.0)
    assert shares == sorted(shares, reverse=True)
    assert "--rerun no-contributions" in tsadbench("explain", runs, "max-z", "--recording", "valve2/0").out


def test_explain_with_another_prior(runs, tsadbench):
    done = tsadbench("explain", runs, "t2", "--recording", "valve2/0", "--prior", "skab", "--format", "json")
    sources = {edge["source"] for one in json.loads(done.out)["neighbours"] for edge in one["driven_by"]}
    assert "Accelerometer1RMS" in sources, "in SKAB's prior vibration drives the pressure, in pumploop's it does not"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["t3", "--recording", "valve2/0"], "no detector 't3' among these trials; did you mean 't2'"),
        (["t2", "--recording", "valve2/9"], "no test recording 'valve2/9'; did you mean"),
        (["t2"], "Missing option '--recording'"),
        (["t2", "--recording", "valve2/0", "--seed", "3"], "no trial has the seed 3; there are: 0"),
        (["t2", "--recording", "valve2/0", "--figure", "x.gif"], "expected a name that ends in .svg"),
        (["t2", "--recording", "valve2/0", "--prior", "nothing"], "expected a prior's file or one of"),
        (["t2", "--recording", "valve2/0", "--format", "yaml"], "'yaml' is not one of"),
    ],
)
def test_explain_wrong_input(runs, tsadbench, arguments, message):
    done = tsadbench("explain", runs, *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in " ".join(done.err.replace("│", " ").split())
