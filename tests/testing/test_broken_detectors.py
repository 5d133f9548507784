"""Detectors as newcomers write them: `check` says once what is wrong, where, in which phase and on which rows."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from tsadbench.testing import all_checks

SOUND = '''"""A detector that a newcomer writes."""

import numpy as np

from tsadbench import Detector


class Mine(Detector):
    """Distance from the mean."""

    def __init__(self, *, power: float = 2.0):
        self.power = power

    def _fit(self, recordings):
        self.mean_ = np.concatenate([one.values for one in recordings]).mean(axis=0)

    def _score(self, recording):
        return np.linalg.norm(recording.values - self.mean_, axis=1)
'''
STORE = "        self.power = power\n"
FIT = "        self.mean_ = np.concatenate([one.values for one in recordings]).mean(axis=0)\n"
SCORE = "        return np.linalg.norm(recording.values - self.mean_, axis=1)\n"
DISTANCE = "np.linalg.norm(recording.values - self.mean_, axis=1)"

# The replaced text, its replacement, the phase, the faulty line, and a pattern of the message.
BROKEN = {
    "scores by sensor": (SCORE, ["return (recording.values - self.mean_).sum(axis=0)"], "score", 17,
                         r"Mine\.score: .*\[240\].* \[4\]"),
    "a list": (SCORE, [f"return list({DISTANCE})"], "score", 17, r"\[240\].* list"),
    "NaN in the middle": (SCORE, [f"found = {DISTANCE}", "found[120] = np.nan", "return found"], "score", 17,
                          "row 120 .*NaN"),
    "another name in score": (SCORE, ["return recording.values @ self.means_"], "score", 18,
                              "AttributeError: .*'means_'"),
    "a typo in fit": (FIT, ["self.mean_ = recordings[0].vales.mean(axis=0)"], "fit", 15,
                      "AttributeError: .*'vales'"),
    "labels": (FIT, ["normal = recordings[0].labels == 0"], "fit", 15, "labels.* labels"),
    "a data frame": (FIT, ["self.mean_ = recordings[0].rolling(10).mean()"], "fit", 15, "Recording.* data frame"),
    "changes what it is given": (FIT, ["for one in recordings:", "    one.values[:] -= 1.0"], "fit", 16,
                                 r"recording\.values\.copy\(\)"),
    "an error in a library": (FIT, ["from sklearn.decomposition import PCA", "PCA(50).fit(recordings[0].values)"],
                              "fit", 16, "ValueError: n_components=50 "),
    "it exits": (FIT, ["raise SystemExit(1)"], "fit", 15, "SystemExit: 1"),
    "an error in the constructor": (STORE, ["self.power = powr"], "construct", 12, "NameError: name 'powr'"),
    "a constructor that stores nothing": (STORE, ["pass"], "construct", 8,
                                          r"'power'.* self\.power"),
    "a constructor that takes anything": ("(self, *, power: float = 2.0)", "(self, *args, power: float = 2.0)",
                                          "construct", 8, r"\*args"),
    "no _score": ("    def _score(self, recording):\n" + SCORE, "", "construct", 8,
                  r"_score.* def _score\(self, recording\)"),
    "score instead of _score": ("def _score", "def score", "construct", 8, r"\bscore\b"),
    "fit beside _fit": (FIT, FIT + "\n    def fit(self, recordings):\n        return self\n", "score", 20,
                        r"\bfit\b.*\b_fit\b"),
    "another signature": ("(self, recording):", "(self, recording, labels):", "score", 17,
                          "'labels'"),
}  # fmt: skip


def written(folder, place, replacement):
    lines = replacement if isinstance(replacement, str) else "".join(f"        {line}\n" for line in replacement)
    text = SOUND.replace(place, lines)
    assert text != SOUND
    file = folder / "idea.py"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize("name", BROKEN)
def test_what_a_newcomer_gets_wrong_is_said_once_with_file_line_phase_and_shapes(name, tmp_path, tsadbench):
    place, replacement, phase, line, message = BROKEN[name]
    file = written(tmp_path, place, replacement)
    done = tsadbench("check", f"{file}:Mine", "--format", "json")
    assert done.code == 1
    first, *others = json.loads(done.out)["checks"]
    assert (first["id"], first["status"]) == ("works", "fail")
    assert first["reason"].startswith(f"{phase}: ")
    assert re.search(message, first["reason"])
    assert first["evidence"]["phase"] == phase
    assert first["evidence"]["raised_in"] == f"{file}:{line}"
    if phase != "construct":
        assert first["evidence"]["training"] == "300 rows x 4 sensors, 300 rows x 4 sensors"
        assert first["evidence"]["test"] == "240 rows x 4 sensors"
    assert len(others) == len(all_checks()) - 1
    assert {(one["status"], one["reason"]) for one in others} == {("not-run", "")}


def test_repeat_names_the_generator_that_moved_and_global_random_is_not_skipped(tmp_path, tsadbench):
    file = written(tmp_path, FIT, ["self.mean_ = np.random.normal(size=4)"])
    done = tsadbench("check", f"{file}:Mine", "--only", "repeat", "--only", "global-random", "--format", "json")
    found = [(one["status"], "numpy.random" in one["reason"]) for one in json.loads(done.out)["checks"]]
    assert found == [("fail", True)] * 2


def test_the_text_says_it_once_and_how_many_checks_did_not_run(tmp_path, tsadbench):
    file = written(tmp_path, FIT, ["self.mean_ = recordings[0].vales"])
    done = tsadbench("check", f"{file}:Mine")
    assert done.out.count("vales") == 1
    assert len(done.out.splitlines()) == 9
    n_others = len(all_checks()) - 1
    assert re.search(rf"^not-run .*\b{n_others} checks", done.out, re.M)
    assert done.out.endswith(f"{file}:Mine: 1 fail, {n_others} not-run\n")


@pytest.mark.parametrize(
    ("place", "replacement", "message"),
    [
        ("import numpy as np\n", "import numpy as np\nimport torhc\n", r"'torhc' \(idea\.py:4\)"),
        ("class Mine(Detector):", "class Mine(Detector)", r"SyntaxError: .*\(idea\.py, line 8\)"),
        ("(Detector)", "", r"subclass of Detector"),
        ("power: float = 2.0", "power: float", "'power'"),
    ],
)
def test_a_file_that_holds_no_detector_is_one_line_and_exit_code_2(tmp_path, tsadbench, place, replacement, message):
    done = tsadbench("check", f"{written(tmp_path, place, replacement)}:Mine")
    assert (done.code, done.out) == (2, "")
    assert re.search(message, done.err)
    assert len(done.err.splitlines()) == 1


def test_a_detector_that_ends_its_process_fails_one_check(tmp_path, tsadbench):
    file = written(tmp_path, FIT, ["import os", "os._exit(3)"])
    done = tsadbench("check", f"{file}:Mine")
    assert done.code == 1
    assert "exit code 3" in done.out
    assert f"{len(all_checks()) - 1} not-run" in done.out


LOUD = [
    "import contextlib, ctypes, os, subprocess",
    "print('hello from _fit')",
    "os.write(1, b'raw bytes')",
    "ctypes.CDLL(None).puts(b'from C')",
    "with contextlib.suppress(OSError):  # a sealed box may start none",
    "    subprocess.run(['echo', 'from a process'], check=False)",
    FIT.strip(),
]


class TestPrinting:
    """What a detector prints, in whatever way, does not spoil what a command prints."""

    def run(self, *arguments, cwd):
        done = subprocess.run(
            [sys.executable, "-m", "tsadbench", *map(str, arguments)],
            cwd=cwd, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        return done.returncode, json.loads(done.stdout), done.stderr

    def test_check(self, tmp_path):
        written(tmp_path, FIT, LOUD)
        only = ("--only", "works", "--only", "scores", "--only", "files")
        code, content, _ = self.run("check", "idea.py:Mine", "--format", "json", *only, cwd=tmp_path)
        assert (code, [one["status"] for one in content["checks"]]) == (0, ["pass"] * 3)

    def test_run(self, tmp_path):
        written(tmp_path, FIT, LOUD)
        code, content, err = self.run(
            "run", "-d", "idea.py:Mine", "--dataset", "pumploop", "--seeds", "1", "--no-floors",
            "--format", "json", cwd=tmp_path,
        )  # fmt: skip
        assert code == 0
        assert {row["detector"] for row in content["rows"]} == {"idea.py:Mine"}
        assert "hello" not in err


def test_a_failed_trial_says_the_phase_and_the_line(tmp_path, tsadbench):
    file = written(tmp_path, SCORE, ["return recording.values @ self.means_"])
    done = tsadbench(
        "run", "-d", f"{file}:Mine", "--dataset", "pumploop", "--seeds", 1, "--no-floors", "--out", tmp_path / "runs",
        "--format", "json",
    )  # fmt: skip
    assert done.code == 1
    (reason,) = {one["reason"] for row in json.loads(done.out)["rows"] for one in row["failed"]}
    assert re.fullmatch(r"AttributeError: .*'means_' \(score, idea\.py:18\)", reason)
