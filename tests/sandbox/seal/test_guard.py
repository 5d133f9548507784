"""The audit hook that reports access to the data folder: a folder counts only as a whole path."""

from __future__ import annotations

import subprocess
import sys

import pytest

OPENED = """
import sys
from tsadbench.sandbox.seal.guard import forbid
forbid(["/data"], lambda what: sys.exit("forbidden"))
try:
    open(sys.argv[1])
except FileNotFoundError:
    pass
"""


@pytest.mark.parametrize(
    ("path", "code"),
    [("/data/a.csv", 1), ("file:///data/a.csv", 1), ("/database/a.csv", 0), ("/nowhere/data/a.csv", 0)],
)
def test_what_is_in_the_folder_is_reported(path, code):
    assert subprocess.run([sys.executable, "-c", OPENED, path], check=False, timeout=60).returncode == code
