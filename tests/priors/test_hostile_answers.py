"""Answers, servers and files that are made to harm: each ends soon, in little memory, with one line."""

from __future__ import annotations

import json
import tracemalloc
import zlib
from pathlib import Path

import pytest

from tests.helpers.messages_server import GOOD, Raw, reply
from tests.priors.test_extract import extract, messages, pairs, text  # noqa: F401 - fixtures
from tsadbench.base.prior import Edge, Prior
from tsadbench.errors import DataError, UsageError
from tsadbench.priors.answers import read_answer

MIB = 2**20
EDGE = '{"source": "a", "target": "b"}'


BEGINNINGS = {
    "no JSON": "[x ",
    "objects": '{"a" ',
    "lists": "[{} ",
    "unfinished lists": f"[{EDGE}, x",
    "unfinished strings": '[{"a": "[{',
    "brackets": "[",
    "braces": "{",
    "empty objects": "[{},",
    "long and deep": '[{"a":' * 400 + "[" + "0," * 900_000,
}


@pytest.mark.parametrize("kind", BEGINNINGS)
def test_reading_an_answer_takes_time_in_proportion_to_its_length(kind):
    """Quadratic reading of two million characters would take minutes; nobody waits for them here."""
    answer = BEGINNINGS[kind] * (1_900_000 // len(BEGINNINGS[kind]))
    assert read_answer(answer, "end_turn", ["a", "b"]).spoilt == "no JSON list in the answer"


def test_a_list_behind_much_else_is_found():
    before = "[see 1] {so} [x] " * 50_000
    answer = read_answer(f"{before}```[{EDGE}]```", "end_turn", ["a", "b"])
    assert [(one.source, one.target) for one in answer.edges] == [("a", "b")]
    assert answer.rejected["text around the JSON"] == 1


def test_an_answer_beyond_all_lengths_is_no_vote():
    assert (
        read_answer("[]" + " " * 2_000_000, "end_turn", []).spoilt == "the answer is longer than 2,000,000 characters"
    )


def test_half_characters_reach_no_file(messages, extract):  # noqa: F811
    mechanism = json.dumps([{**GOOD[0], "mechanism": "half \ud800 of one"}])
    messages.script = [mechanism, reply(f"\ud800 {text(*GOOD)}"), {**reply(text(*GOOD)), "model": "\ud800\x1b[31m"}]
    done, prior = extract("--votes", "3")
    assert done.code == 0, done.err
    assert prior.edges[0].mechanism == "half   of one"


def gzipped(n_bytes: int) -> bytes:
    packer = zlib.compressobj(wbits=31)
    return b"".join(packer.compress(bytes(MIB)) for _ in range(n_bytes // MIB)) + packer.flush()


@pytest.mark.slow
class TestServer:
    @pytest.mark.parametrize(
        ("answer", "told"),
        [
            (Raw(b"<html>Sign in</html>", {"content-type": "text/html"}), "not an answer of the Messages API"),
            (Raw(b"<html>Sign in</html>"), "not an answer of the Messages API"),
            (Raw(b"[" * 100_000), "not an answer of the Messages API"),
            (Raw(b'{"content": ' + b"[" * 900 + b"]" * 900 + b"}"), "not an answer of the Messages API"),
            (Raw(b"\xff\xfe"), "not an answer of the Messages API"),
            (Raw(b"null"), "not an answer of the Messages API"),
            (Raw(b""), "not an answer of the Messages API"),
            (Raw(json.dumps(reply("[]")).replace("1000", "1e999").encode()), "not an answer of the Messages API"),
            (Raw(json.dumps(reply("[]")).replace("1000", "9" * 5000).encode()), "not an answer of the Messages API"),
            (Raw(b"{}", {"content-type": "application/json", "content-encoding": "gzip"}), "claude-sonnet-4-6: "),
            (Raw(b"{}", {"content-type": "application/json", "content-encoding": "zstd"}), "plain or gzip"),
            (Raw(b" " * (17 * MIB)), "longer than 16,777,216 bytes"),
        ],
    )
    def test_what_is_no_answer_is_one_line(self, messages, extract, answer, told):  # noqa: F811
        messages.script = [answer]
        done, prior = extract("--votes", "1", "--retries", "0")
        assert (done.code, prior) == (2, None)
        assert told in done.err
        assert len(done.err.strip().splitlines()) <= 6

    def test_an_answer_that_unpacks_to_gigabytes_is_given_up(self, messages, extract):  # noqa: F811
        body = gzipped(1024 * MIB)
        assert len(body) < 2 * MIB
        messages.script = [Raw(body, {"content-type": "application/json", "content-encoding": "gzip"})]
        tracemalloc.start()
        try:
            done, _ = extract("--votes", "1", "--retries", "0")
            assert tracemalloc.get_traced_memory()[1] < 300 * MIB
        finally:
            tracemalloc.stop()
        assert done.code == 2
        assert "longer than 16,777,216 bytes" in done.err

    def test_an_answer_that_is_packed_is_read(self, messages, extract):  # noqa: F811
        packer = zlib.compressobj(wbits=31)
        body = packer.compress(json.dumps(reply(text(*GOOD))).encode()) + packer.flush()
        messages.script = [Raw(body, {"content-type": "application/json", "content-encoding": "gzip"})]
        assert len(pairs(extract("--votes", "1")[1])) == 2

    @pytest.mark.parametrize("how", ["drip", "drip headers"])
    def test_a_server_that_drips_is_left(self, messages, extract, how):  # noqa: F811
        """Each byte comes in time, and there is no last one."""
        messages.script = [how]
        done, _ = extract("--votes", "1", "--timeout", "0.5", "--retries", "1")
        assert done.code == 2
        assert "no answer in time" in done.err


@pytest.mark.parametrize(
    "content",
    [
        "[" * 10**6,
        json.dumps({"reply": {**dict.fromkeys(("text", "stop_reason", "model"), 5)}}),
        '{"reply": {"text": "\\ud800", "stop_reason": "", "model": "", "input_tokens": 1, "output_tokens": 1}}',
        "\x00",
    ],
)
def test_a_kept_answer_that_somebody_has_changed_is_asked_for_again(messages, extract, tmp_path, content):  # noqa: F811
    extract("--votes", "1")
    (file,) = (tmp_path / "answers").iterdir()
    file.write_text(content)
    done, prior = extract("--votes", "1")
    assert (done.code, len(pairs(prior)), len(messages.requests)) == (0, 2, 2)


class TestFiles:
    @pytest.mark.parametrize(
        ("content", "told"),
        [
            ("[" * 10**6, "not a JSON file"),
            ('{"schema": 1, "edges": [' + EDGE + '], "provenance": {"x": ' + "[" * 10**5 + "]" * 10**5 + "}}", "not a"),
            ('[{"source": "a", "target": "b", "votes": NaN}]', "votes nan"),
            ('[{"source": "a", "target": "b", "votes": 1e999}]', "votes inf"),
            ('[{"source": "\\ud800", "target": "b"}]', "not a JSON file"),
            ('[{"source": 1, "target": "b"}]', "edge 1, 'source'"),
            (b"[\xff]", "not a JSON file"),
            (b"\0", "not a JSON file"),
            ("<html>", "not a JSON file"),
            ("", "not a JSON file"),
            ("null", "should be an object"),
            ('{"schema": ' + "9" * 10_000 + "}", "not a JSON file"),
            (
                "[" + ",".join(f'{{"source":"s{i}","target":"t"}}' for i in range(100_001)) + "]",
                "at most 100,000 edges",
            ),
        ],
    )
    def test_what_is_no_prior_is_one_line(self, tmp_path, content, told):
        file = tmp_path / "prior.json"
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(DataError) as caught:
            Prior.load(file)
        assert told in str(caught.value)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 500

    @pytest.mark.parametrize("size", [2**40, None])
    def test_one_of_gigabytes_or_without_end_is_not_read(self, tmp_path, size):
        file = Path("/dev/zero")
        if size is not None:
            file = tmp_path / "prior.json"
            with file.open("wb") as stream:
                stream.truncate(size)
        with pytest.raises(DataError, match="too large: expected at most 16,777,216 bytes"):
            Prior.load(file)

    def test_very_many_or_long_names_are_told_in_short(self):
        prior = Prior(tuple(Edge(f"s{i}", "t" * 10**4) for i in range(10**4)))
        with pytest.raises(UsageError) as caught:
            prior.check(tuple(f"x{i}" for i in range(10**5)))
        assert len(str(caught.value)) < 5000
        assert "more" in str(caught.value)

    @pytest.mark.parametrize("content", ["[" * 10**6, '[{"name": ' + "[" * 10**5, b"\xff"])
    def test_a_list_of_sensors_that_is_none_is_one_line(self, tsadbench, tmp_path, content):
        (tmp_path / "sensors").write_bytes(content if isinstance(content, bytes) else content.encode())
        (tmp_path / "system.md").write_text("A pump.")
        extract_ = ("prior", "extract", "--offline", "--system", tmp_path / "system.md", "--out", tmp_path / "out")
        done = tsadbench(*extract_, "--sensors", tmp_path / "sensors")
        assert done.code == 2
        assert len(done.err.splitlines()) == 1
