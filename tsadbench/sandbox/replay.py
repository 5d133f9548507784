"""The replay audit: a second copy of the fitted detector scores some rows again, in other circumstances.

No wall stops a detector that scores by something other than the rows it is given. It can, however, not give the same
answer when the rows are the same and that something is another. What is compared depends on what the detector
declares (`Traits`):

* bounded ``memory``: random crops of random test recordings, with the declared rows before and after them. Their
  scores must be those of the whole recording, but for rounding; else the trial is invalid.
* unbounded memory: recordings from their start up to a random row must be scored as the whole was; else the trial is
  invalid. Besides, random parts of them are scored behind normal rows, of which there is a random number; ranks of the
  rows after 500 are correlated, each part by itself and all together, and the smallest correlation is recorded.
* bounded ``memory`` and ``look_ahead`` of more than half of the longest recording: both, for crops would mostly begin
  where the recording does.
* ``adaptive``: no two scorings need be equal; the correlation alone.

Every one of them crosses under another id and another clock, in another order, to a copy that has seen no test row
before. Which cheat is caught by what:

=============================================  ===============================  =======================================
a score that depends on                        bounded memory declared          unbounded, the default
=============================================  ===============================  =======================================
a row's number in its recording                crops: invalid                   other beginnings: low correlation
the recording's id, or when it begins          crops: invalid                   shorter ones: invalid
time since the recording began                 crops: invalid                   other beginnings: low correlation
how many recordings were scored before it      crops: invalid                   shorter ones: invalid
the time of day, while it goes on              crops: invalid                   shorter ones: invalid
a table by the recording's length              crops: invalid                   shorter ones: invalid
whether there are many rows                    crops: invalid                   shorter ones: invalid
the last rows of a recording                   crops: invalid                   shorter ones: invalid
=============================================  ===============================  =======================================

What does not vary between the two scorings cannot be caught: a table of published rows by their values, or the hour if
the trial lies within it. The second teaches nothing about labels. Somebody who hides what he adds within rounding gains
little: tolerances are relative to the spread of the scores (`base.agreement`), and if the values agree while the ranks
do not, the rank correlation is recorded for bounded memory too.

Training scores are compared in the same way: where the detector has no rule of its own for them, they must equal fresh
scores of the same rows; where it has, the ratios of medians and of 99 % quantiles are recorded.
"""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import Self

import numpy as np
from scipy.stats import spearmanr

from tsadbench.base.agreement import difference
from tsadbench.base.detector import Traits
from tsadbench.base.protocol import Scored
from tsadbench.base.recording import Recording
from tsadbench.base.replay import Copy, Replay
from tsadbench.errors import ModelFileError
from tsadbench.sandbox.box import Box
from tsadbench.sandbox.construction import Construction
from tsadbench.sandbox.crossing import Crossing
from tsadbench.sandbox.limits import BoxFailure
from tsadbench.utils.arrays import FloatArray

# At least so many rows, then on until this share of the time that scoring the test recordings took.
MIN_ROWS = 200
_SHARE_OF_TIME = 0.1
# Lengths of crops, from a short and a long range by turns; on a logarithmic scale.
_LENGTHS = ((20, 140), (140, 1000))
# Declared rows before and after a row, as a share of the longest recording: from here on, they count as unbounded too.
_REACHES_FAR = 0.5
# Rows that a score is given to forget how its recording began; then at least so many whose ranks are compared.
_SETTLING, _RANKED = 500, 50
# Every second pair of crops holds one of the recording's highest scores: what a cheat gains lies there, or beside it.
_HIGHEST = 0.01
# How many normal rows stand in front, few and many, and how many of the recording behind them.
_BEGINNINGS = ((1, 250), (750, 1000))
_LONGEST_PART = 1200
# Below this, values that agree hide ranks that do not.
_SAME_RANKS = 0.99


