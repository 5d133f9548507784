"""`tsadbench plot` and `tsadbench explain` as a user types them."""

from __future__ import annotations

import json
import re
from functools import cache

import pytest

from tests.helpers.plans import make_plan
from tsadbench.base.dataset import DataOptions
from tsadbench.datasets.loading import load_dataset
from tsadbench.execution.runner import run_plan
from tsadbench.execution.store import Store


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A store of trials on pumploop; those of max-z kept no contributions."""
    store = Store.create(tmp_path_factory.mktemp("made") / "runs")
    for names, kept in ((["t2", "random"], True), (["max-z"], False)):
        plan = make_plan(names, dataset="pumploop", floors=False, seeds=2, contributions=kept)
        assert {record.status for record in run_plan(plan, store)} == {"ok"}
    return store.path


@pytest.fixture(autouse=True)
def loaded_once(monkeypatch):
    """Load pumploop once for all commands."""
    monkeypatch.setattr("tsadbench.datasets.loading.load_dataset", lambda name: lambda options: _load(name))


@cache
def _load(name):
    return load_dataset(name)(DataOptions())


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("roc", ["--split", "valve2"]),
        ("precision-recall", ["--detector", "t2"]),
        ("recording", ["--recording", "valve1/3", "--detector", "t2"]),
        ("threshold", ["--detector", "t2", "--recording", "leak/3"]),
        ("seeds", ["--metric", "mcc,auroc"]),
        ("speed", ["--metric", "mcc,auroc"]),
        ("graph", ["--detector", "t2"]),
    ],
)
@pytest.mark.slow  # draws a figure of 52,000 rows
def test_every_kind_is_drawn_with_its_labels(runs, tmp_path, tsadbench, kind, options):
    file = tmp_path / "figure.svg"
    done = tsadbench("plot", kind, runs, *options, "--out", file)
    assert (done.code, done.out, done.err) == (0, "", f"{file}\n")
    text = file.read_text()
    assert "t2" in text  # no hexadecimal id holds a t
    assert text.count("<path") > 5, "not blank"


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["plot", "roc", "{runs}", "--out", "x.gif"], ".svg"),
        (["plot", "roc", "nowhere", "--out", "x.svg"], "nowhere"),
        (["plot", "roc", "{runs}", "--out", "x.svg", "--split", "valve"], "valve"),
        (["plot", "roc", "{runs}", "--out", "x.svg", "--detector", "t3"], "t3"),
        (["plot", "roc", "{runs}", "--out", "x.svg", "--seed", "9"], "seed 9"),
        (["plot", "roc", "{runs}", "--out", "x.svg", "--dataset", "pump"], "pump"),
        (["plot", "graph", "{runs}", "--out", "x.svg"], "--detector"),
        (["plot", "seeds", "{runs}", "--out", "x.svg", "--metric", "mc"], "mcc"),
        (["plot", "recording", "{runs}", "--out", "x.svg", "--recording", "valve3/1"], "valve3/1"),
        (["explain", "{runs}", "t3", "--recording", "valve2/0"], "t3"),
        (["explain", "{runs}", "t2", "--recording", "valve2/9"], "valve2/9"),
        (["explain", "{runs}", "t2", "--recording", "valve2/0", "--figure", "x.gif"], ".svg"),
        (["explain", "{runs}", "t2", "--recording", "valve2/0", "--prior", "nothing"], "prior"),
    ],
)
def test_wrong_input(runs, tmp_path, tsadbench, monkeypatch, arguments, name):
    monkeypatch.chdir(tmp_path)
    done = tsadbench(*(one.format(runs=runs) for one in arguments))
    assert (done.code, done.out, name in done.err) == (2, "", True)
    assert not (tmp_path / "x.svg").exists()


def test_explain_in_words_and_as_json(runs, tmp_path, tsadbench):
    done = tsadbench("explain", runs, "t2", "--recording", "valve2/2", "--figure", tmp_path / "why.svg")
    assert done.code == 0
    assert re.search(r"first flagged row\D* 231\b", done.out)  # where the valve closes
    assert "prior" in done.out
    assert "<svg" in (tmp_path / "why.svg").read_text()
    found = json.loads(tsadbench("explain", runs, "t2", "--recording", "valve2/2", "--format", "json").out)
    (event,) = found["events"]
    assert event["first_alarm"]["row"] == 231
    shares = list(event["first_alarm"]["sensors"].values())
    assert sum(shares) == pytest.approx(1.0)
    assert shares == sorted(shares, reverse=True)
    assert "--rerun no-contributions" in tsadbench("explain", runs, "max-z", "--recording", "valve2/0").out


def test_explain_with_another_prior(runs, tsadbench):
    done = tsadbench("explain", runs, "t2", "--recording", "valve2/0", "--prior", "skab", "--format", "json")
    sources = {edge["source"] for edges in json.loads(done.out)["neighbours"].values() for edge in edges}
    assert "Accelerometer1RMS" in sources, "in SKAB's prior vibration drives the pressure, in pumploop's it does not"
