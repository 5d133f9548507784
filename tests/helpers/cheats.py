"""Detectors that each break one promise and keep all others. `CAUGHT_BY` says which check must catch which."""

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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tsadbench import DataError, Detector, Labels, Recording, Traits
from tsadbench.base import trailing_windows

# The check that must catch each cheat, followed by others that it fails as well.
CAUGHT_BY: dict[type[Detector], str] = {}
_elsewhere: weakref.WeakKeyDictionary[Detector, float] = weakref.WeakKeyDictionary()
_module_state = {"calls": 0}
_generator = np.random.default_rng(0)


class Honest(Detector):
    """Root of the mean squared z-score of a row against the training rows; breaks nothing."""

    traits = Traits(memory=0)

    def _fit(self, recordings):
        rows = np.concatenate([one.values for one in recordings])
        self.mean_, spread = rows.mean(axis=0), rows.std(axis=0)
        self.scale_ = self._learns(np.where(spread > 1e-9 * np.abs(self.mean_), spread, 1.0), rows)

    def _learns(self, scale, rows):
        return scale

    def _z(self, values):
        return (values - self.mean_) / self.scale_

    def _score(self, recording):
        return self._says(np.sqrt((self._z(recording.values) ** 2).mean(axis=1)), recording)

    def _says(self, scores, recording):
        return scores


class Windowed(Honest):
    """Mean of the honest scores over a row and the nine before it, divided by their spread in training."""

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
    """Learns rows; smooths scores by a trailing median, so the first four rows have no score."""

    traits = Traits(memory=4)

    def _says(self, scores, recording):
        smooth = np.full(len(scores), np.nan)
        if len(scores) >= 5:
            smooth[4:] = np.median(np.lib.stride_tricks.sliding_window_view(scores, 5), axis=1)
        return smooth


class Contributes(Honest):
    """Offers contributions."""

    def _contributions(self, recording):
        return self._z(recording.values) ** 2


class Causal(Honest):
    """The honest score, but at least half of the largest one so far; declares its unbounded memory."""

    traits = Traits(memory=None)

    def _says(self, scores, recording):
        return np.maximum(scores, 0.5 * np.maximum.accumulate(scores))


class Seeded(Honest):
    """Weights sensors at random, by its seed."""

    traits = Traits(memory=0, stochastic=True)

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def _learns(self, scale, rows):
        return _weighed(scale, np.random.default_rng(self.seed))


def _weighed(scale, generator):
    return scale * generator.uniform(0.9, 1.1, len(scale))


class Adaptive(Honest):
    """Moves its mean towards what it scores, and declares it."""

    traits = Traits(memory=0, adaptive=True)

    def _says(self, scores, recording):
        self.mean_ = 0.99 * self.mean_ + 0.01 * recording.values.mean(axis=0)
        return scores


HONEST = (Honest, Windowed, SmoothedRows, Causal, Contributes, Seeded, Adaptive)


def caught_by(checks: str) -> Callable[[type[Detector]], type[Detector]]:
    """Enter a class into `CAUGHT_BY`."""

    def enter(cls: type[Detector]) -> type[Detector]:
        CAUGHT_BY[cls] = checks
        return cls

    return enter


def cheat(name: str, checks: str, base: type[Detector] = Honest, **members: Any) -> None:
    """Define a class of this module: an honest detector with some members replaced."""
    globals()[name] = caught_by(checks)(type(name, (base,), {"__module__": __name__, "__doc__": name, **members}))


# Contract

