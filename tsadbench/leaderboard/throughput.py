"""What a row costs, as tables show it: seconds of a fit, rows scored per second, memory; and who is best at a cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias, get_args

from tsadbench.base.protocol import Metric
from tsadbench.execution.record import Record
from tsadbench.leaderboard.ranking import UNDEFINED, Row

Speed: TypeAlias = Literal["fit_seconds", "rows_per_second"]
SPEEDS: tuple[Speed, ...] = get_args(Speed)
HEADER = ("Fit, s", "Rows/s", "MiB")
# The keys of these columns.
COSTS = ("fit_seconds", "rows_per_second", "peak_memory_mib")
LEGEND = (
    "Fit, s: wall-clock seconds of a trial's fits. Rows/s: training and test rows scored per second of wall clock. "
    "Both are means over seeds, on the machine that ran them. MiB: largest resident size of the process."
)
_ONE_THREAD = "Every trial ran with one thread."
_SEVERAL = "If no number of threads is named, one."


def throughput_texts(row: Row) -> tuple[str, str, str]:
    """Return a row's cells below `HEADER`: a dash if something was not measured, or if a trial failed."""
    if not row.ok:
        return "-", "-", "-"
    speed, memory = row.rows_per_second, row.peak_memory_mib
    return (
        _seconds(row.fit_seconds),
        "-" if speed is None else f"{compact(speed)}{threads_note(row)}",
        "-" if memory is None else f"{memory:,.0f}",
    )


def threads_note(row: Row) -> str:
    """Return " (4 threads)", to be put behind a row's speed; nothing for one thread."""
    return "" if row.threads == (1,) else f" ({'/'.join(map(str, row.threads))} threads)"


def throughput_legend(rows: Sequence[Row]) -> str:
    """Return what the cells mean, and with how many threads the trials ran."""
    parts = [LEGEND, _ONE_THREAD if all(row.threads == (1,) for row in rows) else _SEVERAL]
    parts.append(f"{minutes_text(core_minutes(record for row in rows for record in row.records))}.")
    return " ".join(parts)


def cost_of(record: Record) -> tuple[float, float]:
    """Return the CPU seconds of a trial's fits and of its scores; wall-clock seconds if they were not measured."""
    fit = record.fit_cpu_seconds or record.fit_seconds or 0.0
    return fit, record.score_cpu_seconds or record.score_seconds or 0.0


def core_minutes(records: Iterable[Record]) -> float:
    """Return the CPU minutes of the fits and scores of trials; a trial counts once, as does a fit that several share.

    Trials that failed count with what was measured of them.
    """
    fits: dict[object, float] = {}
    scores: dict[str, float] = {}
    for record in records:
        fit, scores[record.trial] = cost_of(record)
        shared = record.manifest.get("fit_shared_with")
        labels = frozenset([record.label, *map(str, shared if isinstance(shared, list) else ())])
        fits[record.dataset, record.protocol, record.seed, record.threads, labels] = fit
    return (sum(fits.values()) + sum(scores.values())) / 60


def minutes_text(minutes: float) -> str:
    """Return in words what the trials of a table took.

    Examples
    --------
    >>> minutes_text(41.6), minutes_text(0.25), minutes_text(1.0)
    ('The trials took 42 core minutes', 'The trials took 0.2 core minutes', 'The trials took 1 core minute')
    """
    shown = f"{minutes:,.0f}" if minutes >= 9.95 else f"{round(minutes, 1):g}"
    return f"The trials took {shown} core minute{'' if shown == '1' else 's'}"


def compact(value: float) -> str:
    """Return a number with two significant digits and its thousands as a letter.

    Examples
    --------
    >>> compact(1_234_567), compact(43_210), compact(999.7), compact(870), compact(4.23), compact(0)
    ('1.2M', '43k', '1k', '870', '4.2', '0')
    """
    rounded = float(f"{value:.2g}")
    for letter, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if rounded >= size:
            return f"{rounded / size:g}{letter}"
    return f"{rounded:g}"


def pareto_front(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """Return the names of the points that no other point beats, from the best first coordinate to the worst.

    A point is beaten if another is at least as good in both coordinates and better in one.

    Parameters
    ----------
    points
        By name; the higher a coordinate, the better.

    Examples
    --------
    >>> pareto_front({"fast": (9.0, 0.5), "good": (1.0, 0.9), "neither": (1.0, 0.5)})
    ['fast', 'good']
    """
    front: list[str] = []
    best, best_at = float("-inf"), float("-inf")
    for name, (first, second) in sorted(points.items(), key=lambda item: (-item[1][0], -item[1][1])):
        if second > best or (first, second) == (best_at, best):
            front.append(name)
            best_at, best = first, second
    return front


def quality_and_speed(rows: Sequence[Row], metric: Metric, speed: Speed) -> dict[str, tuple[float, float]]:
    """Return (speed, quality) of each row that has both, by label, as they were measured."""
    points = {}
    for row in rows:
        fast, good = getattr(row, speed), row.metrics.get(metric.name, UNDEFINED).mean
        if row.ok and fast and good is not None:
            points[row.label] = (fast, good)
    return points


def front_of(rows: Sequence[Row], metric: Metric, speed: Speed) -> list[str]:
    """Return the rows that no other beats in quality and speed, from the fastest to the slowest; parameters as above.

    Floors take part; leaky rows, rows with missing scores and rows that do not forget do not. Without a better end of
    the metric there is no front.
    """
    if metric.better is None:
        return []
    fast, good = (-1 if speed == "fit_seconds" else 1), (-1 if metric.better == "lower" else 1)
    points = quality_and_speed([row for row in rows if row.sound], metric, speed)
    return pareto_front({name: (fast * x, good * y) for name, (x, y) in points.items()})


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    if value >= 9.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 0.05 else "<0.1"
