"""Variation over seeds: a detector's metrics seed by seed, with their mean and the floors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tsadbench.errors import UsageError
from tsadbench.leaderboard.ranking import FLOOR_METRICS, Row
from tsadbench.registry import load_protocol
from tsadbench.reporting.figures.style import BLUE, GREY, VERMILLION, blank, own_figure, plain
from tsadbench.utils.parameters import nearest, parse_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase


def seeds(rows: Sequence[Row], metrics: Sequence[str] = (), *, figure: FigureBase | None = None) -> list[Axes]:
    """Draw metrics seed by seed, one panel per metric, one line per detector; the best floor is a dashed line.

    Parameters
    ----------
    rows
        Of one data set, protocol and split, as `Leaderboard` ranks them. A failed row shows the seeds that succeeded.
    metrics
        Names; by default those that are compared with the floors.
    figure
        Where to draw; by default a new one.

    Returns
    -------
    list of Axes
        One per metric.

    Raises
    ------
    UsageError
        If there is no row, or no metric of this name.
    """
    if not rows:
        raise UsageError("expected at least one row, found none: there is nothing to draw")
    known = tuple(dict.fromkeys(name for row in rows for split in _judged(row) for name in split))
    for name in metrics:
        if name not in known:
            raise UsageError(f"protocol {rows[0].protocol} has no metric {name!r}{nearest(name, known)}")
    shown = list(metrics) or [name for name in FLOOR_METRICS if name in known]
    titles = _titles(rows[0].protocol)
    figure = own_figure(figure, 1.7 + 2.1 * len(shown), 1.0 + 0.2 * len(rows))
    every: list[Axes] = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0].tolist()
    for axes, name in zip(every, shown, strict=True):
        seeds_of_metric(rows, name, axes=axes)
        axes.set_title(titles.get(name, name))
    first = rows[0]
    place = f"{first.dataset} · {first.split} · protocol {first.rules}"
    figure.suptitle(f"{place}: a dot a seed, a bar their mean; floors grey, the best of them dashed", x=0.01, ha="left")
    return every


def seeds_of_metric(rows: Sequence[Row], metric: str, *, axes: Axes) -> Axes:
    """Draw one metric of `seeds`."""
    best = None
    defined = False
    for place, row in enumerate(rows):
        values = [value for split in _judged(row) if (value := split.get(metric)) is not None]
        if not values:
            continue
        defined = True
        mean = sum(values) / len(values)
        colour = GREY if row.floor else BLUE
        axes.plot(
            values, [place] * len(values), "o", color=colour, markersize=4, markeredgewidth=0, alpha=0.65, zorder=3
        )
        axes.plot([mean], [place], "|", color="black", markersize=9, markeredgewidth=1.3, zorder=4)
        if row.floor and row.ok:
            best = mean if best is None else max(best, mean)
    if not defined:
        blank(axes, "undefined: the split has\nrows of one class")
        return axes
    if best is not None:
        axes.axvline(best, color=VERMILLION, linestyle="--", linewidth=0.9, zorder=2, label="best floor")
    axes.set_yticks(range(len(rows)), [plain(row.label) for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=True)
    return axes


def _judged(row: Row) -> list[dict[str, float | None]]:
    return [
        dict(record.splits[row.split].metrics)
        for record in row.records
        if record.status == "ok" and row.split in record.splits
    ]


def _titles(protocol: str) -> dict[str, str]:
    metrics = load_protocol(parse_label(protocol).target).metrics
    return {metric.name: f"{metric.title}{' (oracle)' if metric.oracle else ''}" for metric in metrics}
