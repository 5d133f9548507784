from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.helpers.loopback import Server, serving, write_catalogue
from tsadbench.cli.data import app
from tsadbench.datasets.shipped import CATALOGUE
from tsadbench.errors import DataError, UsageError


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.parametrize("name", ["sakb", "swat", "pumploop", "plant/card.toml"])
def test_data_sets_without_published_files(name: str) -> None:
    result = call("fetch", name)
    assert isinstance(result.exception, DataError if name == "swat" else UsageError)
    assert name in str(result.exception)
    assert "\n" not in str(result.exception)


class TestSeveral:
    """A catalogue of three data sets on one server; two of them are the suite `servers`."""

    @pytest.fixture
    def url(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
        with serving(tmp_path / "published") as server:
            for name in ("skab", "asd", "smd"):
                folder = tmp_path / "published" / name
                folder.mkdir(parents=True)
                (folder / "a.csv").write_text(name)
                write_catalogue(tmp_path / "catalogue", folder, f"{server.url}/{name}", files=["a.csv"])
                monkeypatch.delenv(f"TSADBENCH_{name.upper()}_URL", raising=False)
            shutil.copy(CATALOGUE / "swat.source.json", tmp_path / "catalogue")
            monkeypatch.setattr("tsadbench.datasets.shipped.CATALOGUE", tmp_path / "catalogue")
            monkeypatch.setenv("NO_PROXY", "127.0.0.1")
            yield server

    def test_a_suite_stands_for_its_data_sets(self, url: Server, data: Path) -> None:
        result = call("fetch", "servers", "--data", data)
        assert [line.partition(":")[0] for line in result.stdout.splitlines()] == ["asd", "smd"]

    def test_one_line_per_failure_and_the_others_are_fetched(self, url: Server, data: Path) -> None:
        url.faults |= {"skab/a.csv": "404", "smd/a.csv": "breaks off"}
        result = call("fetch", "skab", "asd", "smd", "--data", data)
        assert [line.partition(":")[0] for line in result.stdout.splitlines()] == ["asd"]
        assert isinstance(result.exception, DataError)
        first, second = str(result.exception).splitlines()
        assert first.startswith("skab: a.csv ")
        assert "404" in first
        assert second.startswith("smd: a.csv ")

    def test_list_says_what_is_here_and_what_is_missing(self, url: Server, data: Path) -> None:
        call("fetch", "skab", "--data", data)
        found = {
            one["name"]: one for one in json.loads(call("list", "--data", data, "--format", "json").stdout)["datasets"]
        }
        assert found["skab"] == {
            "name": "skab",
            "licence": "GPL-3.0",
            "files": 1,
            "bytes": 4,
            "here": True,
            "where": str(data / "skab"),
        }
        assert (found["swat"]["here"], found["swat"]["bytes"]) == (False, None)
        assert found["pumploop"]["here"]
        (data / "skab" / "a.csv").unlink()
        table = call("list", "--data", data).stdout
        assert re.search(r"1 of 1 .*: tsadbench data fetch skab", table)
        assert "iTrust" in table
