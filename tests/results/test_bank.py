"""The score bank: files that give back the scores to float32, an index that is believed in nothing, a real server."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.helpers.loopback import serving
from tests.helpers.plans import make_plan
from tsadbench.errors import BrokenTrialError, DataError, StoreError, UsageError
from tsadbench.execution.run_store import Store
from tsadbench.execution.runner import run_plan
from tsadbench.results.bank.bank_file import lasting, single_precision
from tsadbench.results.bank.build import Choice, build_bank
from tsadbench.results.bank.fetch import ADDRESS_VARIABLE, fetch_bank
from tsadbench.results.bank.folder import BankFolder
from tsadbench.results.bank.index import INDEX, MOST_INDEX_BYTES, BankIndex, index_of
from tsadbench.results.bank.parquet_form import bank_bytes, read_bank_file


def edited(built: Path, folder: Path, change) -> Path:
    """Return a copy of an index, changed as JSON."""
    content = json.loads((built / INDEX).read_text())
    change(content)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / INDEX).write_text(json.dumps(content))
    return folder / INDEX


def test_scores_come_back_rounded_to_float32_and_nothing_else(store, built):
    bank = BankFolder(built)
    assert sorted(bank.trials()) == sorted(store.trials())
    assert len(bank.trials()) == 4
    for trial in bank.trials():
        kept = {name: scores for name, scores in store.scores(trial).items() if name != "thresholds"}
        found = bank.scores(trial)
        assert list(found) == list(kept)
        for name, scores in kept.items():
            assert np.array_equal(found[name], scores.astype(np.float32).astype(np.float64), equal_nan=True)
        assert {name.partition("/")[0] for name in found} == {"train", "test"}
        assert bank.record(trial) == lasting(store.record(trial))


def test_any_reader_of_parquet_finds_the_columns(built):
    pandas = pytest.importorskip("pandas")
    (entry,) = BankIndex.read(built / INDEX).chosen(detectors=["max-z"])
    table = pandas.read_parquet(built / entry.file)
    assert list(table) == ["role", "episode", "recording", "score"]
    assert table["score"].dtype == np.float32
    assert len(table) == entry.rows
    assert table[table["role"] == "test"]["recording"].nunique() == entry.recordings
    assert entry.file == hashlib.sha256((built / entry.file).read_bytes()).hexdigest() + ".parquet"
    assert (built / entry.file).stat().st_size == entry.size


def test_ids_with_slashes_and_missing_scores_survive(store):
    record = store.record(store.trials()[0])
    thresholds = tuple(replace(record.thresholds[0], episode=name) for name in ("a", "a/b"))
    scores = {
        "train/a/b/1": np.array([1.0, 2.0]),
        "train/a/c": np.array([3.0]),
        "test/a/c": np.array([np.nan, 1e-3, -5.0]),
        "thresholds": np.array([1.0]),
    }
    content = bank_bytes(replace(record, thresholds=thresholds), scores)
    found = read_bank_file(content, "it")
    assert list(found.scores) == ["train/a/b/1", "train/a/c", "test/a/c"]
    assert np.isnan(found.scores["test/a/c"][0])
    assert (found.n_rows, found.n_recordings) == (6, 1)
    table = parquet.read_table(io.BytesIO(content)).to_pandas()
    assert table["episode"].tolist() == ["a/b", "a/b", "a", "a", "a", "a"]


def test_two_runs_of_the_same_trials_give_the_same_files(small_data, tmp_path):
    """A repeated trial gives the file that the index names: nothing in it depends on the machine or the run."""
    folders = []
    for name in ("one", "two"):
        store = Store.create(tmp_path / name / "runs")
        plan = make_plan(["t2", "isolation-forest"], dataset=small_data, floors=False, seeds=1)
        records = run_plan(plan, store)
        assert all(one.manifest["crossing"] and one.replay and one.fit_seconds for one in records)
        folders.append(tmp_path / name / "bank")
        assert build_bank([store], folders[-1]).left_out == {}
    one, two = ({file.name: file.read_bytes() for file in folder.iterdir()} for folder in folders)
    assert len(one) == 3
    assert one == two


def test_one_seed_is_the_lowest_of_each_row(store):
    first, other = (store.record(trial) for trial in store.trials()[:2])
    rows = [replace(first, seed=3), replace(first, seed=2), replace(other, seed=4), replace(first, status="error")]
    assert [one.seed for one in Choice(one_seed=True).of(rows)] == [2, 4]
    assert [one.seed for one in Choice().of(rows)] == [3, 2, 4]
    assert [one.seed for one in Choice(["pumploop"], ["strict"]).of(rows)] == [3, 2, 4]
    assert [*Choice(protocols=["published"]).of(rows)] == []


def test_what_float32_cannot_hold_is_left_out_with_a_reason(store):
    with pytest.raises(StoreError, match="float32 cannot hold"):
        single_precision({"test/all/a": np.array([1.0, 1e39])})
    with pytest.raises(StoreError, match="near to 0"):
        single_precision({"test/all/a": np.array([1.0, 1e-50])})
    assert single_precision({"test/all/a": np.array([0.0, 1e-40])})["test/all/a"][1] > 0


def test_a_build_keeps_to_its_budget_and_to_its_own_folder(store, built, tmp_path):
    size = BankIndex.read(built / INDEX).size
    with pytest.raises(UsageError, match="--budget"):
        build_bank([store], tmp_path / "bank", budget=size - 1)
    assert not (tmp_path / "bank" / INDEX).exists()
    build_bank([store], tmp_path / "bank", budget=size)
    only = build_bank([store], tmp_path / "bank", choice=Choice(["pumploop"], ["strict"])).index
    assert only.size == size
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "plant.parquet").write_text("mine")
    with pytest.raises(UsageError, match="found a folder of other files"):
        build_bank([store], tmp_path / "other")
    assert (tmp_path / "other" / "plant.parquet").read_text() == "mine"
    with pytest.raises(UsageError, match="expected http"):
        build_bank([store], tmp_path / "third", address="ftp://somewhere")


def test_scores_that_their_run_did_not_write_are_left_out(store, tmp_path):
    shutil.copytree(store.path, tmp_path / "runs")
    forged = Store.open(tmp_path / "runs")
    trial = forged.trials()[0]
    arrays = dict(forged.scores(trial))
    name = next(iter(arrays))
    arrays[name] = arrays[name] + 1.0
    np.savez(tmp_path / "runs" / trial / "scores.npz", **arrays)
    built = build_bank([forged], tmp_path / "bank")
    (why,) = built.left_out.values()
    assert why == "its scores are not those that its run wrote: their hash is another"
    assert len(built.index.entries) == 3


def test_committed_tables_choose_what_is_built(store, tmp_path):
    records = [store.record(trial) for trial in store.trials()]
    table = tmp_path / "tables" / "pumploop" / "strict"
    table.mkdir(parents=True)
    chosen = [one for one in records if one.label in ("t2", "max-z")]
    (split, judged), *_ = chosen[0].splits.items()
    moved = replace(
        chosen[0], splits={**chosen[0].splits, split: replace(judged, metrics={**judged.metrics, "auroc": 0.123})}
    )
    gone = replace(records[0], trial="0" * 24, label="gone", detector="gone")
    lines = [one.to_json(indent=None) + "\n" for one in (moved, chosen[1], gone)]
    (table / "records.jsonl").write_text("".join(lines))
    built = build_bank([store], tmp_path / "bank", tables=tmp_path / "tables")
    assert [entry.label for entry in built.index.entries] == [chosen[1].label]
    assert len(built.left_out) == 2
    assert any("auroc on" in why for why in built.left_out.values())
    assert "none of these stores has its scores" in built.left_out.values()
    with pytest.raises(UsageError, match="--tables"):
        build_bank([store], tmp_path / "bank", tables=tmp_path / "nowhere")


def test_fetches_from_a_server_once_and_goes_on_where_it_stopped(built, tmp_path):
    index = BankIndex.read(built / INDEX)
    out = tmp_path / "mine"
    with serving(built) as server:
        some = index.chosen(detectors=["max-z", "all-positive"])
        assert len(fetch_bank(index, some, out, server.url).new) == 2
        assert sorted(server.fetched) == sorted(entry.file for entry in some)
        server.fetched.clear()
        server.faults[index.entries[-1].file] = "breaks off"
        with pytest.raises(DataError, match="3 of 4 files are there"):
            fetch_bank(index, index.entries, out, server.url)
        server.faults.clear()
        server.fetched.clear()
        fetched = fetch_bank(index, index.entries, out, server.url)
        assert (list(fetched.new), fetched.n_before) == ([index.entries[-1].file], 3)
        assert server.fetched == [index.entries[-1].file]
    assert BankFolder(out).trials() == [entry.trial for entry in index.entries]
    assert sorted(one.name for one in out.iterdir()) == sorted([INDEX, *(entry.file for entry in index.entries)])


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("other content", "SHA-256 differs"), ("never ends", "SHA-256 differs"), ("404", "status 404")],
)
def test_what_a_server_sends_instead_gets_no_name(built, tmp_path, fault, reason):
    index = BankIndex.read(built / INDEX)
    entry = index.entries[0]
    with serving(built) as server:
        server.faults[entry.file] = fault
        with pytest.raises(DataError, match=reason):
            fetch_bank(index, [entry], tmp_path / "mine", server.url)
    assert [one.name for one in (tmp_path / "mine").iterdir()] == [INDEX]


def test_one_edited_byte_is_refused_wherever_it_lies(built, tmp_path, monkeypatch):
    index = BankIndex.read(built / INDEX)
    shutil.copytree(built, tmp_path / "edited")
    entry = index.entries[0]
    file = tmp_path / "edited" / entry.file
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(BrokenTrialError, match="SHA-256"):
        BankFolder(tmp_path / "edited").scores(entry.trial)
    with pytest.raises(StoreError, match="SHA-256"):
        fetch_bank(index, [entry], tmp_path / "mine", str(tmp_path / "edited"))
    # What is here already, and edited, is replaced by the file of the index.
    shutil.copy(built / INDEX, tmp_path / "edited" / INDEX)
    monkeypatch.setenv(ADDRESS_VARIABLE, str(built))
    assert fetch_bank(index, index.entries, tmp_path / "edited").new == (entry.file,)
    assert len(BankFolder(tmp_path / "edited").scores(entry.trial)) > 1


def test_an_address_that_is_none_is_refused(built, tmp_path):
    index = BankIndex.read(built / INDEX)
    for address in ("file:///etc", "ftp://127.0.0.1", str(tmp_path / "nowhere")):
        with pytest.raises(UsageError, match="expected a folder, or an address"):
            fetch_bank(index, index.entries, tmp_path / "mine", address)
    with pytest.raises(UsageError, match="--from"):
        fetch_bank(index, index.entries, tmp_path / "mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("mine")
    with pytest.raises(UsageError, match="--out"):
        fetch_bank(index, index.entries, tmp_path / "full", str(built))


def test_names_that_no_file_has_together_are_an_error(built):
    first, second, *_ = BankIndex.read(built / INDEX).entries
    index = index_of([first, replace(second, dataset="tep")])
    assert index.chosen(datasets=["tep"], detectors=[second.label])
    with pytest.raises(UsageError, match="no file has all of them"):
        index.chosen(datasets=["tep"], detectors=[first.label])


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("sha256", "../../etc/passwd", "sha256: expected hexadecimal"),
        ("sha256", "/etc/passwd", "sha256: expected hexadecimal"),
        ("sha256", "A" * 64, "sha256: expected hexadecimal"),
        ("dataset", "../skab", "dataset: it"),
        ("dataset", "/etc", "dataset: it contains a path's separator"),
        ("dataset", "<script>alert(1)<script>", "dataset: it contains one of"),
        ("label", "<img src=x onerror=alert(1)>", "label: it contains one of"),
        ("label", "t2\x1b[31m", "label: it contains characters that cannot be printed"),
        ("label", "t2[", "label: expected NAME"),
        ("protocol", "strict/..", "protocol: it contains a path's separator"),
        ("trial", "..", "trial: expected hexadecimal"),
        ("scoring", "\u202e", "scoring: expected hexadecimal"),
        ("size", 10**12, "size: expected a number"),
        ("size", 0, "size: expected a number"),
        ("rows", 10**15, "rows: expected a number"),
        ("seed", -1, "seed: expected a number"),
        ("size", "12", "entries.0.size"),
        ("size", 1e400, "entries.0.size"),
        ("trust", "mine", "entries.0.trust"),
        ("file", "../../x", "entries.0.file"),
    ],
)
def test_a_hostile_index_is_refused(built, tmp_path, name, value, reason):
    file = edited(built, tmp_path, lambda content: content["entries"][0].update({name: value}))
    with pytest.raises(StoreError, match="not an index of a score bank") as refused:
        BankIndex.read(file)
    assert reason in str(refused.value)
    assert str(refused.value).isprintable()


def test_an_index_that_is_too_large_doubled_or_of_another_kind_is_refused(built, tmp_path):
    def refused(change) -> str:
        with pytest.raises(StoreError) as error:
            BankIndex.read(edited(built, tmp_path, change))
        return str(error.value)

    assert "same sha256" in refused(lambda one: one["entries"].append(one["entries"][0]))
    assert "at most 999 entries" in refused(lambda one: one.update(entries=one["entries"] * 300))
    assert "schema" in refused(lambda one: one.update(schema=2))
    assert "address" in refused(lambda one: one.update(address="javascript:alert(1)"))
    assert "kind" in refused(lambda one: one.update(kind="model"))
    (tmp_path / INDEX).write_text(" " * (MOST_INDEX_BYTES + 1))
    with pytest.raises(StoreError, match="expected at most"):
        BankIndex.read(tmp_path / INDEX)
    (tmp_path / INDEX).unlink()
    (tmp_path / INDEX).symlink_to(built / INDEX)
    with pytest.raises(StoreError, match="it is a link"):
        BankIndex.read(tmp_path / INDEX)
    with pytest.raises(UsageError, match="there is no index"):
        BankIndex.read(tmp_path / "nowhere.json")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("label", "t3"),
        ("seed", 7),
        ("dataset", "skab"),
        ("protocol_version", 9),
        ("rows", 3),
        ("scoring", "ab" * 12),
        ("trust", "recomputed"),
    ],
)
def test_a_file_that_is_not_what_the_index_says_is_refused(built, tmp_path, name, value):
    shutil.copytree(built, tmp_path / "bank")
    edited(built, tmp_path / "bank", lambda content: content["entries"][0].update({name: value}))
    bank = BankFolder(tmp_path / "bank")
    with pytest.raises(BrokenTrialError, match=f"not what the index says: {name}"):
        bank.record(bank.trials()[0])


def forged(built: Path, change) -> bytes:
    """Return a file of the bank, written anew with another table, or other metadata."""
    file = next(built.glob("*.parquet"))
    metadata = parquet.read_metadata(file).metadata
    table = parquet.read_table(file)
    table, metadata = change(table, dict(metadata))
    buffer = io.BytesIO()
    with parquet.ParquetWriter(buffer, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(metadata)
    return buffer.getvalue()


def with_scores(values) -> object:
    def change(table, metadata):
        field = pa.field("score", pa.array(values(len(table))).type, nullable=False)
        return table.set_column(3, field, pa.array(values(len(table)))), metadata

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda table, metadata: (table, {}), "expected a file of the score bank"),
        (lambda table, metadata: (table, {**metadata, b"tsadbench.bank": b"2"}), "of form 1"),
        (lambda table, metadata: (table, {**metadata, b"tsadbench.record": b"{}"}), "schema"),
        (lambda table, metadata: (table, {b"tsadbench.bank": b"1"}), "not a record"),
        (lambda table, metadata: (table.drop(["role"]), metadata), "role"),
        (lambda table, metadata: (table.slice(0, 0), metadata), "expected 1 to"),
        (with_scores(lambda n: np.zeros(n)), "expected the columns"),
        (with_scores(lambda n: np.full(n, np.inf, dtype=np.float32)), "infinite"),
        (lambda table, metadata: (pa.concat_tables([table, table]), metadata), "are not together"),
        (
            lambda table, metadata: (
                table.set_column(0, pa.field("role", pa.string(), nullable=False), pa.array(["labels"] * len(table))),
                metadata,
            ),
            "expected a role of",
        ),
    ],
)
def test_a_forged_file_is_refused(built, change, reason):
    with pytest.raises(BrokenTrialError, match=reason):
        read_bank_file(forged(built, change), "it")


def test_what_is_no_parquet_file_is_refused(built):
    content = next(built.glob("*.parquet")).read_bytes()
    for broken in (b"", b"PAR1", content[:-1], content[10:], b"\0" * 1000):
        with pytest.raises(BrokenTrialError, match="not a file of the score bank"):
            read_bank_file(broken, "it")


def test_a_file_that_unpacks_to_more_than_its_rows_need_is_refused(built):
    long = "x" * 40_000_000

    def change(table, metadata):
        names = pa.array([long]).dictionary_encode().take(pa.array(np.zeros(len(table), dtype=np.int32)))
        return table.set_column(2, pa.field("recording", names.type, nullable=False), names), metadata

    content = forged(built, change)
    assert len(content) < 2**24
    with pytest.raises(BrokenTrialError, match="larger unpacked"):
        read_bank_file(content, "it")
