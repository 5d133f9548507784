"""Verify the submission of a pull request, and write the comment on it; the workflow and `make ci-submission` run this.

Only the submission's files are taken from the pull request: the code that verifies them is that of this checkout.

    python leaderboards/pull_request.py --base main --head refs/pull/7/head --out build/comment.md
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tsadbench.leaderboard.submitted import refusal_comment
from tsadbench.results.submissions.folder import Fault
from tsadbench.results.submissions.form import submission_name_fault
from tsadbench.utils.text import one_line

SUBMISSIONS = "leaderboards/submissions"


def main(arguments: Sequence[str] | None = None) -> int:
    """Verify, write the comment, and return the exit code: 1 if the submission is refused."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--base", required=True, help="commit that the pull request starts from")
    parser.add_argument("--head", required=True, help="its last commit")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the comment, as Markdown")
    parser.add_argument("--data", type=Path, help="folder with the data sets' folders")
    options = parser.parse_args(arguments)
    changed = git("diff", "--name-only", "--no-renames", "-z", f"{options.base}...{options.head}").split("\0")
    names, faults = touched([path for path in changed if path])
    options.out.parent.mkdir(parents=True, exist_ok=True)
    if faults or len(names) != 1:
        faults = faults or [Fault(".", f"expected the files of one submission, found those of {len(names)}")]
        options.out.write_text(refusal_comment("of this pull request", faults), encoding="utf-8")
        print(*(f"refused: {fault.file}: {fault.reason}" for fault in faults), sep="\n")
        return 1
    with tempfile.TemporaryDirectory(prefix="tsadbench-pull-request-") as place:
        environment = {**os.environ, "GIT_INDEX_FILE": str(Path(place, "index"))}
        (name,) = names
        git(f"--work-tree={place}", "checkout", options.head, "--", f"{SUBMISSIONS}/{name}", env=environment)
        command = [sys.executable, "-m", "tsadbench", "verify", str(Path(place, SUBMISSIONS, name)), "--rerun"]
        command += ["--comment", str(options.out.resolve())]
        command += ["--data", str(options.data)] if options.data else []
        code = subprocess.run(command, check=False).returncode
        if not options.out.is_file():  # it is no submission at all
            fault = Fault(".", "submission.json is missing: expected a folder of tsadbench submit")
            options.out.write_text(refusal_comment(name, [fault]), encoding="utf-8")
        return code


def touched(paths: Sequence[str]) -> tuple[set[str], list[Fault]]:
    """Return the names of the submissions that paths belong to, and which paths no submission may touch."""
    names, faults = set(), []
    for path in paths:
        name, slash, _ = path.removeprefix(f"{SUBMISSIONS}/").partition("/")
        if not path.startswith(f"{SUBMISSIONS}/") or not slash or submission_name_fault(name):
            reason = f"a submission's pull request changes nothing but {SUBMISSIONS}/NAME/"
            faults.append(Fault(one_line(path, 200), reason))
        else:
            names.add(name)
    return names, faults


def git(*words: str, env: dict[str, str] | None = None) -> str:
    """Run git and return what it prints."""
    done = subprocess.run(["git", *words], check=True, stdout=subprocess.PIPE, env=env)
    return done.stdout.decode(errors="surrogateescape")


if __name__ == "__main__":
    sys.exit(main())
