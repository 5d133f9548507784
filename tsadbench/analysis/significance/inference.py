"""Conclusions from a matrix of sessions x detectors: pure functions that need no store and no data set."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tsadbench.analysis.significance.friedman import Friedman, friedman, mean_ranks
from tsadbench.analysis.significance.matrix import Matrix
from tsadbench.analysis.significance.pairs import ROPE, Better, Pair, compare_pairs
from tsadbench.analysis.significance.power import ALPHA, EFFECT, LEAST_FOR_TESTS, POWER
from tsadbench.errors import UsageError
from tsadbench.utils.markdown import number

# Mean ranks over fewer say too little for a picture that people remember.
LEAST_FOR_DIAGRAM = 10


@dataclass(frozen=True, slots=True, eq=False)
class Inference:
    """What a matrix shows about its detectors.

    Parameters
    ----------
    units
        The independent units: one row per session.
    mean_ranks
        By detector; 1 is the best.
    friedman
        Friedman's test; None for two detectors, and below six sessions.
    pairs
        One per pair of detectors.
    better
        Whether a higher or a lower value is better.
    """

    units: Matrix
    mean_ranks: Mapping[str, float]
    friedman: Friedman | None
    pairs: tuple[Pair, ...]
    better: Better = "higher"

    @property
    def tested(self) -> bool:
        """Whether anything is tested: not below six sessions, for 2 / 2^5 = .0625. They are described then."""
        return len(self.units.units) >= LEAST_FOR_TESTS

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


def infer(matrix: Matrix, *, better: Better = "higher", rope: float = ROPE) -> Inference:
    """Compare the detectors of a matrix; below six units nothing is tested.

    Parameters
    ----------
    matrix
        [n_units, n_detectors] without NaN; its units are independent.
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
    if len(matrix.detectors) < 2 or len(matrix.units) == 0 or not matrix.defined.all():
        raise UsageError(
            f"expected two detectors or more with a value on each of one session or more, found "
            f"{len(matrix.detectors)} detectors on {len(matrix.units)} sessions, "
            f"{np.count_nonzero(~matrix.defined)} of them with an undefined value"
        )
    pairs = compare_pairs(matrix, better=better, rope=rope)
    tested = friedman(matrix) if len(matrix.units) >= LEAST_FOR_TESTS else None
    return Inference(matrix, mean_ranks(matrix, better), tested, pairs, better)


def _conclusions(inference: Inference) -> Iterator[str]:
    n = len(inference.units.units)
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