class Copies:
    """Copies of a fitted detector, made after its fit and before any test recording enters its box.

    Parameters
    ----------
    box
        The box, just fitted.
    fresh
        Opens another box of the same construction.
    training
        The recordings that it was fitted on.
    n_copies
        How many are needed at most.
    may_fork
        Whether a process of this detector can be forked: on Linux, with one thread and no GPU.
    adaptive
        Whether scoring changes what it has learned: then nothing is scored to see whether a copy is one.
    audited
        Whether there will be an audit. If not, the detector is asked all the same, and cannot know.
    """

    def __init__(
        self,
        box: Box,
        fresh: Callable[[], Box],
        training: Sequence[Recording],
        *,
        n_copies: int,
        may_fork: bool,
        adaptive: bool,
        audited: bool,
    ) -> None:
        self.box = box
        self._fresh = fresh
        self._parts: dict[str, bytes] | None = None
        self._made: list[Box] = []
        self._waiting: list[Box] = []
        self.how: Copy = "same process"
        try:
            self._make(training, n_copies, may_fork=may_fork, adaptive=adaptive, audited=audited)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all copies."""
        for copy in self._made:
            copy.close()

    @contextlib.contextmanager
    def take(self, construction: Construction, names: Sequence[str]) -> Iterator[Box]:
        """Lend a copy that has scored no test row, with the named parameters of this; it ends afterwards."""
        if self.how == "same process":
            yield self.box
            return
        copy = self._waiting.pop() if self._waiting else self._restored()
        with copy:
            copy.set_parameters(construction, names)
            yield copy

    def _make(
        self,
        training: Sequence[Recording],
        n_copies: int,
        *,
        may_fork: bool,
        adaptive: bool,
        audited: bool,
    ) -> None:
        with contextlib.suppress(ModelFileError):
            self._parts = self.box.learned(estimators=not may_fork)
        if self._parts is not None:
            expected = None if adaptive else _first_rows(self.box, training)
            if not audited or self._is_restored(training, expected):
                self.how = "restored"
                return
        if may_fork:
            # A system may forbid it: then it is the same process. If that has died, its next answer says so.
            with contextlib.suppress(BoxFailure):
                for _ in range(n_copies):
                    self._made.append(fork := self.box.fork())
                    self._waiting.append(fork)
                self.how = "forked"

    def _is_restored(self, training: Sequence[Recording], expected: FloatArray | None) -> bool:
        """Make a copy of what was learned; return whether it scores the same, and so whether that is all."""
        try:
            copy = self._restored()
            found = None if expected is None else _first_rows(copy, training)
        except BoxFailure as failure:
            if failure.status == "error":
                return False
            raise
        if found is None or expected is None or difference(found, expected)[0] is None:
            self._waiting.append(copy)
            return True
        return False

    def _restored(self) -> Box:
        copy = self._fresh()
        self._made.append(copy)
        copy.restore(self._parts or {})
        return copy


def _first_rows(box: Box, training: Sequence[Recording]) -> FloatArray:
    return box.score_again(training[0], "copied", 0, min(MIN_ROWS, training[0].n_rows))


@dataclass(slots=True)
class Audit:
    """Has a copy score some of the rows again that the detector has scored.

    Parameters
    ----------
    copy, how
        The copy's box, and how it was made.
    traits
        What the detector declares.
    crossing
        The episode's disguise, from which rows are drawn too.
    scored
        What the detector made of the episode.
    seconds
        How long it took to score the test recordings.
    """

    copy: Box
    how: Copy
    traits: Traits
    crossing: Crossing
    scored: Scored
    seconds: float
    _rng: np.random.Generator = field(init=False)
    _cut: tuple[int, int] = (0, 0)
    _spent: float = 0.0
    _n_asked: int = 0

    def run(self) -> Replay:
        """Return what was found.

        Raises
        ------
        BoxFailure
            If a score is not what it was; or if the copy fails.
        """
        self._rng = self.crossing.generator("replay")
        episode = self.scored.episode
        test = _Series(tuple(zip(episode.test, self.scored.test, strict=True)))
        train = _Series(tuple(zip(episode.train, self.scored.train, strict=True)))
        again = self._training(train)
        ratios = () if again is None else (_ratio(*again, 0.5), _ratio(*again, 0.99))
        self._spent = 0.0
        rows, correlation = 0, None
        if not self.traits.adaptive:
            share = 1.0 if self.traits.memory is not None else 0.5
            found, expected = self._compared(test, share)
            rows = len(found)
            everything = np.concatenate(self.scored.test)
            if self.traits.memory is not None and (ranks := _same_ranks(found, expected, everything)) < _SAME_RANKS:
                correlation = ranks
        if unbounded := self.traits.adaptive or self._reaches_far(episode.test):
            ranked, behind = self._behind_other_beginnings(test, episode.train)
            correlation = min((one for one in (correlation, behind) if one is not None), default=None)
            rows += ranked
        median, tail = ratios or (None, None)
        return Replay(
            copy=self.how,
            rows=rows,
            correlation=correlation,
            median_ratio=median,
            tail_ratio=tail,
            unbounded=unbounded,
        )

    def _reaches_far(self, recordings: Sequence[Recording]) -> bool:
        """Whether a score depends, as declared, on so many rows that most crops are whole beginnings of recordings."""
        if self.traits.memory is None:
            return True
        reach = self.traits.memory + self.traits.look_ahead
        return reach > _REACHES_FAR * max(recording.n_rows for recording in recordings)

    def _training(self, train: _Series) -> tuple[FloatArray, FloatArray] | None:
        """Return training scores and fresh ones of the same rows, if they need not be equal."""
        if not self.copy.scores_training_itself and not self.traits.adaptive:
            self._compared(train, 0.0, "a training score")
            return None
        found, expected = self._compared(train, 0.0, None)
        return expected, found

    def _compared(self, series: _Series, share: float, what: str | None = "a score") -> tuple[FloatArray, FloatArray]:
        """Return fresh scores of some rows and those from before, which must be equal; ``what`` None: need not."""
        pairs: list[tuple[FloatArray, FloatArray]] = []
        n_rows = 0
        while (
            len(pairs) < 2 * len(_LENGTHS)
            or n_rows < min(MIN_ROWS, series.n_rows)
            or (self._time_left(share) and n_rows < series.n_rows)
        ):
            recording, scores = series.drawn(self._rng)
            holds = self._high_row(scores) if len(pairs) // len(_LENGTHS) % 2 else None
            found, first = self._crop(recording, _LENGTHS[len(pairs) % len(_LENGTHS)], holds)
            expected = scores[first : first + len(found)]
            if what is not None:
                self._require_equal(found, expected, scores, (recording, first), what)
            pairs.append((found, expected))
            n_rows += len(found)
        return np.concatenate([one for one, _ in pairs]), np.concatenate([one for _, one in pairs])

    def _high_row(self, scores: FloatArray) -> int | None:
        """Return one of the rows with the highest scores, of those that any crop may hold."""
        within = scores if self.traits.memory is not None else scores[: _LENGTHS[-1][1]]
        scored = np.flatnonzero(np.isfinite(within))
        if not len(scored):
            return None
        n_high = math.ceil(_HIGHEST * len(scored))
        return int(self._rng.choice(scored[np.argpartition(within[scored], -n_high)[-n_high:]]))

    def _crop(self, recording: Recording, lengths: tuple[int, int], holds: int | None) -> tuple[FloatArray, int]:
        """Return fresh scores of some rows, which depend on nothing that was cut off, and the number of the first.

        Of bounded memory it is at most half of the recording, so that its rows have other numbers than in the whole.
        """
        bounded = self.traits.memory is not None
        most = math.ceil(recording.n_rows / 2) if bounded else recording.n_rows
        length, first = min(int(np.exp(self._rng.uniform(*np.log(lengths)))), most), 0
        if bounded:
            low, high = 0, recording.n_rows - length
            if holds is not None:
                low, high = max(low, holds - length + 1), min(high, holds)
            first = int(self._rng.integers(low, high + 1))
        elif holds is not None:
            length = max(length, holds + 1)
        last = first + length
        start = max(0, first - (self.traits.memory or 0))
        stop = min(recording.n_rows, last + self.traits.look_ahead)
        self._cut = start, stop
        found = self._ask(partial(self.copy.score_again, recording, start=start, stop=stop))
        return found[first - start : last - start], first

    def _behind_other_beginnings(self, test: _Series, training: Sequence[Recording]) -> tuple[int, float | None]:
        """Return how many rows were ranked, and the smallest rank correlation."""
        least = _SETTLING + _RANKED
        long = _Series(tuple(pair for pair in test.pairs if pair[0].n_rows >= least))
        if not long.pairs:
            return 0, None
        correlations: list[float] = []
        n_rows = 0
        while n_rows < MIN_ROWS or (self._time_left(1.0) and n_rows < long.n_rows):
            recording, scores = long.drawn(self._rng)
            # A recording's start, then parts from within: what begins at some row shows in the first.
            length, first = min(_LONGEST_PART, recording.n_rows), 0
            if correlations:
                length = int(self._rng.integers(least, length + 1))
                first = int(self._rng.integers(recording.n_rows - length + 1))
            part = recording.rows(first, first + length)
            expected = scores[first + _SETTLING : first + length]
            again = [self._behind(training, int(self._rng.integers(*n_before)), part) for n_before in _BEGINNINGS]
            # What rises with every row has the same ranks behind each beginning by itself, but not behind both.
            both = _rank_correlation(np.concatenate(again), np.concatenate([expected] * len(again)))
            correlations += [*(_rank_correlation(found, expected) for found in again), both]
            n_rows += len(expected)
        return n_rows, min(correlations)

    def _behind(self, training: Sequence[Recording], n_before: int, part: Recording) -> FloatArray:
        """Return fresh scores of a part's rows after the first 500, behind so many normal rows."""
        joined = _joined(_beginning(training, n_before, self._rng), part)
        return self._ask(partial(self.copy.score_again, joined))[n_before + _SETTLING :]

    def _ask(self, score: Callable[[str], FloatArray]) -> FloatArray:
        """Return what the copy answers, under an id and a clock of its own."""
        self._n_asked += 1
        start = time.perf_counter()
        try:
            return score(f"replay {self._n_asked}")
        except BoxFailure as failure:
            reason = f"when rows were scored again: {failure.reason}"
            raise BoxFailure(failure.status, reason, failure.traceback) from failure
        finally:
            self._spent += time.perf_counter() - start

    def _time_left(self, share: float) -> bool:
        return self._spent < share * _SHARE_OF_TIME * self.seconds

    def _require_equal(
        self, found: FloatArray, expected: FloatArray, whole: FloatArray, place: tuple[Recording, int], what: str
    ) -> None:
        row, _ = difference(found, expected, whole=whole)
        if row is None:
            return
        recording, first = place
        start, stop = self._cut
        memory, look_ahead = self.traits.memory, self.traits.look_ahead
        before = "the rows before it" if memory is None else f"the {memory} rows before it"
        raise BoxFailure(
            "invalid",
            f"replay: row {first + row} of recording {recording.id!r} has {what} of {expected[row]:.6g} in the whole "
            f"recording, and scores {found[row]:.6g} in its rows {start} to {stop - 1} by themselves, under another id "
            f"and clock: its score depends on something else than itself, {before} and the {look_ahead} after it "
            f"(traits.memory, traits.look_ahead)",
        )


