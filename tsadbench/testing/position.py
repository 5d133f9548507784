"""Checks that it does not count rows: on many data sets, a row's position gives its label away."""

from __future__ import annotations

import numpy as np

from tsadbench.base.agreement import difference
from tsadbench.testing import synthetic
from tsadbench.testing.check import Failed, Group, Skipped
from tsadbench.testing.detector_under_test import DetectorUnderTest

group = Group("position")

_N_PERIODS = 25
# Means of random periods correlate less than this with their number; a counter of rows does so perfectly.
_MOST_CORRELATION = 0.9
_ROUNDING = 1e-9
# In units of the scores' spread: a mean over all rows so far drifts a little until it settles.
_LEAST_CHANGE = 0.5


@group.check(
    "position", "Rows get the same scores at any position in a recording, beyond the declared memory.", "scores"
)
def position(subject: DetectorUnderTest) -> None:
    """Leave the first rows out: scores of the rest must stay."""
    memory = subject.traits.memory
    if memory is None:
        raise Skipped("memory=None promises nothing; the check `no-trend` binds it")
    whole, start = subject.test(), 60
    first = start + memory
    found = subject.score(whole.rows(start, whole.n_rows))[memory:]
    row, largest = difference(found, subject.score(whole)[first:])
    if row is not None:
        raise Failed(
            f"row {first + row} is scored differently if the first {start} rows are left out; "
            f"declared memory: {memory}",
            first_row=first + row,
            largest_difference=largest,
        )


@group.check("no-trend", "Rows that repeat over and over get scores without a trend over the row number.")
def no_trend(subject: DetectorUnderTest) -> None:
    """Score a recording of identical periods; compare early and late ones."""
    repeated, length = synthetic.periodic(_N_PERIODS, seed=5)
    scores = subject.score(repeated)
    if not np.isfinite(scores).any():
        raise Skipped("it scores no row of this recording")
    settled = scores[5 * length :].reshape(-1, length)[:-1]  # the last period may lack rows to look ahead to
    means = settled.mean(axis=1)
    if np.ptp(means) <= _ROUNDING * (1.0 + np.abs(means).max()):
        return
    correlation = abs(float(np.corrcoef(np.arange(len(means)), means)[0, 1]))
    change = abs(float(means[-1] - means[0]))
    if correlation > _MOST_CORRELATION and change > _LEAST_CHANGE * float(np.nanstd(settled)):
        raise Failed(
            "identical periods get scores that rise or fall with the row number: it seems to count rows",
            correlation=correlation,
            change=change,
        )
