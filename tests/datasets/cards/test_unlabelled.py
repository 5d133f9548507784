"""A plant that nobody has labelled: what needs normal rows alone works, what judges says what it lacks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers.cards import CARD
from tsadbench import DataError, UsageError
from tsadbench.base.dataset import LabelledDataset
from tsadbench.datasets.cards.reader import load_card
from tsadbench.execution.plan import make_plan
from tsadbench.execution.request import RunRequest
from tsadbench.serving import fit_model

UNLABELLED = CARD.replace('label = "fault"\n', 'ignore = ["fault"]\n')
TRAIN_ALONE = UNLABELLED.replace('[test]\nfiles = ["test/*.csv"]\n', "")


@pytest.fixture(params=["no test files", "no labels"])
def card(request, plant) -> Path:
    (plant / "card.toml").write_text(TRAIN_ALONE if request.param == "no test files" else UNLABELLED)
    return plant / "card.toml"


def test_what_is_loaded(card, plant):
    loaded = load_card(card)
    (plant / "labelled.toml").write_text(CARD)
    labelled = load_card(plant / "labelled.toml")
    assert [one.id for one in loaded.dataset.train] == [one.id for one in labelled.dataset.train]
    assert loaded.labels.rows == {}
    if loaded.dataset.test:
        assert loaded.missing == "labels"
        assert loaded.dataset.content_hash == labelled.dataset.content_hash
    else:
        assert loaded.missing == "test recordings"
        assert loaded.dataset.splits == {}
    assert labelled.missing == ""


@pytest.mark.parametrize("protocol", ["strict", "published"])
def test_the_fit_is_that_of_the_labelled_plant(card, plant, tmp_path, protocol):
    (plant / "labelled.toml").write_text(CARD)
    expected = fit_model("t2", str(plant / "labelled.toml"), tmp_path / "labelled.model", protocol=protocol)
    found = fit_model("t2", str(card), tmp_path / "t2.model", protocol=protocol)
    assert found.card.threshold == expected.card.threshold
    assert found.card.n_rows == expected.card.n_rows == 120
    recording = load_card(plant / "labelled.toml").dataset.test[0]
    assert found.score(recording).scores.tolist() == expected.score(recording).scores.tolist()


def test_every_command_from_the_card_to_scores(card, plant, tsadbench, tmp_path):
    """`run` alone cannot be: it says so in one line, with what to do instead, and runs nothing."""
    lacking = "labels" if "[test]" in card.read_text() else "test recordings"
    told = tsadbench("data", "validate", card)
    assert told.code == 0
    assert "plant: nothing is wrong" in told.out
    assert "can be fitted and can score files, but not be compared" in told.out
    assert f"tsadbench fit --dataset {card} --out plant.model" in told.out
    assert f"{2 if lacking == 'labels' else 'none'}" in tsadbench("info", card).out.split("test ")[1].split("\n")[0]

    audit = json.loads(tsadbench("data", "audit", card, "--format", "json").out)
    about = [finding["about"] for finding in audit["findings"]]
    assert lacking.replace(" ", "-") in about
    assert {"gaps", "constant", "duplicates", "copies"} <= set(about)
    assert not {"anomalies", "events", "position", "trivial", "contradicting-labels"} & set(about)
    assert ("shift" in about) == (lacking == "labels")

    refused = tsadbench("run", "--dataset", card, "--detector", "t2", "--out", tmp_path / "runs")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.count("\n") == 1
    assert f"{card} has no {lacking}, so there is nothing to judge: fit a detector" in refused.err
    assert not (tmp_path / "runs").exists()

    model = tmp_path / "plant.model"
    assert tsadbench("fit", "--dataset", card, "--out", model).code == 0
    scored = tsadbench("score", model, plant / "test/c.csv")
    assert scored.code == 0
    assert len(scored.out.splitlines()) == 61


def test_audits_of_labels_that_are_not_there(card, tsadbench):
    told = tsadbench("data", "audit", card, "--label-shift", "2")
    assert told.code == 2
    assert "'plant' has no labels to shift" in told.err


def test_an_entity_that_nothing_is_tested_on_has_a_model(plant, tmp_path):
    entities = '\n[entities]\npump = ["train/a", "test/*"]\nmotor = ["train/b"]\n'
    (plant / "card.toml").write_text(UNLABELLED + entities)
    assert fit_model("t2", str(plant / "card.toml"), tmp_path / "motor.model", entity="motor").card.n_rows == 60
    (plant / "card.toml").write_text(CARD + entities)
    assert fit_model("t2", str(plant / "card.toml"), tmp_path / "motor.model", entity="motor").card.n_rows == 60
    plan = make_plan(RunRequest(detectors=["t2"], datasets=[str(plant / "card.toml")], floors=False))
    assert [episode.id for episode in plan.episodes] == ["pump"]


def test_a_protocol_that_trains_on_test_recordings_says_so(plant, tmp_path):
    (plant / "card.toml").write_text(TRAIN_ALONE)
    with pytest.raises(DataError, match="has no test recording, and this protocol cannot choose training rows"):
        fit_model("t2", str(plant / "card.toml"), tmp_path / "t2.model", protocol="skab")


@pytest.mark.parametrize(
    ("card_text", "expected"),
    [
        (UNLABELLED.replace("[train]", '[train]\nrows = "before first event"'), '"before first event" needs labels'),
        (TRAIN_ALONE + '\n[splits]\nday = ["test/*"]\n', "splits are groups of test recordings, and there is no"),
        (UNLABELLED.replace('[train]\nfiles = ["train/*.csv"]\n', ""), r"give \[train\], and \[test\] if there are"),
    ],
)
def test_what_needs_labels_or_test_files_is_refused(plant, card_text, expected):
    (plant / "card.toml").write_text(card_text)
    with pytest.raises(DataError, match=expected):
        load_card(plant / "card.toml")


def test_python_says_the_same(plant):
    import tsadbench

    (plant / "card.toml").write_text(UNLABELLED)
    loaded = load_card(plant / "card.toml")
    assert isinstance(loaded, LabelledDataset)
    with pytest.raises(UsageError, match=r"plant'? has no labels, so there is nothing to judge"):
        tsadbench.run("t2", loaded)
