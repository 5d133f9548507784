"""The seal, wall by wall: what gets through outside fails in a box, and what honest code needs works there."""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest

from tests.helpers.attempts import Tries, TriesAll, outcome
from tests.helpers.boxed import Sums
from tests.helpers.processes import is_alive
from tests.helpers.servers import lean_server
from tsadbench import Recording
from tsadbench.sandbox import Box, BoxFailure, Construction, Limits, seal_status

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux seals"),
]
ROWS = Recording("r", np.arange(12.0).reshape(6, 2), ("a", "b"))


@pytest.fixture(scope="module", autouse=True)
def kernel_that_seals():
    """Tests of walls say nothing on a machine without them; CI has them."""
    status = seal_status()
    if status.seal != "sealed" or status.reason:
        message = f"this machine does not seal whole: {status}"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)


@pytest.fixture(scope="module")
def unsealed():
    with lean_server(seal=False) as server:
        yield server


@pytest.fixture
def secret(tmp_path) -> Path:
    path = tmp_path / "labels.csv"
    path.write_text("secret")
    return path


def inside(what: str, argument: object = "", forbidden=(), launcher=None) -> str:
    """Return how an attempt went in a box."""
    construction = Construction.of(Tries, {"what": what, "argument": str(argument)})
    with Box(construction, threads=1, forbidden=forbidden, launcher=launcher) as box:
        box.fit((ROWS,))
        return box.log().strip()


def table(attempts) -> dict[str, str]:
    """Return how each of several attempts went in one box."""
    lines = json.dumps([[what, str(argument)] for what, argument in attempts])
    with Box(Construction.of(TriesAll, {"attempts": lines}), threads=1) as box:
        box.fit((ROWS,))
        outcomes = map(json.loads, box.log().splitlines())
    return dict(zip([f"{what} {argument}" for what, argument in attempts], outcomes, strict=True))


READERS = [
    "reads",
    "reads_from_a_folder",
    "reads_natively",
    "reads_by_numpy",
    "maps",
    "reads_by_a_program",
    "reads_by_python",
    "reads_through_a_link",
    "reads_a_hard_link",
    "reads_through_proc",
    "copies",
    "lists",
]
CHANGERS = [
    "writes", "creates", "truncates", "changes_rights", "changes_times", "makes_a_folder", "renames", "removes",
]  # fmt: skip


def test_no_file_or_folder_of_the_users_can_be_read_or_changed(tmp_path):
    before = {}
    for what in (*READERS, *CHANGERS):
        (tmp_path / what).mkdir()
        (tmp_path / what / "labels.csv").write_text("secret")
        before[what] = (tmp_path / what / "labels.csv").stat()
    inside_ = table([(what, tmp_path / what / "labels.csv") for what in before])
    assert [one for one, said in inside_.items() if not said.startswith("failed")] == []
    for what, was in before.items():
        assert os.listdir(tmp_path / what) == ["labels.csv"]
        now = (tmp_path / what / "labels.csv").stat()
        assert (now.st_mode, now.st_mtime_ns, now.st_size) == (was.st_mode, was.st_mtime_ns, was.st_size)
    outside = {what: outcome(what, str(tmp_path / what / "labels.csv")) for what in before}
    wanted = {what: "got None" if what in CHANGERS else "got 'secret'" for what in before}
    assert outside == {**wanted, "lists": "got 'labels.csv'"}


def test_a_hidden_folder_looks_empty_and_keeps_what_libraries_need(tmp_path, monkeypatch):
    """The data may lie around a package, or in one: its modules are there, and not even the names of other files."""
    (tmp_path / "package/data").mkdir(parents=True)
    (tmp_path / "package/__init__.py").touch()
    (tmp_path / "package/data/labels-35-52.csv").write_text("secret")
    (tmp_path / "labels-12-18.csv").write_text("secret")
    monkeypatch.syspath_prepend(tmp_path)
    with lean_server() as server:
        found = inside("looks_around", "package", forbidden=(tmp_path, tmp_path / "package/data"), launcher=server)
    assert found == "got ('denied', ['__init__.py', 'data'], [], False, False)"


def test_no_socket_can_be_opened():
    families = "AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK", "AF_PACKET", "AF_VSOCK", "AF_ALG", "AF_CAN"
    kinds = socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET
    attempts = [("opens_a_socket", f"{getattr(socket, one)} {kind.value}") for one in families for kind in kinds]
    assert set(table(attempts).values()) == {"failed PermissionError [Errno 1] Operation not permitted"}
    assert [outcome(*attempts[place]) for place in (0, 1, 4, 5)] == ["got None"] * 4


