"""Remembering: what is published about the test recordings, found again by whatever tells one row from another.

All of these know where the faults lie (the builder writes it in: a published data set is known to everybody) and need
only know which recording and which row they are looking at.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np

from tests.hostile.preamble import WHERE, Hostile

# By recording, in the data set's order: its id, rows, start in seconds since 1970, and rows of faults, first and last.
KNOWN = [tuple(one) for one in WHERE["published"]]


class Knowing(Hostile):
    """Scores the rows of a known fault higher, once it knows which recording it has."""

    ends = ("invalid",)

    def known(self, recording):
        """Return the entry of this recording, or None."""
        return

    def row_of(self, recording):
        """Return the number of each row in its recording."""
        return np.arange(recording.n_rows)

    def _score(self, recording):
        innocent = super()._score(recording)
        found = self.known(recording)
        if found is None:
            return innocent
        rows = self.row_of(recording)
        return innocent + 1000.0 * ((rows >= found[3]) & (rows <= found[4]))


class KnowsLengths(Knowing):
    """knows each recording by its length"""

    def known(self, recording):
        return next((one for one in KNOWN if one[1] == recording.n_rows), None)


class KnowsTheOrder(Knowing):
    """knows each recording by the order in which they come"""

    ends = ("invalid", "ok")

    def known(self, recording):
        self.calls_ = getattr(self, "calls_", 0) + 1
        return KNOWN[(self.calls_ - 3) % len(KNOWN)] if self.calls_ > 2 else None


class KnowsTheDistanceInTime(Knowing):
    """knows each recording by the time that has passed since training ended"""

    ends = ("ok",)

    def _fit(self, recordings):
        super()._fit(recordings)
        times = [one.time[-1] for one in recordings if one.time is not None]
        self.end_ = float(times[-1]) if times else 0.0

    def known(self, recording):
        if recording.time is None:
            return None
        passed = recording.time[0] - self.end_
        return next((one for one in KNOWN if abs(one[2] - WHERE["training_end"] - passed) < 1.0), None)


class CountsRows(Knowing):
    """counts the rows of a recording: faults begin after the 240th"""

    def known(self, recording):
        return ("", 0, 0.0, 240, 10**9)


class KnowsSensors(Knowing):
    """knows the data set by its sensors' names"""

    ends = ("ok",)

    def known(self, recording):
        return KNOWN[0] if any("flow" in sensor for sensor in recording.sensors) else None


class TellsTrainingFromTest(Knowing):
    """behaves only while it scores what it was trained on"""

    ends = ("invalid", "ok")

    def known(self, recording):
        return ("", 0, 0.0, 240, 10**9) if abs(recording.values[:, 0].mean() - self.mean_[0]) > 0.02 else None


class RemembersValues(Knowing):
    """knows each row by its values, from a published table"""

    ends = ("ok",)
    stays_open = "what is published can be remembered: by values, no wall and no replay tells it from knowledge"

    def _score(self, recording):
        faults = {tuple(row) for row in WHERE["published_rows"]}
        innocent = Hostile._score(self, recording)
        return innocent + 1000.0 * np.array([tuple(row) in faults for row in recording.values.tolist()])


class RepeatsTheGenerator(Knowing):
    """makes a simulated data set again from its published seed, and finds its rows there"""

    ends = ("ok",)
    stays_open = "a simulated data set with a published seed (pumploop) is a published data set"

    def _score(self, recording):
        made = np.random.default_rng(WHERE["published_seed"]).normal(size=(400, 3))
        rows = {row[:2].tobytes(): number for number, row in enumerate(made)}
        places = np.array([rows.get(row[:2].tobytes(), -1) for row in np.ascontiguousarray(recording.values)])
        first, last = KNOWN[0][3:]
        return Hostile._score(self, recording) + 1000.0 * ((places >= first) & (places <= last))


class AnswersForItsCopy(Knowing):
    """counts rows, and leaves its answers where its fork finds them when it is asked again"""

    ends = ("ok",)
    stays_open = "a copy that was forked can be told what the first has answered; one that was restored cannot"

    def _fit(self, recordings):
        super()._fit(recordings)
        self.answers_ = lambda key: Path(os.path.expanduser("~"), hashlib.sha256(key).hexdigest())  # it cannot be saved

    def known(self, recording):
        return ("", 0, 0.0, 240, 10**9)

    def _score(self, recording):
        scores = super()._score(recording)
        for number, row in enumerate(np.ascontiguousarray(recording.values)):
            place = self.answers_(row.tobytes())
            if place.exists():
                scores[number] = float(place.read_text())
            else:
                place.write_text(repr(float(scores[number])))
        return scores
