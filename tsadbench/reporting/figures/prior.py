"""A prior as a figure of its own."""

from __future__ import annotations

from pathlib import Path

from tsadbench.base.prior import Prior
from tsadbench.reporting.figures.graph import prior as draw_prior
from tsadbench.reporting.figures.style import check_ending, new_page, save, style


def draw(prior: Prior, file: Path) -> None:
    """Write a prior as a figure (`tsadbench.reporting.figures.prior`).

    Parameters
    ----------
    prior
        The prior.
    file
        Its ending decides the format: .svg, .png or .pdf.

    Raises
    ------
    UsageError
        If the ending is another, or the file cannot be written.
    """
    check_ending(file)
    with style():
        page = new_page()
        page.set_size_inches(6.0, 6.0)
        axes = draw_prior(prior, axes=page.add_subplot())
        page.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4)
        save(page, file)