def test_sockets_that_listen_outside_cannot_be_reached(tmp_path):
    with socket.socket(socket.AF_UNIX) as named, socket.socket(socket.AF_UNIX) as abstract, socket.socket() as port:
        named.bind(str(tmp_path / "socket"))
        abstract.bind("\0tsadbench-test")
        port.bind(("127.0.0.1", 0))
        for sock in (named, abstract, port):
            sock.listen()
        attempts = [
            ("connects", str(tmp_path / "socket")),
            ("connects_abstractly", "tsadbench-test"),
            ("connects_to_a_port", str(port.getsockname()[1])),
        ]
        assert [told.split()[:2] for told in table(attempts).values()] == [["failed", "PermissionError"]] * 3
        assert [outcome(*one) for one in attempts] == ["got None"] * 3


def test_other_processes_are_out_of_sight():
    errors = {
        "signals": "ProcessLookupError",
        "signals_to_a_group": "ProcessLookupError",
        "reads_memory_of": "FileNotFoundError",
        "reads_environment_of": "FileNotFoundError",
        "limits_another": "ProcessLookupError",
    }
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, process_group=0) as other:
        for told, error in zip(table([(what, other.pid) for what in errors]).values(), errors.values(), strict=True):
            assert told.startswith(f"failed {error}")
        assert all(outcome(what, str(other.pid)).startswith("got") for what in errors)
        other.communicate()
    first = table([(what, 1) for what in ("signals", "reads_memory_of", "reads_environment_of")])
    assert [told.split()[:2] for told in first.values()] == [["failed", "PermissionError"]] * 3


def test_a_box_sees_itself_and_the_first_process_alone():
    assert inside("counts_processes") == "got 2"


LEADING_OUTSIDE = [
    "traces",
    "reads_by_call",
    "adds_a_key",
    "makes_a_ring",
    "watches_a_folder",
    "watches_faults",
    "counts_performance",
    "loads_a_program_into_the_kernel",
    "enters_a_user_namespace",
    "clones_into_a_user_namespace",
    "mounts",
    "makes_a_datagram_pair",
]


def test_calls_that_lead_outside_are_denied():
    told = table([(what, "") for what in LEADING_OUTSIDE])
    assert set(told.values()) == {"failed PermissionError [Errno 1] Operation not permitted"}
    there = ("reads_by_call", "watches_a_folder", "makes_a_datagram_pair", "traces")
    assert [outcome(what, "").split()[0] for what in there] == ["got"] * len(there)


@pytest.mark.parametrize(
    ("leaves", "finds", "name"),
    [
        ("leaves_shared_memory", "finds_shared_memory", "tsadbench-test-shared"),
        ("leaves_a_segment", "finds_a_segment", 0x7ADB),
        ("leaves_a_file", "finds_a_file", "left-behind"),
    ],
)
def test_nothing_passes_from_one_box_to_another(leaves, finds, name):
    left = Construction.of(Tries, {"what": leaves, "argument": str(name)})
    with Box(left, threads=1) as first:
        first.fit((ROWS,))
        assert first.log().startswith("got"), first.log()  # it can use all this for itself
        assert inside(finds, name).startswith(("failed FileNotFoundError", "got []", "failed OSError [Errno 2]"))


def test_a_daemon_ends_with_its_box(unsealed):
    def daemon(launcher) -> psutil.Process:
        name = f"daemon-{os.getpid()}"
        leaving = Construction.of(Tries, {"what": "leaves_a_daemon", "argument": name})
        with Box(leaving, threads=1, launcher=launcher) as box:
            box.fit((ROWS,))
            named = [one for one in psutil.process_iter(["name"]) if one.info["name"] == name and is_alive(one)]
            assert len(named) == 1
            return named[0]

    survivor = daemon(unsealed)
    assert is_alive(survivor)
    survivor.kill()
    while is_alive(survivor):
        pass
    assert not is_alive(daemon(None))


def test_memory_of_orphans_counts():
    limits = Limits(memory_mib=900.0, timeout=60)  # PyTorch in the boxes' server takes 325 of them
    swelling = Construction.of(Tries, {"what": "swells_as_an_orphan"})
    with Box(swelling, threads=1, limits=limits) as box, pytest.raises(BoxFailure, match="--memory"):
        box.fit((ROWS,))


