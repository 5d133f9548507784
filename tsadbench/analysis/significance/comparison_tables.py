"""The tables of a comparison: the detectors, the sessions if few, each pair's differences."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from tsadbench.analysis.significance.inference import Inference, p_value
from tsadbench.analysis.significance.pairs import EFFECT, Pair
from tsadbench.analysis.significance.per_recording import ComparedDetector
from tsadbench.base.protocol import Metric
from tsadbench.leaderboard.formatting import number
from tsadbench.leaderboard.presentation import Table

# Columns that name what a row is about.
NAMES = ("detector", "first", "second", "session")
_NEEDED = f"sessions for {number(EFFECT, 2)}"


def detectors_table(
    contenders: Sequence[ComparedDetector], inference: Inference, tested: Metric, titles: Mapping[str, str]
) -> Table:
    """Return a row per detector: the tested metric, and the others to describe."""
    others = [name for name in titles if name != tested.name]
    header = ["detector", "seeds", f"{tested.title} mean", "median", "mean rank", *(titles[name] for name in others)]
    return "Detectors", header, [_detector(contender, inference, others) for contender in contenders]


def _detector(contender: ComparedDetector, inference: Inference, others: Sequence[str]) -> list[str]:
    label, n_seeds = contender.label, len(contender.seeds)
    if contender.failed:
        return [label, f"{contender.status} in {len(contender.failed)} of {n_seeds}", *["-"] * (3 + len(others))]
    values = inference.units[label].to_numpy()
    return [
        label,
        str(n_seeds),
        number(float(values.mean()), 4),
        number(statistics.median(values.tolist()), 4),
        f"{inference.mean_ranks[label]:.2f}",
        *(number(contender.metrics[name]) for name in others),
    ]


def sessions_table(inference: Inference, members: Mapping[str, Sequence[str]], tested: Metric) -> Table:
    """Return a row per session: its number of recordings, and every detector's value of the tested metric."""
    units = inference.units
    header = ["session", "recordings", *units.columns]
    rows = [
        [unit, str(len(members[unit])), *(number(value, 4) for value in values)]
        for unit, values in zip(units.index, units.to_numpy().tolist(), strict=True)
    ]
    return f"{tested.title} by session", header, rows


def described(inference: Inference) -> Table:
    """Return a row per pair of detectors: its difference in each session, without a test."""
    header = ["first", "second", "mean difference", *inference.units.index, "win/tie/loss", _NEEDED]
    rows = [
        [
            pair.first,
            pair.second,
            *map(_signed, (pair.mean_difference, *pair.differences)),
            f"{pair.wins}/{pair.ties}/{pair.losses}",
            _needed(pair),
        ]
        for pair in inference.pairs
    ]
    return "Differences", header, rows


def differences_table(pairs: Sequence[Pair]) -> Table:
    """Return a row per pair of detectors: its difference and the test of it."""
    several = len(pairs) > 1
    header = ["first", "second", "mean difference", "95 % interval", "median", "rank-biserial", "win/tie/loss", "p"]
    header += [*(["p (Holm)"] if several else []), "smallest p", "test", _NEEDED]
    return "Differences", header, [_pair(pair, several=several) for pair in pairs]


def _pair(pair: Pair, *, several: bool) -> list[str]:
    interval, test = pair.interval, pair.wilcoxon
    return [
        pair.first,
        pair.second,
        _signed(pair.mean_difference),
        "-" if interval is None else f"[{_signed(interval.low)}, {_signed(interval.high)}]",
        _signed(pair.median_difference),
        number(pair.rank_biserial, 2, signed=True),
        f"{pair.wins}/{pair.ties}/{pair.losses}",
        _p_value(None if test is None else test.p),
        *([_p_value(pair.p_holm)] if several else []),
        _p_value(None if test is None else test.smallest),
        "-" if test is None else test.method,
        _needed(pair),
    ]


def _p_value(value: float | None) -> str:
    return "-" if value is None else p_value(value)


def _needed(pair: Pair) -> str:
    return "-" if pair.sessions_needed is None else str(pair.sessions_needed)


def _signed(value: float) -> str:
    return number(value, 4, signed=True)
