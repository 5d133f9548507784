"""Draws one recording on one time axis: its sensors, the label, and each detector's scores and flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import dates as matplotlib_dates
from matplotlib.ticker import StrMethodFormatter

from tsadbench.analysis.explanation import Explanation
from tsadbench.base.recording import Recording
from tsadbench.reporting.figures.style import BLUE, GRID, INK, ORANGE, VERMILLION, own_figure, plain
from tsadbench.reporting.figures.trials import by_label, spans_orders
from tsadbench.results.trial_result import ScoredRecording, TrialResult
from tsadbench.utils.arrays import FloatArray, mask_runs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

# More sensors than this are drawn as a heat map: their lines could not be distinguished.
MOST_LINES = 16
# The most columns of a heat map, about as many as a page has dots.
_COLUMNS = 1200
# Standard deviations at which the sensors' heat map is saturated.
_SATURATED = 5.0
# Seconds since 1970 that are dates; smaller times are counted from a start.
_DATES_FROM = 1e8
_UNITS = (("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0))


def recording(results: Sequence[TrialResult], name: str, figure: FigureBase | None = None) -> list[Axes]:
    """Draw one test recording: the sensors, then each detector's score, threshold and flags, below one another.

    The label is shaded; rows that the protocol does not evaluate are grey. A strip above a score shows the flagged
    rows, with false alarms in another colour. Stored contributions follow as a heat map.

    The results come from one data set and protocol; of several seeds, the first is shown. Returns the sensors' axes,
    then each detector's axes of the score and, if stored, the contributions. A UsageError without such a recording.
    """
    shown = [of_label[0] for of_label in by_label(results).values()]
    panels = [(f"{plain(one.record.label)}, seed {one.record.seed}", one.recording(name)) for one in shown]
    first, (_, scored) = shown[0].record, panels[0]
    title = f"{plain(first.dataset)} · {plain(name)} · protocol {plain(first.rules)}"
    names = {"label": "labelled anomalous", "alarms": "flagged rightly", "false alarms": "flagged wrongly"}
    names["not evaluated"] = "not evaluated"
    # The rows of its own fit: other machines have other ranges.
    (train,) = (one.episode.train for one in shown[0].scored if one.episode.id == scored.episode)
    return _stacked(title, panels, names, figure, np.concatenate([one.values for one in train]))


def alarms(scored: ScoredRecording, label: str, figure: FigureBase | None = None) -> list[Axes]:
    """Draw rows without a label: the sensors that contributed most, a detector's score, and where it flags rows.

    The sensors are at most eight, those that contributed most to the flagged rows, or to all if none is flagged;
    without contributions all of them. Rows without a score are grey. Axes as for `recording`.
    """
    one, parts = scored.recording, scored.contributions
    if parts is not None:
        rows = scored.flagged if scored.flagged.any() else ~scored.flagged
        most = np.argsort(-np.abs(np.nan_to_num(parts[rows])).sum(axis=0), kind="stable")[:8]
        one = Recording(one.id, one.values[:, most], tuple(one.sensors[i] for i in most), one.time)
        parts = parts[:, most]
    scored = replace(scored, recording=one, contributions=parts, anomalous=scored.flagged)
    names = {"label": "flagged", "not evaluated": "no score"}
    return _stacked(plain(one.id, 80), [(plain(label), scored)], names, figure)


def _stacked(
    title: str,
    panels: Sequence[tuple[str, ScoredRecording]],
    names: Mapping[str, str],
    figure: FigureBase | None,
    training: FloatArray | None = None,
) -> list[Axes]:
    """Draw a recording's sensors and, below, a panel per detector (title and scores); ``names`` are for the legend."""
    _, first = panels[0]
    one = first.recording
    heights = [0.075 * one.n_sensors if one.n_sensors > MOST_LINES else 0.4 + 0.22 * one.n_sensors]
    heat = 0.075 * one.n_sensors if one.n_sensors > MOST_LINES else 0.2 + 0.12 * one.n_sensors
    for _, scored in panels:
        heights += [1.0] if scored.contributions is None else [1.0, heat]
    figure = own_figure(figure, 7.2, 1.1 + sum(heights))
    every: list[Axes] = figure.subplots(
        len(heights), 1, sharex=True, squeeze=False, height_ratios=heights
    ).ravel().tolist()  # fmt: skip
    sensors(first, every[0], training).set_title(title)
    rest = iter(every[1:])
    for name, scored in panels:
        score(scored, next(rest)).set_title(name)
        if scored.contributions is not None:
            contributions(scored, next(rest))
    _label_time(every[-1], one)
    names = {"score": "score", "threshold": "threshold", **names}
    drawn = {one.get_gid(): one for ax in every for one in (*ax.lines, *ax.patches, *ax.collections)}
    shown = {names[gid]: drawn[gid] for gid in names if gid in drawn}
    figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=6, handlelength=1.6)
    return every


