"""Score rows as they arrive, each as soon as the rows that its score may depend on are there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tsadbench.base.recording import Recording
from tsadbench.errors import UsageError
from tsadbench.serving.model import Model, ScoredRows
from tsadbench.utils.arrays import FloatArray


class Stream:
    """One recording whose rows arrive bit by bit; their scores are those that `Model.score` gives for all at once.

    It keeps as many rows as a score may depend on (`Traits.memory` and `Traits.look_ahead`), or all of them if a
    detector says that its scores depend on all.

    Parameters
    ----------
    model
        The model.
    contributions
        Whether to ask for each sensor's contribution as well.

    Raises
    ------
    UsageError
        If a score depends on rows that are still to come, however many.
    """

    def __init__(self, model: Model, *, contributions: bool = False) -> None:
        traits = model.detector.declared_traits()
        if traits.leaky or traits.adaptive:
            raise UsageError(
                f"{model.card.label} uses {traits.leaky or 'what it has scored before'}: its scores are known only "
                f"when the recording has ended; score whole files, without --follow"
            )
        self._model = model
        self._contributions = contributions
        self._look_ahead, self._memory = traits.look_ahead, traits.memory
        self._values = np.empty((0, len(model.card.sensors)))
        self._time: FloatArray | None = None
        self._n_dropped = self._n_scored = 0

    @property
    def keeps_all(self) -> bool:
        """Whether every row is kept for good, so that scoring gets slower and slower."""
        return self._memory is None

    def push(self, values: FloatArray, time: FloatArray | None = None) -> ScoredRows:
        """Take the next rows, and score the rows that need to wait no longer.

        Parameters
        ----------
        values
            [n_rows, n_sensors], finite, in the order of the model's sensors.
        time
            [n_rows] seconds; given for all rows of a stream or for none.
        """
        first = self._n_dropped + len(self._values) == 0
        self._values = np.concatenate([self._values, values])
        if time is not None:
            self._time = time if first or self._time is None else np.concatenate([self._time, time])
        return self._score_until(self._n_dropped + len(self._values) - self._look_ahead)

    def finish(self) -> ScoredRows:
        """Score the last rows, whose look-ahead goes beyond the end."""
        return self._score_until(self._n_dropped + len(self._values))

    def _score_until(self, end: int) -> ScoredRows:
        """Score the rows before row ``end`` that have not been scored."""
        first = self._n_scored
        if end <= first:
            empty = np.empty((0, self._values.shape[1])) if self._contributions else None
            return replace(self._model.flag(np.empty(0), empty), first_row=first)
        recording = Recording("stream", self._values, self._model.card.sensors, self._time)
        scored = self._model.score(recording, contributions=self._contributions)
        rows = slice(first - self._n_dropped, end - self._n_dropped)
        self._n_scored = end
        self._forget()
        contributions = None if scored.contributions is None else scored.contributions[rows]
        return ScoredRows(scored.scores[rows], scored.flagged[rows], contributions, first)

    def _forget(self) -> None:
        if self._memory is None:
            return
        outdated = max(0, self._n_scored - self._memory - self._n_dropped)
        # Copy, so that the slice does not keep dropped rows alive.
        self._values = self._values[outdated:].copy()
        self._time = None if self._time is None else self._time[outdated:].copy()
        self._n_dropped += outdated
