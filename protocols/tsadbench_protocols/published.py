"""The protocol behind the paper's tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tsadbench import DataError, UsageError
from tsadbench.base import ALL, Dataset, Episode, Labels, Place, Recording, Scored
from tsadbench_protocols.judging import PooledProtocol


class Published(PooledProtocol):
    """The paper's protocol (the paper calls it "strict point-wise").

    It differs from `strict`, the default, in two things: windows run across the borders of the concatenated test
    recordings, and training rows that recur in the test are kept.

    1. *Training.* On all training recordings, whole.
    2. *Scoring.* The test recordings, concatenated in the data set's order, are one recording without time.
    3. *Evaluated rows.* A window holds ``window`` input rows and ``horizon`` target rows, and its score belongs to the
       first row after its input: rows ``window`` to ``n - horizon`` of the one series, both included, whatever the
       detector. On SKAB: 37,362 windows over 37,401 rows.
    4. *Threshold.* Peaks-over-Threshold on the training scores of the same rows, ``window`` to ``n - horizon`` of each
       training recording, pooled: one threshold for the one fitted detector.
    5. *Metrics.* Point-wise, no point adjustment. Every split is a choice of rows of the one scored series. A row
       without a score counts as the worst case: a false alarm if it is normal, a miss if it is anomalous.

    ``level`` and ``q`` are the options of Peaks-over-Threshold: see `PotProtocol`.

    Parameters
    ----------
    window
        Rows at the start that are not evaluated: input rows of a window.
    horizon
        Target rows of a window; the last ``horizon - 1`` rows are not evaluated.
    """

    version = 2
    summary = "the paper's: the test recordings concatenated into one series, windows across their borders"

    def __init__(self, *, window: int = 30, horizon: int = 10, level: float = 0.98, q: float = 1e-3) -> None:
        self.window = window
        self.horizon = horizon
        self.level = level
        self.q = q

    def check(self) -> None:
        """Raise a UsageError if a parameter is out of range."""
        self._require_integer("window", least=1)
        self._require_integer("horizon", least=1)
        super().check()

    def episodes(self, dataset: Dataset) -> Iterator[Episode]:
        """Yield the one fit: all training recordings, and the test recordings as one series without time.

        A UsageError if the data set has several entities.
        """
        self.check()
        if len(dataset.by_entity) > 1:
            raise UsageError(
                f"published fits one model on everything, and data set {dataset.name!r} has {len(dataset.by_entity)} "
                f"entities: choose strict, which fits one for each"
            )
        if not dataset.test:
            yield Episode(id=ALL, train=dataset.train, test=())
            return
        values = np.concatenate([recording.values for recording in dataset.test])
        values.flags.writeable = False
        series = Recording(id="test", values=values, sensors=dataset.sensors)
        yield Episode(id=ALL, train=dataset.train, test=(series,))

    def _check_labels(self, scored: Sequence[Scored], labels: Labels) -> None:
        # The one series is cut again at the lengths of the labels, which lie in the data set's order.
        n_scores = [len(rows) for fit in scored for rows in fit.test]
        n_labels = sum(len(rows) for rows in labels.rows.values())
        if n_scores != [n_labels]:
            raise DataError(
                f"expected one scored series with a label for each row, found {n_scores} scored rows and "
                f"{n_labels} labels"
            )

    def places(self, episode: Episode, n_rows: Mapping[str, int]) -> Iterator[Place]:
        """Yield every test recording's place in the one series."""
        (series,) = episode.test
        counted = self.calibration_rows(series.n_rows)
        start = 0
        for recording, n in n_rows.items():
            first, end = (min(max(row - start, 0), n) for row in (counted.start, counted.stop))
            yield Place(recording, 0, start, slice(first, max(first, end)))
            start += n

    def calibration_rows(self, n_rows: int) -> slice:
        """Return the rows that are evaluated in a series with ``n_rows`` rows."""
        return slice(self.window, max(0, n_rows - self.horizon + 1))
