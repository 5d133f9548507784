"""Conclusions from a frame of sessions x detectors: pure functions that need no store and no data set."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from tsadbench.analysis.significance.pairs import (
    ALPHA,
    EFFECT,
    LEAST_FOR_TESTS,
    POWER,
    ROPE,
    Better,
    Pair,
    compare_pairs,
)
from tsadbench.errors import UsageError
from tsadbench.leaderboard.formatting import number

# Mean ranks over fewer say too little for a picture that people remember.
LEAST_FOR_DIAGRAM = 10


@dataclass(frozen=True, slots=True)
class Friedman:
    """Friedman's test, by the F statistic of Iman and Davenport (1980), as its chi-squared is too cautious.

    Parameters
    ----------
    chi_squared
        Friedman's statistic, corrected for ties.
    f
        (n - 1) chi_squared / (n (k - 1) - chi_squared); None if all units rank the detectors alike: it is infinite.
    degrees
        Of freedom of F: k - 1 and (k - 1)(n - 1).
    p
        By F; by chi-squared if F is infinite.
    """

    chi_squared: float
    f: float | None
    degrees: tuple[int, int]
    p: float

    @property
    def significant(self) -> bool:
        """Whether p is below .05."""
        return self.p < ALPHA


def mean_ranks(units: pd.DataFrame, better: Better = "higher") -> dict[str, float]:
    """Return each detector's mean rank over units, [n_units, n_detectors]: 1 is the best, equal values share theirs."""
    means = units.rank(axis=1, ascending=better == "lower").mean()
    return {str(detector): float(mean) for detector, mean in means.items()}


def friedman(units: pd.DataFrame) -> Friedman | None:
    """Return Friedman's test over units, [n_units, n_detectors] without NaN.

    None if it is undefined: fewer than three detectors or two units, or no unit distinguishes any of them.
    """
    n, k = units.shape
    if k < 3 or n < 2 or not np.ptp(units.to_numpy(), axis=1).any():
        return None
    chi_squared = float(stats.friedmanchisquare(*units.to_numpy().T).statistic)
    degrees = (k - 1, (k - 1) * (n - 1))
    rest = n * (k - 1) - chi_squared
    if math.isclose(rest, 0.0, abs_tol=1e-9):
        return Friedman(chi_squared, None, degrees, float(stats.chi2.sf(chi_squared, k - 1)))
    f = (n - 1) * chi_squared / rest
    return Friedman(chi_squared, f, degrees, float(stats.f.sf(f, *degrees)))


@dataclass(frozen=True, slots=True, eq=False)
class Inference:
    """What independent units show about detectors.

    Parameters
    ----------
    units
        [n_units, n_detectors]: one row per session, one column per detector.
    mean_ranks
        By detector; 1 is the best.
    friedman
        Friedman's test; None for two detectors, and below six sessions.
    pairs
        One per pair of detectors.
    better
        Whether a higher or a lower value is better.
    """

    units: pd.DataFrame
    mean_ranks: Mapping[str, float]
    friedman: Friedman | None
    pairs: tuple[Pair, ...]
    better: Better = "higher"

    @property
    def tested(self) -> bool:
        """Whether anything is tested: not below six sessions, for 2 / 2^5 = .0625. They are described then."""
        return len(self.units) >= LEAST_FOR_TESTS

    @property
    def smallest_p(self) -> float:
        """The smallest p-value that any pair can have after Holm's correction; 1 if nothing is tested."""
        smallest = [pair.wilcoxon.smallest for pair in self.pairs if pair.wilcoxon is not None]
        return min(1.0, len(self.pairs) * min(smallest, default=1.0))

    @property
    def conclusive(self) -> bool:
        """Whether sessions are enough for significance at .05."""
        return self.smallest_p < ALPHA

    @property
    def conclusions(self) -> tuple[str, ...]:
        """Sentences: whether sessions are enough, whether detectors differ, which of them do."""
        return tuple(_conclusions(self))


