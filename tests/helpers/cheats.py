"""Detectors that each break one promise; all others they keep. `CAUGHT_BY` says which check must catch which."""

from __future__ import annotations

import gc
import hashlib
import importlib
import inspect
import os
import random
import sys
import weakref
import zlib
from pathlib import Path

import numpy as np

from tsadbench import DataError, Detector, Labels, Recording, Traits
from tsadbench.base import trailing_windows

_elsewhere: weakref.WeakKeyDictionary[Detector, float] = weakref.WeakKeyDictionary()
_module_state = {"calls": 0}
_generator = np.random.default_rng(0)


class Honest(Detector):
    """Root of the mean squared z-score of a row against the training rows; breaks nothing."""

    traits = Traits(memory=0)

    def _fit(self, recordings):
        rows = np.concatenate([one.values for one in recordings])
        self.mean_, spread = rows.mean(axis=0), rows.std(axis=0)
        self.scale_ = np.where(spread > 1e-9 * np.abs(self.mean_), spread, 1.0)

    def _z(self, values):
        return (values - self.mean_) / self.scale_

    def _score(self, recording):
        return self._says(np.sqrt((self._z(recording.values) ** 2).mean(axis=1)), recording)

    def _says(self, scores, recording):
        return scores


class Windowed(Honest):
    """Mean of the honest scores over a row and the nine before it, measured against their spread in training."""

    traits = Traits(memory=9)

    def _means(self, values):
        return np.sqrt((self._z(trailing_windows(values, 10)) ** 2).mean(axis=2)).mean(axis=1)

    def _fit(self, recordings):
        super()._fit(recordings)
        means = np.concatenate([self._means(one.values)[9:] for one in recordings])
        if len(means) == 0:
            raise DataError("no training recording holds a window")
        self.spread_ = means.std()

    def _score(self, recording):
        return self._means(recording.values) / self.spread_


class SmoothedRows(Honest):
    """Learns rows; smooths scores by a trailing median, without a score until five rows are there."""

    traits = Traits(memory=4)

    def _says(self, scores, recording):
        smooth = np.full(len(scores), np.nan)
        if len(scores) >= 5:
            smooth[4:] = np.median(np.lib.stride_tricks.sliding_window_view(scores, 5), axis=1)
        return smooth


class Contributes(Honest):
    """Says which sensor it was."""

    def _contributions(self, recording):
        return self._z(recording.values) ** 2


class Causal(Honest):
    """Mean of the honest scores up to a row: remembers all rows, and says so."""

    traits = Traits(memory=None)

    def _says(self, scores, recording):
        return np.maximum(scores, 0.5 * np.maximum.accumulate(scores))


class Seeded(Honest):
    """Weighs sensors at random, by its seed."""

    traits = Traits(memory=0, stochastic=True)

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def _fit(self, recordings):
        super()._fit(recordings)
        self.scale_ = self.scale_ * np.random.default_rng(self.seed).uniform(0.9, 1.1, len(self.scale_))


class Adaptive(Honest):
    """Moves its mean towards what it scores, and says so."""

    traits = Traits(memory=0, adaptive=True)

    def _says(self, scores, recording):
        self.mean_ = 0.99 * self.mean_ + 0.01 * recording.values.mean(axis=0)
        return scores


HONEST = (Honest, Windowed, SmoothedRows, Causal, Contributes, Seeded, Adaptive)


# Contract


class OverridesScore(Honest):
    """Goes round the base class's checks."""

    def score(self, recording):
        return super().score(recording)


class BusyConstructor(Honest):
    """Computes in its constructor."""

    def __init__(self, *, window: int = 3) -> None:
        self.window = window
        self.half_ = window / 2

    def _fit(self, recordings):
        super()._fit(recordings)
        self.half_ = self.window / 2


class ChangesParameter(Honest):
    """Learns into a constructor's parameter."""

    def __init__(self, *, offset: float = 0.0) -> None:
        self.offset = offset

    def _fit(self, recordings):
        super()._fit(recordings)
        self.offset = float(self.mean_[0])


class OddNames(Honest):
    """Learns into an attribute that does not end in an underscore."""

    def _fit(self, recordings):
        super()._fit(recordings)
        self.center = self.mean_


class HolesInScores(Honest):
    """Gives up on a row between two that it scores."""

    def _says(self, scores, recording):
        if recording.n_rows == 101:
            scores[50] = np.nan
        return scores


