"""The documented path of a submission, by the commands that a stranger, the workflow and a maintainer type.

`make ci-submission` runs it; the comment that the pull request gets is left in build/submission.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NAME = "stranger"
pytestmark = pytest.mark.long


def done(*words: str, where: Path, ok: bool = True, **environment: str) -> str:
    """Run a command, expect it to succeed or to fail without a traceback, and return all that it prints."""
    ran = subprocess.run(
        [*map(str, words)],
        cwd=where,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert (ran.returncode == 0) is ok, ran.stdout
    assert "Traceback" not in ran.stdout
    return ran.stdout


def tsadbench(*words: str, where: Path, ok: bool = True, **environment: str) -> str:
    return done(sys.executable, "-m", "tsadbench", *words, where=where, ok=ok, **environment)


@pytest.fixture(scope="module")
def submission(tmp_path_factory) -> Path:
    """What docs/submitting.md tells a stranger to do, in a folder of the stranger's own."""
    home = tmp_path_factory.mktemp("stranger")
    tsadbench("new", "detector", NAME, where=home)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    done(*pip, "--target", "site", f"./{NAME}", where=home)
    installed = {"PYTHONPATH": str(home / "site")}
    run = ["run", "--detector", NAME, "--dataset", "pumploop", "--no-contributions", "--out", "runs"]
    tsadbench(*run, where=home, **installed)
    tsadbench("check", NAME, "--out", "runs", where=home, **installed)
    signed = ["--pretrained-on", "Numenta archive", "--signed-by", "Jane Doe"]
    submit = ["submit", "runs", "--name", "strangers-first", *signed, "--out", "submissions"]
    listed = tsadbench(*submit, where=home, **installed)
    assert "statement.txt" in listed
    return home / "submissions" / "strangers-first"


@pytest.fixture
def repository(tmp_path) -> Path:
    """A repository with the tables of this one; what its verification runs is the code of this checkout."""
    place = tmp_path / "repository"
    shutil.copytree(ROOT / "leaderboards" / "pumploop", place / "leaderboards" / "pumploop")
    git(place, "init", "--quiet", "--initial-branch", "main")
    commit(place, "tables")
    return place


def git(place: Path, *words: str) -> str:
    identity = ["-c", "user.name=Jane Doe", "-c", "user.email=jane@example.org"]
    return done("git", *identity, *words, where=place)


def commit(place: Path, message: str) -> None:
    git(place, "add", "--all")
    git(place, "commit", "--quiet", "--message", message)


def pull_request(repository: Path, branch: str, *, ok: bool) -> tuple[str, str]:
    """Return what verifying a branch prints, and the comment on it."""
    comment = repository.parent / f"{branch}.md"
    words = ["--base", "main", "--head", branch, "--out", comment]
    printed = done(sys.executable, ROOT / "leaderboards" / "pull_request.py", *words, where=repository, ok=ok)
    text = comment.read_text(encoding="utf-8")
    kept = ROOT / "build" / "submission"
    kept.mkdir(parents=True, exist_ok=True)
    (kept / comment.name).write_text(text, encoding="utf-8")
    return printed, text


def test_a_plugin_from_another_folder_is_verified_run_again_shown_and_listed(submission, repository, tmp_path):
    git(repository, "switch", "--quiet", "--create", "accepted")
    target = repository / "leaderboards" / "submissions" / submission.name
    shutil.copytree(submission, target)
    commit(repository, "my rows")
    printed, comment = pull_request(repository, "accepted", ok=True)
    assert "rerun: stranger, pumploop, strict" in printed
    assert "was run again, sealed: its scores repeat to the bit" in comment
    assert re.search(r"^\| [^|]*◈ stranger \|", comment, re.M)
    assert "all-positive" in comment

    # Shown by itself before anybody has verified it, and afterwards.
    unverified = tsadbench("leaderboard", str(target), "--split", "overall", "--format", "markdown", where=repository)
    assert "▽ ◈ stranger" in unverified
    tsadbench("verify", str(target), "--rerun", "--write", where=repository)
    shown = tsadbench("leaderboard", str(target), "--split", "overall", "--format", "csv", where=repository)
    header, *rows = (line.split(",") for line in shown.splitlines())
    (row,) = (dict(zip(header, row, strict=True)) for row in rows)
    assert (row["trust"], row["pretrained_on"], row["checked"]) == ("rerun", "Numenta archive", "pass")

    # Listed with the committed rows when the tables are emitted.
    emit = [sys.executable, ROOT / "leaderboards" / "emit.py", "--tables", repository / "leaderboards"]
    done(*emit, where=repository)
    table = (repository / "leaderboards" / "pumploop" / "strict" / "overall.md").read_text(encoding="utf-8")
    assert "◈ stranger |" in table
    assert "stranger on Numenta archive" in table


def test_after_one_byte_of_its_scores_is_edited_it_is_refused(submission, repository):
    git(repository, "switch", "--quiet", "--create", "edited")
    target = repository / "leaderboards" / "submissions" / submission.name
    shutil.copytree(submission, target)
    (file,) = (target / "scores").iterdir()
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))
    commit(repository, "my better rows")
    printed, comment = pull_request(repository, "edited", ok=False)
    assert f"refused: scores/{file.name}: it was edited" in printed
    assert "refused" in comment
    assert f"scores/{file.name}" in comment
    tsadbench("verify", str(target), where=repository, ok=False)


@pytest.mark.parametrize("file", ["tsadbench/cli/verify.py", "leaderboards/pumploop/strict/overall.md",
                                  "leaderboards/submissions/strangers-first.verified.json"])  # fmt: skip
def test_a_pull_request_that_changes_more_is_refused(submission, repository, file):
    git(repository, "switch", "--quiet", "--create", "more")
    shutil.copytree(submission, repository / "leaderboards" / "submissions" / submission.name)
    (repository / file).parent.mkdir(parents=True, exist_ok=True)
    (repository / file).write_text("mine\n")
    commit(repository, "and more")
    printed, comment = pull_request(repository, "more", ok=False)
    assert f"refused: {file}: a submission's pull request changes nothing but" in printed
    assert file in comment


def test_links_in_a_pull_request_lead_nowhere(submission, repository):
    git(repository, "switch", "--quiet", "--create", "link")
    target = repository / "leaderboards" / "submissions" / submission.name
    shutil.copytree(submission, target)
    (target / "code" / "there.py").symlink_to("/etc/passwd")
    commit(repository, "a link")
    printed, comment = pull_request(repository, "link", ok=False)
    assert "refused: code/there.py: it is a link" in printed
    assert "root:" not in comment


def test_what_is_no_submission_is_refused_with_a_comment(repository):
    git(repository, "switch", "--quiet", "--create", "nothing")
    place = repository / "leaderboards" / "submissions" / "nothing"
    place.mkdir(parents=True)
    (place / "readme.txt").write_text("list me\n")
    commit(repository, "no submission")
    _, comment = pull_request(repository, "nothing", ok=False)
    assert "submission.json is missing" in comment
