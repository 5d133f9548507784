"""One recording on one time axis: its sensors, the label, and each detector's scores and flags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import StrMethodFormatter

from tsadbench.analysis.explanation import ExplainedEvent, Explanation, duration
from tsadbench.base.recording import Recording
from tsadbench.reporting.figures.rows import by_label, spans_orders
from tsadbench.reporting.figures.style import BLUE, ORANGE, VERMILLION, own_figure, plain
from tsadbench.results.trial_result import ScoredRecording, TrialResult
from tsadbench.utils.arrays import BoolArray, FloatArray, mask_runs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

# More sensors than this are drawn as a heat map: their lines could not be distinguished.
MOST_LINES = 16
# A heat map needs no more columns than a page has dots; a column shows the largest of its rows' values.
_COLUMNS = 1200
# Standard deviations at which the sensors' heat map is saturated.
_SATURATED = 5.0
# Width of a letter above the axes, as a share of theirs.
_LETTER = 0.01
_UNITS = (("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0))


def recording(results: Sequence[TrialResult], name: str, *, figure: FigureBase | None = None) -> list[Axes]:
    """Draw one test recording: the sensors, then each detector's score, threshold and flags, below one another.

    The label is shaded, rows that the protocol does not evaluate are grey. A strip above a score shows the flagged
    rows, those that are normal in another colour. If a trial kept contributions, they follow as a heat map.

    Parameters
    ----------
    results
        Of one data set and protocol; of several seeds of a detector the first is shown.
    name
        The recording's id.
    figure
        Where to draw; by default a new one.

    Returns
    -------
    list of Axes
        The sensors', then for each detector its score's and, if kept, its contributions'.

    Raises
    ------
    UsageError
        If there is no result or no such recording.
    """
    shown = [of_label[0] for of_label in by_label(results).values()]
    scored = [result.recording(name) for result in shown]
    sensors_height, heats_height = _heights(scored[0].recording)
    heights = [sensors_height]
    for one in scored:
        heights += [1.0] if one.contributions is None else [1.0, heats_height]
    figure = own_figure(figure, 7.2, 1.1 + sum(heights))
    every: list[Axes] = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[
        :, 0
    ].tolist()
    sensors(scored[0], _training(shown[0], scored[0].episode), axes=every[0])
    first = shown[0].record
    every[0].set_title(f"{plain(first.dataset)} · {plain(name)} · protocol {plain(first.rules)}")
    rest = iter(every[1:])
    for result, one in zip(shown, scored, strict=True):
        axes = score(one, axes=next(rest))
        axes.set_title(f"{plain(result.record.label)}, seed {result.record.seed}")
        if one.contributions is not None:
            contributions(one, axes=next(rest))
    unit = time_axis(scored[0].recording)[1]
    every[-1].set_xlabel(unit if unit == "row" else f"{unit} since the first row")
    figure.legend(handles=_legend(scored), loc="outside lower center", ncols=6, handlelength=1.6)
    return every


def explanation(result: TrialResult, explained: Explanation, *, figure: FigureBase | None = None) -> list[Axes]:
    """Draw a recording as one detector saw it, with a line at each event's first flagged row and the alarm's delay.

    A delay that would be written over the one before it is left out.

    Parameters
    ----------
    result
        The trial.
    explained
        Its explanation (`tsadbench.analysis.explanation.explain`).
    figure
        Where to draw; by default a new one.

    Returns
    -------
    list of Axes
        The sensors', the score's and, if kept, the contributions'.
    """
    every = recording([result], explained.recording, figure=figure)
    every[0].set_title(every[0].get_title("left"), pad=14)  # room for what stands above the axes
    time, _ = time_axis(result.recording(explained.recording).recording)
    free_from = -np.inf
    for event in explained.events:
        if event.first_alarm is None:
            continue
        at = time[event.first_alarm["row"]]
        for axes in every:
            axes.axvline(at, color="black", linestyle=":", linewidth=1.0, zorder=5, gid="first alarm")
        text = f" first alarm{_late(event)}"
        if at >= free_from:
            every[0].annotate(text, (at, 1.0), xycoords=("data", "axes fraction"), va="bottom", fontsize=7)
            free_from = at + len(text) * _LETTER * np.ptp(every[0].get_xlim())
    return every


def _late(event: ExplainedEvent) -> str:
    if event.delay_rows is None:
        return ""
    return f", +{event.delay_rows} rows" if event.delay_seconds is None else f", +{duration(event.delay_seconds)}"


def sensors(scored: ScoredRecording, training: FloatArray | None = None, *, axes: Axes) -> Axes:
    """Draw the sensors: up to 16 as lines above one another, each over its own range; more of them as a heat map.

    Parameters
    ----------
    scored
        The recording.
    training
        Training rows [n_rows, n_sensors]: the heat map shows how many of their standard deviations a value lies
        from their mean; by default the recording's own rows.
    axes
        Where to draw.
    """
    one = scored.recording
    time, _ = time_axis(one)
    names = [plain(name, 24) for name in one.sensors]
    if one.n_sensors > MOST_LINES:
        known = one.values if training is None else training
        deviation = known.std(axis=0)
        z = (one.values - known.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
        _heat(axes, one, np.clip(z, -_SATURATED, _SATURATED), names, "PuOr_r", _SATURATED)
        axes.images[0].axes.figure.colorbar(
            axes.images[0], ax=axes, label="z-score" if training is not None else "own z-score", shrink=0.5, pad=0.01
        )
        return axes
    shade(scored, axes)
    low, high = one.values.min(axis=0), one.values.max(axis=0)
    spread = np.where(high > low, high - low, 1.0)
    scaled = np.where(high > low, (one.values - low) / spread, 0.5) * 0.84 + 0.08
    for place, values in enumerate(scaled.T):
        axes.plot(time, values + len(names) - 1 - place, color="0.15", linewidth=0.6)
    axes.set_yticks([len(names) - 0.5 - place for place in range(len(names))], names)
    axes.set_ylim(0, len(names))
    axes.tick_params(axis="y", length=0)
    return axes


def score(scored: ScoredRecording, *, axes: Axes) -> Axes:
    """Draw a detector's score with its threshold (dashed), and the flagged rows as a strip above.

    The axis is logarithmic if scores span orders of magnitude.
    """
    time, _ = time_axis(scored.recording)
    shade(scored, axes)
    values = scored.scores
    axes.plot(time, values, color=BLUE, linewidth=0.8, label="score", zorder=3)
    axes.axhline(scored.threshold, color="black", linestyle="--", linewidth=0.9, label="threshold", zorder=4)
    present = values[~np.isnan(values)]
    if spans_orders(present, scored.threshold):
        axes.set_yscale("log", nonpositive="mask")
        lowest = float(np.quantile(present[present > 0], 0.002))
        axes.set_ylim(min(lowest, scored.threshold) / 1.5, float(max(present.max(), scored.threshold)) * 1.5)
    else:
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.margins(y=0.08)
    _strip(axes, scored, scored.flagged & ~scored.anomalous & scored.evaluated, VERMILLION, "false alarms")
    _strip(axes, scored, scored.flagged & scored.anomalous & scored.evaluated, BLUE, "alarms")
    return axes


def contributions(scored: ScoredRecording, *, axes: Axes) -> Axes:
    """Draw each sensor's contribution to the score as a heat map; nothing if contributions were not kept.

    Colours show the square root of a contribution, cut at the largest hundredth, so that an outlier hides nothing.
    """
    if scored.contributions is None:
        return axes
    names = [plain(name, 24) for name in scored.recording.sensors]
    values = np.sqrt(np.nan_to_num(np.maximum(scored.contributions, 0.0)).astype(np.float64))
    top = float(np.quantile(values, 0.99)) or float(values.max()) or 1.0
    _heat(axes, scored.recording, values, names, "magma_r", top, 0.0)
    axes.set_ylabel("contributions")
    return axes


def shade(scored: ScoredRecording, axes: Axes) -> None:
    """Shade the label, and in grey the rows that the protocol does not evaluate."""
    edges = _edges(scored.recording)
    for start, stop in mask_runs(scored.anomalous):
        axes.axvspan(edges[start], edges[stop], color=ORANGE, alpha=0.28, linewidth=0, zorder=0, gid="label")
    for start, stop in mask_runs(~scored.evaluated):
        axes.axvspan(edges[start], edges[stop], color="0.9", linewidth=0, zorder=0.5, gid="not evaluated")
    axes.set_xlim(edges[0], edges[-1])


def time_axis(one: Recording) -> tuple[FloatArray, str]:
    """Return each row's position on the time axis, [n_rows], and the unit: time since the first row, else rows."""
    if one.time is None or one.n_rows < 2 or not np.all(np.diff(one.time) >= 0) or one.time[-1] == one.time[0]:
        return np.arange(one.n_rows, dtype=np.float64), "row"
    since = one.time - one.time[0]
    unit, seconds = next(((name, size) for name, size in _UNITS if since[-1] >= 3 * size), ("seconds", 1.0))
    return since / seconds, unit