cheat("Typo", "works", _score=lambda self, one: Honest._score(self, one.valeus))
cheat("OverridesScore", "sealed", score=lambda self, one: Honest.score(self, one))
cheat("OtherHoles", "contributions", _contributions=lambda self, one: _with_nan(self._z(one.values) ** 2, slice(3)))
cheat("BlamesAnother", "contributions", _contributions=lambda self, one: (self._z(one.values) ** 2)[:, ::-1].copy())
cheat("HolesInScores", "scores", _says=lambda self, scores, one: _with_nan(scores, 50) if one.n_rows == 101 else scores)
# It has no score for the rows whose window is not complete.
cheat("SilentAtFirst", "every-row", Windowed, _score=lambda self, one: _with_nan(Windowed._score(self, one), slice(9)))
# Names and times are different in the box.
cheat(
    "KnowsNames",
    "anonymous same-in-box",
    _says=lambda self, scores, one: scores + hashlib.sha256(one.id.encode()).digest()[0],
)
cheat(
    "ReadsTheClock",
    "anonymous same-in-box",
    _says=lambda self, scores, one: scores * (1.0 + (one.time is not None and one.time[0] > 1000.0)),
)
# It recognises a published data set by its sensors, and knows where its faults are.
cheat(
    "KnowsSensors",
    "sensor-names",
    _says=lambda self, scores, one: scores + 5.0 * ("Accelerometer1RMS" in one.sensors) * (np.arange(one.n_rows) > 100),
)


def _with_nan(values, place):
    values[place] = np.nan
    return values


@caught_by("constructor")
class BusyConstructor(Honest):
    def __init__(self, *, window: int = 3) -> None:
        self.window = window
        self.half_ = window / 2


@caught_by("constructor")
class ChangesParameter(Honest):
    def __init__(self, *, offset: float = 0.0) -> None:
        self.offset = offset

    def _learns(self, scale, rows):
        self.offset = float(self.mean_[0])
        return scale


@caught_by("constructor")
class Doubles(Honest):
    def __init__(self, *, power: float = 1.0) -> None:
        self.power = power * 2


@caught_by("learned-names")
class OddNames(Honest):
    """Learns into an attribute that does not end in an underscore."""

    def _learns(self, scale, rows):
        self.center = self.mean_
        return scale


@caught_by("sealed")
class FitsLazily(Honest):
    """Fits on the recording that it is to score, unless it is fitted."""

    def _ready(self, recording):
        if not hasattr(self, "sensors_"):
            self.fit(recording)
        return super()._ready(recording)


@caught_by("copies")
class NoCopies(Honest):
    """Holds a function that cannot be pickled."""

    def _learns(self, scale, rows):
        self.root_ = lambda values: np.sqrt(values)
        return scale


@caught_by("libraries")
class HidesALibrary(Honest):
    """Imports a library whose name does not appear in its code."""

    def _learns(self, scale, rows):
        importlib.import_module("".join(("pyproject", "_hooks")))
        return scale


# Counts rows from row 600 on, which short recordings do not reach; the second detector declares nothing.
_counts_later = {"_says": lambda self, scores, one: scores + 0.01 * np.maximum(np.arange(one.n_rows) - 600, 0)}
cheat("CountsLater", "replays", **_counts_later)
cheat("CountsLaterAndDeclaresNothing", "replays", traits=Traits(), **_counts_later)


@caught_by("replays")
class BehavesWhenTested(Honest):
    """Counts rows unless its parameters are those of tests."""

    def __init__(self, *, epochs: int = 20) -> None:
        self.epochs = epochs

    @classmethod
    def test_params(cls):
        return {"epochs": 1}

    def _says(self, scores, recording):
        return scores + 0.01 * (self.epochs > 1) * np.arange(recording.n_rows)


# Leakage

cheat(
    "MinMaxOfScores",
    "prefix",
    traits=Traits(memory=None),
    _says=lambda self, scores, one: (scores - scores.min()) / (np.ptp(scores) or 1.0),
)
# The mean over two rows before and two after, without a declared look-ahead.
cheat(
    "CentredSmoothing",
    "prefix",
    traits=Traits(memory=2),
    _says=lambda self, scores, one: np.array([scores[max(0, i - 2) : i + 3].mean() for i in range(len(scores))]),
)
# Shifting scores leaves some rows without one, and puts the others in the wrong place.
cheat(
    "EarlyAlignment",
    "prefix every-row spike alignment",
    _says=lambda self, scores, one: np.concatenate([scores[5:], np.full(min(5, len(scores)), np.nan)]),
)
cheat(
    "LateAlignment",
    "memory position spike alignment",
    _says=lambda self, scores, one: np.concatenate([scores[:5], scores[:-5]]) if len(scores) > 5 else scores,
)
cheat(
    "Delays",  # the same, declared as memory
    "alignment every-row",
    traits=Traits(memory=5),
    _says=lambda self, scores, one: np.concatenate([np.full(5, np.nan), scores])[: len(scores)],
)
cheat("Jitters", "pure", _says=lambda self, scores, one: scores + 0.01 * _generator.normal(size=one.n_rows))
cheat(
    "CrossesBorders",  # concatenates its training recordings before it cuts windows
    "borders",
    Windowed,
    _fit=lambda self, given: Windowed._fit(
        self, (Recording("joined", np.concatenate([one.values for one in given]), given[0].sensors),)
    ),
)
# It learns how far the end of a training recording lies from the start of the next.
cheat(
    "LearnsTheOrder",
    "borders",
    traits=Traits(memory=1),
    _learns=lambda self, scale, rows: scale + 0.01 * np.maximum(0.0, np.diff(rows, axis=0)).max(axis=0),
)
cheat(
    "KnowsTheBox", "same-in-box", _says=lambda self, scores, one: scores * (2.0 if Path.cwd().name == "empty" else 1.0)
)


