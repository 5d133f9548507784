"""The seal, wall by wall: what gets through outside fails in a box, and what honest code needs works there."""

from __future__ import annotations

import ast
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.attempts import Tries, outcome
from tests.helpers.boxed import Sums
from tests.helpers.processes import is_alive
from tests.helpers.sealed import require_seal
from tests.helpers.servers import lean_server
from tsadbench import Recording
from tsadbench.sandbox import Box, BoxFailure, Construction, Limits

pytestmark = [pytest.mark.processes, pytest.mark.skipif(sys.platform != "linux", reason="only Linux seals")]
ROWS = Recording("r", np.arange(12.0).reshape(6, 2), ("a", "b"))


@pytest.fixture(scope="module", autouse=True)
def kernel_that_seals():
    """These tests say nothing on a machine that cannot seal; CI can."""
    require_seal()


@pytest.fixture(scope="module")
def unsealed():
    with lean_server(seal=False) as server:
        yield server


@pytest.fixture
def secret(tmp_path) -> Path:
    path = tmp_path / "labels.csv"
    path.write_text("secret")
    return path


def trying(*attempts, **options) -> Box:
    """Return a box whose detector makes attempts, each a name and an argument."""
    text = json.dumps([[what, str(argument)] for what, argument in attempts])
    return Box(Construction.of(Tries, {"attempts": text}), threads=1, **options)


def table(attempts, **options) -> dict[str, str]:
    """Return how each of several attempts went in one box."""
    with trying(*attempts, **options) as box:
        box.fit((ROWS,))
        outcomes = map(json.loads, box.log().splitlines())
    return dict(zip([f"{what} {argument}" for what, argument in attempts], outcomes, strict=True))


def inside(what: str, argument: object = "", **options) -> str:
    """Return how one attempt went in a box."""
    (found,) = table([(what, argument)], **options).values()
    return found


READERS = ["reads", "reads_natively", "reads_through_proc", "lists"]
CHANGERS = [
    "writes", "creates", "truncates", "changes_rights", "changes_times", "makes_a_folder", "renames", "removes",
]  # fmt: skip


def test_no_file_or_folder_of_the_user_can_be_read_or_changed(tmp_path):
    before = {}
    for what in (*READERS, *CHANGERS):
        (tmp_path / what).mkdir()
        (tmp_path / what / "labels.csv").write_text("secret")
        before[what] = (tmp_path / what / "labels.csv").stat()
    inside_ = table([(what, tmp_path / what / "labels.csv") for what in before])
    succeeded = {one.split()[0] for one, said in inside_.items() if not said.startswith("failed")}
    assert succeeded == {"changes_rights", "changes_times"}  # as far as they can tell
    for what, was in before.items():
        assert os.listdir(tmp_path / what) == ["labels.csv"]
        now = (tmp_path / what / "labels.csv").stat()
        assert (now.st_mode, now.st_mtime_ns, now.st_size) == (was.st_mode, was.st_mtime_ns, was.st_size)
    outside = {what: outcome(what, str(tmp_path / what / "labels.csv")) for what in before}
    assert {outside.pop(what).partition(" ")[0] for what in CHANGERS} == {"got"}
    assert outside == {**dict.fromkeys(READERS, "got 'secret'"), "lists": "got 'labels.csv'"}


def test_data_around_a_package_is_closed_and_the_package_can_be_imported(tmp_path, monkeypatch):
    (tmp_path / "package").mkdir()
    (tmp_path / "package/__init__.py").touch()
    (tmp_path / "labels-12-18.csv").write_text("secret")
    monkeypatch.syspath_prepend(tmp_path)
    with lean_server() as server:
        assert (
            inside("looks_around", "package", forbidden=(tmp_path,), server=server) == "got ('denied', ['__init__.py'])"
        )


def test_data_among_libraries_cannot_be_closed_off(tmp_path, monkeypatch):
    package = tmp_path / "site-packages/package"
    package.mkdir(parents=True)
    monkeypatch.syspath_prepend(package.parent)
    with Box(Construction.of(Sums, {}), threads=1, forbidden=(package,)) as box:
        assert box.seal == "guarded"
        assert str(package) in box.seal_reason


def test_no_socket_can_be_opened():
    families = "AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK", "AF_PACKET", "AF_VSOCK", "AF_ALG", "AF_CAN"
    kinds = socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET
    attempts = [("opens_a_socket", f"{getattr(socket, one)} {kind.value}") for one in families for kind in kinds]
    assert set(table(attempts).values()) == {"failed PermissionError [Errno 1] Operation not permitted"}
    assert [outcome(*attempts[place]) for place in (0, 1, 4, 5)] == ["got None"] * 4


