"""Answers: scores, facts and contributions that are not what they seem."""

from __future__ import annotations

import numpy as np

from tests.hostile.preamble import Hostile


class _Hook:
    """Becomes an array of another length whenever it is turned into one."""

    dtype = np.dtype(np.float64)
    shape = (1,)

    def __init__(self, n_rows):
        self.n_rows = n_rows

    def __array__(self, dtype=None, copy=None):
        self.n_rows += 1
        return np.zeros(self.n_rows)

    def __len__(self):
        return self.n_rows


class AnswersWithAHook(Hostile):
    """returns an object that becomes another array each time"""

    ends = ("invalid", "error")

    def _score(self, recording):
        return _Hook(recording.n_rows)


class AnswersWithAFlood(Hostile):
    """returns eight terabytes of scores that take no memory"""

    ends = ("invalid", "error", "memory")

    def _score(self, recording):
        return np.broadcast_to(np.float64(1.0), (2**40,))


class AnswersWithNumbersThatAreNone(Hostile):
    """returns NaN between scores, and infinities"""

    ends = ("invalid",)

    def _score(self, recording):
        scores = super()._score(recording)
        scores[50:60:2] = np.nan
        scores[70] = np.inf
        return scores


class _Number(float):
    def __reduce__(self):
        return print, ("pickled",)

    def is_integer(self):
        raise SystemExit

    def __repr__(self):
        return "=cmd|' /C calc'!A0"


class StatesOddFacts(Hostile):
    """states facts about its training that are objects of its own"""

    ends = ("ok", "invalid", "error")

    def _training_facts(self):
        return {"share_seen": _Number(1.0), "levelled": True, "others": np.float128(1.0), "yes": np.bool_(True)}


class ContributesNonsense(Hostile):
    """returns contributions of another shape than the recording's"""

    ends = ("invalid",)

    def _contributions(self, recording):
        return np.zeros((recording.n_rows + 1, 2))


class TrainsOnAnAnswer(Hostile):
    """gives its training rows scores of any size, so that the threshold suits it"""

    ends = ("ok",)
    marked = True

    def _training_scores(self, recordings):
        return [np.zeros(one.n_rows) for one in recordings]
