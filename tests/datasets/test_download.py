from __future__ import annotations

import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from tests.helpers.loopback import FILES, Server, serving, write_catalogue
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
        ("429", "the server answered with status 429"),
        ("500", "the server answered with status 500"),
        ("redirects to /nowhere.csv", "the server answered with status 404"),
        ("redirects to /valve1/2.csv", "the server redirects in a circle"),
        ("never ends", "the server sent another file than the published one (its SHA-256 differs)"),
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


@pytest.mark.parametrize("below", [".", "skab", "data/skab"])
def test_a_folder_that_cannot_be_made(source: Source, tmp_path: Path, below: str) -> None:
    blocking = tmp_path / "file"
    blocking.write_text("a file where the folder belongs")
    with pytest.raises(DataError) as caught:
        download(source, blocking / below)
    assert re.fullmatch(
        r"anomaly-free/anomaly-free\.csv cannot be downloaded from http\S+: "
        rf"{blocking} is a file, not a folder; 0 of 35 files are there, running it again continues from them",
        str(caught.value),
    )


def heard_of(source: Source, folder: Path) -> list[tuple[int, int, str]]:
    """Download, and return what is reported meanwhile, without repetitions."""
    heard: dict[tuple[int, int, str], None] = {}
    with listening(lambda *step: heard.setdefault(step)):
        download(source, folder)
    return [*heard]


