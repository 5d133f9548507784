"""Other Pythons than the one that runs the tests: virtual environments with little in them."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

# Before numpy 2; it has wheels for Python 3.9 to 3.12.
OLD_NUMPY = "1.26.4"


def empty_environment(folder: Path) -> Path:
    """Make a virtual environment that holds nothing, not even pip; return its interpreter."""
    venv.create(folder, with_pip=False, symlinks=True)
    return folder / "bin/python"


def with_old_numpy(folder: Path) -> Path:
    """Make one that holds numpy before version 2 and nothing else; skip where no package can be had, but not in CI."""
    python = empty_environment(folder)
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-compile", "--no-deps", "--quiet"]
    command += ["--disable-pip-version-check", f"numpy=={OLD_NUMPY}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        message = f"numpy {OLD_NUMPY} cannot be installed: {done.stderr.strip().splitlines()[-1:]}"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return python


def script(file: Path, text: str) -> Path:
    """Write a program that can be run."""
    file.write_text(text)
    file.chmod(0o755)
    return file
