"""A small plant with something to steal, hostile detectors to try it, and the command that runs them.

Everything is in one folder: the data set with its labels, an earlier run's store, the user's home with secrets in it,
the cache, the temporary folder, and the detectors' files. Servers on sockets of four kinds answer with a secret. All
secrets are random: ``canary-<16 digits>-<what it is>``.
"""

from __future__ import annotations

import ast
import contextlib
import ctypes
import hashlib
import os
import platform
import secrets
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import psutil

from tests.helpers.cards import CARD
from tests.helpers.processes import is_alive
from tsadbench.execution.record import Record
from tsadbench.execution.store import Store

HERE = Path(__file__).parent
DETECTORS = HERE / "detectors"
_SEED = 20261122
_START = "2024-05-01 12:00:00"
_N_TEST = 5
_DECLARED = ("ends", "stays_open", "takes_seconds", "takes_mib", "marked")  # by the class of a hostile detector
_KEYCTL, _INVALIDATE = {"x86_64": 250, "aarch64": 219}.get(platform.machine(), -1), 21

# Users cannot turn off a seal that the kernel offers. `table` does, to show what the guard alone lets through.
_UNSEALED = """\
from tsadbench.sandbox.server import Server
Server.__init__.__kwdefaults__["seal"] = False
from tsadbench.cli.app import main
main()
"""

VICTIM = '''

class Victim(Hostile):
    """Honest; whatever runs beside it must not change it."""

    def __init__(self, *, number: int = -1) -> None:
        self.number = number

    def _score(self, recording):
        return super()._score(recording) * (2.0 + self.number)
'''


@dataclass(frozen=True, slots=True)
class Attack:
    """One hostile detector."""

    file: str  # the stem of its file's name
    name: str
    tries: str  # in words
    ends: tuple[str, ...]  # statuses with which it may end; "refused" if the run does not even start
    stays_open: str = ""  # why no wall stops it; empty if it must learn nothing
    seeds: int = 1
    takes_seconds: float = 0.0  # what its record must show at least
    takes_mib: float = 0.0
    marked: bool = False  # whether its row must be marked as uncalibrated

    @property
    def reference(self) -> str:
        return f"detectors/{self.file}.py:{self.name}"

    def __str__(self) -> str:
        return f"{self.file}:{self.name}"


def attacks() -> tuple[Attack, ...]:
    """Return every hostile detector, read from the files without importing any."""
    return tuple(one for path in sorted(DETECTORS.glob("*.py")) for one in _attacks_of(path))


def channels() -> dict[str, str]:
    """Return the docstring of each file of attacks, by the stem of its name."""
    return {path.stem: str(ast.get_docstring(ast.parse(path.read_text()))) for path in sorted(DETECTORS.glob("*.py"))}


def _attacks_of(path: Path) -> Iterator[Attack]:
    classes = {node.name: node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)}
    courier = {"Courier"}
    hostile = {"Hostile", "Reader", "Courier"}
    for name, node in classes.items():
        bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
        if not bases & hostile:
            continue
        hostile.add(name)
        courier |= {name} if bases & courier else set()
        if any(name in {base.id for base in other.bases if isinstance(base, ast.Name)} for other in classes.values()):
            continue  # a base class of other attacks
        given = {
            target.id: ast.literal_eval(statement.value)
            for statement in node.body
            if isinstance(statement, ast.Assign)
            for target in statement.targets
            if isinstance(target, ast.Name) and target.id in _DECLARED
        }
        yield Attack(
            path.stem,
            name,
            str(ast.get_docstring(node)).splitlines()[0],
            **{"ends": ("ok", "invalid"), **given},
            seeds=2 if name in courier else 1,
        )


