"""Checks for leaks: test statistics, later rows, other recordings, labels, and rows' positions."""

from __future__ import annotations

import builtins
import os
import pickle
import sys

import numpy as np

from tsadbench.base.dataset import Labels
from tsadbench.base.scores import difference
from tsadbench.testing import synthetic
from tsadbench.testing.check import Failed, Skipped, check, require_equal
from tsadbench.testing.subject import Subject


@check("position", "scores")
def position(subject: Subject) -> None:
    """Rows get the same scores at any position in a recording, beyond the declared memory."""
    memory = subject.traits.memory
    if memory is None:
        raise Skipped("memory=None promises nothing; the check `no-trend` binds it")
    whole, first = subject.test(), 60 + memory
    found = subject.score(whole.rows(60, whole.n_rows))[memory:]
    reason = f"row {{row}} is scored differently if the first 60 rows are left out; declared memory: {memory}"
    require_equal(found, subject.usual[first:], reason, exact=False, first=first)


@check("position")
def no_trend(subject: Subject) -> None:
    """Repeated rows get scores without a trend over the row number."""
    period = synthetic.normal(20, 5).values
    scores = subject.score(synthetic.recording(np.tile(period, (25, 1))))
    if not np.isfinite(scores).any():
        raise Skipped("it scores no row of this recording")
    settled = scores[5 * len(period) :].reshape(-1, len(period))[:-1]  # the last period may lack rows to look ahead to
    means = settled.mean(axis=1)
    if np.ptp(means) <= 1e-9 * (1.0 + np.abs(means).max()):
        return
    correlation, change = abs(float(np.corrcoef(np.arange(len(means)), means)[0, 1])), abs(float(means[-1] - means[0]))
    # Means of random periods correlate less with their number; a mean over all rows so far drifts until it settles.
    if correlation > 0.9 and change > 0.5 * float(np.nanstd(settled)):
        reason = "identical periods get scores that rise or fall with the row number: it seems to count rows"
        raise Failed(reason, correlation=correlation, change=change)


@check("leakage", "scores", varies=True)
def scaling(subject: Subject) -> None:
    """Scores change when all test rows are rescaled: they are measured against training rows."""
    if subject.traits.window_normalised:
        raise Skipped("it declares window_normalised; the checks `prefix` and `position` bind it")
    rescaled = subject.score(subject.test(lambda values: 3.0 * values + 5.0))
    if difference(rescaled, subject.usual)[0] is None:
        raise Failed("rescaled test rows (3 x + 5) get the same scores: the test's own statistics scale them")


@check("leakage", "scores")
def prefix(subject: Subject) -> None:
    """A score depends on no row later than the declared look_ahead."""
    look_ahead, whole, expected = subject.traits.look_ahead, subject.test(), subject.usual
    for cut in (subject.warm_up + look_ahead + 2, 97, 128, 200, whole.n_rows - 1):
        stop = max(0, cut - look_ahead)
        poisoned = np.concatenate([whole.values[:cut], whole.values[cut:] * -100.0 + 100.0])
        for way, other in (("cut off", whole.rows(0, cut)), ("poisoned", synthetic.recording(poisoned))):
            reason = f"row {{row}} is scored differently if the recording is {way} at row {cut}; declared look_ahead: "
            found = subject.score(other)[:stop]
            require_equal(found, expected[:stop], f"{reason}{look_ahead}", exact=False, cut=cut)


@check("leakage", "scores")
def memory(subject: Subject) -> None:
    """A score depends on no row earlier than the declared memory."""
    reach = subject.traits.memory
    if reach is None:
        raise Skipped("memory=None promises nothing")
    first = 101 + reach
    reason = f"row {{row}} is affected by a change of row 100; declared memory: {reach}"
    after = subject.score(subject.test(synthetic.raised(100, 101, 20.0)))[first:]
    require_equal(after, subject.usual[first:], reason, exact=False, first=first)


