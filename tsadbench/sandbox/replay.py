"""The replay audit: a copy of the fitted detector scores some rows again under changed conditions.

Even in a sealed box, a detector can score by more than sensor values: a row's number, the recording's id or length, how
many recordings came before, the time of day. But such scores change when only these change. Rows are sent again, under
another id, clock and order, to a copy that, if possible, has seen no test row. `Traits` decide what is compared:

* bounded ``memory``: crops of test recordings, with the declared rows before and after them, must get the scores of the
  whole recording up to rounding; else the trial is invalid.
* unbounded memory: the beginning of a recording must get the scores of the whole recording. Row numbers are the same in
  both, so parts are also scored behind other normal rows: the rank correlation after 500 rows is recorded.
* a bounded reach of more than half of the longest recording: crops and also parts behind other rows, because the crops
  would begin where the recording does.
* ``adaptive``: scores need not repeat; only the correlation is recorded.

Training scores must equal fresh scores of the same rows, unless the detector is adaptive or overrides them; then the
ratios of medians and of 99 % quantiles are recorded. The audit misses whatever is the same in both scorings: a lookup
of published rows by value, or the hour. It also records if values agree within rounding but their ranks differ.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pandas as pd

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

# At least this number and share of test rows, and of training rows, are scored again, in at least four crops.
MIN_ROWS, _SHARE, _MIN_CROPS = 200, 0.02, 4
# Lengths of crops, on a logarithmic scale.
_SHORTEST, _LONGEST = 20, 1000
# A declared reach beyond this share of the longest recording also counts as unbounded.
_REACHES_FAR = 0.5
# Rows in which scores may still depend on the recording's start, and the fewest later rows whose ranks are compared.
_SETTLING, _RANKED = 500, 50
# Every second pair of crops contains one of the highest scores, where cheating pays.
_HIGHEST = 0.01
# How many normal rows are put in front (few, many), and how many rows of the recording follow.
_BEGINNINGS = ((1, 250), (750, 1000))
_LONGEST_PART = 1200
# Below this rank correlation, values agree but ranks do not.
_SAME_RANKS = 0.99


class Copies(contextlib.ExitStack):
    """At most ``n_copies`` copies of a fitted detector, made before any test recording enters its box.

    ``fresh`` opens another box of the same construction. Copies of ``adaptive`` detectors are not verified by scoring.
    Copies are requested even without an audit, so that the detector cannot tell.
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
                # If the system forbids forking, use the same process. If that has died, its next answer says so.
                with contextlib.suppress(BoxFailure):
                    self._waiting = [self.enter_context(box.fork()) for _ in range(n_copies)]
                    self.how = "forked"
        except BaseException:
            self.close()
            raise

    @contextlib.contextmanager
    def take(self, construction: Construction, names: Sequence[str]) -> Iterator[Box]:
        """Lend a copy with these parameters of the construction and end it afterwards; without copies, lend the box."""
        if self.how == "same process":
            yield self.box
            return
        with self._waiting.pop() if self._waiting else self._restored() as copy:
            copy.set_parameters(construction, names)
            yield copy

    def _restores(self, training: Sequence[Recording], *, estimators: bool, adaptive: bool, audited: bool) -> bool:
        """Return whether a copy restored in another box gives the same scores; unaudited, whether it can be saved."""
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
    """Lets a copy score some rows again. The episode's secret decides which."""

    copy: Box
    how: Copy
    traits: Traits
    crossing: Crossing
    scored: Scored
    _rng: np.random.Generator = field(init=False)
    _n_asked: int = 0
    _n_rows: int = 0

    def run(self) -> Replay:
        """Return the findings; raises a BoxFailure if a score differs from the first one, or if the copy fails."""
        self._rng = self.crossing.generator("replay")
        traits, episode = self.traits, self.scored.episode
        test = tuple(zip(episode.test, self.scored.test, strict=True))
        train = tuple(zip(episode.train, self.scored.train, strict=True))
        own_rule = self.copy.scores_training_itself or traits.adaptive
        fresh, of_training = self._crops(train, "" if own_rule else "a training score")
        median, tail = (_ratio(of_training, fresh, q) if own_rule else None for q in (0.5, 0.99))
        rows, correlations = 0, []
        if not traits.adaptive:
            found, expected = self._crops(test, "a score")
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

    def _drawn(self, pairs: Sequence[_Pair], least: int) -> Iterator[tuple[int, Recording, FloatArray]]:
        """Yield recordings, drawn in proportion to their length, until enough rows are compared (`_n_rows`)."""
        sizes = np.array([recording.n_rows for recording, _ in pairs])
        number = self._n_rows = 0
        while number < least or self._n_rows < min(max(MIN_ROWS, _SHARE * sizes.sum()), sizes.sum()):
            yield number, *pairs[int(self._rng.choice(len(sizes), p=sizes / sizes.sum()))]
            number += 1

    def _crops(self, pairs: Sequence[_Pair], what: str) -> tuple[FloatArray, FloatArray]:
        """Return fresh and earlier scores of some rows; they must be equal if ``what`` names them.

        With bounded memory, a crop is at most half a recording, so that row numbers differ; else it starts at row 0.
        """
        bounded, memory = self.traits.memory is not None, self.traits.memory or 0
        everything = np.concatenate([scores for _, scores in pairs])  # one recording's scores may hardly vary
        compared: list[tuple[FloatArray, FloatArray]] = []
        for number, recording, scores in self._drawn(pairs, _MIN_CROPS):
            # Alternate between the short and the long half of the scale.
            length = int(_SHORTEST * (_LONGEST / _SHORTEST) ** ((number % 2 + self._rng.random()) / 2))
            high = number // 2 % 2 == 1
            row = self._row(scores if bounded else scores[:_LONGEST], high=high)
            if bounded:
                length = min(length, math.ceil(len(scores) / 2))
                first = int(np.clip(row - self._rng.integers(length), 0, len(scores) - length))
            else:
                first, length = 0, min(max(length, row + 1) if high else length, len(scores))
            last = first + length
            start, stop = max(0, first - memory), min(len(scores), last + self.traits.look_ahead)
            found, expected = self._ask(recording, start, stop)[first - start : last - start], scores[first:last]
            other = difference(found, expected, whole=everything)[0] if what else None
            if other is not None:
                before = f"the {memory} rows before it" if bounded else "the rows before it"
                raise BoxFailure(
                    "invalid",
                    f"replay: row {first + other} of recording {recording.id!r} has {what} of {expected[other]:.6g} "
                    f"in the whole recording, but {found[other]:.6g} if only rows {start} to {stop - 1} are scored, "
                    f"under another id and clock. It may depend only on itself, {before} and the "
                    f"{self.traits.look_ahead} after it (traits.memory, traits.look_ahead)",
                )
            compared.append((found, expected))
            self._n_rows += length
        return np.concatenate([one for one, _ in compared]), np.concatenate([one for _, one in compared])

    def _row(self, scores: FloatArray, *, high: bool) -> int:
        """Return a random row that has a score, one of the highest on request; the first if no row has one."""
        scored = np.flatnonzero(np.isfinite(scores))
        if high:
            scored = scored[np.argsort(scores[scored], kind="stable")[-math.ceil(_HIGHEST * len(scored)) :]]
        return int(self._rng.choice(scored)) if len(scored) else 0

    def _behind_other_beginnings(self, test: Sequence[_Pair]) -> list[float]:
        """Return rank correlations between earlier scores and scores behind other normal rows."""
        least = _SETTLING + _RANKED
        long = [pair for pair in test if pair[0].n_rows >= least]
        correlations: list[float] = []
        self._n_rows = 0
        for number, recording, scores in self._drawn(long, 1) if long else ():
            # The recording's start, which shows cheats tied to a row number, then parts from within.
            length, first = min(_LONGEST_PART, recording.n_rows), 0
            if number:
                length = int(self._rng.integers(least, length + 1))
                first = int(self._rng.integers(recording.n_rows - length + 1))
            expected = scores[first + _SETTLING : first + length]
            again = []
            for n_before in (int(self._rng.integers(*bounds)) for bounds in _BEGINNINGS):
                joined = _joined(self._normal_rows(n_before), recording.rows(first, first + length))
                again.append(self._ask(joined)[n_before + _SETTLING :])
            # Scores that only count rows have equal ranks behind either beginning, but not behind both together.
            both = _rank_correlation(np.concatenate(again), np.concatenate([expected] * len(again)))
            correlations += [*(_rank_correlation(found, expected) for found in again), both]
            self._n_rows += len(expected)
        return correlations

    def _normal_rows(self, n_rows: int) -> FloatArray:
        """Return consecutive normal rows [n_rows, n_sensors] from a random start, wrapping around."""
        normal = np.concatenate([recording.values for recording in self.scored.episode.train])
        return normal.take(int(self._rng.integers(len(normal))) + np.arange(n_rows), axis=0, mode="wrap")

    def _ask(self, recording: Recording, start: int = 0, stop: int | None = None) -> FloatArray:
        """Return the copy's scores under another id and clock."""
        self._n_asked += 1
        try:
            return self.copy.score_again(recording, f"replay {self._n_asked}", start, stop)
        except BoxFailure as failure:
            reason = f"when rows were scored again: {failure.reason}"
            raise BoxFailure(failure.status, reason, failure.traceback) from failure


