"""The page on data sets of one's own: the cards in it are cards."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tsadbench.datasets.cards.schema import read_card

PAGE = (Path(__file__).parents[3] / "docs/adding-a-data-set.md").read_text(encoding="utf-8")
CARD, *OTHERS = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
WHOLE = [text for text in OTHERS if text.startswith("schema")]
TABLES = [text for text in OTHERS if text not in WHOLE]
UNLABELLED = re.sub(r'label = "fault".*\n', "", CARD)
# Each stands in the card as a comment, with what has to be left out beside it.
KEYS = ("ids", "rows", "variables", "join", "period", "names", "extra_columns", "at_least", "constant", "optional")


@pytest.fixture
def check(tmp_path):
    def checked(text: str) -> None:
        (tmp_path / "card.toml").write_text(text)
        card, _, issues = read_card(tmp_path / "card.toml")
        assert issues == []
        assert card is not None

    return checked


def test_the_card(check):
    check(CARD)


@pytest.mark.parametrize("card", WHOLE)
def test_other_whole_cards(check, card):
    check(card)


@pytest.mark.parametrize("key", KEYS)
def test_keys_in_comments(check, key):
    text, count = re.subn(rf"^# ({key} = )", r"\1", CARD, flags=re.MULTILINE)
    assert count == 1
    if key == "period":
        text = re.sub(r"^time(_format)? = .*\n", "", text, flags=re.MULTILINE)
    if key == "at_least":
        text = re.sub(r"^at_most = .*\n", "", text, flags=re.MULTILINE).replace('"forward-fill"', '"cut"')
    check(text)


@pytest.mark.parametrize("table", [table for table in TABLES if table.startswith("[labels]")])
@pytest.mark.parametrize("with_comments", [False, True])
def test_labels(check, table, with_comments):
    if with_comments:
        table = re.sub(r"^# (\w+ = )", r"\1", table, flags=re.MULTILINE).replace('"rows"', '"time"')
    check(f"{UNLABELLED}\n{table}")


@pytest.mark.parametrize("table", [table for table in TABLES if re.match(r"\[(resample|long|states)", table)])
def test_regular_rows(check, table):
    text = re.sub(r"^time = .*\n", "", CARD, flags=re.MULTILINE) if table.startswith("[long]") else CARD
    check(f"{text}\n{table}")


def test_every_table_is_checked():
    assert {re.match(r"\[(\w+)", table)[1] for table in TABLES} == {"single", "labels", "resample", "long", "states"}