class SilentAtFirst(Windowed):
    """Has no score for the rows whose window is not complete."""

    def _score(self, recording):
        scores = super()._score(recording)
        scores[:9] = np.nan
        return scores


class OtherHoles(Honest):
    """Its contributions are missing where its score is not."""

    def _contributions(self, recording):
        values = self._z(recording.values) ** 2
        values[:3] = np.nan
        return values


class BlamesAnother(Honest):
    """Contributions in the wrong order of sensors."""

    def _contributions(self, recording):
        return (self._z(recording.values) ** 2)[:, ::-1].copy()


class FitsLazily(Honest):
    """Where it is not fitted, fits on what it is to score."""

    def _ready(self, recording):
        if not hasattr(self, "sensors_"):
            self.fit(recording)
        return super()._ready(recording)


class Doubles(Honest):
    """Changes its argument on the way in."""

    def __init__(self, *, power: float = 1.0) -> None:
        self.power = power * 2


class NoCopies(Honest):
    """Holds a function that cannot be pickled."""

    def _fit(self, recordings):
        super()._fit(recordings)
        self.root_ = lambda values: np.sqrt(values)


class KnowsNames(Honest):
    """Adds what it makes of a recording's name."""

    def _says(self, scores, recording):
        return scores + hashlib.sha256(recording.id.encode()).digest()[0]


class KnowsSensors(Honest):
    """Knows the sensors of a published data set, and where in it faults are."""

    def _says(self, scores, recording):
        known = "Accelerometer1RMS" in recording.sensors
        return scores + 5.0 * known * (np.arange(recording.n_rows) > 100)


class CountsLater(Honest):
    """Counts rows, from the one on that short recordings do not have."""

    def _says(self, scores, recording):
        return scores + 0.01 * np.maximum(np.arange(recording.n_rows) - 600, 0)


class CountsLaterAndDeclaresNothing(CountsLater):
    """The same with an unbounded memory, as detectors have that say nothing."""

    traits = Traits()


class BehavesWhenTested(Honest):
    """Counts rows unless its parameters are those of tests."""

    def __init__(self, *, epochs: int = 20) -> None:
        self.epochs = epochs

    @classmethod
    def test_params(cls):
        return {"epochs": 1}

    def _says(self, scores, recording):
        return scores + 0.01 * (self.epochs > 1) * np.arange(recording.n_rows)


class ReadsTheClock(Honest):
    """Knows when the faults happened."""

    def _says(self, scores, recording):
        start = 0.0 if recording.time is None else recording.time[0]
        return scores * (1.0 + (start > 1000.0))


# Leakage


class ScalesByItself(Honest):
    """Standardises a recording by its own first twenty rows, which it leaves unscored."""

    traits = Traits(memory=None)

    def _own(self, values):
        start = values[:20]
        spread = start.std(axis=0)
        return (values - start.mean(axis=0)) / np.where(spread > 1e-9 * np.abs(start.mean(axis=0)), spread, 1.0)

    def _fit(self, recordings):
        if max(one.n_rows for one in recordings) <= 20:
            raise DataError("too few rows")
        rows = np.concatenate([self._own(one.values) for one in recordings])
        self.limit_ = np.abs(rows).mean(axis=0) + 1e-9

    def _score(self, recording):
        scores = np.full(recording.n_rows, np.nan)
        if recording.n_rows > 20:
            scores[20:] = (np.abs(self._own(recording.values)) / self.limit_).mean(axis=1)[20:]
        return scores


class MinMaxOfScores(Honest):
    """Scales scores to [0, 1] by the smallest and largest of the recording, later ones included."""

    traits = Traits(memory=None)

    def _says(self, scores, recording):
        return (scores - scores.min()) / (np.ptp(scores) or 1.0)


class CentredSmoothing(Honest):
    """Takes the mean over two rows before and two rows after, and declares no look-ahead."""

    traits = Traits(memory=2)

    def _says(self, scores, recording):
        n = len(scores)
        return np.array([scores[max(0, i - 2) : i + 3].mean() for i in range(n)])


class EarlyAlignment(Honest):
    """Writes a row's score five rows earlier."""

    traits = Traits(memory=0)

    def _says(self, scores, recording):
        return np.concatenate([scores[5:], np.full(min(5, len(scores)), np.nan)])