@caught_by("scaling every-row")
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


@caught_by("state")
class CountsCalls(Honest):
    """Keeps count of its calls in what it has learned; the scores do not show it."""

    def _says(self, scores, recording):
        self.calls_ = getattr(self, "calls_", 0) + 1
        return scores


@caught_by("pure")
class CarriesOver(Honest):
    """Lets earlier recordings raise the scores of later ones, through a module's variable."""

    def _says(self, scores, recording):
        _module_state["calls"] += 1
        return scores * (1.0 + 0.01 * min(_module_state["calls"], 10**6))


@caught_by("files")
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


@caught_by("bystanders")
class SeesGlobals(Honest):
    """Uses a variable `labels` of the main module."""

    def _says(self, scores, recording):
        labels = getattr(sys.modules["__main__"], "labels", None)
        return scores if labels is None or len(labels) != len(scores) else scores + labels


@caught_by("bystanders")
class SeesEnvironment(Honest):
    """Uses labels from the environment."""

    def _says(self, scores, recording):
        text = os.environ.get("TSADBENCH_LABELS", "")
        return scores if len(text) != len(scores) else scores + np.array([float(one) for one in text])


@caught_by("bystanders")
class SearchesMemory(Honest):
    """Searches the process for labels that are alive."""

    def _says(self, scores, recording):
        for one in gc.get_objects():
            # Ignore the labels of other tests.
            if type(one) is Labels and len(one.rows.get("bystander", ())) == len(scores):
                return scores + one.rows["bystander"]
        return scores


@caught_by("bystanders")
class SeesTheCaller(Honest):
    """Looks for labels among the local variables of whoever called it."""

    def _says(self, scores, recording):
        for frame in inspect.stack():
            labels = frame.frame.f_locals.get("labels")
            if isinstance(labels, np.ndarray) and labels.shape == scores.shape:
                return scores + labels
        return scores


# Reproducibility

cheat("Unseeded", "repeat", _learns=lambda self, scale, rows: _weighed(scale, np.random.default_rng()))
cheat("IgnoresSeed", "seed", Seeded, _learns=lambda self, scale, rows: _weighed(scale, np.random.default_rng(0)))
cheat("UndeclaredChance", "seed", Seeded, traits=Traits(memory=0))


@caught_by("global-random")
class UsesGlobalRandom(Honest):
    def _learns(self, scale, rows):
        np.random.seed(0)
        return _weighed(scale, np.random)


@caught_by("global-random same-in-box")
class UsesRandomModule(Honest):
    """Draws from Python's global generator and restores its state; another state gives other scores."""

    def _learns(self, scale, rows):
        state = random.getstate()
        scale = scale * (1.0 + 0.1 * random.random())
        random.setstate(state)
        return scale


@caught_by("refit")
class RemembersFits(Honest):
    """Averages with what an earlier fit of the same detector learned."""

    def _learns(self, scale, rows):
        before = _elsewhere.get(self, 0.0)
        _elsewhere[self] = float(scale[0])
        return scale + 0.1 * before

    __hash__ = object.__hash__