@check("leakage")
def state(subject: Subject) -> None:
    """Scoring does not change the learned state, unless the detector is declared adaptive."""
    if subject.traits.adaptive:
        raise Skipped("it declares adaptive")
    detector = subject.fit()
    try:
        before = {name: pickle.dumps(value) for name, value in vars(detector).items()}
    except Exception as error:
        raise Skipped(f"its attributes cannot be pickled ({error}); the check `copies` says so") from error
    detector.score(subject.test())
    after = {name: pickle.dumps(value) for name, value in vars(detector).items()}
    if changed := sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name)):
        raise Failed(f"score changes {changed}; make _score pure, or declare adaptive")


@check("leakage")
def pure(subject: Subject) -> None:
    """A recording's scores depend only on that recording, not on earlier scoring or chance."""
    if subject.traits.adaptive:
        raise Skipped("it declares adaptive")
    detector = subject.fitted
    first, other, again = (detector.score(subject.test(seed=seed)) for seed in (2, 3, 2))
    require_equal(again, first, "a recording gets other scores when scored again")
    alone = subject.fitted.score(subject.test(seed=3))
    require_equal(alone, other, "a recording gets other scores when scored alone")


@check("leakage", varies=True)
def alignment(subject: Subject) -> None:
    """A row's score depends on the row itself, not only on rows before or after it."""
    expected = subject.usual
    for at in range(100, 180, 10):
        if abs(subject.score(subject.test(synthetic.raised(at, at + 1, 20.0)))[at] - expected[at]) > 0:
            return
    raise Failed("no row's own score changes with the row: scores are assigned to the wrong rows")


@check("leakage", "fits")
def borders(subject: Subject) -> None:
    """It does not learn from windows that cross the border between training recordings."""
    if subject.traits.memory == 0 and subject.traits.look_ahead == 0:
        raise Skipped("it declares that a score depends on its own row alone: it has no windows")
    first, second = subject.train()
    shifted = synthetic.changed(second, lambda values: values + 4.0 * synthetic.SCALE)
    rows = np.concatenate([first.values, shifted.values])
    of_apart, of_joined = subject.make().fit([first, shifted]), subject.make().fit(synthetic.recording(rows))
    # A detector that remembers windows reveals those across the border only when similar windows are scored.
    border = synthetic.recording(rows[first.n_rows - 40 : first.n_rows + 40])
    both = [(of_joined.score(one), of_apart.score(one)) for one in (border, subject.test())]
    if any(difference(*pair)[0] is not None for pair in both):
        return
    joined = both[1][0]
    others = [subject.refit([synthetic.recording(np.random.default_rng(7).permutation(rows))])]
    if subject.traits.stochastic and subject.takes_seed:
        others.append(subject.refit([synthetic.recording(rows)], seed=1234))
    by_order, by_seed, *_ = (*(float(np.nanmedian(np.abs(other - joined))) for other in others), 0.0)
    if by_order > 1e-6 * (1.0 + float(np.nanmedian(np.abs(joined)))) and by_order > 3.0 * by_seed:
        reason = "it learns from the order of rows, and learns the same from joined recordings as from separate ones"
        raise Failed(reason, difference_by_order=by_order, difference_by_seed=by_seed)


@check("leakage", "scores")
def bystanders(subject: Subject) -> None:
    """Labels in global variables, the environment or the caller have no effect."""
    faulty, truth = subject.faulty()
    expected, modules = subject.score(faulty), (builtins, sys.modules["__main__"], np)
    for labels in (truth, ~truth):  # ``labels`` of this frame is bait, too
        alive = Labels({"bystander": labels.copy()}, {"overall": ("bystander",)})
        for module in modules:
            vars(module)["labels"] = labels
        os.environ["TSADBENCH_LABELS"] = "".join(str(int(label)) for label in labels)
        try:
            found = subject.score(faulty)
        finally:
            for module in modules:
                del vars(module)["labels"]
            del os.environ["TSADBENCH_LABELS"], alive
        require_equal(found, expected, "scores change with labels in global variables, the environment or a caller")