def explanation(result: TrialResult, explained: Explanation, figure: FigureBase | None = None) -> list[Axes]:
    """Draw a recording with one detector's score, a line at each event's first flagged row, and the alarm's delay.

    Delays that would overlap the text before them are left out. Parameters and axes as for `recording`;
    ``explained`` comes from `tsadbench.analysis.explanation.explain`.
    """
    every = recording([result], explained.about["recording"], figure)
    every[0].set_title(every[0].get_title("left"), pad=14)  # room for the text above the axes
    time, _ = time_axis(result.recording(explained.about["recording"]).recording)
    free_from = -np.inf
    for event in explained.events:
        if event["first_alarm"] is None:
            continue
        at = time[event["first_alarm"]["row"]]
        for ax in every:
            ax.axvline(at, color=INK, linestyle=":", linewidth=1.0, zorder=5, gid="first alarm")
        late = f", +{event['delay_rows']} rows" if event["delay_rows"] is not None else ""
        if event["delay_seconds"] is not None:
            late = f", +{event['delay_seconds']:,.0f} s"
        text = f" first alarm{late}"
        if at >= free_from:
            every[0].annotate(text, (at, 1.0), xycoords=("data", "axes fraction"), va="bottom", fontsize=7)
            free_from = at + len(text) * 0.01 * np.ptp(every[0].get_xlim())  # a letter is about as wide
    return every


