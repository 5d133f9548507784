"""`tsadbench bank` and `tsadbench judge` as their users meet them; metrics against scikit-learn on the files."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from tests.helpers.loopback import serving
from tsadbench.base.dataset import DataOptions
from tsadbench.datasets.loading import load_dataset
from tsadbench.execution.run_store import Store
from tsadbench.results.bank.bank_file import BankFile
from tsadbench.results.bank.folder import BankFolder
from tsadbench.results.bank.index import FILES, INDEX, BankEntry, BankIndex, index_of, shipped_index
from tsadbench.results.bank.parquet_form import bank_bytes

WARM_UP = 30
OWN = """
from dataclasses import replace

import numpy as np
from tsadbench.base import Metric
from tsadbench_protocols.strict import Strict


class Found(Strict):
    '''As strict, with one metric: the share of anomalous recordings whose largest score lies on an anomalous row.

    Parameters
    ----------
    warm_up, calibration, level, q
        As for strict.
    '''

    version = 3
    metrics = (Metric("top", "Top"),)
    summary = "is the largest score of a recording on an anomalous row"

    def judge(self, scored, labels):
        '''Judge as strict does, and count.'''
        judged = super().judge(scored, labels)
        (fit,) = scored
        top = {one.id: bool(labels.rows[one.id][np.argmax(s)]) for one, s in zip(fit.episode.test, fit.test)}
        split = judged.splits["overall"]
        share = np.mean([top[one] for one, rows in labels.rows.items() if rows.any()])
        return replace(judged, splits={"overall": replace(split, metrics={"top": float(share)})})


class Nothing:
    pass
