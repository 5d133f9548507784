from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.helpers.loopback import FILES
from tsadbench.base.dataset import DataOptions
from tsadbench.datasets.loading import load_dataset
from tsadbench.datasets.source import Source
from tsadbench.datasets.source import published as published_names
from tsadbench.errors import DataError, DataNotFoundError, UsageError


def test_the_shipped_source_of_skab_names_its_35_files() -> None:
    source = Source.load("skab")
    assert tuple(source.sha256) == FILES
    assert all(len(sha256) == 64 and set(sha256) <= set("0123456789abcdef") for sha256 in source.sha256.values())
    assert len(set(source.sha256.values())) == 35


def test_addresses_are_pinned_to_one_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TSADBENCH_SKAB_URL", raising=False)
    address = Source.load("skab").address("valve1/0.csv")
    assert address == (
        "https://raw.githubusercontent.com/waico/SKAB/b2c0d46c2971dcbfe71e26087b6d231998bb91c2/data/valve1/0.csv"
    )


# Of each data set: how many files, and where one of them lies at its source. A repository's folders need not be ours.
RAW = "https://raw.githubusercontent.com"
INTERFUSION = f"{RAW}/zhhlee/InterFusion/8c85d511c1f070669ba8c5cf097b8fa4a202d15b"
CRANFIELD = f"{RAW}/tabbycat01/s2s-fdd/8d03333c6bddf7d6f63956d42214e8214574cf5e/CVACaseStudy"
CAUSRCA = f"{RAW}/causalgraph/causRCA/7135767669374d5948f3da7e0a408ad2862afd47"
ADDRESSES = [
    ("asd", 49, "omi-1_train.pkl", f"{INTERFUSION}/data/processed/omi-1_train.pkl"),
    ("asd", 49, "interpretation_label/omi-1.txt", f"{INTERFUSION}/data/interpretation_label/omi-1.txt"),
    ("asd", 49, "LICENSE", f"{INTERFUSION}/LICENSE"),
    ("smd", 33, "machine-3-4_test_label.pkl", f"{INTERFUSION}/data/processed/machine-3-4_test_label.pkl"),
    ("smd", 33, "LICENSE", f"{INTERFUSION}/LICENSE"),
    ("cranfield", 7, "FaultyCase6.mat", f"{CRANFIELD}/CVACaseStudy/FaultyCase6.mat"),
    ("cranfield", 7, "license.txt", f"{CRANFIELD}/license.txt"),
    ("causrca", 391, "real_op/dataset_real_op_72825.csv", f"{CAUSRCA}/data/real_op/dataset_real_op_72825.csv"),
    ("causrca", 391, "LICENSE.md", f"{CAUSRCA}/LICENSE.md"),
    (
        "gecco2018",
        2,
        "geccoIC2018Test.rda",
        f"{RAW}/cran/EventDetectR/309146433401ea25a21369dbce04b19a3cccea9b/data/geccoIC2018Test.rda",
    ),
]


@pytest.mark.parametrize(("name", "n_files", "file", "address"), ADDRESSES)
def test_a_files_path_at_the_source_need_not_be_its_path_here(
    monkeypatch: pytest.MonkeyPatch, name: str, n_files: int, file: str, address: str
) -> None:
    monkeypatch.delenv(f"TSADBENCH_{name.upper()}_URL", raising=False)
    source = Source.load(name)
    assert (source.address(file), len(source.sha256)) == (address, n_files)


def test_a_mirror_is_a_copy_of_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSADBENCH_GECCO2018_URL", "http://mirror/gecco2018")
    monkeypatch.setenv("TSADBENCH_ASD_URL", "http://mirror/asd/")
    assert Source.load("gecco2018").address("geccoIC2018Train.rda") == "http://mirror/gecco2018/geccoIC2018Train.rda"
    assert Source.load("asd").address("omi-1_train.pkl") == "http://mirror/asd/omi-1_train.pkl"


@pytest.mark.skipif("TSADBENCH_DATA" not in os.environ, reason="needs the data sets' files (TSADBENCH_DATA)")
@pytest.mark.parametrize("name", published_names())
def test_sources_agree_with_the_files_that_are_here(name: str) -> None:
    folder = Path(os.environ["TSADBENCH_DATA"], name)
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    source = Source.load(name)
    assert source.notes(folder, allow_changed=False) == ()
    assert sum((folder / file).stat().st_size for file in source.sha256) == source.n_bytes


