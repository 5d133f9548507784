from __future__ import annotations

import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.loopback import FILES, Server
from tsadbench.datasets import download, location
from tsadbench.datasets.source import Source
from tsadbench.errors import DataError, DataNotFoundError

WAYS_OUT = (
    "give --data DIR, set TSADBENCH_DATA=DIR (a folder that holds skab/), "
    "or run  tsadbench data fetch skab  on a machine with network (0.0 MB, GPL-3.0, published at "
    "http://127.0.0.1:1/nowhere)"
)


@pytest.fixture
def source(published: Path) -> Source:
    return Source.load("skab")


@pytest.fixture
def folders(published: Path, cache: Path, tmp_path: Path) -> dict[str, Path]:
    """Lay SKAB down in three places: a folder for --data, one for TSADBENCH_DATA, and the cache."""
    return {
        name: Path(shutil.copytree(published, folder))
        for name, folder in (
            ("option", tmp_path / "option" / "skab"),
            ("variable", tmp_path / "variable" / "skab"),
            ("cache", cache),
        )
    }


class TestOrder:
    def test_the_option_comes_first(
        self, source: Source, folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TSADBENCH_DATA", str(folders["variable"].parent))
        assert location.find_or_download(source, folders["option"].parent) == folders["option"]

    def test_then_the_variable(self, source: Source, folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TSADBENCH_DATA", str(folders["variable"].parent))
        assert location.find_or_download(source, None) == folders["variable"]

    def test_then_the_cache(self, source: Source, folders: dict[str, Path], server: Server) -> None:
        assert location.find_or_download(source, None) == folders["cache"]
        assert server.fetched == []

    def test_an_empty_variable_is_none(
        self, source: Source, folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TSADBENCH_DATA", "")
        assert location.find(source, None) == folders["cache"]

    def test_then_a_download_into_the_cache(self, source: Source, cache: Path, published: Path, server: Server) -> None:
        assert location.find_or_download(source, None) == cache
        assert server.fetched == [*FILES]
        for file in FILES:
            assert (cache / file).read_bytes() == (published / file).read_bytes()

    def test_the_home_folder_is_understood(
        self, source: Source, folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        assert location.find(source, Path("~/option")) == folders["option"]
        monkeypatch.setenv("TSADBENCH_DATA", "~/variable")
        assert location.find(source, None) == folders["variable"]


class TestNamedFolderWithoutTheDataSet:
    """The search must not go on where the user named a folder: not to the cache, not to the network."""

    @pytest.mark.parametrize("search", [location.find, location.find_or_download])
    @pytest.mark.parametrize("named", ["option", "variable"])
    def test_is_an_error(
        self,
        source: Source,
        folders: dict[str, Path],
        server: Server,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        search: Callable[[Source, Path | None], Path],
        named: str,
    ) -> None:
        empty = tmp_path / "empty"
        empty.mkdir()
        how = "--data" if named == "option" else "TSADBENCH_DATA"
        monkeypatch.setenv("TSADBENCH_DATA", str(folders["variable"].parent if named == "option" else empty))
        with pytest.raises(DataNotFoundError) as caught:
            search(source, empty if named == "option" else None)
        assert str(caught.value) == (
            f"{how} {empty}: expected a folder that holds skab/, found none; "
            f"name another one, or run  tsadbench data fetch skab --data {empty}  "
            "(0.0 MB, GPL-3.0, published at http://127.0.0.1:1/nowhere)"
        )
        assert server.fetched == []

    def test_that_does_not_exist(self, source: Source, tmp_path: Path) -> None:
        with pytest.raises(DataNotFoundError, match="expected a folder that holds skab/, found none"):
            location.find(source, tmp_path / "nowhere")

    def test_the_folder_of_the_data_set_itself(self, source: Source, published: Path) -> None:
        with pytest.raises(DataNotFoundError, match="it seems to be that folder itself: name its parent"):
            location.find(source, published)


class TestNowhere:
    def test_find_never_downloads(self, source: Source, cache: Path, server: Server) -> None:
        with pytest.raises(DataNotFoundError) as caught:
            location.find(source, None)
        assert str(caught.value) == f"skab: not found in the cache {cache}; {WAYS_OUT}"
        assert server.fetched == []
        assert not cache.exists()

    def test_without_a_server(self, source: Source, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            url = f"http://127.0.0.1:{free.getsockname()[1]}"
        monkeypatch.setenv("TSADBENCH_SKAB_URL", url)
        with pytest.raises(DataNotFoundError) as caught:
            location.find_or_download(source, None)
        assert str(caught.value) == (
            f"skab: not in the cache {cache} and cannot be downloaded "
            f"({url}/anomaly-free/anomaly-free.csv: no connection to the server); {WAYS_OUT}"
        )

    def test_a_server_that_never_answers(self, source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(download, "ANSWER_SECONDS", 0.1)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            monkeypatch.setenv("TSADBENCH_SKAB_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
            with pytest.raises(
                DataNotFoundError, match=r"csv: no answer in time\); give --data DIR, set TSADBENCH_DATA"
            ):
                location.find_or_download(source, None)

    def test_no_address(self, source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TSADBENCH_SKAB_URL", "mirror/skab")
        with pytest.raises(DataNotFoundError, match=r"cannot be downloaded .*Invalid URL 'mirror/skab/anomaly-free"):
            location.find_or_download(source, None)

    def test_a_download_that_breaks_off_is_the_cause(self, source: Source, server: Server) -> None:
        server.faults["valve1/5.csv"] = "breaks off"
        with pytest.raises(
            DataNotFoundError, match=r"valve1/5\.csv cannot be downloaded from .*connection was lost"
        ) as caught:
            location.find_or_download(source, None)
        assert isinstance(caught.value.__cause__, DataError)
        assert WAYS_OUT in str(caught.value)


def test_place_is_where_fetched_files_will_be_found(
    source: Source, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert location.place(source.name, None) == cache
    monkeypatch.setenv("TSADBENCH_DATA", str(tmp_path / "a"))
    assert location.place(source.name, None) == tmp_path / "a" / "skab"
    assert location.place(source.name, tmp_path / "b") == tmp_path / "b" / "skab"
