"""The score bank returns scores rounded to float32, and trusts no fetched file."""

from __future__ import annotations

import hashlib
import io
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pytest
from pyarrow import parquet

from tests.helpers.loopback import serving
from tsadbench.errors import BrokenTrialError, DataError, StoreError, UsageError
from tsadbench.results import bank as bank_module
from tsadbench.results.bank import REGISTRY, BankFolder, build_bank, fetch_bank, read_file

PROTOCOL = """
from tsadbench_protocols.strict import Strict

class Mine(Strict):
    version = 1
"""


def digests(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.glob("*.parquet")}


def edit(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def test_scores_come_back_rounded_to_float32_and_nothing_else(store, built):
    bank = BankFolder(built)
    assert sorted(bank.trials()) == sorted(store.trials())
    assert len(bank.trials()) == 4
    for trial in bank.trials():
        kept = store.scores(store.record(trial))
        found = bank.scores(bank.record(trial))
        assert list(found) == list(kept)
        for name, scores in kept.items():
            assert np.array_equal(found[name], scores.astype(np.float32).astype(np.float64), equal_nan=True)
        assert bank.record(trial) == store.record(trial)


def test_any_parquet_reader_can_read_a_bank(built):
    lines = dict(line.split() for line in (built / REGISTRY).read_text().splitlines())
    assert lines == digests(built)
    frame = pd.read_parquet(built / next(iter(lines)))
    assert list(frame) == ["series", "score"]
    assert frame["score"].dtype == np.float32
    assert set(frame["series"].str.partition("/")[0]) == {"train", "test"}


@pytest.mark.parametrize("from_server", [False, True])
def test_fetches_what_is_missing(built, tmp_path, from_server):
    out = tmp_path / "mine"
    with serving(built) as server:
        source = server.url if from_server else str(built)
        assert fetch_bank(source, out) == 4
        next(out.glob("*.parquet")).unlink()
        edit(next(out.glob("*.parquet")))
        server.fetched.clear()
        assert fetch_bank(source, out) == 1
        assert len(server.fetched) == (3 if from_server else 0)  # the registry, the missing file, the edited one
    assert digests(out) == digests(built)


@pytest.mark.parametrize("fault", ["other content", "never ends", "404"])
def test_a_wrong_download_is_not_kept(built, tmp_path, fault, monkeypatch):
    monkeypatch.setattr(bank_module, "MOST_BYTES", 300_000)
    name = sorted(digests(built))[0]
    with serving(built) as server:
        server.faults[name] = fault
        with pytest.raises(DataError, match=name):
            fetch_bank(server.url, tmp_path / "mine")
    assert [one.name for one in (tmp_path / "mine").iterdir()] == [REGISTRY]


def test_a_registry_that_cannot_be_fetched_leaves_the_old_one(built, tmp_path):
    out = tmp_path / "mine"
    with serving(built) as server:
        fetch_bank(server.url, out)
        server.faults[REGISTRY] = "404"
        with pytest.raises(DataError, match=REGISTRY):
            fetch_bank(server.url, out)
    assert BankFolder(out).trials() == BankFolder(built).trials()


def test_a_bank_whose_making_was_interrupted_is_continued(store, tmp_path, monkeypatch):
    made, whole = [], bank_module.file_bytes

    def interrupted(*given):
        made.append(given)
        if len(made) > 1:
            raise KeyboardInterrupt
        return whole(*given)

    monkeypatch.setattr(bank_module, "file_bytes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        build_bank([store], tmp_path / "bank")
    monkeypatch.undo()
    build_bank([store], tmp_path / "bank")
    assert sorted(BankFolder(tmp_path / "bank").trials()) == sorted(store.trials())


def test_a_changed_byte_is_refused(built, tmp_path):
    shutil.copytree(built, tmp_path / "edited")
    name = sorted(digests(built))[0]
    edit(tmp_path / "edited" / name)
    with pytest.raises(BrokenTrialError, match=name):
        BankFolder(tmp_path / "edited").record(name.partition(".")[0])
    with pytest.raises(DataError, match=name):
        fetch_bank(str(tmp_path / "edited"), tmp_path / "mine")


@pytest.mark.parametrize(
    "line", ["../../x.parquet {0}", "/etc/passwd {0}", "{1} md5:abc", "{1}", "{1} {0} http://elsewhere", "x.txt {0}"]
)
def test_a_hostile_registry_is_refused(tmp_path, line):
    (tmp_path / REGISTRY).write_text(line.format("a" * 64, "b" * 24 + ".parquet") + "\n")
    with pytest.raises(StoreError, match=REGISTRY):
        BankFolder(tmp_path)
    with pytest.raises(StoreError, match=REGISTRY):
        fetch_bank(str(tmp_path), tmp_path / "mine")


def test_a_folder_without_files_or_of_other_files_is_refused(store, built, tmp_path):
    shutil.copytree(built, tmp_path / "none", ignore=shutil.ignore_patterns("*.parquet"))
    with pytest.raises(UsageError, match="none"):
        BankFolder(tmp_path / "none")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("mine")
    for write in (lambda out: build_bank([store], out), lambda out: fetch_bank(str(built), out)):
        with pytest.raises(UsageError, match="out: "):
            write(tmp_path / "full")


def written(record, **columns) -> bytes:
    stream = io.BytesIO()
    table = pyarrow.table(columns).replace_schema_metadata({"tsadbench.record": record.to_json()})
    parquet.write_table(table, stream)
    return stream.getvalue()


def test_a_hostile_file_is_refused(store, built):
    record = store.record(store.trials()[0])
    good = {"series": ["test/all/a"], "score": [1.0]}
    assert read_file(written(record, **good), "it")[0] == record
    for columns in (
        {"series": ["test/all/a"]},
        {"series": ["../a"], "score": [1.0]},
        {"series": ["test/all/a"], "score": [np.inf]},
        {"series": ["test/all/a"], "score": ["x"]},
        {"series": [1], "score": [1.0]},
    ):
        with pytest.raises(BrokenTrialError, match="it: not a file"):
            read_file(written(record, **columns), "it")
    with pytest.raises(BrokenTrialError, match="error"):
        read_file(written(replace(record, status="error", reason="no"), **good), "it")
    for content in (b"", b"PAR1", next(built.glob("*.parquet")).read_bytes()[:-100]):
        with pytest.raises(BrokenTrialError, match="it: not a file"):
            read_file(content, "it")


def test_judging_a_bank_gives_the_stores_metrics(store, tmp_path, tsadbench):
    made = tsadbench("bank", "build", store.path, "--out", tmp_path / "bank")
    assert made.code == 0, made.err
    fetched = tsadbench("bank", "fetch", tmp_path / "bank", "--out", tmp_path / "mine")
    assert fetched.code == 0, fetched.err
    judged = tsadbench("judge", tmp_path / "mine")
    assert re.search(r"^4 \D*4 ", judged.out, re.M), judged.err
    (tmp_path / "mine.py").write_text(PROTOCOL)
    by_own = ("--protocol", f"{tmp_path}/mine.py:Mine", "--split", "overall", "--format", "csv")
    tables = [tsadbench("judge", source, *by_own).out for source in (store.path, tmp_path / "mine")]
    of_store, of_bank = (pd.read_csv(io.StringIO(table)).set_index("detector") for table in tables)
    assert len(of_store) == 4
    metrics = ["auroc_mean", "auprc_mean", "mcc_mean", "prac_f1_mean"]
    pd.testing.assert_frame_equal(of_store[metrics], of_bank[metrics], atol=1e-4)
