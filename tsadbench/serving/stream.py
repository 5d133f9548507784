"""Scoring rows as they come: each is answered as soon as the rows are there that its score may depend on."""

from __future__ import annotations

import numpy as np

from tsadbench.base.recording import Recording
from tsadbench.errors import UsageError
from tsadbench.serving.model import Answers, Model
from tsadbench.utils.arrays import FloatArray


class Stream:
    """One recording whose rows come bit by bit; all answers together are those that `Model.score` gives at once.

    Kept are as many rows as a score may depend on (`Traits.memory` and `Traits.look_ahead`); all of them, if a
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
        # Rows that are no longer kept, and rows that have been answered.
        self._dropped = self._answered = 0

    @property
    def keeps_all(self) -> bool:
        """Whether every row is kept for good, so that each answer takes longer than the one before."""
        return self._memory is None

    def push(self, values: FloatArray, time: FloatArray | None = None) -> Answers:
        """Take the next rows, and return the answers that they complete.

        Parameters
        ----------
        values
            [n_rows, n_sensors], finite, in the order of the model's sensors.
        time
            [n_rows] seconds; given for all rows of a stream or for none.
        """
        first = self._dropped + len(self._values) == 0
        self._values = np.concatenate([self._values, values])
        if time is not None:
            self._time = time if first or self._time is None else np.concatenate([self._time, time])
        return self._answers(self._dropped + len(self._values) - self._look_ahead)

    def finish(self) -> Answers:
        """Return the answers of the last rows, whose look-ahead goes beyond the end."""
        return self._answers(self._dropped + len(self._values))

    def _answers(self, end: int) -> Answers:
        """Return the answers up to the row before ``end``."""
        if end <= self._answered:
            empty = None if not self._contributions else np.empty((0, self._values.shape[1]))
            return self._model.judged(np.empty(0), empty)
        recording = Recording("stream", self._values, self._model.card.sensors, self._time)
        found = self._model.score(recording, contributions=self._contributions)
        rows = slice(self._answered - self._dropped, end - self._dropped)
        self._answered = end
        self._forget()
        return Answers(
            found.scores[rows],
            found.flagged[rows],
            None if found.contributions is None else found.contributions[rows],
        )

    def _forget(self) -> None:
        if self._memory is None:
            return
        outdated = max(0, self._answered - self._memory - self._dropped)
        # Copied, so that what is forgotten does not stay in memory as long as what is kept.
        self._values = self._values[outdated:].copy()
        self._time = None if self._time is None else self._time[outdated:].copy()
        self._dropped += outdated