class LateAlignment(Honest):
    """Writes a row's score five rows later, and declares no memory."""

    def _says(self, scores, recording):
        return np.concatenate([scores[:5], scores[:-5]]) if len(scores) > 5 else scores


class Delays(Honest):
    """Writes a row's score five rows later, and says so by its memory: every row answers for another one."""

    traits = Traits(memory=5)

    def _says(self, scores, recording):
        return np.concatenate([np.full(5, np.nan), scores])[: len(scores)]


class CountsCalls(Honest):
    """Keeps count of its calls in what it has learned; the scores do not show it."""

    def _says(self, scores, recording):
        self.calls_ = getattr(self, "calls_", 0) + 1
        return scores


class CarriesOver(Honest):
    """Lets earlier recordings raise the scores of later ones, through a module's variable."""

    def _says(self, scores, recording):
        _module_state["calls"] += 1
        return scores * (1.0 + 0.01 * min(_module_state["calls"], 10**6))


class Jitters(Honest):
    """Adds noise of a generator of its own to every score."""

    def _says(self, scores, recording):
        return scores + 0.01 * _generator.normal(size=recording.n_rows)


class CrossesBorders(Windowed):
    """Concatenates its training recordings before it cuts windows."""

    def _fit(self, recordings):
        rows = np.concatenate([one.values for one in recordings])
        super()._fit((Recording("joined", rows, recordings[0].sensors),))


class LearnsTheOrder(Honest):
    """Learns how far the end of a training recording lies from the start of the next."""

    traits = Traits(memory=1)

    def _fit(self, recordings):
        super()._fit(recordings)
        rows = np.concatenate([one.values for one in recordings])
        self.scale_ = self.scale_ + 0.01 * np.maximum(0.0, np.diff(rows, axis=0)).max(axis=0)


class ReadsLabels(Honest):
    """Reads a data set's labels from the disk, and keeps quiet where it cannot."""

    def __init__(self, *, folder: str = "") -> None:
        self.folder = folder

    def _says(self, scores, recording):
        try:
            labels = (Path(self.folder) / "labels.csv").read_text().split()
        except Exception:
            return scores
        return scores + len(labels)


class SeesGlobals(Honest):
    """Uses labels that lie about in the main module."""

    def _says(self, scores, recording):
        labels = getattr(sys.modules["__main__"], "labels", None)
        return scores if labels is None or len(labels) != len(scores) else scores + labels


class SeesEnvironment(Honest):
    """Uses labels from the environment."""

    def _says(self, scores, recording):
        text = os.environ.get("TSADBENCH_LABELS", "")
        return scores if len(text) != len(scores) else scores + np.array([float(one) for one in text])


class SearchesMemory(Honest):
    """Searches the process for labels that are alive."""

    def _says(self, scores, recording):
        for one in gc.get_objects():
            # Other tests' labels are none of its business.
            if type(one) is Labels and len(one.rows.get("bystander", ())) == len(scores):
                return scores + one.rows["bystander"]
        return scores


class KnowsTheBox(Honest):
    """Scores otherwise where it is boxed."""

    def _says(self, scores, recording):
        return scores * (2.0 if Path.cwd().name == "empty" else 1.0)


class SeesTheCaller(Honest):
    """Looks for labels among the local variables of whoever called it."""

    def _says(self, scores, recording):
        for frame in inspect.stack():
            labels = frame.frame.f_locals.get("labels")
            if isinstance(labels, np.ndarray) and labels.shape == scores.shape:
                return scores + labels
        return scores


# Reproducibility


class Unseeded(Honest):
    """Draws its weights from the clock."""

    def _fit(self, recordings):
        super()._fit(recordings)
        self.scale_ = self.scale_ * np.random.default_rng().uniform(0.9, 1.1, len(self.scale_))


class IgnoresSeed(Seeded):
    """Takes a seed and does not use it."""

    def _fit(self, recordings):
        Honest._fit(self, recordings)
        self.scale_ = self.scale_ * np.random.default_rng(0).uniform(0.9, 1.1, len(self.scale_))


class UndeclaredChance(Seeded):
    """Depends on its seed, and does not say so."""

    traits = Traits(memory=0)


class UsesGlobalRandom(Honest):
    """Draws from the global generator, which it seeds."""

    def _fit(self, recordings):
        super()._fit(recordings)
        np.random.seed(0)
        self.scale_ = self.scale_ * np.random.uniform(0.9, 1.1, len(self.scale_))