@dataclass
class Plant:
    """The folder of the plant; `build` fills it."""

    root: Path
    canary: str = field(default_factory=lambda: f"canary-{secrets.token_hex(8)}")
    tag: str = field(default_factory=lambda: f"hostile-{secrets.token_hex(6)}")
    where: dict[str, object] = field(default_factory=dict)

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    @property
    def card(self) -> Path:
        return self.root / "plant" / "card.toml"

    def build(self) -> None:
        """Write all files except the detectors'."""
        for name in ("plant/train", "plant/test", "home/.ssh", "home/.cache/tsadbench", "tmp", "data", "detectors"):
            (self.root / name).mkdir(parents=True)
        self.card.write_text(CARD.replace('"plant"', f'"plant-{self.canary}-dataset"'))
        published, rows = [], []
        for number in range(2):
            self._write(f"train/a{number}", _frame(300, _SEED + 100 + number, start=number * 400), faults=None)
        for number in range(_N_TEST):
            frame, faults = _frame(400 + 10 * number, _SEED + number, start=1000 + 500 * number), _faults(number)
            frame.iloc[faults[0] : faults[1] + 1, 3] += 1.0
            self._write(f"test/c{number}", frame, faults)
            start = pd.Timestamp(frame["time"][0]).timestamp()
            published.append([f"test/c{number}", len(frame), start, *faults])
            rows += frame.iloc[faults[0] : faults[1] + 1, 1:].to_numpy().tolist()
        (self.root / "plant" / f"{self.canary}-name.txt").write_text(f"{self.canary}-file")
        shutil.copytree(self.root / "plant" / "test", self.root / "data" / "plant")
        shutil.copytree(self.root / "plant" / "test", self.root / "home" / ".cache" / "tsadbench" / "plant")
        home_secret = self.root / "home" / ".ssh" / "key"
        home_secret.write_text(f"{self.canary}-home\n")
        (self.root / "tmp" / "session").write_text(f"{self.canary}-tmp\n")
        (self.root / "detectors" / "notes.txt").write_text(f"{self.canary}-notes\n")
        end = pd.Timestamp(_START) + pd.Timedelta(seconds=400 + 299)
        outside = [self.root / name for name in ("home", "tmp", "home/.cache", "data", "earlier", "detectors")]
        self.where |= {
            "tag": self.tag,
            "home": str(self.root / "home"),
            "home_secret": str(home_secret),
            "card": str(self.card),
            "labels": [str(self.root / "plant" / "test" / f"c{number}.csv") for number in range(_N_TEST)],
            "outside": [str(folder.resolve()) for folder in outside],
            "stores": [str(self.root / "earlier"), str(self.runs)],
            "detectors": str(self.root / "detectors"),
            "published": published,
            "published_rows": rows,
            "published_seed": _SEED,
            "training_end": end.timestamp(),
        }

    def write_detectors(self) -> None:
        """Write the detectors' files, each with the preamble, which knows where the secrets are."""
        preamble = (HERE / "preamble.py").read_text()
        found = preamble.replace("WHERE: dict[str, object] = {}", f"WHERE: dict[str, object] = {self.where!r}")
        assert found != preamble
        head = found.replace("from __future__ import annotations\n", "", 1)
        for path in DETECTORS.glob("*.py"):
            text = path.read_text()
            start = text.index("from tests.hostile.preamble import")
            end = text.index(")" if text[start:].split("\n")[0].endswith("(") else "\n", start) + 1
            text = text[:start] + text[end:]
            future = "from __future__ import annotations\n"
            assert future in text
            (self.root / "detectors" / path.name).write_text(text.replace(future, future + "\n" + head, 1))
        future = "from __future__ import annotations\n"
        (self.root / "detectors" / "victim.py").write_text(future + head + VICTIM)

    def run(
        self,
        *detectors: str,
        more: Sequence[str] = (),
        runs: Path | None = None,
        timeout: float = 300.0,
        sealed: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Run detectors as a user does, with a token in the environment; unsealed, an audit hook alone guards them."""
        named = [word for one in detectors for word in ("-d", one)]
        arguments = ["run", *named, "--dataset", str(self.card), "--no-floors", "--seeds", "2", "--format", "csv"]
        start = ["-m", "tsadbench"] if sealed else ["-c", _UNSEALED]
        return subprocess.run(
            [sys.executable, *start, *arguments, "--out", str(runs or self.runs), *more],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            cwd=self.root,
            env=self.environment(),
            timeout=timeout,
        )

    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(self.root / "home"),
            "TMPDIR": str(self.root / "tmp"),
            "XDG_CACHE_HOME": str(self.root / "home" / ".cache"),
            "TSADBENCH_DATA": str(self.root / "data"),
            "OMP_NUM_THREADS": "1",
            "SECRET_TOKEN": f"{self.canary}-environment",
        }

    def fingerprint(self) -> dict[str, str]:
        """Return the hash of every file that no trial may change, except the cache of detectors' descriptions."""
        kept = ("plant", "data", "home", "tmp", "earlier", "detectors")
        paths = [path for name in kept for path in sorted((self.root / name).rglob("*")) if path.is_file()]
        return {
            str(path.relative_to(self.root)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in paths
            if "__pycache__" not in path.parts and path.parent != self.root / "home/.cache/tsadbench/detectors"
        }

    def left(self) -> list[str]:
        """Return what trials have left outside: files, memory, queues and keys that carry the tag."""
        import tsadbench

        outside = (*self._listed("outside"), "/dev/shm", "/tmp", "/var/tmp", "/run", sys.prefix)
        folders = {self.root, self.root / "plant", *map(Path, outside), Path(tsadbench.__file__).parent}
        folders |= {Path(np.__file__).parent, Path(np.__file__).parent / "__pycache__"}
        found = [str(path) for folder in folders if folder.is_dir() for path in folder.glob(f"{self.tag}*")]
        # PyTorch creates a folder wherever it is imported, even in the server of the boxes.
        known = ("session", "torchinductor_")
        found += [str(path) for path in (self.root / "tmp").iterdir() if not path.name.startswith(known)]
        for table in ("/proc/sysvipc/shm", "/proc/sysvipc/msg"):
            key = str(_sysv_key(self.tag))
            if Path(table).exists():
                found += [f"{table} {key}" for line in Path(table).read_text().splitlines() if key in line.split()]
        if ctypes.CDLL(None).mq_open(queue := f"/{self.tag}-queue".encode(), os.O_RDONLY | os.O_NONBLOCK) >= 0:
            found.append(queue.decode())
        if Path("/proc/keys").exists():
            found += [line for line in Path("/proc/keys").read_text().splitlines() if self.tag in line]
        return found

    def clean(self) -> None:
        """Remove what trials have left outside, as unsealed ones can."""
        for one in self.left():
            if one.startswith("/proc/sysvipc/"):
                option = "-M" if "shm" in one else "-Q"
                subprocess.run(["ipcrm", option, one.split()[1]], check=False, capture_output=True)
            elif one.startswith("/"):
                with contextlib.suppress(OSError):
                    shutil.rmtree(one) if Path(one).is_dir() else os.unlink(one)
            else:  # a key: invalidating it removes it at once
                ctypes.CDLL(None).syscall(_KEYCTL, _INVALIDATE, ctypes.c_int(int(one.split()[0], 16)))
        ctypes.CDLL(None).mq_unlink(f"/{self.tag}-queue".encode())

    def _listed(self, name: str) -> list[str]:
        found = self.where[name]
        assert isinstance(found, list)
        return found

    def _write(self, name: str, frame: pd.DataFrame, faults: tuple[int, int] | None) -> None:
        frame = frame.rename(columns={one: f"{self.canary}-{one}" for one in frame.columns[1:]})
        frame["fault"] = 0
        if faults is not None:
            frame.loc[faults[0] : faults[1], "fault"] = 1
        frame.to_csv(self.root / "plant" / f"{name}.csv", index=False)


def _sysv_key(tag: str) -> int:
    return int(tag[-6:], 16) | 0x10000000


def _faults(number: int) -> tuple[int, int]:
    return 100 + 60 * number, 150 + 60 * number


def _frame(n_rows: int, seed: int, start: int) -> pd.DataFrame:
    values = np.random.default_rng(seed).normal(size=(n_rows, 3))
    first = pd.Timestamp(_START) + pd.Timedelta(seconds=start)
    frame = pd.DataFrame({"time": pd.date_range(first, periods=n_rows, freq="s").strftime("%Y-%m-%d %H:%M:%S")})
    frame[["flow", "head", "power"]] = values
    return frame


@contextlib.contextmanager
def servers(plant: Plant) -> Iterator[None]:
    """Answer all callers with a secret, on sockets of each kind, whose addresses are put into `Plant.where`."""
    tcp = socket.create_server(("127.0.0.1", 0))
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    by_path, by_name = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    path = str(plant.root / "home" / "daemon.sock")
    by_path.bind(path)
    by_name.bind(f"\0{plant.tag}")
    datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    datagrams.bind(f"{path}-datagrams")
    by_path.listen()
    by_name.listen()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    plant.where |= {
        "tcp": tcp.getsockname()[1],
        "udp": udp.getsockname()[1],
        "unix": path,
        "datagrams": f"{path}-datagrams",
        "abstract": plant.tag,
        "free": port,
    }
    answer = f"{plant.canary}-socket".encode()

    def serve(listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with connection, contextlib.suppress(OSError):
                    connection.settimeout(1.0)
                    connection.recv(1)
                    connection.sendall(answer)

    def reply() -> None:
        with contextlib.suppress(OSError):
            while udp.fileno() >= 0:
                _, sender = udp.recvfrom(2000)
                if sender:
                    udp.sendto(answer, sender)

    listening = (tcp, by_path, by_name)
    threads = [threading.Thread(target=serve, args=(one,), daemon=True) for one in listening]
    threads.append(threading.Thread(target=reply, daemon=True))
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for one in (*listening, udp, datagrams):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


@contextlib.contextmanager
def adopting_orphans() -> Iterator[list[psutil.Process]]:
    """Adopt orphaned processes; after the block, the list holds those that were still alive, and they are killed."""
    prctl, subreaper = ctypes.CDLL(None).prctl, 36
    before = set(psutil.Process().children(recursive=True))
    left: list[psutil.Process] = []
    assert prctl(subreaper, 1, 0, 0, 0) == 0
    try:
        yield left
    finally:
        prctl(subreaper, 0, 0, 0, 0)
        found = set(psutil.Process().children(recursive=True)) - before
        left += [process for process in found if is_alive(process)]
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(found, timeout=2)


@dataclass(frozen=True)
class Trial:
    """What a trial left in the store."""

    record: Record
    scores: dict[str, np.ndarray]
    log: str

    @property
    def test_scores(self) -> dict[str, np.ndarray]:
        return {name: values for name, values in self.scores.items() if name.startswith("test/")}


def trials(runs: Path) -> dict[str, list[Trial]]:
    """Return a store's trials by label, without the folder in front of it."""
    store = Store.open(runs)
    found: dict[str, list[Trial]] = {}
    for record in store.records():
        scores = dict(store.scores(record)) if record.status == "ok" else {}
        label = record.label.rpartition("detectors/")[2]
        found.setdefault(label, []).append(Trial(record, scores, store.log(record.trial)))
    return found


def learned(trial: Trial, innocent: Trial) -> bool:
    """Return whether a trial is ok and has test scores that differ from the innocent ones."""
    if trial.record.status != "ok":
        return False
    expected = innocent.test_scores
    return any(not np.array_equal(values, expected[name]) for name, values in trial.test_scores.items())
