"""The wheel in clean environments, as a stranger has it: first steps, rows that ship, and types.

Packages come from the network.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from packaging.requirements import Requirement

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[1]

STRANGER = '''
"""A package of a stranger, who has mypy check it strictly."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import tsadbench
from tsadbench import Detector, Recording, Traits
from tsadbench.base import FloatArray


class Idea(Detector):
    """The largest distance of a sensor from its training mean."""

    traits: ClassVar[Traits] = Traits(family="statistics", memory=0)

    def __init__(self, *, cap: float = 100.0) -> None:
        self.cap = cap

    def _fit(self, recordings: Sequence[Recording]) -> None:
        self.mean_ = np.concatenate([recording.values for recording in recordings]).mean(axis=0)

    def _score(self, recording: Recording) -> FloatArray:
        distance: FloatArray = np.abs(recording.values - self.mean_)
        scores: FloatArray = np.minimum(distance, self.cap).max(axis=1)
        return scores


def labels() -> list[str]:
    """Return who is in the table."""
    board = tsadbench.run([Idea(cap=5.0), "t2"], dataset="pumploop", protocol="strict", seeds=1)
    return [str(label) for label in board.frame["detector"]]
'''

# Each line is an error only if mypy sees what tsadbench declares.
WRONG = """
import tsadbench
from tsadbench import Detector, Recording, Traits


class Idea(Detector):
    def _score(self, recording: Recording) -> str:
        return "high"


reveal_type(tsadbench.run("t2").to_markdown())
tsadbench.run("t2", protokol="strict")
Traits(look_ahead="nine")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel as `python -m build` makes it: from the source archive of a clean copy of the working tree."""
    folder = tmp_path_factory.mktemp("wheel")
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0"):
        if (ROOT / name).is_file():
            (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / "source" / name)
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", folder / "source"]
    done = subprocess.run([*map(str, build)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (found,) = (folder / "dist").glob("*.whl")
    return found


def run(*command: object, folder: Path, code: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program without this machine's settings, home and data."""
    kept = {name: os.environ[name] for name in ("LANG", "PATH", "SSL_CERT_FILE") if name in os.environ}
    done = subprocess.run(
        [*map(str, command)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**kept, "HOME": str(folder), "OMP_NUM_THREADS": "1", **variables},
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def empty_environment(folder: Path) -> Path:
    """Make a virtual environment that holds nothing, not even pip; return its interpreter."""
    venv.create(folder, with_pip=False, symlinks=True)
    return folder / "bin/python"


def install(python: Path, *what: object) -> None:
    """Install with pip, from the index that it is configured for."""
    command = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*map(str, [*command, *what])], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def installed(python: Path, folder: Path) -> dict[str, str]:
    listing = "import importlib.metadata as m, json; print(json.dumps({d.name: d.version for d in m.distributions()}))"
    return json.loads(run(python, "-c", listing, folder=folder).stdout)


@pytest.mark.parametrize("versions", ["lowest", "newest"])
def test_a_stranger_gets_a_first_table_and_a_row_among_those_that_ship(versions, wheel, tmp_path):
    python = empty_environment(tmp_path / "venv")
    constraints = ("--constraint", ROOT / "constraints-lowest.txt") if versions == "lowest" else ()
    install(python, wheel, *constraints)
    found = {name.lower().replace("_", "-"): version for name, version in installed(python, tmp_path).items()}
    assert "torch" not in found
    if versions == "lowest":
        listed = (ROOT / "constraints-lowest.txt").read_text().splitlines()
        pins = [Requirement(line) for line in listed if line[:1] != "#"]
        held = [one for one in pins if one.name in found]
        assert len(held) >= 13
        assert not [f"{one}: {found[one.name]}" for one in held if found[one.name] not in one.specifier]
    program = python.with_name("tsadbench")
    # Nothing listens there, so no data set can be downloaded.
    alone = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}

    first = run(program, "run", "--dataset", "pumploop", folder=tmp_path, **alone)
    assert [name for name in ("pumploop", "t2-q", "isolation-forest", "ridge") if name not in first.stdout] == []
    assert "dprgm" in first.stderr

    (tmp_path / "idea.py").write_text(STRANGER)
    command = [program, "run", "-d", "idea.py:Idea", "--dataset", "pumploop", "--split", "overall", "--format", "json"]
    among = run(*command, "--against", "strict", folder=tmp_path, **alone)
    rows = {row["label"]: row for row in json.loads(among.stdout)["rows"]}
    assert rows.pop("idea.py:Idea")["status"] == "ok"
    with (ROOT / "leaderboards/pumploop/strict/overall.csv").open() as file:
        committed = {row["detector"]: row for row in csv.DictReader(file)}
    rows = {label: row for label, row in rows.items() if row.get("stored")}
    assert len(rows) > 30
    stored = {label: row["metrics"]["auprc"]["mean"] for label, row in rows.items()}
    assert stored == {label: pytest.approx(float(committed[label]["auprc_mean"])) for label in stored}
    checked = {label: row["checked"] for label, row in rows.items()}
    assert checked == {label: committed[label]["checked"] for label in rows}
    assert "pass" in checked.values()


def test_a_strangers_mypy_sees_the_types(wheel, tmp_path):
    python = empty_environment(tmp_path / "venv")
    install(python, wheel, "mypy", "--constraint", ROOT / "constraints.txt")
    (tmp_path / "stranger").mkdir()
    (tmp_path / "stranger" / "__init__.py").write_text(STRANGER)
    run(python, "-m", "mypy", "--strict", "-p", "stranger", folder=tmp_path)
    (tmp_path / "wrong.py").write_text(WRONG)
    found = run(python, "-m", "mypy", "--strict", "wrong.py", folder=tmp_path, code=1).stdout
    for kind in ("override", "call-arg", "arg-type"):
        assert f"[{kind}]" in found, found
    assert 'Revealed type is "str"' in found.replace("builtins.", "")
    assert "import-untyped" not in found