"""


def digests(folder: Path) -> dict[str, str]:
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def test_from_a_store_to_a_metric_of_ones_own(store, tmp_path, tsadbench):
    """The whole way: build, serve, list, fetch, judge; the metric is what the files say when read without tsadbench."""
    bank, mine, own = tmp_path / "bank", tmp_path / "mine", tmp_path / "own.py"
    own.write_text(OWN)
    made = tsadbench("bank", "build", store.path, "--out", bank)
    assert (made.code, "4 files" in made.out) == (0, True)
    listed = tsadbench("bank", "list", "--index", bank / INDEX, "--format", "json")
    lines = [json.loads(line) for line in listed.out.splitlines()]
    assert {line["label"] for line in lines} == {"t2", "t2[mean=10]", "all-positive", "max-z"}
    assert all((bank / line["file"]).stat().st_size == line["size"] for line in lines)
    assert "pumploop" in tsadbench("bank", "list", "--index", bank / INDEX, "--dataset", "pumploop").out
    with serving(bank) as server:
        options = ["--index", bank / INDEX, "--from", server.url, "--out", mine]
        assert "2 fetched, 0 were there" in tsadbench("bank", "fetch", "--detector", "t2", *options).out
        assert "2 fetched, 2 were there" in tsadbench("bank", "fetch", *options).out
    judged = tsadbench("judge", mine, "--protocol", f"{own}:Found", "--format", "json", "--split", "overall")
    assert judged.code == 0, judged.err
    rows = {row["label"]: row for row in json.loads(judged.out)["rows"]}
    labels = load_dataset("pumploop")(DataOptions()).labels.rows
    for line in lines:
        table = pd.read_parquet(mine / line["file"])
        test = table[table["role"] == "test"].groupby("recording")["score"]
        hits = [labels[name][np.argmax(scores.to_numpy())] for name, scores in test if labels[name].any()]
        assert rows[line["label"]]["metrics"]["top"]["mean"] == pytest.approx(np.mean(hits))
        assert rows[line["label"]]["protocol"] == "own.py:Found"


def test_judging_the_bank_is_judging_the_store_within_float32(store, built, tsadbench):
    def rows(source: Path) -> dict[str, dict[str, dict[str, float | None]]]:
        found = tsadbench("judge", source, "--protocol", "strict", "--split", "overall", "--format", "json")
        assert found.code == 0, found.err
        return {row["label"]: row for row in json.loads(found.out)["rows"]}

    of_store, of_bank = rows(store.path), rows(built)
    assert of_store.keys() == of_bank.keys()
    assert len(of_bank) == 4
    for label, row in of_store.items():
        for metric, value in row["metrics"].items():
            assert of_bank[label]["metrics"][metric]["mean"] == pytest.approx(value["mean"], abs=1e-4), (label, metric)
        assert of_bank[label]["threshold"][0]["value"] == pytest.approx(row["threshold"][0]["value"], rel=1e-5)
    labels = load_dataset("pumploop")(DataOptions()).labels.rows
    for entry in BankIndex.read(built / INDEX).entries:
        table = pd.read_parquet(built / entry.file)
        test = {name: one.to_numpy() for name, one in table[table["role"] == "test"].groupby("recording")["score"]}
        truth = np.concatenate([labels[name][WARM_UP:] for name in test])
        scores = np.concatenate([values[WARM_UP:] for values in test.values()])
        metrics = of_bank[entry.label]["metrics"]
        assert metrics["auroc"]["mean"] == pytest.approx(roc_auc_score(truth, scores), abs=1e-12)
        assert metrics["auprc"]["mean"] == pytest.approx(average_precision_score(truth, scores), abs=1e-12)


def test_without_a_protocol_files_are_compared_with_their_records(built, tmp_path, tsadbench):
    before = digests(built)
    found = tsadbench("judge", built)
    assert found.code == 0
    assert found.out.splitlines()[-1] == "4 trials: 4 as recorded up to 0.001, 0 changed, 0 cannot be judged"
    assert "largest change of auroc by float32: " in found.out
    assert digests(built) == before
    # A record whose metrics are not those of its scores, in a file that is what its index says.
    bank = BankFolder(built)
    trial = bank.trials()[-1]
    record = bank.record(trial)
    overall = record.splits["overall"]
    wrong = replace(overall, metrics={**overall.metrics, "auroc": 0.5})
    forged = replace(record, splits={**record.splits, "overall": wrong})
    content = bank_bytes(forged, bank.scores(trial))
    sha256 = hashlib.sha256(content).hexdigest()
    entry = BankEntry.of(BankFile(forged, bank.scores(trial)), len(content), sha256)
    (tmp_path / entry.file).write_bytes(content)
    index_of([entry]).write(tmp_path / INDEX)
    found = tsadbench("judge", tmp_path)
    assert found.code == 0
    assert found.out.startswith(f"changed: {trial} ({record.label}, seed 0, pumploop, strict): auroc on overall")


def test_a_store_is_judged_by_another_protocol_and_stays_as_it_is(store, tsadbench):
    before = digests(store.path)
    found = tsadbench("judge", store.path, "--protocol", "strict[q=0.01]", "--format", "json", "--split", "overall")
    assert (found.code, {row["protocol"] for row in json.loads(found.out)["rows"]}) == (0, {"strict[q=0.01]"})
    assert digests(store.path) == before


def test_what_cannot_be_judged_by_a_protocol_says_why(built, tmp_path, tsadbench):
    own = tmp_path / "own.py"
    own.write_text(OWN)
    found = tsadbench("judge", built, "--protocol", "published")
    assert found.code == 2
    assert "and 3 more: it was run under strict, and published asks for other recordings" in found.err
    for protocol, reason in (
        (f"{own}:Nothing", "is not a protocol"),
        (f"{own}:Fund", "did you mean 'Found'?"),
        (str(own), "its classes: Found, Nothing"),
        (f"{tmp_path}/nowhere.py:Found", "there is no file"),
        ("stric", "did you mean 'strict'?"),
        (f"{own}:Found[x=1]", "x"),
    ):
        found = tsadbench("judge", built, "--protocol", protocol)
        assert (found.code, reason in found.err) == (2, True), found.err
        assert "Traceback" not in found.err
    assert tsadbench("judge", built, "--format", "json").code == 2


def test_a_record_cannot_name_a_protocol_by_file(store, tmp_path, tsadbench, monkeypatch):
    """A stranger's record must not have its code imported: only what the user types is."""
    (tmp_path / "stranger.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(store.path, tmp_path / "runs")
    for file in (tmp_path / "runs").glob("*/record.json"):
        file.write_text(file.read_text().replace('"protocol": "strict"', '"protocol": "stranger.py:Found"'))
    found = tsadbench("judge", tmp_path / "runs")
    assert (found.code, "imported" in found.out + found.err) == (1, False)
    assert "0 as recorded" in found.out


def test_a_folder_beside_its_index_is_a_bank_as_in_the_repository(built, tmp_path, tsadbench, monkeypatch):
    """`bank fetch` without an address copies from there, and `judge` takes the folder as it is."""
    repository = tmp_path / "leaderboards"
    shutil.copytree(built, repository / "bank")
    (repository / "bank" / INDEX).rename(repository / INDEX)
    fetched = tsadbench("bank", "fetch", "--index", repository / INDEX, "--out", tmp_path / "mine")
    assert (fetched.code, "4 fetched, 0 were there" in fetched.out) == (0, True), fetched.err
    assert digests(tmp_path / "mine") == digests(built)
    for place in (tmp_path, repository / "bank"):
        monkeypatch.chdir(place)
        judged = tsadbench("judge", "." if place.name == "bank" else "leaderboards/bank")
        assert judged.out.splitlines()[-1] == "4 trials: 4 as recorded up to 0.001, 0 changed, 0 cannot be judged"


def test_the_bank_in_the_repository_is_fetched_and_judged_offline(skab_directory, tmp_path, tsadbench):
    """What a clone has is enough: no address, no network."""
    fetched = tsadbench("bank", "fetch", "--detector", "all-positive", "--out", tmp_path / "mine")
    assert (fetched.code, "1 fetched" in fetched.out) == (0, True), fetched.err
    judged = tsadbench("judge", tmp_path / "mine", "--data", skab_directory)
    assert judged.out.splitlines()[-1] == "1 trials: 1 as recorded up to 0.001, 0 changed, 0 cannot be judged"


def test_the_repository_holds_the_files_that_its_index_lists():
    index = BankIndex.read(shipped_index())
    folder = shipped_index().parent / FILES
    assert digests(folder) == {entry.file: entry.sha256 for entry in index.entries}
    assert [entry.size for entry in index.entries] == [(folder / entry.file).stat().st_size for entry in index.entries]
    said = f"{len(index.entries)} files, {index.size / 1e6:.1f} MB"
    assert said in (Path(__file__).parents[2] / "docs/bank.md").read_text(encoding="utf-8")


def test_an_edited_file_is_named(built, tmp_path, tsadbench):
    shutil.copytree(built, tmp_path / "bank")
    entry = BankIndex.read(built / INDEX).entries[0]
    content = bytearray((built / entry.file).read_bytes())
    content[100] ^= 1
    (tmp_path / "bank" / entry.file).write_bytes(content)
    found = tsadbench("judge", tmp_path / "bank")
    assert found.code == 1
    assert "cannot be judged" in found.out
    assert "its SHA-256 is another" in found.out


def test_wrong_options_end_with_one_line(store, built, tmp_path, tsadbench):
    index = built / INDEX
    no_json = tmp_path / "text.json"
    no_json.write_text("text")
    empty = tmp_path / "empty"
    empty.mkdir()
    shutil.copy(index, empty)
    for arguments, reason in (
        (("bank", "build", tmp_path, "--out", tmp_path / "bank"), "is not a run store"),
        (("bank", "build", store.path, "--out", tmp_path / "bank", "--budget", "0.01"), "--budget"),
        (("bank", "build", store.path, "--out", tmp_path / "bank", "--dataset", "tep"), "nothing to build"),
        (("bank", "build", store.path, "--out", index), "found a file"),
        (("bank", "list", "--index", tmp_path / "none.json"), "there is no index"),
        (("bank", "list", "--index", no_json), "the file: Invalid JSON"),
        (("bank", "list", "--detector", "nope"), "no detector 'nope'; `tsadbench bank list` shows"),
        (("bank", "list", "--index", index, "--detector", "t3"), "did you mean 't2'?"),
        (("bank", "fetch", "--index", index, "--out", tmp_path / "mine"), "--from"),
        (("bank", "fetch", "--index", index, "--out", index, "--from", built), "--out"),
        (("judge", tmp_path), "is not a run store"),
        (("judge", empty), "none of the 4 files"),
    ):
        found = tsadbench(*arguments)
        assert (found.code, reason in found.err, "Traceback" in found.err) == (2, True, False), found.err


def test_trials_that_were_left_out_are_named(store, tmp_path, tsadbench):
    shutil.copytree(store.path, tmp_path / "runs")
    trial = Store.open(tmp_path / "runs").trials()[0]
    scores = dict(store.scores(trial))
    name = next(iter(scores))
    np.savez(tmp_path / "runs" / trial / "scores.npz", **{**scores, name: scores[name] * 2})
    found = tsadbench("bank", "build", tmp_path / "runs", "--out", tmp_path / "bank")
    assert (found.code, found.err.count("left out: ")) == (1, 1)
    assert "3 files" in found.out
