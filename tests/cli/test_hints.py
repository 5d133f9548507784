"""The advice that `tsadbench score` gives in place of a card's."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import tsadbench.datasets
from tsadbench.cli.score import ADVICE

READERS = Path(tsadbench.datasets.__path__[0])


def texts() -> Iterator[str]:
    """Yield every text in the code of the readers, with {} for what is put into it."""
    for file in READERS.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


@pytest.mark.parametrize("of_card", [of_card for of_card, _ in ADVICE])
def test_the_readers_still_give_this_advice_in_these_words(of_card):
    assert any(of_card in text for text in texts())
