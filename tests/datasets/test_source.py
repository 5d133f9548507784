from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.loopback import FILES
from tsadbench.datasets.source import Source, listed
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


@pytest.mark.parametrize("mirror", ["http://mirror/skab", "http://mirror/skab/"])
def test_a_mirror_takes_the_place_of_the_address(monkeypatch: pytest.MonkeyPatch, mirror: str) -> None:
    monkeypatch.setenv("TSADBENCH_SKAB_URL", mirror)
    assert Source.load("skab").address("valve1/0.csv") == "http://mirror/skab/valve1/0.csv"


@pytest.mark.parametrize("name", ["swat", "", "../skab"])
def test_unknown_name(name: str) -> None:
    with pytest.raises(UsageError, match=r"expected one whose files are published, these are: \['skab', 'tep'\]"):
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
        f"valve1/4.csv and 2 more; run  tsadbench data fetch skab --data {published.parent}"
    )


def test_listed() -> None:
    assert listed(["a"]) == "a"
    assert listed([*"abcde"]) == "a, b, c, d, e"
    assert listed([*"abcdef"]) == "a, b, c, d, e and 1 more"
