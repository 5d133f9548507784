"""constraints-lowest.txt holds the lower bounds of pyproject.toml: those that `make ci-lowest` tries."""

from __future__ import annotations

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
# Pinned beside them: what the lowest version of a dependency needs.
BESIDE = {"click", "pyparsing"}
# In the matrix, but in the version of constraints.txt: the Makefile says why.
NOT_LOWEST = {"torch"}


def test_the_lowest_versions_that_are_tried_are_those_that_are_allowed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    extras = next(line for line in makefile.splitlines() if line.startswith("MATRIX = ")).removeprefix("MATRIX = ")
    required = [*project["dependencies"]]
    for extra in extras.split(","):
        required += project["optional-dependencies"][extra]
    allowed = {one.name: str(one.specifier).replace(">=", "==") for one in map(Requirement, required)}
    lines = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").splitlines()
    pinned = {one.name: str(one.specifier) for line in lines if line[:1] != "#" for one in [Requirement(line)]}
    assert {name: pin for name, pin in pinned.items() if name not in BESIDE} == {
        name: pin for name, pin in allowed.items() if name not in NOT_LOWEST
    }
    assert allowed.keys() >= NOT_LOWEST
    assert pinned.keys() >= BESIDE