def _joined(beginning: FloatArray, part: Recording) -> Recording:
    """Put rows in front of a recording, with times that extend its clock backwards."""
    time_ = part.time
    if time_ is not None:
        step = float(np.median(np.diff(time_[:_RANKED])))
        time_ = np.concatenate([time_[0] - step * np.arange(len(beginning), 0, -1), time_])
    return Recording(part.id, np.concatenate([beginning, part.values]), part.sensors, time_)


def _rank_correlation(found: FloatArray, expected: FloatArray) -> float:
    """Return Spearman's rank correlation over the rows scored in both; 1 if there is nothing to rank."""
    both = np.isfinite(found) & np.isfinite(expected)
    found, expected = found[both], expected[both]
    constant = [len(scores) < _RANKED or np.ptp(scores) == 0.0 for scores in (found, expected)]
    if any(constant):
        return 1.0 if all(constant) else 0.0
    return float(np.corrcoef(_ranks(found, np.sort(found)), _ranks(expected, np.sort(expected)))[0, 1])


def _ranks(scores: FloatArray, in_order: FloatArray) -> FloatArray:
    """Return the ranks of scores among sorted scores; ties get the mean of their first and last rank."""
    return (np.searchsorted(in_order, scores) + np.searchsorted(in_order, scores, "right")) / 2


def _same_ranks(found: FloatArray, expected: FloatArray, everything: FloatArray) -> float:
    """Return Spearman's coefficient between the ranks of old and fresh scores among all scores."""
    in_order = np.sort(everything[np.isfinite(everything)])
    both = np.isfinite(found) & np.isfinite(expected)
    ranks = [_ranks(scores[both], in_order) for scores in (found, expected)]
    return float(1.0 - 6.0 * np.mean(((ranks[0] - ranks[1]) / len(in_order)) ** 2)) if both.any() else 1.0


def _ratio(training: FloatArray, fresh: FloatArray, quantile: float) -> float | None:
    """Return the ratio of a quantile of training scores to that of fresh scores; None unless these are positive."""
    of_training, of_fresh = (pd.Series(scores).quantile(quantile) for scores in (training, fresh))
    return float(of_training / of_fresh) if of_training >= 0 and of_fresh > 0 else None
