"""Suites: data sets that are run and ranked together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tsadbench.errors import UsageError
from tsadbench.utils.parameters import nearest


@dataclass(frozen=True, slots=True)
class Suite:
    """Data sets that are run by one name, and ranked over all of them."""

    name: str
    version: int  # raised when a data set joins or leaves: ranks over two versions are not compared
    datasets: tuple[str, ...]  # names of registered data sets, in the order of tables
    splits: Mapping[str, str] = field(default_factory=dict)  # those that rank, by data set, if not "overall"

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


_PLANTS = Suite("plants", 1, ("skab", "tep", "pumploop", "cranfield", "gecco2018", "causrca"))
_SERVERS = Suite("servers", 1, ("asd", "smd"))
_ALL = Suite("all", 1, (*_PLANTS.datasets, *_SERVERS.datasets))
# Those in whose audits no fault decides a ranking; on tep without the three faults that nobody detects.
_CORE = Suite("core", 1, ("tep", "pumploop", "cranfield", "causrca", "asd"), {"tep": "detectable"})
SUITES: Mapping[str, Suite] = {suite.name: suite for suite in (_PLANTS, _SERVERS, _CORE, _ALL)}

# Those of them that no real plant stands behind, each with what of it is simulated if not all is.
SIMULATED: Mapping[str, str] = {"tep": "", "pumploop": "", "causrca": " (hardware of the fault runs)"}


def suite_named(name: str) -> Suite:
    """Return the suite of this name; a UsageError if there is none."""
    if name not in SUITES:
        raise UsageError(f"there is no suite {name!r}{nearest(name, SUITES)}")
    return SUITES[name]