def combined(replays: Sequence[Replay]) -> Replay | None:
    """Return what was found in several episodes of a trial: the weakest copy, the worst of each number."""
    weakest = Replay.weakest(replays)
    return None if weakest is None else replace(weakest, rows=sum(one.rows for one in replays))


def may_fork(construction: Construction, threads: int) -> bool:
    """Return whether a process of such a detector can be forked: on Linux, with one thread, without a GPU."""
    return sys.platform == "linux" and threads == 1 and not construction.on_gpu


@dataclass(frozen=True, slots=True)
class _Series:
    """Recordings and their scores."""

    pairs: tuple[tuple[Recording, FloatArray], ...]

    @property
    def n_rows(self) -> int:
        return sum(recording.n_rows for recording, _ in self.pairs)

    def drawn(self, rng: np.random.Generator) -> tuple[Recording, FloatArray]:
        """Return one of them; each row is as likely to be in it."""
        sizes = np.array([recording.n_rows for recording, _ in self.pairs], dtype=np.float64)
        return self.pairs[int(rng.choice(len(sizes), p=sizes / sizes.sum()))]


def _beginning(training: Sequence[Recording], n_rows: int, rng: np.random.Generator) -> FloatArray:
    """Return that many normal rows [n_rows, n_sensors]: a block of a training recording, or several."""
    blocks: list[FloatArray] = []
    while (missing := n_rows - sum(map(len, blocks))) > 0:
        values = training[int(rng.integers(len(training)))].values
        start = int(rng.integers(max(1, len(values) - missing + 1)))
        blocks.append(values[start : start + missing])
    return np.concatenate(blocks)