def test_progress_counts_the_files_and_the_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    sizes = {"a.bin": 200_000, "b/c.bin": 100_000, "d.bin": 300_000}
    for number, (file, size) in enumerate(sizes.items()):
        (tmp_path / "sized" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sized" / file).write_bytes(bytes([number]) * size)
    monkeypatch.setattr("tsadbench.datasets.source.CATALOGUE", tmp_path / "catalogue")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving(tmp_path / "sized") as server:
        write_catalogue(tmp_path / "catalogue", tmp_path / "sized", server.url, files=sizes)
        source = Source.load("sized")
        # Within a file, bytes are counted as they come in; a file is counted when it is complete.
        assert heard_of(source, folder) == [
            *((0, 3, f"{megabytes} of 0.6 MB") for megabytes in ("0.0", "0.1", "0.2")),
            *((1, 3, f"{megabytes} of 0.6 MB") for megabytes in ("0.2", "0.3")),
            *((2, 3, f"{megabytes} of 0.6 MB") for megabytes in ("0.3", "0.4", "0.5", "0.6")),
            (3, 3, "0.6 of 0.6 MB"),
        ]
        # What is there already counts at once.
        (folder / "b/c.bin").unlink()
        assert heard_of(source, folder) == [
            (0, 3, "0.0 of 0.6 MB"),
            (1, 3, "0.2 of 0.6 MB"),
            (1, 3, "0.3 of 0.6 MB"),
            (2, 3, "0.3 of 0.6 MB"),
            (3, 3, "0.6 of 0.6 MB"),
        ]


def test_nothing_is_printed(source: Source, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    download(source, folder)
    assert capfd.readouterr() == ("", "")


def test_a_redirected_file_is_followed(source: Source, server: Server, folder: Path, published: Path) -> None:
    (published / "moved.csv").write_bytes((published / "valve1/2.csv").read_bytes())
    server.faults["valve1/2.csv"] = "redirects to /moved.csv"
    assert download(source, folder) == [*FILES]
    assert (folder / "valve1/2.csv").read_bytes() == (published / "valve1/2.csv").read_bytes()


def test_a_slow_server_is_waited_for(source: Source, server: Server, folder: Path) -> None:
    server.faults = dict.fromkeys(FILES[:3], "drips")
    assert download(source, folder) == [*FILES]


def test_a_server_that_stops_sending(
    source: Source, server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsadbench.datasets.download.READ_SECONDS", 0.1)
    server.faults["valve1/0.csv"] = "stalls"
    with pytest.raises(DataError, match=r"valve1/0\.csv cannot be downloaded .*: the server stopped sending; 1 of 35"):
        download(source, folder)
    assert files_in(folder) == [FILES[0]]


class TestSourceWithOtherPaths:
    """Files may lie elsewhere at the source than in the data set's folder, and there may be many."""

    FILES = ("LICENSE", *(f"machine-{i}_train.pkl" for i in range(9)), *(f"labels/machine-{i}.txt" for i in range(200)))
    PATHS: ClassVar = {"LICENSE": "LICENSE", "labels/": "data/interpretation/", "": "data/processed/"}

    def there(self, file: str) -> str:
        if file == "LICENSE":
            return file
        return "data/" + (f"interpretation/{Path(file).name}" if file.startswith("labels/") else f"processed/{file}")

    @pytest.fixture
    def repository(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
        for file in self.FILES:
            for path in (tmp_path / "servers" / file, tmp_path / "repository" / self.there(file)):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"content of {file}")
        monkeypatch.setattr("tsadbench.datasets.source.CATALOGUE", tmp_path / "catalogue")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.delenv("TSADBENCH_SERVERS_URL", raising=False)
        with serving(tmp_path / "repository") as server:
            write_catalogue(
                tmp_path / "catalogue", tmp_path / "servers", server.url, files=self.FILES, paths=self.PATHS
            )
            yield server

    def test_each_lands_under_its_path_here(self, repository: Server, folder: Path) -> None:
        assert download(Source.load("servers"), folder) == [*self.FILES]
        assert repository.fetched == [self.there(file) for file in self.FILES]
        assert files_in(folder) == sorted(self.FILES)
        assert all((folder / file).read_text() == f"content of {file}" for file in self.FILES)

    @pytest.mark.parametrize(
        ("fault", "reason"),
        [("404", "status 404"), ("breaks off", "connection was lost"), ("other content", "SHA-256")],
    )
    def test_failures_name_both_paths_and_the_next_run_goes_on(
        self, repository: Server, folder: Path, fault: str, reason: str
    ) -> None:
        source, bad = Source.load("servers"), "labels/machine-150.txt"
        repository.faults["data/interpretation/machine-150.txt"] = fault
        with pytest.raises(
            DataError, match=f"^{bad} cannot be downloaded from .*/data/interpretation/machine-150.txt: "
        ) as caught:
            download(source, folder)
        assert reason in str(caught.value)
        assert "; 160 of 210 files are there, running it again continues from them" in str(caught.value)
        repository.faults.clear()
        repository.fetched.clear()
        assert download(source, folder) == [*self.FILES[160:]]
        assert repository.fetched == [self.there(file) for file in self.FILES[160:]]

    def test_a_mirror_is_a_copy_of_the_folder_here(
        self, repository: Server, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with serving(tmp_path / "servers") as mirror:
            monkeypatch.setenv("TSADBENCH_SERVERS_URL", mirror.url)
            assert download(Source.load("servers"), folder) == [*self.FILES]
            assert mirror.fetched == [*self.FILES]
        assert repository.fetched == []


# Fetches SKAB by the command line, on standard output what is in the folder afterwards.
FETCH = """
import sys
from pathlib import Path
from tsadbench.cli import main
from tsadbench.datasets import source

catalogue, folder, limit = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
source.CATALOGUE = catalogue
if limit:
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
sys.argv = ["tsadbench", "data", "fetch", "skab", "--data", str(folder)]
try:
    main()
finally:
    print(*sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()), sep="\\n")
"""


def test_a_full_disk(source: Source, server: Server, tmp_path: Path) -> None:
    """The folder is a file system of 64 KiB, in a namespace of the process's own: a real disk that is full."""
    small = tmp_path / "small"
    small.mkdir()
    within = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=64k none "$0" && exec "$@"', str(small)]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*within, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("file systems of one's own need user namespaces")
    command = [*within, sys.executable, "-c", FETCH, str(tmp_path / "catalogue"), str(small), "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    kept = done.stdout.split()
    (message,) = done.stderr.splitlines()
    bad = FILES[len(kept)]
    assert done.returncode == 2
    assert 0 < len(kept) < 35
    assert kept == sorted(f"skab/{file}" for file in FILES[: len(kept)])  # and nothing half
    assert message == (
        f"tsadbench: skab: {bad} cannot be downloaded from {server.url}/{bad}: No space left on device; "
        f"{len(kept)} of 35 files are there, running it again continues from them"
    )


def test_a_file_that_is_too_large_for_the_disk(source: Source, server: Server, tmp_path: Path) -> None:
    """What a quota does: here, no file of the process may have more than 250 bytes."""
    command = [sys.executable, "-c", FETCH, str(tmp_path / "catalogue"), str(tmp_path / "data")]
    done = subprocess.run([*command, "250"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (2, [])
    assert f"{FILES[0]}: File too large; 0 of 35 files are there" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    done = subprocess.run([*command, "0"], capture_output=True, text=True, check=True)
    assert "(35 downloaded)" in done.stdout


def test_an_interrupted_command_keeps_what_is_complete(source: Source, server: Server, tmp_path: Path) -> None:
    server.faults[FILES[2]] = "stalls"
    command = [sys.executable, "-c", FETCH, str(tmp_path / "catalogue"), str(tmp_path / "data"), "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert server.stalled.wait(timeout=60)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "interrupted: the files that are complete are kept; running it again continues from them\n"
    assert out.split() == [f"skab/{file}" for file in FILES[:2]]
