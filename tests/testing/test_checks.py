"""Every cheat is caught by its check and by no other, and every check catches a cheat."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.helpers import cheats
from tsadbench.leaderboard.checks import keep, report_of
from tsadbench.testing import CheckFailedError, DetectorContract, all_checks, check_detector


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Constructs a cheat; the one that reads labels finds some in the folder of data sets."""
    monkeypatch.setenv("TSADBENCH_DATA", str(tmp_path))
    (tmp_path / "labels.csv").write_text("1\n" * 1000)

    def construct(cls):
        return cls(folder=str(tmp_path)) if cls is cheats.ReadsLabels else cls()

    return construct


def failures(detector, only=()) -> dict[str, str]:
    found = check_detector(detector, only=only, on_fail=None)
    return {result.id: result.reason for result in found if result.status in ("fail", "warn")}


@pytest.mark.parametrize("cheat", cheats.CAUGHT_BY, ids=lambda cls: cls.__name__)
def test_a_cheat_is_caught_by_its_check(make, cheat):
    caught_by = cheats.CAUGHT_BY[cheat].split()[0]
    assert caught_by in failures(make(cheat), only=[caught_by])


@pytest.mark.parametrize("cheat", cheats.CAUGHT_BY, ids=lambda cls: cls.__name__)
@pytest.mark.long
def test_a_cheat_passes_all_other_checks(make, cheat):
    # The replay audit may fail too, because it also compares parts of recordings.
    assert failures(make(cheat)).keys() <= {*cheats.CAUGHT_BY[cheat].split(), "replays"}


def test_every_check_catches_a_cheat():
    assert {check.id for check in all_checks()} == {checks.split()[0] for checks in cheats.CAUGHT_BY.values()}


@pytest.mark.parametrize("honest", cheats.HONEST, ids=lambda cls: cls.__name__)
def test_honest_detectors_of_every_kind_pass(honest):
    check_detector(honest)


def test_a_leak_cannot_be_declared_away_except_by_a_floor():
    class Excused(cheats.CentredSmoothing):
        def expected_check_failures(self):
            return {"prefix": "it looks ahead, and says so"}

    class Floor(Excused):
        traits = replace(cheats.CentredSmoothing.traits, floor=True)

    (result,) = check_detector(Excused, only=["prefix"], on_fail=None)
    assert result.status == "fail"
    (result,) = check_detector(Floor, only=["prefix"])
    assert (result.status, result.reason) == ("expected-failure", "it looks ahead, and says so")


def test_an_expected_failure_that_passes_is_a_failure():
    with pytest.raises(CheckFailedError, match="fault.*no reason"):
        check_detector(cheats.Honest, only=["fault"], expected_failures={"fault": "no reason"})
    (result,) = check_detector(cheats.Inverted, only=["fault"], expected_failures={"fault": "it is upside down"})
    assert (result.status, result.reason) == ("expected-failure", "it is upside down")


class LooksAhead(cheats.Honest):
    """Mean of a row's score and the two after it."""

    traits = replace(cheats.Honest.traits, look_ahead=2)

    def _score(self, recording):
        scores = super()._score(recording)
        means = np.full(len(scores), np.nan)
        means[: len(scores) - 2] = (scores[:-2] + scores[1:-1] + scores[2:]) / 3 if len(scores) > 2 else ()
        return means


@pytest.mark.parametrize(
    ("detector", "first", "last"), [(cheats.SilentAtFirst, 9, 0), (LooksAhead, 0, 2)], ids=["first", "last"]
)
def test_rows_without_a_score_are_a_warning_and_not_a_failure(detector, first, last):
    (result,) = check_detector(detector, only=["every-row"])
    assert (result.status, result.good) == ("warn", True)
    assert result.evidence == {"first_rows": first, "last_rows": last}
    assert re.search(rf"first {first} .*last {last} ", result.reason)
    assert "tsadbench.base.trailing_windows(rows, length)" in result.reason
    (expected,) = check_detector(detector, only=["every-row"], expected_failures={"every-row": "they are silent"})
    assert (expected.status, expected.reason) == ("expected-failure", "they are silent")


@pytest.mark.long
@pytest.mark.parametrize("place", ["KEPT = '{}'", "# {}", "", 'def f():\n    """{}"""', "KEPT = [{}]"])
def test_code_that_could_remember_a_test_set_is_marked_in_tables(tmp_path, tsadbench, place):
    digits = "".join(map(str, np.random.default_rng(0).integers(10, size=60_000)))  # 25 KiB
    kept = digits if "[" not in place else ", ".join(str(int(digits[at : at + 9])) for at in range(0, 60_000, 9))
    file = tmp_path / "mine.py"
    file.write_text(f"{place.format(kept)}\nfrom tsadbench_detectors.t2 import T2\nclass Mine(T2):\n    pass\n")
    (result,) = check_detector(f"{file}:Mine", only=["files"], on_fail=None)
    said = re.search(r"\b(\d+) KiB", result.reason)
    assert 24 <= int(said[1]) <= 36 if place else result.status == "pass"
    if place.startswith("KEPT = '"):
        ran = tsadbench("run", "-d", f"{file}:Mine", "--dataset", "pumploop", "--no-floors", "--out", tmp_path / "runs")
        assert ran.code == 0, ran.err
        keep(report_of(f"{file}:Mine", [result]), tmp_path / "runs")
        assert f"| {result.reason} |" in tsadbench("leaderboard", tmp_path / "runs", "--format", "markdown").out


def test_a_warning_of_the_command_line_is_exit_code_0(tsadbench):
    done = tsadbench("check", "tests.helpers.cheats:SilentAtFirst", "--only", "every-row")
    assert done.code == 0
    assert re.match("warn +every-row", done.out)
    assert done.out.endswith("tests.helpers.cheats:SilentAtFirst: 1 warn\n")


class TestContractWithWarning(DetectorContract):
    detector = cheats.SilentAtFirst

    @pytest.mark.filterwarnings("error")
    def test_check(self, check_id):
        if check_id == "every-row":
            with pytest.warns(UserWarning, match="every-row: .*first 9 .*last 0 "):
                super().test_check(check_id)
        else:
            super().test_check(check_id)


def test_failures_are_raised_with_reason_and_evidence():
    with pytest.raises(CheckFailedError, match=r"\b2 .*\nprefix: row 0 .*'cut'"):
        check_detector(cheats.CentredSmoothing)


class TestContractWithReason(DetectorContract):
    detector = cheats.Inverted()
    expected_failures = {"fault": "it is upside down"}  # noqa: RUF012


def test_expected_failures_do_not_fail_the_command_line(tsadbench):
    done = tsadbench("check", "tests.helpers.tiny:Largest", "--only", "other-data")
    assert (done.code, "expected-failure" in done.out) == (0, True)