def _edges(one: Recording) -> FloatArray:
    """Return the edges of the rows on the time axis, [n_rows + 1]: a row lasts until the next one."""
    time, _ = time_axis(one)
    step = float(np.median(np.diff(time))) if len(time) > 1 else 1.0
    return np.append(time, time[-1] + (step or 1.0))


def _strip(axes: Axes, scored: ScoredRecording, rows: BoolArray, colour: str, name: str) -> None:
    """Draw the flagged rows in a strip above the axes."""
    edges = _edges(scored.recording)
    spans = [(edges[start], edges[stop] - edges[start]) for start, stop in mask_runs(rows)]
    if spans:
        axes.broken_barh(
            spans,
            (1.02, 0.06),
            transform=axes.get_xaxis_transform(),
            facecolor=colour,
            linewidth=0,
            clip_on=False,
            gid=name,
        )


def _heat(
    axes: Axes,
    one: Recording,
    values: FloatArray,
    names: Sequence[str],
    colours: str,
    top: float,
    low: float | None = None,
) -> None:
    """Draw [n_rows, n_sensors] over time; rows that share a column show their value farthest from 0."""
    edges = _edges(one)
    n_columns = min(_COLUMNS, one.n_rows)
    # By a row's middle, so that rounding never puts two evenly spaced rows into one column.
    middles = edges[:-1] - edges[0] + (edges[-1] - edges[-2]) / 2
    column_of = np.clip((middles / (edges[-1] - edges[0]) * n_columns).astype(int), 0, n_columns - 1)
    grid = np.full((n_columns, values.shape[1]), np.nan)
    for column, start, stop in _groups(column_of):
        part = values[start:stop]
        farthest = np.abs(part).argmax(axis=0)
        # Columns without a row of their own show the previous row, which lasts until the next one.
        grid[column:] = part[farthest, np.arange(part.shape[1])]
    axes.imshow(
        grid.T,
        aspect="auto",
        interpolation="nearest",
        cmap=colours,
        vmin=-top if low is None else low,
        vmax=top,
        extent=(edges[0], edges[-1], len(names) - 0.5, -0.5),
    )
    axes.set_yticks(range(len(names)), names, fontsize=7.0 if len(names) <= MOST_LINES else 4.5)
    axes.tick_params(axis="y", length=0)


