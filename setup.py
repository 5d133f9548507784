"""Puts the leaderboards into the wheel as tsadbench/shipped, and README.md with absolute links into its metadata.

Everything else is configured in pyproject.toml.
"""

from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
LEADERBOARDS = ROOT / "leaderboards"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def shipped() -> Iterator[Path]:
    """Yield the files that ship: check reports, and the records of registered data sets, not those of adapters."""
    yield LEADERBOARDS / "checks.jsonl"
    for dataset in PROJECT["entry-points"]["tsadbench.datasets"]:
        yield from (LEADERBOARDS / dataset).glob("*/records.jsonl")  # rows for `run --against`


class BuildWithLeaderboards(build_py):
    """Copies `shipped`; an editable install reads the checkout instead."""

    def run(self) -> None:
        """Build the packages, then add the tables."""
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib) / "tsadbench" / "shipped"
        shutil.rmtree(target, ignore_errors=True)
        for file in shipped():
            copy = target / file.relative_to(LEADERBOARDS)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)


def readme() -> str:
    """Return README.md with links to this version's files in the repository: a package index has no other files."""
    address = f"{PROJECT['urls']['Repository']}/raw/v{PROJECT['version']}"
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"(!\[[^\]]*\]\()(?![a-z]+:|#)", rf"\1{address}/", text)
    return re.sub(r"(?<=\]\()(?![a-z]+:|#)", f"{address.replace('/raw/', '/blob/')}/", text)


setup(
    cmdclass={"build_py": BuildWithLeaderboards},
    long_description=readme(),
    long_description_content_type="text/markdown",
)