def test_other_processes_cannot_be_reached():
    reaching = ("signals", "reads_memory_of", "reads_environment_of", "limits_another")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        told = table([(what, other.pid) for what in reaching])
        assert [said for said in told.values() if not said.startswith("failed PermissionError")] == []
        assert all(outcome(what, str(other.pid)).startswith("got") for what in reaching)
        other.communicate()
    assert inside("counts_processes").startswith("failed PermissionError")


def test_no_counter_of_the_machine_can_be_read():
    names = "meminfo", "stat", "loadavg", "uptime", "vmstat", "sys/fs/file-nr", "self/mountinfo", "self/cgroup"
    files = [f"/proc/{name}" for name in names] + ["/sys/devices/system/cpu/cpu0/uevent"]
    assert {said.split()[1] for said in table([("reads", file) for file in files]).values()} == {"PermissionError"}
    own = table([("reads", f"/proc/{name}") for name in ("cpuinfo", "self/status", "self/maps")])
    assert {said.split()[0] for said in own.values()} == {"got"}


def test_calls_that_lead_outside_are_denied():
    calls = ("reads_by_call", "makes_a_datagram_pair", "traces", "hides_from_measurement")
    told = table([(what, "") for what in calls])
    assert set(told.values()) == {"failed PermissionError [Errno 1] Operation not permitted"}
    assert [outcome(what, "").split()[0] for what in calls[:3]] == ["got"] * 3


@pytest.mark.parametrize(
    ("what", "status", "limits"),
    [
        ("swells_as_an_orphan", "memory", Limits(memory_mib=900.0, timeout=60)),  # PyTorch in the server takes 325
        ("fills_its_folder", "error", Limits(timeout=60)),
        ("makes_threads", "error", Limits(timeout=60)),
    ],
)
def test_memory_files_and_processes_are_bounded(what, status, limits):
    with trying((what, ""), limits=limits) as box:
        with pytest.raises(BoxFailure) as caught:
            box.fit((ROWS,))
        assert caught.value.status == status, caught.value.reason


def test_no_capability_is_left():
    found = json.loads(inside("knows_itself").removeprefix("got ").strip("'"))
    assert {found.pop(name) for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")} == {"0" * 16}
    assert found == {"NoNewPrivs": "1", "Seccomp": "2"}


def test_only_the_channel_and_the_standard_files_are_open():
    kinds = ast.literal_eval(inside("lists_descriptors").removeprefix("got "))
    assert sorted(kinds)[:3] == [0, 1, 2]
    assert [kinds[number] for number in sorted(kinds)] == [stat.S_IFCHR, stat.S_IFREG, stat.S_IFREG, stat.S_IFSOCK]


def test_honest_code_works():
    expected = ["thread", 6, "kept", "Europe/Berlin", True, True, True, 5, b"pair"]
    assert inside("works_honestly").endswith(f"got {expected!r}")


def test_a_killed_run_leaves_no_process_and_no_folder(tmp_path):
    code = """
import os, sys
from tsadbench.sandbox import default_server
from tsadbench.sandbox.seal.walls import Walls
print(default_server().start(1, Walls()).pid, flush=True)
os.kill(os.getpid(), 9)
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    killed = subprocess.run([sys.executable, "-c", code], env=environment, check=False, stdout=subprocess.PIPE)
    assert killed.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 30
    while (is_alive(int(killed.stdout)) or list(tmp_path.iterdir())) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert list(tmp_path.iterdir()) == []
    assert not is_alive(int(killed.stdout))


def test_a_server_that_was_told_not_to_seal_says_so(unsealed, secret):
    with Box(Construction.of(Sums, {}), threads=1, server=unsealed) as box:
        assert (box.seal, bool(box.seal_reason)) == ("guarded", True)
    assert inside("reads", secret, server=unsealed) == "got 'secret'"


BY_ANOTHER_USER = """
import sys
sys.path.insert(0, {root!r})
import numpy as np
from tests.helpers.attempts import Tries
from tsadbench import Recording
from tsadbench.sandbox import Box, Construction
with Box(Construction.of(Tries, dict(attempts='[["reads", "{secret}"]]')), threads=1) as box:
    box.fit((Recording("r", np.ones((3, 1)), ("a",)),))
    print(box.seal, box.log())
"""


@pytest.mark.skipif(os.getuid() != 0, reason="all other tests run without rights already")
def test_a_user_without_rights_gets_all_walls(secret):
    command = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]  # which leaves that user no capability
    code = BY_ANOTHER_USER.format(root=str(Path(__file__).parents[2]), secret=secret)
    done = subprocess.run([*command, sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.startswith('sealed "failed PermissionError'), done.stderr
