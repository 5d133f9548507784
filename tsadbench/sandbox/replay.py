"""The replay audit: a copy of the fitted detector scores some rows again, in other circumstances.

No wall stops a detector that scores by something else than the rows it is given: a row's number, the recording's id,
length, beginning or last rows, how many recordings came before, the time of day. It can, however, not give the same
answer when the rows are the same and that something is another. Everything crosses under another id and another clock,
in another order, to a copy that has seen no test row before. What is compared depends on what the detector declares
(`Traits`):

* bounded ``memory``: random crops of random test recordings, with the declared rows before and after them. Their
  scores must be those of the whole recording, except for rounding; else the trial is invalid.
* unbounded memory: recordings from their start up to a random row must be scored as the whole was; else the trial is
  invalid. A row's number and the time since the beginning are the same in both. So random parts are scored behind a
  random number of normal rows, too; ranks of the rows after 500 are correlated, each part by itself and all together,
  and the smallest correlation is recorded.
* bounded ``memory`` and ``look_ahead`` of more than half of the longest recording: both, for crops would mostly begin
  where the recording does.
* ``adaptive``: no two scorings need be equal; the correlation alone.

What does not vary between the two scorings cannot be caught: a table of published rows by their values, or the hour if
the trial lies within it. The second teaches nothing about labels. Somebody who hides what he adds within rounding gains
little: tolerances are relative to the spread of the scores (`base.scores`), and if the values agree while the ranks
do not, the rank correlation is recorded for bounded memory too.

Training scores are compared in the same way: where the detector has no rule of its own for them, they must equal fresh
scores of the same rows; where it has, the ratios of medians and of 99 % quantiles are recorded.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from tsadbench.base.detector import Traits
from tsadbench.base.protocol import Scored
from tsadbench.base.recording import Recording
from tsadbench.base.replay import Copy, Replay
from tsadbench.base.scores import difference
from tsadbench.errors import ModelFileError
from tsadbench.sandbox.box import Box
from tsadbench.sandbox.construction import Construction
from tsadbench.sandbox.crossing import Crossing
from tsadbench.sandbox.limits import BoxFailure
from tsadbench.utils.arrays import FloatArray

# A recording and its scores [n_rows].
_Pair: TypeAlias = tuple[Recording, FloatArray]

# At least so many rows, and four crops; then on until this share of the time that scoring the test recordings took.
MIN_ROWS, _MIN_CROPS = 200, 4
_SHARE_OF_TIME = 0.1
# Lengths of crops, on a logarithmic scale.
_SHORTEST, _LONGEST = 20, 1000
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


class Copies(contextlib.ExitStack):
    """At most ``n_copies`` copies of a fitted detector, made before any test recording enters its box.

    ``fresh`` opens another box of the same construction. If the detector is ``adaptive``, nothing is scored to see
    whether a copy is one. If there will be no audit, the detector is asked all the same, and cannot know.
    """

    def __init__(
        self,
        box: Box,
        fresh: Callable[[], Box],
        training: Sequence[Recording],
        *,
        n_copies: int,
        adaptive: bool,
        audited: bool,
    ) -> None:
        super().__init__()
        self.box = box
        self.how: Copy = "same process"
        self._fresh = fresh
        self._parts: dict[str, bytes] = {}
        self._waiting: list[Box] = []
        try:
            if self._restores(training, estimators=not box.may_fork, adaptive=adaptive, audited=audited):
                self.how = "restored"
            elif box.may_fork:
                # A system may forbid it: then it is the same process. If that has died, its next answer says so.
                with contextlib.suppress(BoxFailure):
                    self._waiting = [self.enter_context(box.fork()) for _ in range(n_copies)]
                    self.how = "forked"
        except BaseException:
            self.close()
            raise

    @contextlib.contextmanager
    def take(self, construction: Construction, names: Sequence[str]) -> Iterator[Box]:
        """Lend a copy that has scored no test row, with the named parameters of this; it ends afterwards."""
        if self.how == "same process":
            yield self.box
            return
        with self._waiting.pop() if self._waiting else self._restored() as copy:
            copy.set_parameters(construction, names)
            yield copy

    def _restores(self, training: Sequence[Recording], *, estimators: bool, adaptive: bool, audited: bool) -> bool:
        """Make a copy of what was learned; return whether it scores the same, and so whether that is all."""
        first = training[0], "copied", 0, min(MIN_ROWS, training[0].n_rows)
        try:
            self._parts = self.box.learned(estimators=estimators)
        except ModelFileError:
            return False
        expected = None if adaptive else self.box.score_again(*first)
        if not audited:
            return True
        try:
            self._waiting = [self._restored()]
            return expected is None or difference(self._waiting[0].score_again(*first), expected)[0] is None
        except BoxFailure as failure:
            if failure.status == "error":
                return False
            raise

    def _restored(self) -> Box:
        copy = self.enter_context(self._fresh())
        copy.restore(self._parts)
        return copy


@dataclass(slots=True)
class Audit:
    """Has a copy score some of the rows again that the detector has scored.

    Rows are drawn from the episode's disguise; ``seconds`` is how long it took to score the test recordings.
    """

    copy: Box
    how: Copy
    traits: Traits
    crossing: Crossing
    scored: Scored
    seconds: float
    _rng: np.random.Generator = field(init=False)
    _spent: float = 0.0
    _n_asked: int = 0
    _n_rows: int = 0

    def run(self) -> Replay:
        """Return what was found; a BoxFailure if a score is not what it was, or if the copy fails."""
        self._rng = self.crossing.generator("replay")
        traits, episode = self.traits, self.scored.episode
        test = tuple(zip(episode.test, self.scored.test, strict=True))
        train = tuple(zip(episode.train, self.scored.train, strict=True))
        own_rule = self.copy.scores_training_itself or traits.adaptive
        fresh, of_training = self._crops(train, 0.0, "" if own_rule else "a training score")
        median, tail = (_ratio(of_training, fresh, q) if own_rule else None for q in (0.5, 0.99))
        self._spent = 0.0
        rows, correlations = 0, []
        if not traits.adaptive:
            found, expected = self._crops(test, 0.5 if traits.memory is None else 1.0, "a score")
            rows = self._n_rows
            everything = np.concatenate(self.scored.test)
            if traits.memory is not None and (ranks := _same_ranks(found, expected, everything)) < _SAME_RANKS:
                correlations.append(ranks)
        longest = max(recording.n_rows for recording in episode.test)
        unbounded = traits.memory is None or traits.memory + traits.look_ahead > _REACHES_FAR * longest
        if unbounded or traits.adaptive:
            correlations += self._behind_other_beginnings(test)
            rows += self._n_rows
        return Replay(
            copy=self.how,
            rows=rows,
            correlation=min(correlations, default=None),
            median_ratio=median,
            tail_ratio=tail,
            unbounded=unbounded or traits.adaptive,
        )

    def _drawn(self, pairs: Sequence[_Pair], share: float, least: int) -> Iterator[tuple[int, Recording, FloatArray]]:
        """Yield recordings, each row of them as likely, until enough rows are compared (`_n_rows`) or time is up."""
        sizes = np.array([recording.n_rows for recording, _ in pairs], dtype=np.float64)
        number = self._n_rows = 0
        while (
            number < least
            or self._n_rows < min(MIN_ROWS, sizes.sum())
            or (self._spent < share * _SHARE_OF_TIME * self.seconds and self._n_rows < sizes.sum())
        ):
            yield number, *pairs[int(self._rng.choice(len(sizes), p=sizes / sizes.sum()))]
            number += 1

    def _crops(self, pairs: Sequence[_Pair], share: float, what: str) -> tuple[FloatArray, FloatArray]:
        """Return fresh scores of some rows and those from before; they must be equal if ``what`` they are is said.

        Of bounded memory a crop is at most half of the recording, so that its rows have other numbers than in the
        whole; else it is its beginning.
        """
        bounded, memory = self.traits.memory is not None, self.traits.memory or 0
        compared: list[tuple[FloatArray, FloatArray]] = []
        for number, recording, scores in self._drawn(pairs, share, _MIN_CROPS):
            holds = self._high_row(scores) if number // 2 % 2 else None
            # From the short and the long half of the scale by turns.
            length = int(_SHORTEST * (_LONGEST / _SHORTEST) ** ((number % 2 + self._rng.random()) / 2))
            length, first = min(length, math.ceil(recording.n_rows / 2) if bounded else recording.n_rows), 0
            if bounded:
                low, high = 0, recording.n_rows - length
                if holds is not None:
                    low, high = max(low, holds - length + 1), min(high, holds)
                first = int(self._rng.integers(low, high + 1))
            elif holds is not None:
                length = max(length, holds + 1)
            last = first + length
            start, stop = max(0, first - memory), min(recording.n_rows, last + self.traits.look_ahead)
            found = self._ask(recording, start, stop)[first - start : last - start]
            expected = scores[first:last]
            row = difference(found, expected, whole=scores)[0] if what else None
            if row is not None:
                before = f"the {memory} rows before it" if bounded else "the rows before it"
                raise BoxFailure(
                    "invalid",
                    f"replay: row {first + row} of recording {recording.id!r} has {what} of {expected[row]:.6g} in the "
                    f"whole recording, and scores {found[row]:.6g} in its rows {start} to {stop - 1} by themselves, "
                    f"under another id and clock: its score depends on something else than itself, {before} and the "
                    f"{self.traits.look_ahead} after it (traits.memory, traits.look_ahead)",
                )
            compared.append((found, expected))
            self._n_rows += length
        return np.concatenate([one for one, _ in compared]), np.concatenate([one for _, one in compared])

    def _high_row(self, scores: FloatArray) -> int | None:
        """Return one of the rows with the highest scores, of those that any crop may hold."""
        within = scores if self.traits.memory is not None else scores[:_LONGEST]
        scored = np.flatnonzero(np.isfinite(within))
        if not len(scored):
            return None
        n_high = math.ceil(_HIGHEST * len(scored))
        return int(self._rng.choice(scored[np.argpartition(within[scored], -n_high)[-n_high:]]))

    def _behind_other_beginnings(self, test: Sequence[_Pair]) -> list[float]:
        """Return rank correlations of scores behind normal rows with those from before."""
        least = _SETTLING + _RANKED
        long = [pair for pair in test if pair[0].n_rows >= least]
        correlations: list[float] = []
        self._n_rows = 0
        for number, recording, scores in self._drawn(long, 1.0, 1) if long else ():
            # A recording's start, then parts from within: what begins at some row shows in the first.
            length, first = min(_LONGEST_PART, recording.n_rows), 0
            if number:
                length = int(self._rng.integers(least, length + 1))
                first = int(self._rng.integers(recording.n_rows - length + 1))
            expected = scores[first + _SETTLING : first + length]
            again = []
            for n_before in (int(self._rng.integers(*bounds)) for bounds in _BEGINNINGS):
                joined = _joined(self._normal_rows(n_before), recording.rows(first, first + length))
                again.append(self._ask(joined)[n_before + _SETTLING :])
            # What rises with every row has the same ranks behind each beginning by itself, but not behind both.
            both = _rank_correlation(np.concatenate(again), np.concatenate([expected] * len(again)))
            correlations += [*(_rank_correlation(found, expected) for found in again), both]
            self._n_rows += len(expected)
        return correlations

    def _normal_rows(self, n_rows: int) -> FloatArray:
        """Return that many normal rows [n_rows, n_sensors]: a block of a training recording, or several."""
        training, blocks = self.scored.episode.train, []
        while n_rows > 0:
            values = training[int(self._rng.integers(len(training)))].values
            start = int(self._rng.integers(max(1, len(values) - n_rows + 1)))
            blocks.append(values[start : start + n_rows])
            n_rows -= len(blocks[-1])
        return np.concatenate(blocks)

    def _ask(self, recording: Recording, start: int = 0, stop: int | None = None) -> FloatArray:
        """Return what the copy answers, under an id and a clock of its own."""
        self._n_asked += 1
        begin = time.perf_counter()
        try:
            return self.copy.score_again(recording, f"replay {self._n_asked}", start, stop)
        except BoxFailure as failure:
            reason = f"when rows were scored again: {failure.reason}"
            raise BoxFailure(failure.status, reason, failure.traceback) from failure
        finally:
            self._spent += time.perf_counter() - begin


def combined(replays: Sequence[Replay]) -> Replay | None:
    """Return what was found in several episodes of a trial: the weakest copy, the worst of each number."""
    weakest = Replay.weakest(replays)
    return None if weakest is None else replace(weakest, rows=sum(one.rows for one in replays))


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
    return float(np.corrcoef(_ranks(found, np.sort(found)), _ranks(expected, np.sort(expected)))[0, 1])


def _ranks(scores: FloatArray, in_order: FloatArray) -> FloatArray:
    """Return the ranks that scores have among sorted ones; the mean of the first and the last if some are equal."""
    return (np.searchsorted(in_order, scores) + np.searchsorted(in_order, scores, "right")) / 2


def _same_ranks(found: FloatArray, expected: FloatArray, everything: FloatArray) -> float:
    """Return Spearman's coefficient of the ranks that scores and fresh ones have among all scores."""
    in_order = np.sort(everything[np.isfinite(everything)])
    both = np.isfinite(found) & np.isfinite(expected)
    if not both.any():
        return 1.0
    ranks = [_ranks(scores[both], in_order) for scores in (found, expected)]
    return float(1.0 - 6.0 * np.mean(((ranks[0] - ranks[1]) / len(in_order)) ** 2))


def _ratio(training: FloatArray, fresh: FloatArray, quantile: float) -> float | None:
    """Return the ratio of a quantile of training scores to that of fresh ones; None unless both are above zero."""
    if np.isnan(training).all() or np.isnan(fresh).all():
        return None
    of_training, of_fresh = (np.nanquantile(scores, quantile) for scores in (training, fresh))
    return float(of_training / of_fresh) if min(of_training, of_fresh) > 0 else None
