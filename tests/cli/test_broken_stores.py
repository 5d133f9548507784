"""Every command that reads a store, on a store with every kind of broken trial: one line for each."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.helpers.broken_store import (
    ARRAY_DAMAGES,
    RECORD_DAMAGES,
    RECORDING,
    SOUND,
    BrokenStore,
    broken_store,
    sound_store,
)
from tests.helpers.cards import write_plant
from tests.helpers.stored import stored
from tests.helpers.trials import DISTANCE
from tsadbench.execution.store import Store


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Store:
    return sound_store(tmp_path_factory.mktemp("sound") / "runs")


@pytest.fixture
def broken(sound, tmp_path) -> BrokenStore:
    return broken_store(sound, tmp_path / "runs")


def told(store: BrokenStore, err: str) -> Counter[str]:
    """Return the number of lines of an output that report each broken trial, by its kind."""
    lines = [line for line in err.splitlines() if line.startswith("broken: ")]
    kinds = {trial: kind for kind, trial in {**store.records, **store.arrays}.items()}
    return Counter(kind for line in lines for trial, kind in kinds.items() if trial in line)


@pytest.mark.parametrize(
    ("command", "reads"),
    [
        (["leaderboard", "{runs}"], "records"),
        (["rank", "{runs}"], "records"),
        (["leaderboard", "{runs}", "--diagnostics", "operational"], "arrays"),
        pytest.param(["report", "{runs}", "--out", "{out}", "--best", "0"], "arrays", marks=pytest.mark.long),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else one,
)
def test_broken_trials_are_reported_once_and_the_others_shown(broken, tmp_path, tsadbench, command, reads):
    found = tsadbench(*[one.format(runs=broken.path, out=tmp_path) for one in command])
    assert (found.code, "Traceback" in found.err) == (1, False)
    expected = {**broken.records, **broken.arrays} if reads == "arrays" else broken.records
    assert told(broken, found.err) == dict.fromkeys(expected, 1)
    if command[0] == "leaderboard":
        assert all(label in found.out for label in SOUND)


@pytest.mark.parametrize("kind", ["scores flipped", "array of 16 GiB"])
def test_comparisons_and_figures_leave_out_what_is_broken(broken, tmp_path, tsadbench, kind):
    label = Store.open(broken.path).record(broken.arrays[kind]).label
    shown = tsadbench("plot", "roc", broken.path, "--out", tmp_path / "a.svg", "-d", "max-z", "-d", label)
    assert (shown.code, told(broken, shown.err)[kind]) == (1, 1)
    assert "max-z" in (tmp_path / "a.svg").read_text()
    compared = tsadbench("compare", broken.path, "max-z", "l2-z", label, "--format", "json")
    assert (compared.code, told(broken, compared.err)[kind]) == (1, 1)
    assert [one["label"] for one in json.loads(compared.out)["tables"][1]["rows"]] == ["max-z", "l2-z"]
    alone = tsadbench("compare", broken.path, "max-z", label)
    assert (alone.code, label in alone.err) == (2, True)
    explained = tsadbench("explain", broken.path, label, "--recording", RECORDING)
    assert (explained.code, label in explained.err) == (2, True)
    good = tsadbench("explain", broken.path, "max-z", "--recording", RECORDING)
    assert (good.code, "max-z" in good.out) == (1, True)


def test_verify_and_judge_name_what_cannot_be_checked(broken, tsadbench):
    for command in ("verify", "judge"):  # judging rewrites records
        found = tsadbench(command, broken.path)
        assert found.code == 1
        lines = Counter(line.split(": ")[1].split(" ")[0] for line in found.out.splitlines() if ": " in line)
        expected = {**broken.records, **broken.arrays}
        if command == "judge":
            expected = {kind: trial for kind, trial in expected.items() if not kind.startswith("contributions")}
        assert [kind for kind, trial in expected.items() if not lines[trial]] == [], found.out


@pytest.mark.slow(4)  # each damaged trial is run again
def test_run_does_broken_trials_again_and_no_others(tmp_path, tsadbench):
    card = write_plant(tmp_path / "plant", 90)
    damages = dict(list({**RECORD_DAMAGES, **ARRAY_DAMAGES}.items())[::4])
    labels = [f"{DISTANCE}[power={place + 3}.0]" for place in range(len(damages))] + list(SOUND)
    store = sound_store(tmp_path / "runs", str(card), labels)
    before = {record.label: record for record in store.records()}
    broken = dict(zip(labels, damages, strict=False))
    for label, kind in broken.items():
        damages[kind](stored(store.path, before[label].trial))
    command = ["run", *[word for label in labels for word in ("-d", label)], "--dataset", card, "--no-floors"]
    done = tsadbench(*command, "--seeds", 1, "--out", store.path, "--format", "json")
    assert done.code == 0, done.err
    again = {record.label: record for record in Store.open(store.path).records()}
    for label, record in before.items():
        if label in broken:
            assert again[label].splits == record.splits, broken[label]
            assert again[label].manifest != record.manifest, broken[label]
            assert store.scores(again[label]), broken[label]
        else:
            assert again[label] == record, label
    assert not list(store.path.rglob(".unfinished*"))


def test_broken_trials_can_be_removed(broken, tsadbench):
    assert tsadbench("runs", "remove", broken.path, "--broken").code == 0
    left = tsadbench("runs", "list", broken.path)
    assert left.code == 0
    assert f"{len(SOUND) + len(broken.arrays)} trials" in left.err
