"""The workflow on submissions: the commands that are tried here, and no token that a stranger's code could use."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
yaml = pytest.importorskip("yaml")


@pytest.fixture(scope="module")
def jobs() -> dict:
    text = (ROOT / ".github" / "workflows" / "submission.yml").read_text(encoding="utf-8")
    content = yaml.safe_load(text)
    assert content["permissions"] == {"contents": "read"}
    return content["jobs"]


def commands(job: dict) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def test_what_runs_a_strangers_code_can_write_nothing_and_takes_the_base_branch(jobs):
    verify = jobs["verify"]
    assert "permissions" not in verify
    (checkout,) = (step["with"] for step in verify["steps"] if "checkout" in step.get("uses", ""))
    assert checkout["ref"] == "${{ github.event.pull_request.base.sha }}"
    assert checkout["persist-credentials"] is False
    assert not any("env" in step and "TOKEN" in str(step["env"]) for step in verify["steps"])


def test_what_may_comment_runs_nothing_of_the_pull_request(jobs):
    comment = jobs["comment"]
    assert comment["permissions"] == {"pull-requests": "write"}
    assert not any("checkout" in step.get("uses", "") for step in comment["steps"])
    assert [shlex.split(one)[:3] for one in commands(comment)] == [["gh", "pr", "comment"]]


def test_nothing_of_the_event_is_pasted_into_a_command(jobs):
    assert not any("${{" in one for job in jobs.values() for one in commands(job))


def test_its_commands_are_those_of_make_ci_submission(jobs):
    run = [shlex.split(one) for one in commands(jobs["verify"])]
    (verify,) = (words[1:] for words in run if "leaderboards/pull_request.py" in words)
    assert verify == [
        *("leaderboards/pull_request.py", "--base", "HEAD", "--head", "refs/submission", "--out", "build/comment.md")
    ]
    tried = (ROOT / "tests" / "test_submission_path.py").read_text(encoding="utf-8")
    assert all(word in tried for word in ("pull_request.py", "--base", "--head", "--out"))
    assert "tests/test_submission_path.py" in (ROOT / "Makefile").read_text(encoding="utf-8")
