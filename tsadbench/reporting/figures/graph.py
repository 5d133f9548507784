"""Draws sensor graphs: a prior, and the matrix that a detector derives from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tsadbench.analysis.sensor_graph import SensorGraph
from tsadbench.base.prior import Prior
from tsadbench.reporting.figures.style import BLUE, GREY, INK, MARKERS, PALETTE, blank, own_axes, own_figure, plain
from tsadbench.utils.arrays import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase


def graph(sensor_graph: SensorGraph, figure: FigureBase | None = None) -> list[Axes]:
    """Draw a prior, the matrix A that a detector derives from it, and the sensors' weights in the score.

    Returns the axes of the prior, the matrix and the weights; empty panels state what is missing.
    """
    side = float(np.clip(0.11 * len(sensor_graph.sensors), 3.2, 7.0))
    figure = own_figure(figure, 2.8 * side, 1.25 * side)
    axes: list[Axes] = figure.subplots(1, 3, width_ratios=(1.4, 1.0, 0.5)).tolist()
    title = f"{plain(sensor_graph.title, 120)}: prior, matrix A, node weights"
    figure.suptitle(title, x=0.01, ha="left", fontsize="medium")
    if sensor_graph.prior is None:
        blank(axes[0], "the data set has no prior")
    else:
        prior(sensor_graph.prior, axes[0])
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower left", ncols=8)
    if sensor_graph.adjacency is None or sensor_graph.node_weights is None:
        blank(axes[1], f"{plain(sensor_graph.label)} does not report\nthe graph that it uses")
        blank(axes[2], "")
        return axes
    adjacency(sensor_graph.adjacency, sensor_graph.sensors, axes[1]).set_title("A: row drives column")
    node_weights(sensor_graph.node_weights, axes[2]).set_title("node weights")
    return axes


def prior(shown: Prior, ax: Axes | None = None) -> Axes:
    """Draw a prior: sensors on a circle, subsystems side by side, edges as arrows, darker with more votes.

    The caller adds a legend of the subsystems where there is room.
    """
    ax = own_axes(ax, 5.0, 5.0)
    subsystem = {sensor.name: sensor.subsystem for sensor in shown.sensors}
    ends = dict.fromkeys(end for edge in shown.edges for end in (edge.source, edge.target))
    names = sorted({**ends, **subsystem}, key=lambda name: (subsystem.get(name, ""), name))
    parts = sorted({subsystem.get(name, "") for name in names})
    angles = 2 * np.pi * np.arange(len(names)) / len(names)
    place = dict(zip(names, zip(np.cos(angles), np.sin(angles), strict=True), strict=True))
    crowded = len(names) > 20
    look: dict[str, Any] = {"arrowstyle": "-|>", "color": INK, "connectionstyle": "arc3,rad=0.12"}
    sizes = (4, 4, 0.5, 6) if crowded else (7, 7, 0.9, 9)
    look |= dict(zip(("shrinkA", "shrinkB", "linewidth", "mutation_scale"), sizes, strict=True))
    for edge in shown.edges:
        arrow = {**look, "alpha": 1.0 if edge.votes is None else 0.2 + 0.8 * edge.votes}
        ax.annotate("", xy=place[edge.target], xytext=place[edge.source], arrowprops=arrow)
    for number, part in enumerate(parts):
        of_part = [place[name] for name in names if subsystem.get(name, "") == part]
        look = {"color": PALETTE[number % len(PALETTE)], "marker": MARKERS[number % len(MARKERS)]}
        label = plain(part) if part else "_none"
        ax.plot(*zip(*of_part, strict=True), linestyle="none", markersize=5 if crowded else 8, label=label, **look)
    for name, angle in zip(names, np.degrees(angles), strict=True):
        x, y = place[name]
        left = x < -1e-9  # never upside down
        side: dict[str, Any] = {"ha": "right" if left else "left", "rotation": angle + 180 * left, "va": "center"}
        ax.text(1.13 * x, 1.13 * y, plain(name, 24), rotation_mode="anchor", fontsize=5.0 if crowded else 7.5, **side)
    ax.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), aspect="equal")
    ax.set_axis_off()
    return ax


def adjacency(matrix: FloatArray, sensors: Sequence[str], ax: Axes | None = None) -> Axes:
    """Draw a matrix [n_sensors, n_sensors] of edge weights: entry [i, j], in row i, belongs to the edge i -> j."""
    ax = own_axes(ax, 4.4, 4.0)
    names = [plain(name, 22) for name in sensors]
    shown = np.ma.masked_equal(matrix, 0.0)
    image = ax.imshow(shown, aspect="auto", cmap="viridis_r", vmin=0.0, vmax=float(max(matrix.max(), 1.0)))
    size = 7.0 if len(names) <= 20 else 4.0
    ax.set_xticks(range(len(names)), names, rotation=90, fontsize=size)
    ax.set_yticks(range(len(names)), names, fontsize=size)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(True)
    if len(names) > 12:
        ax.figure.colorbar(image, ax=ax, shrink=0.6, pad=0.02)
        return ax
    for i, j in np.argwhere(matrix > 0):
        text = f"{matrix[i, j]:.2f}".lstrip("0")
        ax.text(j, i, text, ha="center", va="center", fontsize=5.5, color="white" if matrix[i, j] > 0.55 else "black")
    return ax


def node_weights(weights: FloatArray, ax: Axes) -> Axes:
    """Draw the weight of each sensor, [n_sensors], in the row order of the matrix; dotted line: equal weights."""
    ax.barh(range(len(weights)), weights, color=BLUE, height=0.7)
    ax.axvline(1 / len(weights), color=GREY, linestyle=":", linewidth=0.9)
    ax.set_ylim(len(weights) - 0.5, -0.5)
    ax.set_yticks([])
    ax.set_xlabel("weight in the score")
    return ax
