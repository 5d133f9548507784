"""docs/comparing.md shows what the command printed: nobody types a number."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_holds_the_emitted_comparison_word_by_word():
    emitted = (DOCS / "comparisons" / "skab-strict.md").read_text()
    assert sum(line.startswith("| dprgm |") for line in emitted.splitlines()) == 4  # its own, and three pairs
    assert emitted in (DOCS / "comparing.md").read_text()
