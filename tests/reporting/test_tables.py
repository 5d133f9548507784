"""Tables as HTML: what a reader sees, and what the page's script sorts by."""

from __future__ import annotations

from html.parser import HTMLParser

import pandas as pd
import pytest

from tests.helpers.hostile import QUOTES, SCRIPT
from tests.helpers.records import record
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.render import Table
from tsadbench.reporting.tables import html_table


class Cells(HTMLParser):
    """The rows of a table: class, and each cell's text, class, sorting value and link."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[dict] = []
        self.tags: set[str] = set()
        self.feed(str(text))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append({"class": found.get("class", ""), "cells": []})
        elif tag in ("td", "th"):
            self.rows[-1]["cells"].append({"text": "", "link": None, **found})
        elif tag == "a":
            self.rows[-1]["cells"][-1]["link"] = found["href"]

    def handle_data(self, data):
        if self.rows and self.rows[-1]["cells"] and data.strip():
            self.rows[-1]["cells"][-1]["text"] += data


def column(cells: Cells, name: str, what: str = "text") -> list:
    (place,) = (i for i, head in enumerate(cells.rows[0]["cells"]) if head["text"] == name)
    return [row["cells"][place].get(what) for row in cells.rows[1:]]


def test_a_leaderboards_table_shows_its_rows_in_order():
    records = [
        *(record("good", seed, auprc=value) for seed, value in enumerate((0.85, 0.95))),
        record("poor", auprc=0.30),
        record("max-z", floor=True, auprc=0.60),
        record("broken", status="error"),
    ]
    board = Leaderboard.from_records(records, ["overall"])
    cells = Cells(html_table(board.shown()[0], {"good": "good.html"}))
    assert column(cells, "detector") == ["good", "max-z", "poor", "broken"]
    assert column(cells, "detector", "link") == ["good.html", None, None, None]
    assert [row["class"] for row in cells.rows[1:]] == ["", "floor", "", "failed"]
    values = column(cells, "AUPRC", "data-order")
    assert [float(value or "nan") for value in values] == pytest.approx([0.9, 0.6, 0.3, float("nan")], nan_ok=True)
    assert [float(value) for value in column(cells, "vs floor", "data-order")[:3]] == [0.3, 0.0, -0.3]
    ups = ["up" in kind.split() for kind in column(cells, "vs floor", "class")]
    assert ups[0]
    assert not any(ups[2:])


def test_dots_are_sorted_by_what_they_mean_and_numbers_as_numbers():
    frame = pd.DataFrame({"name": ["a", "b", "c", "d"], "won": ["●", "○", "·", "●"], "n": [12_000.0, 2.5, None, 1.0]})
    cells = Cells(html_table(Table("dots", frame, decimals={"n": 1})))
    assert [float(value) for value in column(cells, "won", "data-order")] == [1.0, 0.0, -1.0, 1.0]
    assert column(cells, "won", "class") == ["dot won", "dot", "dot", "dot won"]
    values = column(cells, "n", "data-order")
    assert values[2] == ""
    assert float(values[0]) > float(values[1]) > float(values[3])


def test_names_are_text_whatever_they_hold():
    frame = pd.DataFrame({"detector": [SCRIPT, QUOTES], "remarks": [QUOTES, SCRIPT]})
    cells = Cells(html_table(Table(SCRIPT, frame), {SCRIPT: QUOTES}))
    assert column(cells, "detector") == [SCRIPT, QUOTES]
    assert column(cells, "detector", "link") == [QUOTES, None]
    assert column(cells, "remarks") == [QUOTES, SCRIPT]
    assert cells.tags <= {"div", "table", "thead", "tbody", "tr", "th", "td", "a"}
