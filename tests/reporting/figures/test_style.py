"""What all figures share: reproducible files, unchanged names, distinguishable colours."""

from __future__ import annotations

import re

import pytest
from matplotlib.figure import Figure

from tests.helpers.trials import DISTANCE, drawn
from tsadbench.reporting.figures import recording, save, style
from tsadbench.reporting.figures.style import INK, inline_svg, looks, plain


@pytest.mark.parametrize("ending", [".svg", ".png", ".pdf"])
def test_the_same_figure_is_the_same_file(plant, tmp_path, ending):
    for name in ("first", "second"):
        with style():
            page = Figure(layout="constrained")
            recording(plant.of(DISTANCE), "f1", page)
            save(page, tmp_path / f"{name}{ending}")
    first, second = ((tmp_path / f"{name}{ending}").read_bytes() for name in ("first", "second"))
    assert first == second
    assert len(first) > 5_000
    assert b"dc:date" not in first


def test_names_are_shortened_and_kept_out_of_formulas(figure):
    assert plain("a" * 40) == "a" * 22 + "…" + "a" * 11
    assert plain("two\nlines  here") == "two lines here"
    assert plain("$\\frac$") == "\\$\\frac\\$"
    for name in ("$\\frac$", "_hidden", "", "Durchfluß"):
        figure.text(0.5, 0.5, plain(name))
    drawn(figure)  # parses formulas
    axes = figure.add_subplot()
    axes.plot([0], [0], label=plain("_hidden"))
    assert axes.get_legend_handles_labels()[1] == [" _hidden"]


def test_twelve_detectors_have_a_colour_and_a_marker_each():
    every = looks([False] * 12 + [True])
    assert len({look.colour for look in every[:12]}) == len({look.marker for look in every[:12]}) == 12
    assert every[12].dashes == "--"


def test_an_inline_svg_takes_the_pages_colours_and_has_unique_ids(figure):
    figure.add_subplot().plot([0, 1], [0, 1])
    one, two = inline_svg(figure, "one"), inline_svg(figure, "two")
    assert one.startswith("<svg")
    assert "\n\n" not in one, "Markdown would end the block there"
    assert f"var(--ink, {INK})" in one
    ids = [set(re.findall(r'\bid="([^"]+)"', text)) for text in (one, two)]
    assert ids[0].isdisjoint(ids[1])
    assert set(re.findall(r'(?:url\(#|href="#)([^")]+)', one)) <= ids[0]
