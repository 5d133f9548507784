"""What all figures share: files that do not change, names as they are, colours that can be told apart."""

from __future__ import annotations

import subprocess
import sys

import pytest
from matplotlib.figure import Figure

from tests.helpers.trials import DISTANCE
from tsadbench import UsageError
from tsadbench.reporting.figures import recording, roc, save, style
from tsadbench.reporting.figures.style import looks, plain


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


def test_text_in_an_svg_is_text(plant, tmp_path):
    with style():
        page = Figure(layout="constrained")
        roc(plant.of(DISTANCE), axes=page.add_subplot())
        save(page, tmp_path / "roc.svg")
    text = (tmp_path / "roc.svg").read_text()
    assert ">recall</text>" in text
    assert "sans-serif" in text


def test_wrong_files(figure, tmp_path):
    with pytest.raises(UsageError, match=r"ends in \.svg, \.png, \.pdf"):
        save(figure, tmp_path / "x.gif")
    (tmp_path / "roc.svg").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        save(figure, tmp_path / "roc.svg" / "x.svg")


def test_names_are_shortened_and_kept_out_of_formulas(figure):
    assert plain("a" * 40) == "a" * 22 + "…" + "a" * 11
    assert plain("two\nlines  here") == "two lines here"
    for name in ("$\\frac$", "_hidden", "", "Durchfluß 流量"):
        figure.text(0.5, 0.5, plain(name))
    axes = figure.add_subplot()
    axes.plot([0], [0], label=plain("_hidden"))
    assert axes.get_legend_handles_labels()[1] == [" _hidden"]


def test_a_name_in_any_script_is_saved_without_a_warning(figure, tmp_path):
    figure.text(0.5, 0.5, plain("流量"))
    save(figure, tmp_path / "x.png")
    save(figure, tmp_path / "x.svg")
    assert "流量" in (tmp_path / "x.svg").read_text()


def test_no_two_detectors_look_alike():
    all_looks = looks([False] * 16 + [True] * 3)
    assert len(set(all_looks)) == 19
    assert {look.dashes for look in all_looks[16:]} == {"--"}
    assert "--" not in {look.dashes for look in all_looks[:16]}


def test_without_matplotlib_one_line_says_what_to_install(tmp_path):
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from tsadbench.cli import main\n"
        f"sys.argv = ['tsadbench', 'prior', 'show', 'skab', '--figure', {str(tmp_path / 'x.svg')!r}]\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("run  pip install 'tsadbench[report]'")
    assert "Traceback" not in done.stderr
