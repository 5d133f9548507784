"""Quality against speed: what a detector's metric costs in seconds of its fit, and in rows scored per second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from tsadbench.base.protocol import Metric
from tsadbench.errors import UsageError
from tsadbench.leaderboard.cells import metrics_of
from tsadbench.leaderboard.ranking import Row
from tsadbench.leaderboard.throughput import SPEEDS, Speed, front_of, quality_and_speed, threads_note
from tsadbench.reporting.figures.style import BLUE, GREY, VERMILLION, blank, own_figure, plain
from tsadbench.utils.parameters import nearest

if TYPE_CHECKING:
    from typing import Literal

    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

DEFAULT = "auprc"
_AXES: Mapping[Speed, str] = {"fit_seconds": "seconds of a fit", "rows_per_second": "rows scored per second"}
_UNKNOWN: Mapping[Speed, str] = {
    "fit_seconds": "no seconds of a fit were recorded",
    "rows_per_second": "no seconds of scoring were recorded",
}
# Where a name may stand beside its marker, in points; the first place that is free is taken.
_PLACES = ((5, 0), (-5, 0), (0, 5), (0, -5), (4, 4), (4, -4), (-4, 4), (-4, -4))
_MARKER = 4.0
_FRONT, _FRONT_OF_DETECTORS = "front", "front of the detectors"


def speed(rows: Sequence[Row], metrics: Sequence[str] = (), *, figure: FigureBase | None = None) -> list[Axes]:
    """Draw metrics against seconds of a fit (left) and rows scored per second (right), each on a logarithmic axis.

    A line joins what no other row beats in both, floors, which are grey, included; a dotted line leaves them out. Leaky
    rows are hollow and belong to neither.

    Parameters
    ----------
    rows
        Of one data set, protocol and split, as `Leaderboard` ranks them. Those that failed are left out.
    metrics
        Names, one row of panels each; by default AUPRC, or the first metric if the protocol has none.
    figure
        Where to draw; by default a new one.

    Returns
    -------
    list of Axes
        Two per metric.

    Raises
    ------
    UsageError
        If no row is ok, or there is no metric of this name.
    """
    if not any(row.ok for row in rows):
        raise UsageError("expected at least one row whose trials are ok, found none: there is nothing to draw")
    known = {metric.name: metric for metric in metrics_of(rows)}
    for name in metrics:
        if name not in known:
            raise UsageError(f"protocol {rows[0].protocol} has no metric {name!r}{nearest(name, known)}")
    shown = list(metrics) or [DEFAULT if DEFAULT in known else next(iter(known))]
    figure = own_figure(figure, 8.4, 0.8 + 3.4 * len(shown))
    first = rows[0]
    place = f"{first.dataset} · {first.split} · protocol {first.rules}"
    about = "means over seeds and their deviation; floors grey; lines join what nothing beats, dotted without floors"
    figure.suptitle(f"{plain(place, 90)}\n{about}", x=0.01, ha="left")
    every: list[Axes] = figure.subplots(len(shown), len(SPEEDS), squeeze=False, sharey="row").ravel().tolist()
    panels = [(known[name], cost) for name in shown for cost in SPEEDS]
    for axes, (metric, cost) in zip(every, panels, strict=True):
        _panel(rows, metric, cost, axes)
    # Names go where the finished layout leaves room.
    root = figure.figure  # of a part of a figure, too; get_figure(root=True) is matplotlib 3.10's
    if isinstance(root, Figure):
        root.draw_without_rendering()
    for axes, (metric, cost) in zip(every, panels, strict=True):
        _name_points(rows, metric, cost, axes)
    return every


def _panel(rows: Sequence[Row], metric: Metric, cost: Speed, axes: Axes) -> None:
    points = quality_and_speed(rows, metric, cost)
    if not points:
        undefined = all(row.metrics[metric.name].mean is None for row in rows if row.ok)
        blank(axes, "undefined: the split has\nrows of one class" if undefined else _UNKNOWN[cost])
        return
    fronts = ((_FRONT, VERMILLION, "-", rows), (_FRONT_OF_DETECTORS, BLUE, ":", [row for row in rows if not row.floor]))
    for name, colour, dashes, among in fronts:
        corners = sorted(points[label] for label in front_of(among, metric, cost))
        # Between two rows of a front the slower one's quality is out of reach.
        where: Literal["post", "pre"] = "post" if cost == "fit_seconds" else "pre"
        xs, ys = [x for x, _ in corners], [y for _, y in corners]
        axes.step(xs, ys, where=where, color=colour, linestyle=dashes, linewidth=0.9, label=name, zorder=2)
    for row in rows:
        if row.label in points:
            x, y = points[row.label]
            colour = GREY if row.floor else BLUE
            axes.errorbar(
                x,
                y,
                yerr=row.metrics[metric.name].std or 0.0,
                fmt="s" if row.floor else "o",
                color=colour,
                markerfacecolor="none" if row.leaky else colour,
                markersize=_MARKER,
                ecolor="0.8",
                elinewidth=0.8,
                label=plain(row.label),
                zorder=3,
            )
    axes.set_xscale("log")
    axes.margins(x=0.12, y=0.1)
    threads = {row.threads for row in rows if row.label in points}
    axes.set_xlabel(f"{_AXES[cost]}{', one thread' if threads == {(1,)} else ''}")
    if cost == SPEEDS[0]:
        axes.set_ylabel(f"{metric.title}{' (oracle)' if metric.oracle else ''}")
    axes.grid(visible=True)


def _name_points(rows: Sequence[Row], metric: Metric, cost: Speed, axes: Axes) -> None:
    """Write names beside their markers, those of the front first; a name without room is left out."""
    points = quality_and_speed(rows, metric, cost)
    if not points:
        return
    front = front_of(rows, metric, cost)
    ranked = sorted((row for row in rows if row.label in points), key=lambda row: (row.label not in front, row.floor))
    half = _MARKER / 72 * axes.figure.dpi / 2
    centres = axes.transData.transform([points[row.label] for row in ranked])
    taken = [Bbox.from_extents(x - half, y - half, x + half, y + half) for x, y in centres]
    for row in ranked:
        for right, up in _PLACES:
            name = axes.annotate(
                plain(row.label + threads_note(row)),
                points[row.label],
                (right, up),
                textcoords="offset points",
                ha="left" if right > 0 else "right" if right < 0 else "center",
                va="bottom" if up > 0 else "top" if up < 0 else "center",
                fontsize=6,
                color="0.35" if row.floor else "black",
            )
            box = name.get_window_extent()
            free = not any(box.overlaps(other) for other in taken)
            if free and box.x0 >= axes.bbox.x0 and box.x1 <= axes.bbox.x1:
                taken.append(box)
                break
            name.remove()