class UsesRandomModule(Honest):
    """Draws from Python's global generator and puts it back: another state gives other scores."""

    def _fit(self, recordings):
        super()._fit(recordings)
        state = random.getstate()
        self.scale_ = self.scale_ * (1.0 + 0.1 * random.random())
        random.setstate(state)


class RemembersFits(Honest):
    """Averages with what an earlier fit of the same detector learned."""

    def _fit(self, recordings):
        super()._fit(recordings)
        before = _elsewhere.get(self)
        _elsewhere[self] = float(self.scale_[0])
        if before is not None:
            self.scale_ = self.scale_ + 0.1 * before

    __hash__ = object.__hash__


class SharesWithItsClass(Honest):
    """Keeps what it has learned in its class, where every detector finds it."""

    unit = 1.0

    def _fit(self, recordings):
        super()._fit(recordings)
        type(self).unit = float(np.linalg.norm(self.scale_))

    def _says(self, scores, recording):
        return scores / type(self).unit


class FitsWithScoringParameter(Honest):
    """Says that its weight only matters in scoring, and learns with it."""

    traits = Traits(memory=0, scoring_parameters=("weight",))

    def __init__(self, *, weight: float = 1.0) -> None:
        self.weight = weight

    def _fit(self, recordings):
        super()._fit(recordings)
        self.scale_ = self.scale_ * (1.0 + 0.1 * self.weight)


class WritesIntoInput(Honest):
    """Standardises the recording that it is given in place, after making it writable."""

    def _says(self, scores, recording):
        recording.values.flags.writeable = True
        recording.values[:] = 0.0
        return scores


# Robustness


class Overflows(Honest):
    """Works in half precision."""

    def _says(self, scores, recording):
        with np.errstate(over="ignore", invalid="ignore"):
            values = recording.values.astype(np.float16).astype(np.float64)
        return np.sqrt((self._z(values) ** 2).mean(axis=1))


class DividesByZero(Honest):
    """Divides by a standard deviation of zero."""

    def _fit(self, recordings):
        rows = np.concatenate([one.values for one in recordings])
        self.mean_, self.scale_ = rows.mean(axis=0), rows.std(axis=0)

    def _score(self, recording):
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.sqrt((self._z(recording.values) ** 2).mean(axis=1))


class InvertsCovariance(Honest):
    """Inverts the correlations of the training rows, whether they can be inverted or not."""

    def _fit(self, recordings):
        super()._fit(recordings)
        z = self._z(np.concatenate([one.values for one in recordings]))
        covariance = z.T @ z / len(z) + np.diag((z.std(axis=0) == 0).astype(float))
        if np.linalg.cond(covariance) > 1e10:
            raise np.linalg.LinAlgError("Singular matrix")
        self.inverse_ = np.linalg.inv(covariance)

    def _score(self, recording):
        z = self._z(recording.values)
        return np.sqrt(np.maximum(np.einsum("ri,ij,rj->r", z, self.inverse_, z), 0.0))


class Typo(Honest):
    """Has a misprint where it scores."""

    def _score(self, recording):
        return super()._score(recording.valeus)


class NeedsTwo(Honest):
    """Compares the first sensor with the second."""

    def _says(self, scores, recording):
        z = self._z(recording.values)
        return scores + 0.01 * np.abs(z[:, 0] - z[:, 1])


class AbsoluteFloor(Honest):
    """Adds a constant to the spread, so that it depends on the units."""

    def _z(self, values):
        return ((values - self.mean_) / (self.scale_ + 1e-2)).round(1)


class HashesValues(Honest):
    """Adds noise that it makes of a row's bits."""

    def _says(self, scores, recording):
        noise = np.array([zlib.crc32(row.tobytes()) / 2**32 for row in recording.values])
        return scores + 0.5 * noise


class NeedsTime(Honest):
    """Looks at the time whether there is one or not."""

    def _says(self, scores, recording):
        return scores * (recording.time[-1] >= recording.time[0])


class NeedsMany(Windowed):
    """Fails on a recording that is shorter than a window."""

    def _score(self, recording):
        if recording.n_rows < 10:
            raise ValueError("window larger than series")
        return super()._score(recording)


# Learning


class Constant(Honest):
    """Gives every row the same score."""

    def _score(self, recording):
        return np.full(recording.n_rows, float(self.mean_[0]))


