"""Graphs over sensors: a prior, and the matrix that a detector derives from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tsadbench.analysis.sensor_graph import SensorGraph
from tsadbench.base.prior import Prior
from tsadbench.reporting.figures.style import BLUE, GREY, PALETTE, blank, own_axes, own_figure, plain
from tsadbench.utils.arrays import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

_MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*")


def graph(sensor_graph: SensorGraph, *, figure: FigureBase | None = None) -> list[Axes]:
    """Draw a prior, the matrix A that a detector derives from it, and the sensors' weights in the score.

    Parameters
    ----------
    sensor_graph
        The graph; a panel names what it does not hold.
    figure
        Where to draw; by default a new one.

    Returns
    -------
    list of Axes
        The prior's, the matrix's, the weights'.
    """
    n = len(sensor_graph.sensors)
    side = float(np.clip(0.11 * n, 3.2, 7.0))
    figure = own_figure(figure, 2.8 * side, 1.25 * side)
    axes: list[Axes] = figure.subplots(1, 3, width_ratios=(1.4, 1.0, 0.5)).tolist()
    figure.suptitle(
        f"{plain(sensor_graph.title, 120)}: prior, matrix A, node weights", x=0.01, ha="left", fontsize="medium"
    )
    if sensor_graph.prior is None:
        blank(axes[0], "the data set has no prior")
    else:
        prior(sensor_graph.prior, axes=axes[0])
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower left", ncols=8)
    missing = f"{plain(sensor_graph.label)} does not say on\nwhich graph it works"
    if sensor_graph.adjacency is None or sensor_graph.node_weights is None:
        blank(axes[1], missing)
        blank(axes[2], "")
        return axes
    adjacency(sensor_graph.adjacency, sensor_graph.sensors, axes=axes[1])
    axes[1].set_title("A: row drives column")
    node_weights(sensor_graph.node_weights, axes=axes[2])
    axes[2].set_title("node weights")
    return axes


def prior(shown: Prior, *, axes: Axes | None = None) -> Axes:
    """Draw a prior: sensors on a circle, subsystems side by side, edges as arrows, darker with more votes.

    The caller adds a legend of the subsystems, as it knows where there is room.
    """
    axes = own_axes(axes, 5.0, 5.0)
    subsystem = {sensor.name: sensor.subsystem for sensor in shown.sensors}
    ends = dict.fromkeys(end for edge in shown.edges for end in (edge.source, edge.target))
    names = sorted({**ends, **subsystem}, key=lambda name: (subsystem.get(name, ""), name))
    parts = sorted({subsystem.get(name, "") for name in names})
    place = {
        name: (math.cos(2 * math.pi * i / len(names)), math.sin(2 * math.pi * i / len(names)))
        for i, name in enumerate(names)
    }
    crowded = len(names) > 20
    for edge in shown.edges:
        arrow = {
            "arrowstyle": "-|>",
            "color": "0.25",
            "alpha": 1.0 if edge.votes is None else 0.2 + 0.8 * edge.votes,
            "shrinkA": 4 if crowded else 7,
            "shrinkB": 4 if crowded else 7,
            "linewidth": 0.5 if crowded else 0.9,
            "mutation_scale": 6 if crowded else 9,
            "connectionstyle": "arc3,rad=0.12",
        }
        axes.annotate("", xy=place[edge.target], xytext=place[edge.source], arrowprops=arrow)
    for name, (x, y) in place.items():
        number = parts.index(subsystem.get(name, ""))
        colour, marker = PALETTE[number % len(PALETTE)], _MARKERS[number % len(_MARKERS)]
        axes.plot(x, y, marker, color=colour, markersize=5 if crowded else 8)
        _name(axes, name, x, y, 5.0 if crowded else 7.5)
    for number, part in enumerate(parts):
        if part:
            colour, marker = PALETTE[number % len(PALETTE)], _MARKERS[number % len(_MARKERS)]
            axes.plot([], [], marker, color=colour, markersize=5, label=plain(part))
    axes.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), aspect="equal")
    axes.set_axis_off()
    return axes


def _name(axes: Axes, name: str, x: float, y: float, size: float) -> None:
    """Write a sensor's name outside the circle, never upside down."""
    angle = math.degrees(math.atan2(y, x))
    flipped = x < -1e-9
    axes.text(
        1.13 * x,
        1.13 * y,
        plain(name, 24),
        ha="right" if flipped else "left",
        va="center",
        rotation=angle + 180 if flipped else angle,
        rotation_mode="anchor",
        fontsize=size,
    )


def adjacency(matrix: FloatArray, sensors: Sequence[str], *, axes: Axes | None = None) -> Axes:
    """Draw a matrix [n_sensors, n_sensors] of edge weights: entry [i, j], in row i, belongs to the edge i -> j."""
    axes = own_axes(axes, 4.4, 4.0)
    names = [plain(name, 22) for name in sensors]
    shown = np.ma.masked_equal(matrix, 0.0)
    image = axes.imshow(shown, aspect="auto", cmap="viridis_r", vmin=0.0, vmax=float(max(matrix.max(), 1.0)))
    size = 7.0 if len(names) <= 20 else 4.0
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=size)
    axes.set_yticks(range(len(names)), names, fontsize=size)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(True)
    if len(names) <= 12:
        for i, j in np.argwhere(matrix > 0):
            colour = "white" if matrix[i, j] > 0.55 else "black"
            axes.text(j, i, f"{matrix[i, j]:.2f}".lstrip("0"), ha="center", va="center", fontsize=5.5, color=colour)
    else:
        axes.figure.colorbar(image, ax=axes, shrink=0.6, pad=0.02)
    return axes


def node_weights(weights: FloatArray, *, axes: Axes) -> Axes:
    """Draw the weight of each sensor, [n_sensors], in the order of the matrix beside it; dotted line: all equal."""
    axes.barh(range(len(weights)), weights, color=BLUE, height=0.7)
    axes.axvline(1 / len(weights), color=GREY, linestyle=":", linewidth=0.9)
    axes.set_ylim(len(weights) - 0.5, -0.5)
    axes.set_yticks([])
    axes.set_xlabel("weight in the score")
    return axes
