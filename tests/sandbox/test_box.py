"""The box with real processes: what goes in and comes out, and every way in which a detector can end."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import psutil
import pytest
from numpy.testing import assert_array_equal

from tests.helpers.boxed import Farewell, Misbehaves, Sums, Tells, Threads
from tests.helpers.processes import is_alive
from tests.helpers.servers import lean_server, without_networks
from tsadbench import Recording
from tsadbench.sandbox import Box, BoxFailure, Construction, Limits, default_server
from tsadbench.sandbox.server import Server, _fork

pytestmark = pytest.mark.processes

ROWS = Recording("secret name", np.arange(12.0).reshape(6, 2), ("a", "b"), time=np.arange(100.0, 106.0))


@pytest.fixture(scope="module", params=["server", "plain"])
def server(request):
    if request.param == "plain":
        server = Server(forks=False)
        yield server
        server.stop()
    else:
        with lean_server() as server:
            yield server


@pytest.fixture(scope="module")
def unsealed():
    with lean_server(seal=False) as server:
        yield server


def boxed(cls, server=None, limits=None, threads=1, listener=None, forbidden=(), **arguments) -> Box:
    construction = Construction.of(cls, arguments)
    return Box(construction, threads=threads, limits=limits, listener=listener, forbidden=forbidden, server=server)


def failure(how, limits=None, forbidden=(), path="", server=None) -> BoxFailure:
    with boxed(Misbehaves, server, limits, forbidden=forbidden, how=how, path=str(path)) as box:
        with pytest.raises(BoxFailure) as caught:
            box.fit((ROWS,))
        return caught.value


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if not is_alive(pid):
            return True
        time.sleep(0.05)
    return False


def test_a_scored_recording_is_gone_before_the_next_one_is_sent(server):
    with boxed(Farewell, server) as box:
        box.fit((ROWS,))
        box.score(ROWS)
        deadline = time.monotonic() + 60
        while "gone" not in box.log() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert "gone" in box.log()


def test_scores_contributions_progress_and_costs_come_out(server):
    reports = []
    with boxed(Sums, server, listener=lambda *report: reports.append(report)) as box:
        box.fit((ROWS, ROWS.rows(0, 2)))
        first, second = box.training_scores()
        assert_array_equal(first, ROWS.values.sum(axis=1))
        assert_array_equal(second, [1.0, 5.0])
        assert_array_equal(box.score(ROWS), ROWS.values.sum(axis=1))
        assert box.offers_contributions
        assert_array_equal(box.contributions(ROWS), ROWS.values)
    assert reports[-1] == (3, 3, "epoch 2")
    assert box.costs.fit_seconds > 0
    assert box.costs.score_seconds > 0
    assert box.costs.peak_memory_mib > 10
    # Contributions are not scores: neither their rows nor their seconds count.
    assert box.costs.rows_scored == ROWS.n_rows + 2 + ROWS.n_rows


def test_a_box_contains_no_secrets_files_or_names(server, monkeypatch):
    for name in ("TSADBENCH_DATA", "ANTHROPIC_API_KEY", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "secret")
    with lean_server(forks=server._forks) as started, boxed(Tells, started) as box:
        box.fit((ROWS,))
        log = box.log()
    for secret in ("TSADBENCH", "ANTHROPIC", "TOKEN", "SECRET"):
        assert secret not in log
    assert "'PATH'" in log
    assert "directory [] " in log
    assert "temporary " in log
    temporary = Path(log.partition("temporary ")[2].splitlines()[0])
    assert temporary.name == "temporary"
    assert not temporary.exists()
    assert "ids ['secret name'] prefix 'rec'" in log  # restored in the log; the detector saw another id
    assert "to standard error" in log


@pytest.mark.parametrize(
    ("how", "status", "reason"), [("kill", "killed", "SIGKILL"), ("exit", "error", "exit code 3"),
                                  ("leave", "error", "SystemExit: leaving")]
)  # fmt: skip
def test_every_end_has_its_status(server, how, status, reason):
    found = failure(how, server=server)
    assert (found.status, reason in found.reason) == (status, True), found.reason


def test_a_detector_that_never_returns_is_ended_when_its_time_is_up():
    found = failure("sleep", Limits(timeout=0.5))
    assert (found.status, "--timeout" in found.reason) == ("timeout", True)


def test_the_guard_of_an_unsealed_box_sees_reads_of_data(tmp_path, unsealed):
    data = tmp_path / "data"
    data.mkdir()
    (data / "labels.csv").write_text("1\n")
    found = failure("numpy", forbidden=(data,), path=data / "labels.csv", server=unsealed)
    assert (found.status, "labels.csv" in found.reason) == ("invalid", True), found.reason


@pytest.mark.parametrize("how", ["read_quietly", "cat", "link"])
def test_access_to_the_data_is_invalid_even_if_the_detector_hides_it(tmp_path, how):
    data = tmp_path / "data"
    data.mkdir()
    (data / "labels.csv").write_text("1\n")
    found = failure(how, forbidden=(data,), path=data / "labels.csv")
    assert found.status == "invalid"
    assert "labels.csv" in found.reason


def test_too_much_output_ends_the_trial():
    found = failure("chatter")
    assert (found.status, "MiB to its log" in found.reason) == ("error", True)


def test_what_a_detector_started_ends_with_its_box(server):
    with boxed(Misbehaves, server, Limits(timeout=2), how="fork") as box:
        with pytest.raises(BoxFailure):
            box.fit((ROWS,))
        pid = box._process.pid
        children = [child.pid for child in psutil.Process(pid).children(recursive=True)]
        assert children
    assert gone(pid)
    assert all(gone(child) for child in children)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks")
def test_each_copy_of_a_box_counts_its_own_process_alone():
    with boxed(Sums) as box:
        box.fit((ROWS,))
        with box.fork() as first, box.fork() as second:
            watches = [one._watch for one in (box, first, second)]
            assert [watch.pids() for watch in watches] == [{watch._pid} for watch in watches]


def test_a_fork_that_keeps_failing_is_given_up(monkeypatch):
    monkeypatch.setattr("os.fork", Mock(side_effect=BlockingIOError))
    monkeypatch.setattr("tsadbench.sandbox.server._PATIENCE_SECONDS", 0.05)
    boxes: set[int] = set()
    assert (_fork([], boxes, forks=True), boxes) == (-1, set())


def test_threads_are_limited_in_libraries_that_were_preloaded():
    pytest.importorskip("torch")
    default_server().preload(["torch"])
    with boxed(Threads, threads=2) as box:
        box.fit((ROWS,))
        torch_threads, blas_threads = box.score(ROWS)[:2]
    assert torch_threads == 2
    assert blas_threads <= 2


def test_a_server_that_was_killed_is_started_again():
    with lean_server() as server, without_networks():
        with boxed(Sums, server) as box:
            box.fit((ROWS,))
            server._program.kill()
            assert gone(box._process.pid)
            with pytest.raises(BoxFailure, match="SIGKILL"):
                box.score(ROWS)
        with boxed(Sums, server) as box:
            box.fit((ROWS,))
