"""Failures that are known and explained: the one place where a check may fail and the suite still passes."""

from __future__ import annotations

from collections.abc import Mapping

_CHANCE = "a floor: it scores by chance, and learns nothing"

EXPECTED_FAILURES: Mapping[str, Mapping[str, str]] = {
    "all-positive": {"not-constant": "a floor: it gives every row the score 1"},
    "random": {
        "alignment": "a floor: only a recording's first row decides what it draws",
        "rounding": "a floor: what it draws is decided by the first row's last bits",
        "fault": _CHANCE,
        "spike": _CHANCE,
        "other-data": _CHANCE,
    },
}
