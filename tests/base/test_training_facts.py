"""Facts about a fit: what may be stated, and how tables word a share."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tsadbench import ContractError, Detector
from tsadbench.base import share_note

ROWS = np.zeros((5, 2))


class States(Detector):
    """States what it is given."""

    def __init__(self, *, facts: object = None) -> None:
        self.facts = facts

    def _fit(self, recordings):
        pass

    def _score(self, recording):
        return np.zeros(recording.n_rows)

    def _training_facts(self):
        return self.facts


def test_facts_come_out_as_pythons_own_numbers():
    facts = {"steps": np.int64(3), "loss": np.float32(0.5), "share_seen": 0.25, "levelled": np.True_, "none": None}
    stated = States(facts=facts).fit(ROWS).training_facts()
    assert stated == {"steps": 3, "loss": 0.5, "share_seen": 0.25, "levelled": True, "none": None}
    assert [type(value) for value in stated.values()] == [int, float, float, bool, type(None)]


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        ([("steps", 3)], "list"),
        ({f"a{i}": i for i in range(33)}, "33"),
        ({"Steps": 3}, "Steps"),
        ({"a" * 41: 3}, "a" * 41),
        ({"seed": 3}, "seed"),
        ({"loss": float("nan")}, "loss"),
        ({"losses": np.zeros(2)}, "losses"),
        ({"steps": 2**70}, "steps"),
        ({"share_seen": 1.5}, "share_seen"),
    ],
)
def test_what_may_not_be_stated(facts, name):
    with pytest.raises(ContractError, match=name):
        States(facts=facts).fit(ROWS).training_facts()


@pytest.mark.parametrize(
    ("shares", "note"),
    [
        ([], ""),
        ([None], ""),
        ([1.0, 1.0], ""),
        ([0.37], "37 %"),
        ([0.2904], "29 %"),
        ([0.29], "29 %"),
        ([0.9999], "99 %"),
        ([0.00421], "0.42 %"),
        ([0.1, 0.101, None], "10 %"),
        ([1.0, 0.5], "50 % to 100 %"),
    ],
)
def test_how_a_share_reads(shares, note):
    found = share_note([{} if share is None else {"share_seen": share} for share in shares])
    assert " ".join(re.findall(r"[\d.]+ %|\bto\b", found)) == note
