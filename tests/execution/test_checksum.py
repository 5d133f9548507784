"""A record's checksum: an edit changes it, a field that the record's version did not have yet does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.helpers.records import record
from tsadbench.base.replay import Replay

REPLAY = Replay(copy="restored", rows=200, correlation=0.95)


@pytest.mark.parametrize("edit", [{"unbounded": True}, {"rows": 0}, {"correlation": 0.0}, {"correlation": None}])
def test_an_edit_below_the_top_changes_it(edit):
    made = replace(record("a"), replay=REPLAY)
    assert replace(made, replay=replace(REPLAY, **edit)).checksum != made.checksum