@caught_by("instances same-in-box")
class SharesWithItsClass(Honest):
    """Keeps what it has learned in its class, where every detector finds it."""

    unit = 1.0

    def _learns(self, scale, rows):
        type(self).unit = float(np.linalg.norm(scale))
        return scale

    def _says(self, scores, recording):
        return scores / type(self).unit


@caught_by("scoring-parameters")
class FitsWithScoringParameter(Honest):
    """Declares that its weight only matters in scoring, but learns with it."""

    traits = Traits(memory=0, scoring_parameters=("weight",))

    def __init__(self, *, weight: float = 1.0) -> None:
        self.weight = weight

    def _learns(self, scale, rows):
        return scale * (1.0 + 0.1 * self.weight)


@caught_by("inputs same-in-box")
class WritesIntoInput(Honest):
    """Makes the given recording writable, and sets all its values to 0."""

    def _says(self, scores, recording):
        recording.values.flags.writeable = True
        recording.values[:] = 0.0
        return scores


# Robustness

cheat(
    "NeedsTwo",
    "single-sensor",
    _says=lambda self, scores, one: scores + 0.01 * np.abs(self._z(one.values)[:, 0] - self._z(one.values)[:, 1]),
)
cheat(
    "AbsoluteFloor",  # adds a constant to the spread, so that it depends on the units
    "units",
    _z=lambda self, values: ((values - self.mean_) / (self.scale_ + 1e-2)).round(1),
)
cheat(
    "HashesValues",
    "rounding",
    _says=lambda self, scores, one: scores + 0.5 * np.array([zlib.crc32(row.tobytes()) / 2**32 for row in one.values]),
)
cheat("NeedsTime", "no-time", _says=lambda self, scores, one: scores * (one.time[-1] >= one.time[0]))


@caught_by("large-numbers")
class Overflows(Honest):
    """Works in half precision."""

    def _z(self, values):
        with np.errstate(over="ignore", invalid="ignore"):
            return super()._z(values.astype(np.float16).astype(np.float64))


@caught_by("constant-sensor")
class DividesByZero(Honest):
    """Divides by a standard deviation of zero."""

    def _learns(self, scale, rows):
        return rows.std(axis=0)

    def _z(self, values):
        with np.errstate(divide="ignore", invalid="ignore"):
            return super()._z(values)


@caught_by("duplicate-sensor")
class InvertsCovariance(Honest):
    """Inverts the correlation matrix of the training rows, and fails if it is singular."""

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


@caught_by("short-recordings prefix")
class NeedsMany(Windowed):
    def _score(self, recording):
        if recording.n_rows < 10:
            raise ValueError("window larger than series")
        return super()._score(recording)


# Learning

cheat("Constant", "not-constant", _score=lambda self, one: np.full(one.n_rows, float(self.mean_[0])))
# Normal rows score high; a single extreme row still stands out.
cheat("Inverted", "fault", _says=lambda self, scores, one: np.where(scores > 100.0, scores, 100.0 - scores))
cheat("TrustsNoSpike", "spike", _says=lambda self, scores, one: np.where(scores > 50.0, 0.0, scores))


@caught_by("other-data units")
class NeverLearned(Honest):
    """Standardises rows by hard-coded numbers."""

    def _z(self, values):
        n_sensors = values.shape[1]
        return (values - np.resize([10.0, 3.0, -2.0, 50.0], n_sensors)) / np.resize([1, 0.5, 2, 5], n_sensors)


@caught_by("training-scores")
class RemembersRows(Honest):
    """Distance to the nearest training row, which is 0 for every training row."""

    def _fit(self, recordings):
        super()._fit(recordings)
        self.rows_ = self._z(np.concatenate([one.values for one in recordings]))

    def _score(self, recording):
        z = self._z(recording.values)
        return np.sqrt(((z[:, None] - self.rows_) ** 2).sum(axis=2).min(axis=1))


# Position

cheat(
    "FirstRowMatters",
    "position",
    _says=lambda self, scores, one: scores + 0.1 * scores[0] * (np.arange(len(scores)) > 0),
)
# Faults tend to come late.
cheat(
    "CountsRows", "no-trend", Causal, _score=lambda self, one: Causal._score(self, one) + 1e-3 * np.arange(one.n_rows)
)
