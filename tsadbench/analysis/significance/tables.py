"""The tables of a comparison, as text: on a terminal and in Markdown alike."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from tsadbench.analysis.significance.inference import Inference, p_value
from tsadbench.analysis.significance.pairs import Pair
from tsadbench.analysis.significance.per_recording import Contender
from tsadbench.base.protocol import Metric
from tsadbench.utils.markdown import number, optional_number

# Title, header, rows.
Table: TypeAlias = tuple[str, list[str], list[list[str]]]


def detectors(
    contenders: Sequence[Contender], inference: Inference, tested: Metric, titles: Mapping[str, str]
) -> Table:
    """Return a row per detector: the tested metric, and the others to describe."""
    others = [name for name in titles if name != tested.name]
    header = ["detector", "seeds", f"{tested.title} mean", "median", "mean rank", *(titles[name] for name in others)]
    return "Detectors", header, [_detector(contender, inference, others) for contender in contenders]


def _detector(contender: Contender, inference: Inference, others: Sequence[str]) -> list[str]:
    label, n_seeds = contender.label, len(contender.seeds)
    if contender.failed:
        return [label, f"{contender.status} in {len(contender.failed)} of {n_seeds}", *["-"] * (3 + len(others))]
    values = inference.units.column(label).tolist()
    return [
        label,
        str(n_seeds),
        number(float(inference.units.column(label).mean()), 4),
        number(statistics.median(values), 4),
        f"{inference.mean_ranks[label]:.2f}",
        *(optional_number(contender.metrics[name]) for name in others),
    ]


def differences(pairs: Sequence[Pair]) -> Table:
    """Return a row per pair of detectors."""
    several = len(pairs) > 1
    header = ["first", "second", "mean difference", "95 % interval", "median", "rank-biserial", "win/tie/loss", "p"]
    header += [*(["p (Holm)"] if several else []), "smallest p", "test"]
    return "Differences", header, [_pair(pair, several=several) for pair in pairs]


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
