"""A comparison as a figure: two detectors' differences, or several detectors' mean ranks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tsadbench.analysis.significance.comparison import Comparison
from tsadbench.analysis.significance.inference import LEAST_FOR_DIAGRAM
from tsadbench.analysis.significance.pairs import ALPHA
from tsadbench.errors import MissingExtraError, UsageError
from tsadbench.utils.markdown import number

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# Told apart by the colour-blind too.
_FIRST, _SECOND, _TIE = "#0072b2", "#d55e00", "#7f7f7f"
_EQUAL, _INTERVAL = "#d9d9d9", "#e69f00"


def draw(found: Comparison, file: Path) -> None:
    """Write a comparison as a figure: `draw_differences` of two detectors, `draw_ranks` of several.

    Parameters
    ----------
    found
        The comparison.
    file
        Its ending decides the format: .svg, .png or .pdf.

    Raises
    ------
    MissingExtraError
        If matplotlib or scikit-posthocs is not installed.
    UsageError
        If the file cannot be written, or units are too few for mean ranks.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure

        from tsadbench.reporting.figures.style import save
    except ImportError as error:
        raise MissingExtraError("the figure of a comparison", "report") from error
    two = len(found.inference.pairs) == 1
    n_lines = len(found.inference.units.units) if two else len(found.inference.units.detectors)
    with mpl.rc_context({"font.size": 9}):
        figure = Figure(figsize=(8, 1.6 + 0.2 * n_lines), layout="constrained")
        axes = figure.subplots()
        if two:
            draw_differences(axes, found)
            figure.legend(loc="outside lower center", ncols=3, fontsize=7, frameon=False)
        else:
            draw_ranks(axes, found)
        save(figure, file, salt=found.title)


def draw_differences(axes: Axes, found: Comparison) -> None:
    """Draw two detectors' difference on each unit, smallest first, with its mean and the interval of that."""
    (pair,) = found.inference.pairs
    differences = found.inference.units.column(pair.first) - found.inference.units.column(pair.second)
    order = np.argsort(differences, kind="stable")
    colours = [_TIE if abs(value) <= found.rope else _FIRST if value > 0 else _SECOND for value in differences[order]]
    places = np.arange(len(order))
    axes.axvspan(-found.rope, found.rope, color=_EQUAL, label=f"practically equal: within {number(found.rope, 2)}")
    axes.axvline(0.0, color="black", linewidth=0.8)
    axes.hlines(places, 0.0, differences[order], color=colours, linewidth=1.0)
    axes.scatter(differences[order], places, color=colours, s=16, zorder=3)
    axes.axvline(pair.mean_difference, color="black", linestyle="--", linewidth=1.0, label="mean")
    if pair.interval is not None:
        bounds = (pair.interval.low, pair.interval.high)
        axes.axvspan(*bounds, color=_INTERVAL, alpha=0.3, linewidth=0.0, label="95 % interval of the mean")
    axes.set_yticks(places, [found.inference.units.units[place] for place in order], fontsize=7, parse_math=False)
    axes.set_xlabel(f"{found.metric.title}: {pair.first} - {pair.second}", parse_math=False)
    axes.set_title(found.subject, fontsize=9, parse_math=False)
    axes.margins(y=0.02)
    axes.spines[["top", "right"]].set_visible(False)


def draw_ranks(axes: Axes, found: Comparison) -> None:
    """Draw a critical-difference diagram: mean ranks, with a bar over detectors that Holm's p-values do not tell apart.

    Raises
    ------
    MissingExtraError
        If scikit-posthocs is not installed.
    UsageError
        If there are fewer than ten units.
    """
    n = len(found.inference.units.units)
    if n < LEAST_FOR_DIAGRAM:
        raise UsageError(
            f"no diagram: mean ranks over {n} independent units say too little for a picture, expected at least "
            f"{LEAST_FOR_DIAGRAM}; the table has the differences"
        )
    try:
        from scikit_posthocs import critical_difference_diagram
    except ImportError as error:
        raise MissingExtraError("a critical-difference diagram", "stats") from error
    critical_difference_diagram(
        dict(found.inference.mean_ranks),
        _p_values(found),
        alpha=ALPHA,
        ax=axes,
        label_fmt_left="{label} ({rank:.2f})",
        label_fmt_right="({rank:.2f}) {label}",
        label_props={"parse_math": False},
        elbow_props={"color": "black", "linewidth": 0.8},
        marker_props={"s": 16},
        # A bar may pass over a detector that it does not join: dots say which it does.
        crossbar_props={"marker": "o", "markersize": 4},
    )
    title = f"{found.subject}: mean rank over {n} units; joined where p after Holm is at least {number(ALPHA, 2)}"
    axes.set_title(title, fontsize=9, parse_math=False)


def _p_values(found: Comparison) -> pd.DataFrame:
    """Return Holm's p-values of each two detectors, [n_detectors, n_detectors]."""
    import pandas as pd

    labels = list(found.inference.units.detectors)
    values = pd.DataFrame(1.0, index=labels, columns=labels)
    for pair in found.inference.pairs:
        values.loc[pair.first, pair.second] = values.loc[pair.second, pair.first] = pair.p_holm
    return values
