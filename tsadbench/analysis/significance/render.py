"""A comparison for the eye: the same tables on a terminal and as Markdown."""

from __future__ import annotations

import statistics
from typing import TypeAlias

from tsadbench.analysis.significance.comparison import Comparison, Entrant
from tsadbench.analysis.significance.inference import p_value
from tsadbench.analysis.significance.pairs import Pair
from tsadbench.utils.markdown import number, optional_number, table_lines

Table: TypeAlias = tuple[str, list[str], list[list[str]]]


def markdown(found: Comparison) -> str:
    """Return a comparison as Markdown: tables, conclusions, legend and notes."""
    parts = [f"### {found.title}", ""]
    for title, header, rows in tables(found):
        parts += [f"{title}:", "", *table_lines(header, rows), ""]
    parts += [*(f"- {sentence}" for sentence in found.inference.conclusions), "", legend(found)]
    if found.notes:
        parts += ["", *(f"- {note}" for note in found.notes)]
    return "\n".join(parts) + "\n"


def tables(found: Comparison) -> list[Table]:
    """Return a comparison's tables: title, header, rows."""
    return [_detectors(found), _pairs(found)]


def legend(found: Comparison) -> str:
    """Return what the tables' columns mean."""
    clusters = "Means over recordings" if len(found.clusters) == len(found.recordings.units) else "Means over clusters"
    corrected = ", after Holm's correction for all pairs" if len(found.inference.pairs) > 1 else ""
    return (
        f"{clusters}, seeds averaged within each recording first. Only {found.metric.title} is tested, the other "
        f"metrics describe (* chosen with the test labels: an upper bound, not a result). Differences are first - "
        f"second, with a 95 % bootstrap interval of the mean; win/tie/loss counts those beyond, within and below "
        f"{number(found.rope, 2)}, the region of practical equivalence; rank-biserial runs from -1 to 1. p: Wilcoxon's "
        f"signed-rank test, two-sided{corrected}; smallest p: the smallest that so many units can give."
    )


def _detectors(found: Comparison) -> Table:
    others = [name for name in found.titles if name != found.metric.name]
    header = [
        "detector",
        "seeds",
        f"{found.metric.title} mean",
        "median",
        "mean rank",
        *(found.titles[name] for name in others),
    ]
    return "Detectors", header, [_detector(found, entrant, others) for entrant in found.entrants]


def _detector(found: Comparison, entrant: Entrant, others: list[str]) -> list[str]:
    if not entrant.ok:
        trials = f"{entrant.status} in {len(entrant.failed)} of {len(entrant.seeds)}"
        return [entrant.label, trials, *["-"] * (3 + len(others))]
    values = found.inference.units.column(entrant.label)
    return [
        entrant.label,
        str(len(entrant.seeds)),
        number(float(values.mean()), 4),
        number(statistics.median(values.tolist()), 4),
        f"{found.inference.mean_ranks[entrant.label]:.2f}",
        *(optional_number(entrant.metrics[name]) for name in others),
    ]


def _pairs(found: Comparison) -> Table:
    several = len(found.inference.pairs) > 1
    header = ["first", "second", "mean difference", "95 % interval", "median", "rank-biserial", "win/tie/loss", "p"]
    header += ["p (Holm)"] if several else []
    header += ["smallest p", "test"]
    return "Differences", header, [_pair(pair, several=several) for pair in found.inference.pairs]


def _pair(pair: Pair, *, several: bool) -> list[str]:
    interval = pair.interval
    return [
        pair.first,
        pair.second,
        _signed(pair.mean_difference),
        "-" if interval is None else f"[{_signed(interval.low)}, {_signed(interval.high)}]",
        _signed(pair.median_difference),
        number(pair.rank_biserial, 2, signed=True),
        f"{pair.wins}/{pair.ties}/{pair.losses}",
        p_value(pair.wilcoxon.p),
        *([p_value(pair.p_holm)] if several else []),
        p_value(pair.wilcoxon.smallest),
        pair.wilcoxon.method,
    ]


def _signed(value: float) -> str:
    return number(value, 4, signed=True)
