"""The protocol behind the paper's tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tsadbench import UsageError
from tsadbench.base import ALL, Dataset, Episode, Ge, Place, Recording
from tsadbench_protocols.judging import PotProtocol


@dataclass(kw_only=True, eq=False)
class Published(PotProtocol):
    """The paper's protocol (the paper calls it "strict point-wise").

    Unlike `strict`, the default, it lets windows cross the borders of the concatenated test recordings, and keeps
    training rows that recur in the test.

    1. *Training.* On all training recordings, whole.
    2. *Scoring.* The test recordings, concatenated in the data set's order, are one recording without time.
    3. *Evaluated rows.* A window holds ``window`` input rows and ``horizon`` target rows, and its score belongs to the
       first target row. So rows ``window`` to ``n - horizon`` of the one series are evaluated, both included, for every
       detector. On SKAB: 37,362 windows over 37,401 rows.
    4. *Threshold.* One, by Peaks-over-Threshold on the pooled training scores of rows ``window`` to ``n - horizon`` of
       each training recording.
    5. *Metrics.* Point-wise, no point adjustment, over a split's rows of the one series. A row without a score counts
       as the worst case: a false alarm if it is normal, a miss if it is anomalous.

    Parameters
    ----------
    window
        Rows at the start that are not evaluated: input rows of a window.
    horizon
        Target rows of a window; the last ``horizon - 1`` rows are not evaluated.
    """

    version = 2
    summary = "the paper's: the test recordings concatenated into one series, windows across their borders"

    window: Annotated[int, Ge(1)] = 30
    horizon: Annotated[int, Ge(1)] = 10

    def episodes(self, dataset: Dataset) -> Iterator[Episode]:
        """Yield the one fit: all training recordings, and the test recordings as one series without time.

        A UsageError if the data set has several entities.
        """
        if len(dataset.by_entity) > 1:
            raise UsageError(
                f"published fits one model on everything, and data set {dataset.name!r} has {len(dataset.by_entity)} "
                f"entities: choose strict, which fits one for each"
            )
        test = dataset.test
        if test:
            values = np.concatenate([recording.values for recording in test])
            values.flags.writeable = False  # saves a copy
            test = (Recording(id="test", values=values, sensors=dataset.sensors),)
        yield Episode(id=ALL, train=dataset.train, test=test)

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
