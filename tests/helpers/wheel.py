"""The package as it is published: built from a clean copy of the working tree, installed in clean environments."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def build(folder: Path) -> Path:
    """Build the source archive and, from it, the wheel, as `python -m build` does; return the folder of both."""
    source, archives = folder / "source", folder / "dist"
    for name in _working_tree():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, source / name)
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", archives, source)
    return archives


def built_wheel(folder: Path) -> Path:
    """Return a wheel that is built."""
    (wheel,) = build(folder).glob("*.whl")
    return wheel


def _working_tree() -> list[str]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def _run(*command: object) -> None:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
