from __future__ import annotations

import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.helpers.loopback import FILES, Server
from tsadbench.datasets.download import download
from tsadbench.datasets.source import Source
from tsadbench.errors import DataError
from tsadbench.utils.progress import listening


@pytest.fixture
def source(server: Server) -> Source:
    return Source.load("skab")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "fetched" / "skab"


def files_in(folder: Path) -> list[str]:
    """Return every file below the folder, temporary ones too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_brings_every_file_once(source: Source, server: Server, folder: Path, published: Path) -> None:
    assert download(source, folder) == [*FILES]
    assert server.fetched == [*FILES]
    assert files_in(folder) == sorted(FILES)
    for file in FILES:
        assert (folder / file).read_bytes() == (published / file).read_bytes()


def test_nothing_is_fetched_twice(source: Source, server: Server, folder: Path) -> None:
    download(source, folder)
    server.fetched.clear()
    assert download(source, folder) == []
    assert server.fetched == []


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("404", "the server answered with status 404"),
        ("500", "the server answered with status 500"),
        ("breaks off", "the connection was lost"),
        ("too short", "the server sent another file than the published one (its SHA-256 differs)"),
        ("other content", "the server sent another file than the published one (its SHA-256 differs)"),
    ],
)
def test_a_bad_file_leaves_nothing_and_the_next_run_goes_on(
    source: Source, server: Server, folder: Path, fault: str, reason: str
) -> None:
    server.faults["valve1/2.csv"] = fault
    with pytest.raises(DataError) as caught:
        download(source, folder)
    assert str(caught.value) == (
        f"valve1/2.csv cannot be downloaded from {server.url}/valve1/2.csv: {reason}; "
        "3 of 35 files are there, running it again continues from them"
    )
    assert files_in(folder) == sorted(FILES[:3])

    server.faults.clear()
    server.fetched.clear()
    assert download(source, folder) == [*FILES[3:]]
    assert server.fetched == [*FILES[3:]]
    assert files_in(folder) == sorted(FILES)


def test_files_that_differ_are_replaced(source: Source, server: Server, folder: Path, published: Path) -> None:
    download(source, folder)
    server.fetched.clear()
    (folder / "other/3.csv").write_bytes(b"edited")
    assert download(source, folder) == ["other/3.csv"]
    assert server.fetched == ["other/3.csv"]
    assert (folder / "other/3.csv").read_bytes() == (published / "other/3.csv").read_bytes()


def test_a_failed_replacement_leaves_the_old_file(source: Source, server: Server, folder: Path) -> None:
    download(source, folder)
    (folder / "other/3.csv").write_bytes(b"edited")
    server.faults["other/3.csv"] = "other content"
    with pytest.raises(DataError, match=r"other/3\.csv cannot be downloaded"):
        download(source, folder)
    assert (folder / "other/3.csv").read_bytes() == b"edited"


def test_an_interruption_leaves_no_half_file(source: Source, server: Server, folder: Path) -> None:
    server.faults[FILES[0]] = "stalls"
    during: list[str] = []

    def interrupt() -> None:
        server.stalled.wait(timeout=60)
        time.sleep(0.3)  # until the client waits for the rest of the file
        during.extend(files_in(folder))
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            download(source, folder)
    finally:
        server.released.set()
        interrupter.join()
    assert len(during) == 1
    assert during != [FILES[0]]
    assert files_in(folder) == []


def test_a_killed_process_leaves_no_half_file_under_a_files_name(
    source: Source, server: Server, folder: Path, tmp_path: Path
) -> None:
    server.faults["valve1/1.csv"] = "stalls"
    code = (
        "from pathlib import Path\n"
        "from tsadbench.datasets import source\n"
        "from tsadbench.datasets.download import download\n"
        f"source.CATALOGUE = Path({str(tmp_path / 'catalogue')!r})\n"
        f"download(source.Source.load('skab'), Path({str(folder)!r}))\n"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        assert server.stalled.wait(timeout=60)
        process.kill()
    server.released.set()
    server.faults.clear()
    assert {file for file in FILES if source.state(folder, file) == "as published"} == {*FILES[:2]}
    assert source.missing(folder) == [*FILES[2:]]
    assert download(source, folder) == [*FILES[2:]]
    assert server.fetched == [*FILES[:3], *FILES[2:]]


def test_others_may_read_the_files(source: Source, folder: Path) -> None:
    download(source, folder)
    assert {stat.S_IMODE((folder / file).stat().st_mode) for file in FILES} == {0o644}


def test_a_folder_that_cannot_be_made(source: Source, folder: Path) -> None:
    folder.parent.mkdir()
    folder.write_text("a file where the folder belongs")
    with pytest.raises(DataError, match=r"anomaly-free\.csv cannot be downloaded .*; 0 of 35 files are there"):
        download(source, folder)


def test_progress_counts_the_files(source: Source, folder: Path) -> None:
    heard: list[tuple[int, int, str]] = []
    with listening(lambda *step: heard.append(step)):
        download(source, folder)
    assert heard == [*((done, 35, file) for done, file in enumerate(FILES)), (35, 35, "")]


def test_nothing_is_printed(source: Source, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    download(source, folder)
    assert capfd.readouterr() == ("", "")