def sensors(scored: ScoredRecording, ax: Axes, training: FloatArray | None = None) -> Axes:
    """Draw up to 16 sensors as stacked lines, each over its own range; more sensors as a heat map.

    The heat map shows z-scores, with mean and standard deviation of the training rows [n_rows, n_sensors] or, by
    default, of the recording's own rows.
    """
    one = scored.recording
    time, _ = time_axis(one)
    if one.n_sensors > MOST_LINES:
        known = one.values if training is None else training
        deviation = known.std(axis=0)
        z = (one.values - known.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
        _heat(ax, one, np.clip(z, -_SATURATED, _SATURATED), "PuOr_r", -_SATURATED, _SATURATED)
        label = "z-score" if training is not None else "own z-score"
        ax.figure.colorbar(ax.images[0], ax=ax, label=label, shrink=0.5, pad=0.01)
        return ax
    shade(scored, ax)
    low, high = one.values.min(axis=0), one.values.max(axis=0)
    spread = np.where(high > low, high - low, 1.0)
    scaled = np.where(high > low, (one.values - low) / spread, 0.5) * 0.84 + 0.08
    n = one.n_sensors
    for place, values in enumerate(scaled.T):
        ax.plot(time, values + n - 1 - place, color=INK, linewidth=0.6)
    ax.set_yticks([n - 0.5 - place for place in range(n)], [plain(name, 24) for name in one.sensors])
    ax.set_ylim(0, n)
    ax.tick_params(axis="y", length=0)
    return ax


def score(scored: ScoredRecording, ax: Axes) -> Axes:
    """Draw a detector's score with its threshold (dashed), and the flagged rows as a strip above.

    The axis is logarithmic if scores span orders of magnitude.
    """
    shade(scored, ax)
    values = scored.scores
    ax.plot(time_axis(scored.recording)[0], values, color=BLUE, linewidth=0.8, gid="score", zorder=3)
    limits = np.where(np.isfinite(scored.limits), scored.limits, np.nan)
    ax.plot(time_axis(scored.recording)[0], limits, "--", color=INK, linewidth=0.9, gid="threshold", zorder=4)
    present, lowest, highest = values[~np.isnan(values)], np.nanmin(limits), np.nanmax(limits)
    if spans_orders(present, lowest):
        ax.set_yscale("log", nonpositive="mask")
        bottom = min(float(np.quantile(present[present > 0], 0.002)), lowest)
        ax.set_ylim(bottom / 1.5, float(max(present.max(), highest)) * 1.5)
    else:
        ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        ax.margins(y=0.08)
    edges = edges_of(scored.recording)
    counted = scored.flagged & scored.evaluated
    for rows, colour, name in (
        (counted & ~scored.anomalous, VERMILLION, "false alarms"),
        (counted & scored.anomalous, BLUE, "alarms"),
    ):
        spans = [(edges[start], edges[stop] - edges[start]) for start, stop in mask_runs(rows)]
        where: dict[str, Any] = {"transform": ax.get_xaxis_transform(), "clip_on": False}
        if spans:
            ax.broken_barh(spans, (1.02, 0.06), color=colour, linewidth=0.8, gid=name, **where)  # a row may be thin
    return ax


def contributions(scored: ScoredRecording, ax: Axes) -> Axes:
    """Draw each sensor's contribution to the score as a heat map, if contributions were stored.

    Colours show the square root of contributions, clipped at the 99 % quantile so that outliers hide nothing.
    """
    if scored.contributions is None:
        return ax
    values = np.sqrt(np.nan_to_num(np.maximum(scored.contributions, 0.0)).astype(np.float64))
    top = float(np.quantile(values, 0.99)) or float(values.max()) or 1.0
    _heat(ax, scored.recording, values, "magma_r", 0.0, top)
    ax.set_ylabel("contributions\n(dark: large)")
    return ax


def shade(scored: ScoredRecording, ax: Axes) -> None:
    """Shade the label, and shade rows that the protocol does not evaluate in grey."""
    edges = edges_of(scored.recording)
    for start, stop in mask_runs(scored.anomalous):
        ax.axvspan(edges[start], edges[stop], color=ORANGE, alpha=0.28, linewidth=0.8, zorder=0, gid="label")
    for start, stop in mask_runs(~scored.evaluated):
        ax.axvspan(edges[start], edges[stop], color=GRID, linewidth=0, zorder=0.5, gid="not evaluated")
    ax.set_xlim(edges[0], edges[-1])


def time_axis(one: Recording) -> tuple[FloatArray, str]:
    """Return each row's position on the time axis, [n_rows], and the unit: time since the first row, else rows."""
    if one.time is None or one.n_rows < 2 or not np.all(np.diff(one.time) >= 0) or one.time[-1] == one.time[0]:
        return np.arange(one.n_rows, dtype=np.float64), "row"
    since = one.time - one.time[0]
    unit, seconds = next(((name, size) for name, size in _UNITS if since[-1] >= 3 * size), ("seconds", 1.0))
    return since / seconds, unit


def _label_time(ax: Axes, one: Recording) -> None:
    """Label the time axis: clock times if the recording has dates, else the time since the first row."""
    unit = time_axis(one)[1]
    if unit == "row" or one.time is None or one.time[0] < _DATES_FROM:
        ax.set_xlabel(unit if unit == "row" else f"{unit} since the first row")
        return
    dates: Any = matplotlib_dates  # its functions have no annotations
    first, last = one.time[[0, -1]] / 86_400.0  # matplotlib counts days since 1970
    locator = dates.AutoDateLocator(maxticks=9)
    days = np.asarray(locator.tick_values(*dates.num2date([first, last])))
    days = days[(days >= first) & (days <= last)]
    form = dates.ConciseDateFormatter(locator)
    ax.set_xticks((days - first) * 86_400.0 / dict(_UNITS).get(unit, 1.0), form.format_ticks(days.tolist()))
    ax.set_xlabel(form.get_offset())


def edges_of(one: Recording) -> FloatArray:
    """Return the edges of the rows on the time axis, [n_rows + 1]: a row lasts until the next one."""
    time, _ = time_axis(one)
    step = float(np.median(np.diff(time))) if len(time) > 1 else 1.0
    return np.append(time, time[-1] + (step or 1.0))


def _heat(ax: Axes, one: Recording, values: FloatArray, colours: str, low: float, top: float) -> None:
    """Draw [n_rows, n_sensors] over time; rows that share a column show their value farthest from 0."""
    edges = edges_of(one)
    # The first row of each column, shifted slightly so that rounding never puts two evenly spaced rows into one column.
    columns = np.linspace(edges[0], edges[-1], min(_COLUMNS, one.n_rows), endpoint=False) + 1e-9 * np.ptp(edges)
    starts = np.searchsorted(edges[:-1], columns, side="right") - 1
    highest, lowest = np.maximum.reduceat(values, starts), np.minimum.reduceat(values, starts)
    farthest = np.where(highest >= -lowest, highest, lowest)
    extent = (edges[0], edges[-1], one.n_sensors - 0.5, -0.5)
    look: dict[str, Any] = {"aspect": "auto", "interpolation": "nearest", "vmin": low, "vmax": top}
    ax.imshow(farthest.T, cmap=colours, extent=extent, **look)
    size = 7.0 if one.n_sensors <= MOST_LINES else 4.5
    ax.set_yticks(range(one.n_sensors), [plain(name, 24) for name in one.sensors], fontsize=size)
    ax.tick_params(axis="y", length=0)
