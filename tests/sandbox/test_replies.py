"""An invalid answer of a box ends its trial with status error, and never the run."""

from __future__ import annotations

import json
import struct
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tests.helpers.data import make_data
from tests.helpers.forged import honest, played, raw_frame
from tests.helpers.plans import make_plan
from tsadbench import Recording
from tsadbench.execution.runner import run_plan
from tsadbench.execution.store import Store
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.sandbox import BoxFailure
from tsadbench.sandbox.wire import send

ROWS = Recording("rows", np.arange(12.0).reshape(6, 2), ("a", "b"))
CALLS = {
    "fit": lambda box: box.fit((ROWS,)),
    "training_scores": lambda box: (box.fit((ROWS,)), box.training_scores()),
    "score": lambda box: box.score(ROWS),
    "contributions": lambda box: box.contributions(ROWS),
    "held_out_loss": lambda box: box.held_out_loss((ROWS,), 0),
    "learned": lambda box: box.learned(),
}
# One forged value per rule.
FORGED = {
    "construct": [{"offers_contributions": "yes"}],
    "fit": [
        {"seconds": 1.0},  # the harness measures times: no box may report one
        {"training_facts": []},
        {"training_facts": {"epochs": "3"}},
        {"training_facts": {"epochs": float("nan")}},
        {"training_facts": {f"fact_{number}": 1 for number in range(33)}},
        {"training_facts": {"\ud800": 1}},
    ],
    "score": [
        {"arrays": []},
        {"arrays": [["float64", [6]], ["float64", [6]]]},
        {"arrays": [["float64", [6, 1]]]},
        {"arrays": [["object", [6]]]},
        {"request": "0123456789abcdef"},
    ],
    "contributions": [{"arrays": [["float64", [2, 6]]]}],
    "training_scores": [{"arrays": [["float64", [3]], ["float64", [3]]]}],
    "held_out_loss": [{"loss": "1"}, {"loss": float("nan")}],
    "learned": [
        {"parts": ["a"]},
        {"parts": ["a", "a"]},
        {"parts": ["a", "x" * 1001]},
        {"arrays": [["uint8", [2**33 + 1]], ["uint8", [0]]]},
        {"arrays": [["uint8", [-3]], ["uint8", [0]]]},
        {"arrays": [["float64", [1]], ["uint8", [0]]]},
    ],
}
FAILURE = {"kind": "failure", "status": "error", "reason": "", "traceback": "", "arrays": []}
PROGRESS = {"kind": "progress", "done": 1, "total": 2, "note": "", "arrays": []}
FRAMES = {
    "a list": [],
    "no kind": {"arrays": []},
    "an unknown kind": {"kind": "ok", "arrays": []},
    "an empty answer": {"kind": "done", "arrays": []},
    "deep lists": b'{"kind": "done", "arrays": [], "x": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "no text": b"\xff\x00\xfe",
    "a failure that is ok": {**FAILURE, "status": "ok"},
    "a reason of a megabyte": {**FAILURE, "reason": "x" * 2**20},
    "a failure with scores": {**FAILURE, "arrays": [["float64", [6]]]},
    "infinite progress": {**PROGRESS, "total": float("inf")},
}


def forging(call: str, changes: dict[str, object]):
    """Answer as an honest box does, but change the answer to one request."""

    def answer(sock, header, arrays):
        if header["kind"] != call:
            honest(sock, header, arrays)
            return
        kept: list[bytes] = []

        class Recorder:
            def send(self, data):
                kept.append(bytes(data))
                return len(data)

        honest(Recorder(), header, arrays)
        sent = b"".join(kept)
        length = struct.unpack(">Q", sent[:8])[0]
        sock.sendall(raw_frame({**json.loads(sent[8 : 8 + length]), **changes}, sent[8 + length :]))

    return answer


def failure(answer, call: str, **options) -> BoxFailure:
    with pytest.raises(BoxFailure) as caught, played(answer, **options) as box:
        CALLS[call](box)
    return caught.value


def test_an_honest_box_is_understood():
    reports = []
    with played(honest, listener=lambda *report: reports.append(report)) as box:
        assert box.offers_contributions
        assert box.fit((ROWS,)) == {"epochs": 3, "share_seen": 0.5, "levelled": True}
        assert_array_equal(box.training_scores()[0], np.zeros(6))
        assert_array_equal(box.score(ROWS), np.zeros(6))
        assert_array_equal(box.contributions(ROWS), np.zeros((6, 2)))
        assert box.held_out_loss((ROWS,), 0) == 0.5
        assert box.learned() == {"a": b"\0\0\0", "b": b""}
    assert 0 < box.costs.fit_seconds < 30
    assert reports == []


