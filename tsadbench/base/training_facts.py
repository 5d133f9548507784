"""A detector's facts about its fit: the length of training, and the share of training rows used."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np

from tsadbench.errors import ContractError

Fact: TypeAlias = bool | int | float | None
# Facts that tables mark: a share of training windows below 1, a loss that had not levelled out when training ended, and
# a condition number (of an inverted matrix) above 1e6.
SHARE_SEEN = "share_seen"
LEVELLED = "levelled"
CONDITION_NUMBER = "condition_number"
STILL_FALLING = "training ended while the loss was still falling"

_MOST_FACTS = 32
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_TAKEN = ("seed", "episode")  # reserved keys of table rows


def checked_facts(facts: object, where: str) -> dict[str, Fact]:
    """Return the facts as Python numbers; a ContractError if they violate the contract of `Detector.training_facts`."""
    if not isinstance(facts, Mapping) or len(facts) > _MOST_FACTS:
        found = f"{len(facts)} facts" if isinstance(facts, Mapping) else type(facts).__name__
        raise ContractError(f"{where}: expected a mapping with at most {_MOST_FACTS} facts, found {found}")
    checked = {name: value.item() if isinstance(value, np.generic) else value for name, value in facts.items()}
    for name, value in checked.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name in _TAKEN:
            raise ContractError(
                f"{where}: expected names of lower-case letters, digits and underscores, at most 40, other than "
                f"{' and '.join(_TAKEN)}, found {name!r:.60}"
            )
        if not (value is None or (isinstance(value, int | float) and math.isfinite(value) and abs(value) < 2**63)):
            raise ContractError(f"{where}: expected {name} to be a finite number, a bool or None, found {value!r:.60}")
    share, levelled = checked.get(SHARE_SEEN), checked.get(LEVELLED)
    if not (share is None or 0.0 <= share <= 1.0) or not isinstance(levelled, bool | None):
        raise ContractError(
            f"{where}: expected {SHARE_SEEN} from 0 to 1 and {LEVELLED} True or False, found {share} and {levelled}"
        )
    return checked


def share_note(facts: Iterable[Mapping[str, Fact]]) -> str:
    """Return "saw 37 % of the training windows" if any fit did not see all of them, else ""."""
    shares = sorted(share for one in facts if (share := one.get(SHARE_SEEN)) is not None)
    if not shares or shares[0] >= 1.0:
        return ""
    least, most = _percent(shares[0]), _percent(shares[-1])
    return f"saw {least if least == most else f'{least} to {most}'} of the training windows"


def _percent(share: float) -> str:
    """Return ``0.42 %``, ``37 %``, ``100 %``; from 10 % on rounded down, so that only all is 100 %."""
    percent = 100.0 * share
    return f"{percent:.2g} %" if percent < 10.0 else f"{math.floor(percent + 1e-9)} %"
