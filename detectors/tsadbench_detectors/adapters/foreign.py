"""The base of all detectors that wrap another library's class: rows or windows in, scores of rows out."""

from __future__ import annotations

import copy
import inspect
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from tsadbench import DataError, Detector, UsageError
from tsadbench.base import FloatArray, Recording, Traits, trailing_windows
from tsadbench_detectors.adapters.constructor import seed_name
from tsadbench_detectors.adapters.known import UNKNOWN, Known
from tsadbench_detectors.adapters.surroundings import contained
from tsadbench_detectors.standardise import Standardiser

# Values that make a class cheap enough for the checks, if it has a parameter of the name.
_CHEAP = {
    **dict.fromkeys(("epochs", "epoch_num", "n_epochs"), 3),
    "epochs_query": 1,
    "n_estimators": 50,
    "stop_epochs": 2,
}


class ForeignDetector(Detector):
    """Another library's detector on standardised rows, or on trailing windows of them.

    A sensor's mean and standard deviation (ddof 0) are those of the training rows; one that is constant there has the
    scale 1. A window is its rows one after another, oldest first; its score goes to its last row. Windows cross no
    recording's border: those of a recording's first ``window - 1`` rows are filled up with its first row, and nothing
    is fitted on them. Training scores are the library's own if it has them.

    A model file keeps the training rows, and reading it fits the detector again: an object of the library could be
    stored only in a format that executes code when it is read.

    Attributes
    ----------
    foreign
        The library's class.
    known
        How it behaves under the checks.
    """

    foreign: ClassVar[type]
    known: ClassVar[Known] = UNKNOWN

    window: int

    def declared_traits(self) -> Traits:  # noqa: D102
        defaults = inspect.signature(type(self)).parameters
        chance = any(getattr(self, name) != defaults[name].default for name in self.known.chance_with)
        return replace(self.traits, memory=self.window - 1, stochastic=self.traits.stochastic or chance)

    @classmethod
    def test_params(cls) -> dict[str, object]:  # noqa: D102
        offered = inspect.signature(cls).parameters
        return {name: value for name, value in _CHEAP.items() if name in offered}

    def _check(self, sensors: tuple[str, ...]) -> None:
        self._require(isinstance(self.window, Integral) and self.window >= 1, "window", "an integer of at least 1")
        seed = self._seed
        self._require(isinstance(seed, Integral) and 0 <= seed < 2**32, "seed", "an integer from 0 to below 2^32")
        try:
            with contained(seed):
                self._construct(self.window * len(sensors))
        except (TypeError, ValueError) as error:
            raise UsageError(f"{type(self).__name__}: {error}") from error

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        self.rows_ = tuple(recording.values for recording in recordings)
        self.standardiser_ = Standardiser.of(recordings)
        rows = np.concatenate([self._windows(recording)[self.window - 1 :] for recording in recordings])
        if len(rows) < 2:
            raise DataError(
                f"{type(self).__name__}: expected training recordings with at least 2 windows of {self.window} rows, "
                f"found {len(rows)}; train on more rows or make window smaller"
            )
        with contained(self._seed):
            self.model_ = self._construct(rows.shape[1])
            self.model_.fit(rows)

    def _learned(self) -> dict[str, object]:
        return {name: value for name, value in super()._learned().items() if name in ("sensors_", "rows_")}

    def _restore(self, learned: Mapping[str, object]) -> None:
        super()._restore(learned)
        self._fit(tuple(Recording(str(i), rows, self.sensors_) for i, rows in enumerate(self.rows_)))

    def _score(self, recording: Recording) -> FloatArray:
        # Two calls: the scores of the windows without padding are, to the bit, those that they have alone.
        padded, full = np.split(self._windows(recording), [self.window - 1])
        return np.concatenate([self._scores_of_copy(padded), self._scores_of_copy(full)])

    def _scores_of_copy(self, windows: FloatArray) -> FloatArray:
        """Return the scores of windows by a copy of the model: many models store what they have scored."""
        if len(windows) == 0:
            return np.empty(0)
        with contained(self._seed):
            return self._scores_of(copy.deepcopy(self.model_), windows)

    def _training_scores(self, recordings: tuple[Recording, ...]) -> list[FloatArray]:
        own = self._own_training_scores()
        if own is None:
            return [self._score(recording) for recording in recordings]
        n_padded = self.window - 1
        counts = [max(0, recording.n_rows - n_padded) for recording in recordings]
        if len(own) != sum(counts):
            raise DataError(
                f"{type(self).__name__}.training_scores: expected the recordings that fit was given, {len(own)} "
                f"windows, found {sum(counts)}"
            )
        parts = np.split(own, np.cumsum(counts)[:-1])
        return [
            np.concatenate([self._scores_of_copy(self._windows(recording)[:n_padded]), part])
            for recording, part in zip(recordings, parts, strict=True)
        ]

    @property
    def _seed(self) -> int:
        return getattr(self, "seed", 0)

    def _construct(self, n_features: int) -> Any:
        """Return the library's detector with these parameters, for rows of ``n_features`` features."""
        takes = inspect.signature(self.foreign).parameters
        own = {name: copy.copy(value) for name, value in self.get_params(deep=False).items() if name in takes}
        ours = {"device": "cpu", "novelty": True, "n_features": n_features, seed_name(self.foreign) or "": self._seed}
        return self.foreign(**own, **{name: value for name, value in ours.items() if name in takes})

    def _windows(self, recording: Recording) -> FloatArray:
        """Return a recording's standardised windows, [n_rows, window * n_sensors]; the first ones are filled up."""
        windows = trailing_windows(self.standardiser_.z_scores(recording.values), self.window)
        return np.ascontiguousarray(windows).reshape(recording.n_rows, -1)

    @abstractmethod
    def _scores_of(self, model: Any, windows: FloatArray) -> FloatArray:
        """Return a fitted model's score of each window; higher = more anomalous."""

    @abstractmethod
    def _own_training_scores(self) -> FloatArray | None:
        """Return the library's own scores of the windows it was fitted on; None if it has none."""