def infer(units: pd.DataFrame, *, better: Better = "higher", rope: float = ROPE) -> Inference:
    """Compare detectors over independent units; below six of them nothing is tested.

    Parameters
    ----------
    units
        [n_units, n_detectors] without NaN.
    better
        Whether a higher or a lower value is better.
    rope
        Differences up to this one are ties.

    Raises
    ------
    UsageError
        If there are no units or fewer than two detectors, or a value is undefined.
    MissingExtraError
        If there are more than two detectors and statsmodels is not installed.
    """
    n_units, n_detectors = units.shape
    n_undefined = n_units - len(units.dropna())
    if n_detectors < 2 or n_units == 0 or n_undefined:
        raise UsageError(
            f"expected two detectors or more with a value on each of one session or more, found {n_detectors} "
            f"detectors on {n_units} sessions, {n_undefined} of them with an undefined value"
        )
    pairs = compare_pairs(units, better=better, rope=rope)
    tested = friedman(units) if n_units >= LEAST_FOR_TESTS else None
    return Inference(units, mean_ranks(units, better), tested, pairs, better)


def _conclusions(inference: Inference) -> Iterator[str]:
    n = len(inference.units)
    different = max(0 if pair.wilcoxon is None else pair.wilcoxon.n_different for pair in inference.pairs)
    units = f"{n} sessions{'' if different == n else f', {different} of which differ,'}"
    if not inference.tested:
        yield (
            f"Described, not tested: {n} session{'s are' if n > 1 else ' is'} too few. With fewer than "
            f"{LEAST_FOR_TESTS} no difference, however large, has a p-value below {number(ALPHA, 2)}. Means and "
            f"differences describe these sessions and say nothing about any other."
        )
    elif inference.conclusive:
        yield f"{units} can give a p-value as small as {p_value(inference.smallest_p)}{_holm(inference)}."
    else:
        yield (
            f"Too few to conclude anything: {units} can give no p-value below {p_value(inference.smallest_p)}"
            f"{_holm(inference)}, so no difference can be significant at {number(ALPHA, 2)}. Read means and intervals "
            f"as a description of these sessions."
        )
    needed = [pair.sessions_needed for pair in inference.pairs if pair.sessions_needed is not None]
    if needed:
        count = f"{min(needed)} to {max(needed)}" if min(needed) < max(needed) else f"{needed[0]}"
        yield (
            f"A difference of {number(EFFECT, 2)} would take about {count} sessions to show (two-sided at "
            f"{number(ALPHA, 2)}, power {number(POWER, 1)}, one pair alone), by the spread between these {n}."
        )
    if inference.friedman is not None:
        yield _about_friedman(inference.friedman)
    if not inference.conclusive:
        return
    beaten: dict[str, list[str]] = {}
    for pair in inference.pairs:
        if pair.p_holm is not None and pair.p_holm < ALPHA:
            first_is_better = (pair.rank_biserial > 0) == (inference.better == "higher")
            winner, loser = (pair.first, pair.second) if first_is_better else (pair.second, pair.first)
            beaten.setdefault(winner, []).append(f"{loser} (p = {p_value(pair.p_holm)})")
    for winner, losers in beaten.items():
        yield f"{winner} is better than {', '.join(losers)}."
    rest = len(inference.pairs) - sum(map(len, beaten.values()))
    if rest:
        yield (
            f"Not significant at {number(ALPHA, 2)}: {rest} of {len(inference.pairs)} differences. That shows no "
            f"equality; the intervals say what is open."
        )


def _about_friedman(test: Friedman) -> str:
    verdict = "the detectors are not all alike" if test.significant else "no difference among the detectors is shown"
    statistic = (
        f"chi-squared = {test.chi_squared:.2f}, F infinite: all rank them alike"
        if test.f is None
        else f"Iman-Davenport F({test.degrees[0]}, {test.degrees[1]}) = {test.f:.2f}"
    )
    return f"Friedman: {verdict} ({statistic}, p = {p_value(test.p)})."


def _holm(inference: Inference) -> str:
    return " after Holm" if len(inference.pairs) > 1 else ""


def p_value(p: float) -> str:
    """Return a p-value as text: two significant digits, without the zero before the decimal point."""
    return f"{p:.1e}" if p < 1e-4 else number(float(f"{p:.2g}"), max(2, 1 - math.floor(math.log10(p))))
