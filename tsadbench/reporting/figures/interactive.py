"""Draws one test recording as an interactive figure: sensors, label, scores, threshold and flags."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

import numpy as np
from plotly import graph_objects
from plotly.subplots import make_subplots

from tsadbench.reporting.figures.recording import MOST_LINES, edges_of, time_axis
from tsadbench.reporting.figures.style import BLUE, GREY, ORANGE, VERMILLION, plain
from tsadbench.reporting.figures.trials import spans_orders
from tsadbench.results.trial_result import ScoredRecording
from tsadbench.utils.arrays import BoolArray, Float32Array, FloatArray, mask_runs


def envelope(values: FloatArray, n_points: int) -> FloatArray:
    """Reduce a series [n_rows] to at most ``n_points`` values: the lowest and highest of neighbours, in order.

    Groups that are all NaN give NaN.
    """
    if len(values) <= n_points:
        return values
    size = -(-len(values) // (n_points // 2))
    parts = np.pad(values, (0, -len(values) % size), constant_values=np.nan).reshape(-1, size)
    low, high = np.fmin.reduce(parts, axis=1), np.fmax.reduce(parts, axis=1)
    first_low = np.where(np.isnan(parts), np.inf, parts).argmin(axis=1)
    first_high = np.where(np.isnan(parts), -np.inf, parts).argmax(axis=1)
    return np.where(first_low <= first_high, [low, high], [high, low]).T.ravel()


def interactive(detectors: Mapping[str, ScoredRecording], n_points: int = 2000) -> graph_objects.Figure:
    """Return a recording as a Plotly figure: sensors above, each detector's score below.

    A detector's traces have its index as ``meta``, so that a page can show one detector at a time. Long series show the
    lowest and highest of neighbouring rows. More than sixteen sensors are drawn as a heat map.

    ``detectors`` are results on the same recording by label; a series has at most ``n_points``.
    """
    first = next(iter(detectors.values()))
    one = first.recording
    time, unit = time_axis(one)
    x = envelope(time, n_points).astype(np.float32)
    figure = make_subplots(3, 1, shared_xaxes=True, row_heights=[0.55, 0.05, 0.4], vertical_spacing=0.03)
    _sensors(figure, first, x, n_points)
    for place, scored in enumerate(detectors.values()):
        for trace, row in zip(_of_detector(scored, x, n_points), (3, 3, 2, 2), strict=True):
            figure.add_trace(trace.update(meta=place, visible=place == 0), row=row, col=1)
    edges = edges_of(one)
    for mask, colour, opacity in ((first.anomalous, ORANGE, 0.28), (~first.evaluated, GREY, 0.2)):
        for start, stop in mask_runs(mask):
            where = {"x0": float(edges[start]), "x1": float(edges[stop]), "y0": 0, "y1": 1, "yref": "paper"}
            look = {"fillcolor": colour, "opacity": opacity, "line_width": 0, "layer": "below"}
            figure.add_shape(type="rect", xref="x", **look, **where)
    figure.update_xaxes(showgrid=False, zeroline=False)
    figure.update_xaxes(title=unit if unit == "row" else f"{unit} since the first row", row=3)
    figure.update_yaxes(zeroline=False, fixedrange=True)
    figure.update_yaxes(visible=False, range=[0, 1], row=2)
    figure.update_yaxes(title="score", row=3)
    figure.update_layout(template="none", showlegend=False, hovermode="x", margin={"l": 110, "r": 12, "t": 10, "b": 44})
    # Detectors with a logarithmic score axis.
    logarithmic = [
        spans_orders(scored.scores[~np.isnan(scored.scores)], scored.limits.min()) for scored in detectors.values()
    ]
    figure.update_layout(meta={"logarithmic": logarithmic}, height=430, autosize=True, dragmode="zoom")
    return figure


def _sensors(figure: graph_objects.Figure, scored: ScoredRecording, x: Float32Array, n_points: int) -> None:
    one = scored.recording
    names = [html.escape(plain(name, 14).replace(r"\$", "$")) for name in one.sensors]
    low, high = one.values.min(axis=0), one.values.max(axis=0)
    scaled = np.where(high > low, (one.values - low) / np.where(high > low, high - low, 1.0), 0.5)
    if one.n_sensors > MOST_LINES:
        every = [html.escape(name) for name in one.sensors]  # short names may be equal
        z = np.stack([envelope(values, n_points) for values in scaled.T])
        shown = np.round(z * 255).astype(np.uint8)
        heat = graph_objects.Heatmap(z=shown, x=x, y=every, showscale=False, colorscale="Viridis", hoverinfo="x+y")
        figure.add_trace(heat, row=1, col=1)
        figure.update_yaxes(tickvals=every, ticktext=names, row=1)
        return
    for place, (name, values) in enumerate(zip(one.sensors, scaled.T, strict=True)):
        drawn = (envelope(values, n_points) * 0.84 + one.n_sensors - 1 - place + 0.08).astype(np.float32)
        look = {"line": {"color": GREY, "width": 1}, "name": html.escape(name), "hoverinfo": "name"}
        figure.add_trace(graph_objects.Scatter(x=x, y=drawn, **look), row=1, col=1)
    ticks = [one.n_sensors - 0.5 - place for place in range(one.n_sensors)]
    figure.update_yaxes(tickvals=ticks, ticktext=names, showgrid=False, row=1)


def _of_detector(scored: ScoredRecording, x: Float32Array, n_points: int) -> Sequence[graph_objects.Scatter]:
    """Return the traces of the score, the threshold, the true positives and the false positives."""
    counted = scored.flagged & scored.evaluated
    values = envelope(scored.scores, n_points).astype(np.float32)
    limits = envelope(np.where(np.isfinite(scored.limits), scored.limits, np.nan), n_points)
    ends = [0, -1] if (limits == limits[0]).all() else slice(None)  # a line needs no more
    return (
        graph_objects.Scatter(x=x, y=values, line={"color": BLUE, "width": 1.2}, name="score"),
        graph_objects.Scatter(
            x=x[ends], y=limits[ends], mode="lines", name="threshold",
            line={"color": VERMILLION, "width": 1, "dash": "dash"},
        ),
        _flags(x, counted & scored.anomalous, n_points, BLUE, "flagged rightly"),
        _flags(x, counted & ~scored.anomalous, n_points, VERMILLION, "flagged wrongly"),
    )  # fmt: skip


def _flags(x: Float32Array, rows: BoolArray, n_points: int, colour: str, name: str) -> graph_objects.Scatter:
    shown = envelope(rows.astype(np.float64), n_points)
    if len(shown) < len(rows):  # both points of a bucket show whether any of its rows is flagged
        shown = np.repeat(shown.reshape(-1, 2).max(axis=1), 2)
    look = {"fill": "tozeroy", "fillcolor": colour, "hoverinfo": "skip", "mode": "lines"}
    line = {"shape": "hv", "width": 0}
    return graph_objects.Scatter(x=x, y=shown.astype(np.uint8), line=line, name=name, **look)
