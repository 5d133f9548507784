"""Every detector that ships says in its docstring what ``tsadbench info`` and docs/detectors.md show."""

from __future__ import annotations

import re

import pytest

from tsadbench.registry import entries, load_detector
from tsadbench.utils.docstrings import method_notes, sections, year_of

SHIPPED = [entry.name for entry in entries("detectors") if entry.package == "tsadbench"]
# Their traits decide the identity of committed rows, so that the text stays as it is; the year stands in it, or in the
# references.
_YEAR_ELSEWHERE = {"grelen", "mscred", "lstm-ae"}
# They are not published, or not yet.
_NO_YEAR = {"dprgm", "multiview", "multiview-graph"}


@pytest.mark.parametrize("name", SHIPPED)
def test_notes_have_the_three_terms_with_something_to_read(name: str) -> None:
    notes = method_notes(load_detector(name).__doc__ or "")
    assert list(notes) == ["Equations", "Differences", "Defaults"]
    assert all(len(text) > 10 and text.endswith(".") for text in notes.values()), notes


@pytest.mark.parametrize("name", SHIPPED)
def test_at_least_one_equation_is_an_equation(name: str) -> None:
    formulas = re.findall(r"``(.+?)``", method_notes(load_detector(name).__doc__ or "")["Equations"], re.S)
    assert any(re.search(r"[=~]|<=|>=|\|", formula) for formula in formulas), formulas


@pytest.mark.parametrize("name", SHIPPED)
def test_the_paper_ends_with_its_year(name: str) -> None:
    detector = load_detector(name)
    traits, doc = detector.traits, detector.__doc__ or ""
    if not traits.paper:
        assert traits.floor
        return
    if name in _NO_YEAR:
        assert year_of(traits.paper, doc) == ""
        return
    if name in _YEAR_ELSEWHERE:
        assert re.fullmatch(r"(19|20)\d\d", year_of(traits.paper, doc))
    else:
        assert re.search(r"(?<!\d)(19|20)\d\d$", traits.paper), traits.paper
    references = sections(doc)["References"]
    assert year_of(traits.paper, doc) in references
    author = re.split(r"[ ,]", traits.paper)[0]
    assert author in references, (author, references)
