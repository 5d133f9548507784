"""A record's checksum: an edit changes it, a field that the record's version did not have yet does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.helpers.records import record
from tsadbench.base.replay import Replay

REPLAY = Replay(copy="restored", rows=200, correlation=0.95)


def test_fields_of_later_versions_change_no_checksum_at_any_depth(monkeypatch):
    made = replace(record("a"), replay=REPLAY)
    content = made.to_json()
    assert '"unbounded": false' in content
    earlier = content.replace(',\n    "unbounded": false', "")
    assert earlier != content
    today = made.checksum
    monkeypatch.setattr(type(made), "to_json", lambda self: earlier)  # as the version before wrote it
    assert made.checksum == today


@pytest.mark.parametrize("edit", [{"unbounded": True}, {"rows": 0}, {"correlation": 0.0}, {"correlation": None}])
def test_an_edit_below_the_top_changes_it(edit):
    made = replace(record("a"), replay=REPLAY)
    assert replace(made, replay=replace(REPLAY, **edit)).checksum != made.checksum