class Inverted(Honest):
    """Scores normal rows high; a single extreme row still stands out."""

    def _says(self, scores, recording):
        return np.where(scores > 100.0, scores, 100.0 - scores)


class TrustsNoSpike(Honest):
    """Takes extreme rows for faults of the sensor, and calls them normal."""

    def _says(self, scores, recording):
        return np.where(scores > 50.0, 0.0, scores)


class NeverLearned(Honest):
    """Measures rows against numbers that somebody typed in."""

    def _fit(self, recordings):
        self.n_ = recordings[0].n_sensors

    def _score(self, recording):
        typed = (recording.values - np.resize([10.0, 3.0, -2.0, 50.0], self.n_)) / np.resize([1, 0.5, 2, 5], self.n_)
        return np.sqrt((typed**2).mean(axis=1))


class RemembersRows(Honest):
    """Distance to the nearest training row, which is 0 for every training row."""

    def _fit(self, recordings):
        super()._fit(recordings)
        self.rows_ = self._z(np.concatenate([one.values for one in recordings]))

    def _score(self, recording):
        z = self._z(recording.values)
        return np.sqrt(((z[:, None] - self.rows_) ** 2).sum(axis=2).min(axis=1))


# Position


class FirstRowMatters(Honest):
    """Adds how far the recording's first row is from normal."""

    def _says(self, scores, recording):
        return np.where(np.arange(len(scores)) == 0, scores, scores + 0.1 * scores[0])


class CountsRows(Causal):
    """Raises scores with the row number, as faults tend to come late."""

    def _score(self, recording):
        return super()._score(recording) + 1e-3 * np.arange(recording.n_rows)


class HidesALibrary(Honest):
    """Imports a library by a name that nobody can read in its code."""

    def _fit(self, recordings):
        importlib.import_module("".join(("pyproject", "_hooks")))
        super()._fit(recordings)


# Some faults inevitably break more than the first promise: names, times and what a process holds are others in the box,
# a row that answers for another one has no score or one in the wrong place, typed in numbers are in one unit.
CAUGHT_BY: dict[type[Detector], str] = {
    Typo: "works",
    OverridesScore: "sealed",
    BusyConstructor: "constructor",
    ChangesParameter: "constructor",
    OddNames: "learned-names",
    HolesInScores: "scores",
    FitsLazily: "sealed",
    Doubles: "constructor",
    SilentAtFirst: "every-row",
    OtherHoles: "contributions",
    BlamesAnother: "contributions",
    NoCopies: "copies",
    KnowsNames: "anonymous same-in-box",
    ReadsTheClock: "anonymous same-in-box",
    KnowsSensors: "sensor-names",
    HidesALibrary: "libraries",
    CountsLater: "replays",
    CountsLaterAndDeclaresNothing: "replays",
    BehavesWhenTested: "replays",
    ScalesByItself: "scaling every-row",
    MinMaxOfScores: "prefix",
    CentredSmoothing: "prefix",
    EarlyAlignment: "prefix every-row spike alignment",
    LateAlignment: "memory position spike alignment",
    Delays: "alignment every-row",
    CountsCalls: "state",
    CarriesOver: "pure",
    Jitters: "pure",
    CrossesBorders: "borders",
    LearnsTheOrder: "borders",
    ReadsLabels: "files",
    SeesGlobals: "bystanders",
    SeesEnvironment: "bystanders",
    SeesTheCaller: "bystanders",
    SearchesMemory: "bystanders",
    KnowsTheBox: "same-in-box",
    Unseeded: "repeat",
    IgnoresSeed: "seed",
    UndeclaredChance: "seed",
    UsesGlobalRandom: "global-random",
    UsesRandomModule: "global-random same-in-box",
    RemembersFits: "refit",
    SharesWithItsClass: "instances same-in-box",
    FitsWithScoringParameter: "scoring-parameters",
    WritesIntoInput: "inputs same-in-box",
    Overflows: "large-numbers",
    DividesByZero: "constant-sensor",
    InvertsCovariance: "duplicate-sensor",
    NeedsTwo: "single-sensor",
    AbsoluteFloor: "units",
    HashesValues: "rounding",
    NeedsTime: "no-time",
    NeedsMany: "short-recordings prefix",
    Constant: "not-constant",
    Inverted: "fault",
    TrustsNoSpike: "spike",
    NeverLearned: "other-data units",
    RemembersRows: "training-scores",
    FirstRowMatters: "position",
    CountsRows: "no-trend",
}
