"""What all figures share: files that do not change, names as they are, colours that can be told apart."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from tests.helpers.trials import DISTANCE
from tsadbench.reporting.figures import recording, save, style
from tsadbench.reporting.figures.style import plain


@pytest.mark.parametrize("ending", [".svg", ".png", ".pdf"])
def test_the_same_figure_is_the_same_file(plant, tmp_path, ending):
    for name in ("first", "second"):
        with style():
            page = Figure(layout="constrained")
            recording(plant.of(DISTANCE), "f1", figure=page)
            save(page, tmp_path / f"{name}{ending}")
    first, second = ((tmp_path / f"{name}{ending}").read_bytes() for name in ("first", "second"))
    assert first == second
    assert len(first) > 5_000
    assert b"dc:date" not in first


def test_names_are_shortened_and_kept_out_of_formulas(figure):
    assert plain("a" * 40) == "a" * 22 + "…" + "a" * 11
    assert plain("two\nlines  here") == "two lines here"
    for name in ("$\\frac$", "_hidden", "", "Durchfluß 流量"):
        figure.text(0.5, 0.5, plain(name))
    axes = figure.add_subplot()
    axes.plot([0], [0], label=plain("_hidden"))
    assert axes.get_legend_handles_labels()[1] == [" _hidden"]