def _groups(column_of: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[tuple[int, int, int]]:
    """Return each column that has rows, with its first row and the row after its last."""
    starts = np.flatnonzero(np.diff(column_of, prepend=-1))
    stops = np.append(starts[1:], len(column_of))
    return list(zip(column_of[starts].tolist(), starts.tolist(), stops.tolist(), strict=True))


def _heights(one: Recording) -> tuple[float, float]:
    """Return the heights in inches of the sensors' panel and of a heat map of contributions."""
    if one.n_sensors > MOST_LINES:
        return 0.075 * one.n_sensors, 0.075 * one.n_sensors
    return 0.4 + 0.22 * one.n_sensors, 0.2 + 0.12 * one.n_sensors


def _training(result: TrialResult, episode: str) -> FloatArray:
    """Return the rows that one fit was trained on, [n_rows, n_sensors]: other machines have other ranges."""
    (trained_on,) = (scored.episode.train for scored in result.scored if scored.episode.id == episode)
    return np.concatenate([one.values for one in trained_on])


def _legend(scored: Sequence[ScoredRecording]) -> list[Patch | Line2D]:
    handles: list[Patch | Line2D] = [
        Patch(color=ORANGE, alpha=0.28, linewidth=0, label="labelled anomalous"),
        Line2D([], [], color=BLUE, linewidth=0.8, label="score"),
        Line2D([], [], color="black", linestyle="--", linewidth=0.9, label="threshold"),
        Patch(color=BLUE, linewidth=0, label="flagged rightly"),
        Patch(color=VERMILLION, linewidth=0, label="flagged wrongly"),
    ]
    if not all(one.evaluated.all() for one in scored):
        handles.append(Patch(color="0.9", linewidth=0, label="not evaluated"))
    return handles