def test_rights_and_names_are_nobodys():
    found = json.loads(inside("knows_itself").removeprefix("got ").strip("'"))
    assert {found.pop(name) for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")} == {"0" * 16}
    assert found == {"NoNewPrivs": "1", "Seccomp": "2", "uid": 65534, "gid": 65534, "host": "box"}


def test_only_the_channel_and_the_standard_files_are_open():
    kinds = ast.literal_eval(inside("lists_descriptors").removeprefix("got "))
    assert sorted(kinds)[:3] == [0, 1, 2]
    assert [kinds[number] for number in sorted(kinds)] == [stat.S_IFCHR, stat.S_IFREG, stat.S_IFREG, stat.S_IFSOCK]


def test_honest_code_works():
    expected = ["thread", 6, 6, 6, "kept", "Europe/Berlin", True, True, 5, b"pair"]
    assert inside("works_honestly").endswith(f"got {expected!r}")


def test_a_private_folder_is_bounded_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    construction, limits = Construction.of(Tries, {"what": "fills_its_folder"}), Limits(memory_mib=500.0)
    with lean_server() as server, Box(construction, threads=1, launcher=server, limits=limits) as box:
        box.fit((ROWS,))
        assert "No space left on device" in box.log()
        (building,) = tmp_path.glob("tsadbench-*")
        assert re.fullmatch(rf"tsadbench-box-{os.getpid()}-\w+", building.name)
        assert list(building.iterdir()) == []  # it lies in memory, where only the box sees it
    assert list(tmp_path.glob("tsadbench-*")) == []


def test_folders_of_killed_runs_are_removed_at_the_next_start(tmp_path, monkeypatch):
    code = """
import os, sys
from tsadbench.sandbox.launch import PlainLauncher
from tsadbench.sandbox.walls import Walls
process = PlainLauncher().start(1, Walls())
os.kill(os.getpid(), 9)
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    killed = subprocess.run([sys.executable, "-c", code], env=environment, check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    living = tmp_path / f"tsadbench-box-{os.getpid()}-mine"
    living.mkdir()
    other = tmp_path / "tsadbench-box-notes"
    other.mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with lean_server():
        assert not left.exists()
        assert living.exists()
        assert other.exists()


def test_a_server_that_was_told_not_to_seal_says_so(unsealed, secret):
    with Box(Construction.of(Sums, {}), threads=1, launcher=unsealed) as box:
        assert (box.seal, bool(box.seal_reason)) == ("guarded", True)
    assert inside("reads", secret, launcher=unsealed) == "got 'secret'"


WITHOUT = """
import ctypes, struct, sys
# A filter that denies unshare and clone with CLONE_NEWUSER, as containers do.
libc = ctypes.CDLL(None)
code = b"".join(struct.pack("=HBBI", *one) for one in (
    (0x20, 0, 0, 0), (0x15, 0, 1, {unshare}), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7FFF0000)))
class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))
libc.prctl(38, 1, 0, 0, 0)
assert libc.prctl(22, 2, ctypes.byref(Program(4, code)), 0, 0) == 0
"""
TRIES = """
import json, sys
sys.path.insert(0, {root!r})
import numpy as np
from pathlib import Path
from tests.helpers.attempts import Tries
from tsadbench import Recording
from tsadbench.sandbox import Box, Construction
rows = Recording("r", np.ones((3, 1)), ("a",))
told = []
hidden = [Path(one) for one in {forbidden!r}]
for what, argument in {attempts!r}:
    with Box(Construction.of(Tries, dict(what=what, argument=argument)), threads=1, forbidden=hidden) as box:
        box.fit((rows,))
        told.append([box.seal, box.seal_reason, box.log().strip()])
print(json.dumps(told))
"""


def in_a_process(attempts, *, before="", command=(), forbidden=()) -> list[list[str]]:
    code = before + TRIES.format(root=str(Path(__file__).parents[2]), attempts=attempts, forbidden=forbidden)
    done = subprocess.run([*command, sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def without_namespaces() -> str:
    return WITHOUT.format(unshare=97 if os.uname().machine == "aarch64" else 272)


def test_without_namespaces_landlock_and_the_filter_close_the_same(secret):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        denied = [
            (what, str(secret)) for what in ("reads", "reads_natively", "reads_by_python", "writes", "removes", "lists")
        ]
        denied += [("signals", str(other.pid)), ("reads_memory_of", str(other.pid)), ("limits_another", str(other.pid))]
        denied += [("opens_a_socket", "1 1"), ("leaves_a_segment", "31451"), ("counts_processes", "")]
        name = f"alone-{os.getpid()}"
        *told, (_, _, daemon) = in_a_process([*denied, ("leaves_a_daemon", name)], before=without_namespaces())
        assert daemon == "got 'daemon'"
        assert not [one for one in psutil.process_iter(["name"]) if one.info["name"] == name and is_alive(one)]
        assert {(seal, reason.split(" (")[0]) for seal, reason, _ in told} == {("sealed", "without namespaces")}
        assert [log for _, _, log in told if not log.startswith("failed")] == []
        assert is_alive(other.pid)
        other.communicate()


def test_without_namespaces_data_among_libraries_cannot_be_hidden(tmp_path):
    package = tmp_path / "site-packages/package"
    package.mkdir(parents=True)
    before = without_namespaces() + f"sys.path.append({str(package.parent)!r})\n"
    ((seal, reason, _),) = in_a_process([("knows_itself", "")], before=before, forbidden=[str(package)])
    assert seal == "guarded"
    assert str(package) in reason
    assert "namespaces" in reason


@pytest.mark.skipif(os.getuid() != 0, reason="all other tests run without rights already")
def test_a_user_without_rights_gets_all_walls(secret):
    command = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]  # which leaves that user no capability
    told = in_a_process([("knows_itself", ""), ("reads", str(secret))], command=command)
    assert [(seal, reason) for seal, reason, _ in told] == [("sealed", "")] * 2
    assert json.loads(told[0][2].removeprefix("got ").strip("'"))["uid"] == 65534
    assert told[1][2].startswith("failed PermissionError")