@pytest.mark.parametrize("name", published_names())
def test_without_the_files_each_data_set_says_where_to_get_them(name: str, tmp_path: Path) -> None:
    source = Source.load(name)
    where = re.escape(f"tsadbench data fetch {name} --data {tmp_path}  ({source.origin})")
    assert re.fullmatch(
        r"\d+\.\d MB, .+, published at https://github\.com/[^/]+/[^/]+/tree/[0-9a-f]{40}(/.+)?", source.origin
    )
    with pytest.raises(DataNotFoundError, match=f"expected a folder that holds {name}/, found none.*{where}"):
        load_dataset(name)(DataOptions(directory=tmp_path))
    (tmp_path / name).mkdir()
    count = len(source.sha256)
    with pytest.raises(DataNotFoundError, match=f"{name}: {count} of {count} files are missing in .*{where}"):
        load_dataset(name)(DataOptions(directory=tmp_path))


def test_where_the_files_come_from_in_words() -> None:
    assert Source.load("asd").origin == (
        "12.1 MB, MIT, published at https://github.com/zhhlee/InterFusion/tree/8c85d511c1f070669ba8c5cf097b8fa4a202d15b"
    )


@pytest.mark.parametrize("mirror", ["http://mirror/skab", "http://mirror/skab/"])
def test_a_mirror_takes_the_place_of_the_address(monkeypatch: pytest.MonkeyPatch, mirror: str) -> None:
    monkeypatch.setenv("TSADBENCH_SKAB_URL", mirror)
    assert Source.load("skab").address("valve1/0.csv") == "http://mirror/skab/valve1/0.csv"


@pytest.mark.parametrize("name", ["swat", "", "../skab"])
def test_unknown_name(name: str) -> None:
    with pytest.raises(
        UsageError, match=r"expected one whose files are published, these are: \['asd', 'causrca', .*, 'tep'\]"
    ):
        Source.load(name)


def test_states(published: Path) -> None:
    (published / "valve1/3.csv").unlink()
    (published / "valve2/0.csv").write_bytes(b"something else")
    source = Source.load("skab")
    states = {file: source.state(published, file) for file in FILES}
    assert {file: state for file, state in states.items() if state != "as published"} == {
        "valve1/3.csv": "missing",
        "valve2/0.csv": "differs",
    }
    assert source.missing(published) == ["valve1/3.csv"]


def test_a_folder_in_place_of_a_file_cannot_be_compared(published: Path) -> None:
    (published / "valve1/3.csv").unlink()
    (published / "valve1/3.csv").mkdir()
    with pytest.raises(DataError, match=r"valve1/3\.csv: cannot be read \(.+\); put the published file there"):
        Source.load("skab").state(published, "valve1/3.csv")


def test_missing_files_are_named_with_the_way_out(published: Path) -> None:
    source = Source.load("skab")
    source.require(published)
    for i in range(7):
        (published / f"valve1/{i}.csv").unlink()
    with pytest.raises(DataNotFoundError) as caught:
        source.require(published)
    assert str(caught.value) == (
        f"skab: 7 of 35 files are missing in {published}: valve1/0.csv, valve1/1.csv, valve1/2.csv, valve1/3.csv, "
        f"valve1/4.csv and 2 more; run  tsadbench data fetch skab --data {published.parent}  "
        "(0.0 MB, GPL-3.0, published at http://127.0.0.1:1/nowhere)"
    )


def test_what_is_wrong_with_a_changed_file_comes_with_the_way_to_the_published_one(published: Path) -> None:
    source, error = Source.load("skab"), DataError("valve1/3.csv, line 2: something")
    assert source.with_hint(error, published) is error  # the file is as published, so fetching it again helps nobody
    (published / "valve1/3.csv").write_text("torn")
    assert str(source.with_hint(error, published)) == (
        f"valve1/3.csv, line 2: something\nskab: 1 of 35 files in {published} differs from the published ones "
        f"(SHA-256): valve1/3.csv; put the published ones there with  tsadbench data fetch skab "
        f"--data {published.parent}"
    )


def test_a_torn_file_is_told_by_both(published: Path) -> None:
    with (published / "valve1/3.csv").open("ab") as file:
        file.write(b"2020-03-09 10:14:09;1;2")
    with pytest.raises(DataError) as caught:
        load_dataset("skab")(DataOptions(directory=published.parent))
    problem, *_, hint = str(caught.value).splitlines()
    assert problem.startswith("data set skab in ")
    assert "valve1/3.csv, line 5" in str(caught.value)
    assert hint.endswith(f"tsadbench data fetch skab --data {published.parent}")
