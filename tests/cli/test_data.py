from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.helpers.loopback import FILES, Server, serving, write_catalogue, write_skab
from tsadbench.cli.data import app
from tsadbench.errors import DataError, DataNotFoundError, UsageError


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Take a small, made-up SKAB for the published one, and serve it."""
    folder = write_skab(tmp_path / "published")
    monkeypatch.setattr("tsadbench.datasets.source.CATALOGUE", tmp_path / "catalogue")
    monkeypatch.delenv("TSADBENCH_DATA", raising=False)
    monkeypatch.delenv("TSADBENCH_SKAB_URL", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving(folder) as server:
        write_catalogue(tmp_path / "catalogue", folder, server.url)
        yield server


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


class TestFetch:
    def test_brings_all_files_and_then_none(self, server: Server, data: Path) -> None:
        result = call("fetch", "skab", "--data", data)
        assert result.exit_code == 0
        assert result.stdout == f"skab: 35 files as published in {data / 'skab'} (35 downloaded)\n"
        assert result.stderr == ""  # no terminal, so no bar
        again = call("fetch", "--data", data)
        assert again.stdout == f"skab: 35 files as published in {data / 'skab'} (0 downloaded)\n"
        assert server.fetched == [*FILES]

    def test_goes_on_after_a_failure(self, server: Server, data: Path) -> None:
        server.faults["valve2/0.csv"] = "breaks off"
        failed = call("fetch", "--data", data)
        assert isinstance(failed.exception, DataError)
        assert "17 of 35 files are there, running it again continues from them" in str(failed.exception)
        server.faults.clear()
        assert "(18 downloaded)" in call("fetch", "--data", data).stdout
        assert server.fetched == [*FILES[:18], *FILES[17:]]

    def test_fetches_to_where_run_will_look(
        self, server: Server, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path / "cache" / project)
        assert call("fetch").exit_code == 0
        assert (tmp_path / "cache" / "tsadbench" / "skab" / "valve1" / "0.csv").is_file()
        monkeypatch.setenv("TSADBENCH_DATA", str(data))
        assert call("fetch").exit_code == 0
        assert call("path").stdout == f"{data / 'skab'}\n"

    def test_shows_a_bar_in_a_terminal(self, server: Server, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm")
        result = call("fetch", "--data", data)
        assert "Fetching skab" in result.stderr
        assert "Fetching" not in result.stdout


class TestVerify:
    def test_all_as_published(self, server: Server) -> None:
        result = call("verify", "skab", "--data", server.folder.parent)
        assert result.exit_code == 0
        assert result.stdout == f"skab: 35 of 35 files as published in {server.folder}\n"

    def test_a_line_a_wrong_file_and_exit_code_1(self, server: Server) -> None:
        (server.folder / "valve1/3.csv").unlink()
        with (server.folder / "other/14.csv").open("ab") as file:
            file.write(b"\n")
        result = call("verify", "--data", server.folder.parent)
        assert result.exit_code == 1
        assert result.stdout.splitlines() == [
            f"missing: {server.folder / 'valve1/3.csv'}",
            f"differs: {server.folder / 'other/14.csv'}",
            f"skab: 33 of 35 files as published in {server.folder}",
        ]
        assert f"tsadbench data fetch skab --data {server.folder.parent}" in result.stderr
        assert server.fetched == []

    def test_nothing_there(self, server: Server, data: Path) -> None:
        result = call("verify", "--data", data)
        assert isinstance(result.exception, DataNotFoundError)
        assert server.fetched == []


class TestPath:
    def test_prints_the_folder_and_nothing_else(self, server: Server) -> None:
        result = call("path", "skab", "--data", server.folder.parent)
        assert (result.exit_code, result.stdout, result.stderr) == (0, f"{server.folder}\n", "")

    def test_nothing_there(self, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path / "cache" / project)
        result = call("path")
        assert isinstance(result.exception, DataNotFoundError)
        assert "tsadbench data fetch skab" in str(result.exception)
        assert server.fetched == []


@pytest.mark.parametrize("command", ["fetch", "verify", "path"])
def test_unknown_data_set(command: str) -> None:
    result = call(command, "swat")
    assert isinstance(result.exception, UsageError)
    assert "these are: ['asd', 'causrca', 'cranfield', 'gecco2018', 'skab', 'smd', 'tep']" in str(result.exception)


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from tsadbench.cli.data import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'pandas', 'scipy', 'sklearn', 'torch', 'pooch', 'requests'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "verify" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"