@pytest.mark.parametrize(
    ("call", "changes"),
    [
        pytest.param(call, changes, id=f"{call}-{number}")
        for call, all_changes in FORGED.items()
        for number, changes in enumerate(all_changes)
    ],
)
def test_an_answer_with_one_wrong_value_is_an_error(call, changes):
    found = failure(forging(call, changes), "fit" if call == "construct" else call)
    assert (found.status, "the box's channel" in found.reason) == ("error", True), found.reason
    assert len(found.reason.splitlines()) == 1


@pytest.mark.parametrize("call", ["construct", "score"])
@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_a_frame_that_is_not_an_answer_is_an_error(call, frame):
    def answer(sock, header, arrays):
        if header["kind"] == call:
            sock.sendall(raw_frame(frame))
        else:
            honest(sock, header, arrays)

    found = failure(answer, "fit" if call == "construct" else call)
    assert (found.status, "the box's channel" in found.reason) == ("error", True), found.reason
    assert found.reason.isprintable()


@pytest.mark.parametrize("status", ["error", "invalid"])
def test_a_failure_is_passed_on_without_control_characters(status):
    def answer(sock, header, arrays):
        text = "red \x1b[31m\n\u202efdp"
        send(sock, {"kind": "failure", "status": status, "reason": text, "traceback": text})

    found = failure(answer, "fit")
    assert found.status == status
    assert found.reason == r"red \x1b[31m \u202efdp"
    assert found.traceback == "red \\x1b[31m\n\\u202efdp"
    assert str(found) == found.reason


def test_a_second_answer_is_an_error():
    def answer(sock, header, arrays):
        honest(sock, header, arrays)
        if header["kind"] == "score":
            honest(sock, header, arrays)

    with played(answer) as box:
        box.score(ROWS)
        with pytest.raises(BoxFailure) as caught:
            box.score(ROWS)
    assert caught.value.status == "error"


def test_endless_progress_is_throttled_and_times_out():
    reports = []

    def answer(sock, header, arrays):
        if header["kind"] == "construct":
            honest(sock, header, arrays)
            return
        while True:
            send(sock, {"kind": "progress", "done": 3, "total": 3, "note": "\x07 again"})

    start = time.monotonic()
    found = failure(answer, "fit", timeout=1.0, listener=lambda *report: reports.append(report))
    assert found.status == "timeout"
    assert reports[0] == (3, 3, r"\x07 again")
    assert len(reports) <= 1 + (time.monotonic() - start) / 0.05


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = SCALARS | st.lists(SCALARS) | st.dictionaries(st.text(), SCALARS)
HEADERS = st.dictionaries(
    st.sampled_from(["kind", "request", "arrays", "seconds", "training_facts", "status", "reason", "done", "parts"])
    | st.text(max_size=3),
    VALUES | st.sampled_from(["done", "progress", "failure", "error", "float64"]),
)


@settings(max_examples=25, deadline=None)
@given(
    call=st.sampled_from(sorted(CALLS)),
    frame=HEADERS.map(raw_frame)
    | VALUES.map(raw_frame)
    | st.binary(max_size=60)
    | st.binary(max_size=60).map(raw_frame),
)
def test_any_frame_raises_only_a_box_failure(call, frame):
    def answer(sock, header, arrays):
        if header["kind"] == call:
            sock.sendall(frame)
            raise EOFError  # and hangs up
        honest(sock, header, arrays)

    assert failure(answer, call).status == "error"


@pytest.mark.processes
def test_a_run_survives_a_detector_that_writes_into_its_channel(tmp_path):
    detectors = ["tests.helpers.forged:WritesFrames", "tests.helpers.tiny:Distance"]
    plan = make_plan(detectors, dataset=make_data(), floors=False, timeout=60)
    forged, honest_one = run_plan(plan, Store.create(tmp_path / "runs"))
    assert (forged.status, honest_one.status) == ("error", "ok")
    assert "WritesFrames" in (forged.reason or "")
    assert len(Leaderboard.from_records([forged, honest_one], ["overall"]).frame) == 2
