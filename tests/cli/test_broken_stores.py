"""Every command that reads a store, on a store with every kind of broken trial: told in a line each."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.broken_store import (
    ARRAY_DAMAGES,
    RECORD_DAMAGES,
    RECORDING,
    SOUND,
    BrokenStore,
    arrays,
    broken_store,
    sound_store,
)
from tests.helpers.cards import CARD, frame
from tests.helpers.trials import DISTANCE
from tsadbench.execution.run_store import Store


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Store:
    return sound_store(tmp_path_factory.mktemp("sound") / "runs")


@pytest.fixture
def broken(sound, tmp_path) -> BrokenStore:
    return broken_store(sound, tmp_path / "runs")


def told(store: BrokenStore, err: str) -> Counter[str]:
    """Return in how many lines of an output each broken trial is told, by its kind."""
    lines = [line for line in err.splitlines() if line.startswith("broken: ")]
    kinds = {trial: kind for kind, trial in {**store.records, **store.arrays}.items()}
    return Counter(kind for line in lines for trial, kind in kinds.items() if trial in line)


# What reads records alone.
LISTS = [
    ["leaderboard", "{runs}"],
    ["rank", "{runs}"],
    ["runs", "list", "{runs}"],
    ["plot", "seeds", "{runs}", "--out", "{out}/seeds.svg"],
]
# What reads the arrays of the trials that it shows.
READERS = [
    ["leaderboard", "{runs}", "--diagnostics", "operational"],
    ["leaderboard", "{runs}", "--calibration"],
    ["leaderboard", "{runs}", "--smoothing", "3"],
    ["rank", "{runs}", "--stability", "--resamples", "20", "--split", "leak"],
    ["report", "{runs}", "--out", "{out}"],
]


@pytest.mark.parametrize("command", LISTS, ids=lambda command: " ".join(command[:2]))
def test_records_that_are_broken_are_told_and_the_others_are_shown(broken, tmp_path, tsadbench, command):
    found = tsadbench(*[one.format(runs=broken.path, out=tmp_path) for one in command])
    assert found.code == 1, found.err
    assert told(broken, found.err) == dict.fromkeys(broken.records, 1)
    assert "Traceback" not in found.err
    if command[0] == "leaderboard":
        assert all(label in found.out for label in SOUND)


@pytest.mark.parametrize("command", READERS, ids=lambda command: " ".join(command[:3]))
def test_arrays_that_are_broken_are_told_too(broken, tmp_path, tsadbench, command):
    found = tsadbench(*[one.format(runs=broken.path, out=tmp_path) for one in command])
    assert found.code == 1, found.err
    expected = {**dict.fromkeys(broken.records, 1), **dict.fromkeys(broken.arrays, 1)}
    if "--smoothing" in command:  # it reads no contributions
        expected = {kind: n for kind, n in expected.items() if not kind.startswith("contributions")}
    assert told(broken, found.err) == expected


@pytest.mark.parametrize("kind", ["scores flipped", "contributions cut", "array of 16 GiB"])
def test_comparisons_and_figures_leave_out_what_is_broken(broken, tmp_path, tsadbench, kind):
    label = next(one.label for one in Store.open(broken.path).listed()[0] if one.trial == broken.arrays[kind])
    shown = tsadbench("plot", "roc", broken.path, "--out", tmp_path / "a.svg", "-d", "max-z", "-d", label)
    assert (shown.code, told(broken, shown.err)[kind]) == (1, 1)
    assert "max-z" in (tmp_path / "a.svg").read_text()
    compared = tsadbench("compare", broken.path, "max-z", "l2-z", label, "--format", "json")
    assert (compared.code, told(broken, compared.err)[kind]) == (1, 1)
    assert [one["label"] for one in json.loads(compared.out)["detectors"]] == ["max-z", "l2-z"]
    alone = tsadbench("compare", broken.path, "max-z", label)
    assert alone.code == 2
    assert "fewer than two detectors can be compared" in alone.err
    explained = tsadbench("explain", broken.path, label, "--recording", RECORDING)
    assert explained.code == 2
    assert "can be read: run them again" in explained.err
    good = tsadbench("explain", broken.path, "max-z", "--recording", RECORDING)
    assert (good.code, "max-z" in good.out) == (1, True)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1.7e308])
def test_scores_that_no_judge_lets_pass_are_broken(sound, tmp_path, tsadbench, value):
    runs = tmp_path / "runs"
    shutil.copytree(sound.path, runs)
    trial = next(record.trial for record in sound.records() if record.label == "max-z")
    arrays(lambda stored: {name: np.full_like(scores, value) for name, scores in stored.items()})(runs / trial)
    for command in (
        ["report", runs, "--out", tmp_path],
        ["leaderboard", runs, "--calibration"],
        ["plot", "threshold", runs, "--out", tmp_path / "a.svg", "-d", "max-z", "-d", "l2-z"],
        ["compare", runs, "max-z", "l2-z", DISTANCE],
    ):
        found = tsadbench(*command)
        assert (found.code, found.err.count(f"broken: trial {trial}")) == (1, 1), (command, found.err)


def test_verify_and_judge_name_what_cannot_be_checked(broken, tsadbench):
    for command in ("verify", "judge"):  # judging writes records anew
        found = tsadbench(command, broken.path)
        assert found.code == 1
        lines = Counter(line.split(": ")[1].split(" ")[0] for line in found.out.splitlines() if ": " in line)
        expected = {**broken.records, **broken.arrays}
        if command == "judge":
            expected = {kind: trial for kind, trial in expected.items() if not kind.startswith("contributions")}
        assert {kind: lines[trial] for kind, trial in expected.items()} == dict.fromkeys(expected, 1), found.out


# So many trials are broken at a time, each in another way, beside as many sound ones.
BATCH = 12


@pytest.mark.slow(6)
def test_run_does_broken_trials_again_and_no_others(tmp_path, tsadbench):
    for part, seed, faults in (("train", 0, None), ("test", 1, (40, 50))):
        (tmp_path / "plant" / part).mkdir(parents=True)
        frame(90, seed=seed, faults=faults).to_csv(tmp_path / "plant" / part / "rows.csv", index=False)
    card = tmp_path / "plant/card.toml"
    card.write_text(CARD)
    labels = [f"{DISTANCE}[power={place + 3}.0]" for place in range(BATCH)] + list(SOUND)
    sound = sound_store(tmp_path / "sound", str(card), labels)
    before = {record.label: record for record in sound.records()}
    command = ["run", *[word for label in labels for word in ("-d", label)], "--dataset", card, "--no-floors"]
    damages = list({**RECORD_DAMAGES, **ARRAY_DAMAGES}.items())
    for start in range(0, len(damages), BATCH):
        runs = tmp_path / str(start) / "runs"
        shutil.copytree(sound.path, runs)
        broken = dict(zip([before[label].trial for label in labels], damages[start : start + BATCH], strict=False))
        for trial, (_, damage) in broken.items():
            damage(runs / trial)
        done = tsadbench(*command, "--seeds", 1, "--out", runs, "--format", "json")
        assert done.code == 0, done.err
        store = Store.open(runs)
        again = {record.label: record for record in store.records()}
        for label, record in before.items():
            if record.trial in broken:
                kind, _ = broken[record.trial]
                assert again[label].splits == record.splits, kind
                assert (runs / record.trial).is_dir(), kind
                store.scores(record.trial)
                assert again[label].manifest != record.manifest, kind
                assert not (runs / record.trial).is_symlink(), kind
            else:
                assert again[label] == record, label
        assert not [path for path in Path(runs).iterdir() if path.name.startswith(".unfinished")]
        shutil.rmtree(tmp_path / str(start))


def test_broken_trials_can_be_removed(broken, tsadbench):
    assert tsadbench("runs", "rm", broken.path, "--broken").code == 0
    left = tsadbench("runs", "list", broken.path)
    assert left.code == 0
    assert len(left.out.splitlines()) == len(SOUND) + len(broken.arrays)