def _joined(beginning: FloatArray, part: Recording) -> Recording:
    """Return rows in front of a recording, their clock going on at its pace."""
    time_ = part.time
    if time_ is not None:
        step = float(np.median(np.diff(time_[:_RANKED])))
        time_ = np.concatenate([time_[0] - step * np.arange(len(beginning), 0, -1), time_])
    return Recording(part.id, np.concatenate([beginning, part.values]), part.sensors, time_)


def _rank_correlation(found: FloatArray, expected: FloatArray) -> float:
    """Return Spearman's rank correlation over the rows that both score; 1 if there is nothing to rank."""
    both = np.isfinite(found) & np.isfinite(expected)
    found, expected = found[both], expected[both]
    constant = [len(scores) < _RANKED or np.ptp(scores) == 0.0 for scores in (found, expected)]
    if any(constant):
        return 1.0 if all(constant) else 0.0
    return float(spearmanr(found, expected).statistic)


def _same_ranks(found: FloatArray, expected: FloatArray, everything: FloatArray) -> float:
    """Return Spearman's coefficient of the ranks that scores and fresh ones have among all scores."""
    in_order = np.sort(everything[np.isfinite(everything)])
    both = np.isfinite(found) & np.isfinite(expected)
    if not both.any():
        return 1.0
    # Between the ranks of the first and the last of equal scores.
    ranks = [
        (np.searchsorted(in_order, scores[both]) + np.searchsorted(in_order, scores[both], "right")) / 2
        for scores in (found, expected)
    ]
    return float(1.0 - 6.0 * np.mean(((ranks[0] - ranks[1]) / len(in_order)) ** 2))


def _ratio(training: FloatArray, fresh: FloatArray, quantile: float) -> float | None:
    """Return the ratio of a quantile of training scores to that of fresh ones; None unless both are above zero."""
    if np.isnan(training).all() or np.isnan(fresh).all():
        return None
    of_training, of_fresh = (np.nanquantile(scores, quantile) for scores in (training, fresh))
    return float(of_training / of_fresh) if min(of_training, of_fresh) > 0 else None
