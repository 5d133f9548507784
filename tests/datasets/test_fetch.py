"""Published files: found, fetched from a server on this machine, checked, and refused if they differ."""

from __future__ import annotations

import re
import shutil
import stat
from pathlib import Path
from typing import ClassVar

import pytest

from tests.helpers.loopback import FILES, Server, serving, write_catalogue
from tsadbench.base.dataset import DataOptions
from tsadbench.datasets import shipped as fetch
from tsadbench.datasets.shipped import Source, download, load_skab, published
from tsadbench.errors import DataError, DataNotFoundError, UsageError
from tsadbench.utils.progress import listening


@pytest.fixture
def source(published: Path) -> Source:
    return Source.load("skab")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "fetched" / "skab"


def files_in(folder: Path) -> list[str]:
    """Return every file below the folder, temporary ones too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


class TestDownload:
    def test_fetches_every_file_once_and_then_only_those_that_differ(self, source, server: Server, folder, published):
        heard = []
        with listening(lambda done, of, _: heard.append((done, of))):
            assert download(source, folder) == server.fetched == [*FILES]
        assert heard[-1] == (35, 35)
        for file in FILES:
            assert (folder / file).read_bytes() == (published / file).read_bytes()
            assert stat.S_IMODE((folder / file).stat().st_mode) == 0o644  # others may read it
        assert files_in(folder) == sorted(FILES)
        server.fetched.clear()
        (folder / "other/3.csv").write_bytes(b"edited")
        assert download(source, folder) == server.fetched == ["other/3.csv"]
        assert (folder / "other/3.csv").read_bytes() == (published / "other/3.csv").read_bytes()
        assert download(source, folder) == []

    @pytest.mark.parametrize(
        "fault", ["404", "500", "redirects to /valve1/2.csv", "breaks off", "too short", "other content"]
    )
    def test_a_bad_file_leaves_nothing_and_the_next_run_goes_on(self, source, server: Server, folder, fault):
        server.faults["valve1/2.csv"] = fault
        with pytest.raises(DataError, match=r"valve1/2\.csv"):
            download(source, folder)
        assert files_in(folder) == sorted(FILES[:3])
        server.faults = {"valve1/3.csv": "drips"}  # slow, but sound
        assert download(source, folder) == [*FILES[3:]]
        assert files_in(folder) == sorted(FILES)

    def test_a_failed_replacement_leaves_the_old_file(self, source, server: Server, folder):
        download(source, folder)
        (folder / "other/3.csv").write_bytes(b"edited")
        server.faults["other/3.csv"] = "other content"
        with pytest.raises(DataError, match=r"other/3\.csv"):
            download(source, folder)
        assert (folder / "other/3.csv").read_bytes() == b"edited"

    def test_a_server_that_stops_sending(self, source, server: Server, folder, monkeypatch):
        monkeypatch.setattr("tsadbench.datasets.shipped.TIMEOUT", (1.0, 0.1))
        server.faults["valve1/0.csv"] = "stalls"
        with pytest.raises(DataError, match=r"valve1/0\.csv"):
            download(source, folder)
        assert files_in(folder) == [FILES[0]]

    def test_a_folder_that_cannot_be_made(self, source, server: Server, tmp_path):
        (tmp_path / "file").write_text("a file where the folder belongs")
        with pytest.raises(DataError, match=str(tmp_path / "file")):
            download(source, tmp_path / "file/skab")

    FILES: ClassVar = ("LICENSE", "machine-1_train.pkl", "labels/machine-1.txt")
    PATHS: ClassVar = {"LICENSE": "LICENSE", "labels/": "data/interpretation/", "": "data/processed/"}
    THERE: ClassVar = ("LICENSE", "data/processed/machine-1_train.pkl", "data/interpretation/machine-1.txt")

    def test_paths_may_differ_at_the_source_but_not_at_a_mirror(self, tmp_path, folder, monkeypatch):
        for file, there in zip(self.FILES, self.THERE, strict=True):
            for path in (tmp_path / "servers" / file, tmp_path / "repository" / there):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"content of {file}")
        monkeypatch.setattr("tsadbench.datasets.shipped.CATALOGUE", tmp_path / "catalogue")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.delenv("TSADBENCH_SERVERS_URL", raising=False)
        with serving(tmp_path / "repository") as repository, serving(tmp_path / "servers") as mirror:
            write_catalogue(
                tmp_path / "catalogue", tmp_path / "servers", repository.url, files=self.FILES, paths=self.PATHS
            )
            assert download(Source.load("servers"), folder) == [*self.FILES]
            assert repository.fetched == [*self.THERE]
            assert all((folder / file).read_text() == f"content of {file}" for file in self.FILES)
            monkeypatch.setenv("TSADBENCH_SERVERS_URL", mirror.url)
            assert download(Source.load("servers"), tmp_path / "again") == mirror.fetched == [*self.FILES]


def test_the_command_fetches_all_files_and_then_none(server: Server, tmp_path, tsadbench):
    data = tmp_path / "data"
    done = tsadbench("data", "fetch", "skab", "--data", data)
    assert (done.code, done.err) == (0, "")  # no terminal, so no bar
    assert re.fullmatch(rf"skab: 35 .* {data / 'skab'} \(35 \w+\)\n", done.out)
    again = tsadbench("data", "fetch", "--data", data)
    assert re.fullmatch(rf"skab: 35 .* {data / 'skab'} \(0 \w+\)\n", again.out)
    assert server.fetched == [*FILES]


class TestLocation:
    @pytest.fixture
    def folders(self, published: Path, cache: Path, tmp_path: Path) -> dict[str, Path]:
        """Copy SKAB to three places: a folder for --data, one for TSADBENCH_DATA, and the cache."""
        places = {"option": tmp_path / "option/skab", "variable": tmp_path / "variable/skab", "cache": cache}
        return {name: Path(shutil.copytree(published, folder)) for name, folder in places.items()}

    def test_the_option_then_the_variable_then_the_cache(self, source, folders, server: Server, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path))
        for variable, option, found in (
            ("~/variable", folders["option"].parent, "option"),
            ("~/variable", Path("~/option"), "option"),
            ("~/variable", None, "variable"),
            ("", None, "cache"),
        ):
            monkeypatch.setenv("TSADBENCH_DATA", variable)
            assert fetch.find("skab", option) == folders[found]
            assert fetch.place("skab", option) == folders[found]
        assert server.fetched == []

    def test_then_a_download_into_the_cache(self, source, cache, server: Server, published):
        assert not cache.exists()
        assert load_skab(DataOptions()).dataset.folder == cache
        assert files_in(cache) == sorted(server.fetched) == sorted(FILES)

    @pytest.mark.parametrize("named", ["option", "variable"])
    def test_a_folder_that_the_user_has_named_is_the_only_one(
        self, source, folders, server: Server, tmp_path, monkeypatch, named
    ):
        (tmp_path / "empty").mkdir()
        monkeypatch.setenv("TSADBENCH_DATA", str(tmp_path / "empty"))
        with pytest.raises(DataNotFoundError, match=f"{tmp_path}/empty"):
            fetch.find("skab", tmp_path / "empty" if named == "option" else None)
        assert server.fetched == []

    @pytest.mark.parametrize("url", ["http://127.0.0.1:1", "mirror/skab"])
    def test_without_a_server_it_says_where_the_files_may_be(self, source, cache, monkeypatch, url):
        monkeypatch.setenv("TSADBENCH_SKAB_URL", url)
        with pytest.raises(DataNotFoundError, match="TSADBENCH_DATA"):
            fetch.find("skab", None)


class TestChanged:
    def test_a_changed_file_is_refused_or_noted(self, published):
        path = published / "other/2.csv"
        path.write_bytes(path.read_bytes().replace(b"22.11", b"22.12"))
        with pytest.raises(DataError, match=r"other/2\.csv"):
            load_skab(DataOptions(directory=published.parent))
        dataset, _ = load_skab(DataOptions(directory=published.parent, allow_changed=True))
        (note,) = dataset.notes
        assert "other/2.csv" in note
        (recording,) = (one for one in dataset.test if one.id == "other/2")
        assert recording.values[1, 1] == 22.12

    def test_a_missing_file_is_named(self, published):
        (published / "valve2/1.csv").unlink()
        with pytest.raises(DataNotFoundError, match=r"valve2/1\.csv"):
            load_skab(DataOptions(directory=published.parent))

    def test_a_file_that_cannot_be_read_is_reported_first(self, published):
        (published / "valve1/0.csv").write_bytes((published / "valve1/1.csv").read_bytes())
        path = published / "other/14.csv"
        path.write_bytes(path.read_bytes().replace(b"34.11", b"34,11"))
        with pytest.raises(DataError, match=r"other/14\.csv, line 3.*Accelerometer2RMS(?s:.)*valve1/0\.csv"):
            load_skab(DataOptions(directory=published.parent))


def test_every_data_set_with_files_has_a_source_and_without_checksums_none_is_downloaded(tmp_path, monkeypatch):
    unchecked = [name for name in published() if not Source.load(name).is_checked]
    assert unchecked == ["catsv2", "exathlon", "metropt3", "psm", "swat", "wadi"]
    assert {*published()} - {*unchecked} == {"asd", "causrca", "cranfield", "gecco2018", "hai", "skab", "smd", "tep"}
    monkeypatch.setenv("TSADBENCH_PSM_URL", "http://127.0.0.1:1")
    with pytest.raises(DataError, match=r"eBay/RANSynCoders"):
        download(Source.load("psm"), tmp_path)
    with pytest.raises(UsageError, match="pumploop"):
        Source.load("pumploop")
