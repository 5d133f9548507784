"""Puts the leaderboards into the wheel as tsadbench/shipped; everything else is configured in pyproject.toml."""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

LEADERBOARDS = Path(__file__).parent / "leaderboards"


class BuildWithLeaderboards(build_py):
    """Copies ``leaderboards/<data set>/<protocol>/*``; an editable install reads them in the checkout instead."""

    def run(self) -> None:
        """Build the packages, then add the tables."""
        super().run()
        if self.editable_mode:
            return
        shipped = Path(self.build_lib) / "tsadbench" / "shipped"
        shutil.rmtree(shipped, ignore_errors=True)
        for table in LEADERBOARDS.glob("*/*/*"):
            if table.is_file():
                target = shipped / table.relative_to(LEADERBOARDS)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(table, target)


setup(cmdclass={"build_py": BuildWithLeaderboards})
