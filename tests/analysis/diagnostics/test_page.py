"""docs/diagnostics.md shows what the command emitted: nobody types a number."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.helpers.page_tables import tables

DOCS = Path(__file__).parents[3] / "docs"


def by_detector(rows: list[dict[str, str]]) -> dict[str, dict[str, str]]:
    return {row["detector"]: row for row in rows}


@pytest.mark.parametrize("name", ["skab", "pumploop"])
def test_its_tables_are_the_emitted_ones(name):
    page = (DOCS / "diagnostics.md").read_text()
    (block,) = re.findall(rf"<!-- generated: diagnostics {name} -->\n(.*?)<!-- end -->", page, re.S)
    (shown,) = tables(block)
    emitted = by_detector(tables((DOCS / f"diagnostics/{name}.md").read_text())[0])
    assert len(shown) >= 10
    for row in shown:
        assert row.items() <= emitted[row["detector"]].items(), row["detector"]
