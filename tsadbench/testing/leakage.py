"""Checks for leaks: test statistics, later rows, other recordings, labels."""

from __future__ import annotations

import builtins
import os
import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from tsadbench.base.agreement import difference
from tsadbench.base.dataset import Labels
from tsadbench.base.recording import Recording
from tsadbench.sandbox import BoxFailure
from tsadbench.testing import synthetic
from tsadbench.testing.check import Failed, Group, Skipped, require_equal
from tsadbench.testing.detector_under_test import BoxedSubject, DetectorUnderTest
from tsadbench.utils.arrays import BoolArray, FloatArray

group = Group("leakage")

_HUGE = 100.0
# Part of the failure of a detector that reached for the data in the box.
_REACHED = "the data's folder"


@group.check(
    "scaling", "Scores change when all test rows are rescaled: they are measured against training rows.", "scores"
)
def scaling(subject: DetectorUnderTest) -> None:
    """Score 3 x + 5: scaling by the scored series' own statistics would hide the change."""
    if subject.constant:
        raise Skipped("its scores are constant anyway")
    if subject.traits.window_normalised:
        raise Skipped("it declares window_normalised; the checks `prefix` and `position` bind it")
    rescaled = synthetic.changed(subject.test(), lambda values: 3.0 * values + 5.0)
    row, largest = difference(subject.score(rescaled), subject.score(subject.test()))
    if row is None:
        raise Failed(
            "3 x + 5 gets the scores of x: the scored series' own statistics scale it", largest_difference=largest
        )


@group.check("prefix", "A score depends on no row later than the declared look_ahead.", "scores")
def prefix(subject: DetectorUnderTest) -> None:
    """Cut the recording off, or poison it, from several rows on: scores of the rows before must stay."""
    look_ahead, whole = subject.traits.look_ahead, subject.test()
    expected = subject.score(whole)
    for cut in (subject.warm_up + look_ahead + 2, 97, 128, 200, whole.n_rows - 1):
        stop = max(0, cut - look_ahead)

        def poison(values: FloatArray, cut: int = cut) -> None:
            values[cut:] = values[cut:] * -_HUGE + _HUGE

        for way, other in (("cut off", whole.rows(0, cut)), ("poisoned", synthetic.changed(whole, poison))):
            row, largest = difference(subject.score(other)[:stop], expected[:stop])
            if row is not None:
                raise Failed(
                    f"row {row} is scored differently if the recording is {way} at row {cut}; "
                    f"declared look_ahead: {look_ahead}",
                    first_row=row,
                    cut=cut,
                    largest_difference=largest,
                )


@group.check("memory", "A score depends on no row earlier than the declared memory.", "scores")
def memory(subject: DetectorUnderTest) -> None:
    """Change one row: scores of rows beyond the memory must stay."""
    reach = subject.traits.memory
    if reach is None:
        raise Skipped("memory=None promises nothing")
    at = 100

    def impulse(values: FloatArray) -> None:
        values[at] += 20.0 * synthetic.SCALE

    first = at + reach + 1
    after = subject.score(synthetic.changed(subject.test(), impulse))[first:]
    row, largest = difference(after, subject.score(subject.test())[first:])
    if row is not None:
        raise Failed(
            f"row {first + row} is affected by a change of row {at}; declared memory: {reach}",
            first_row=first + row,
            largest_difference=largest,
        )


@group.check("state", "Scoring changes nothing of what was learned, unless it is declared adaptive.")
def state(subject: DetectorUnderTest) -> None:
    """Pickle the attributes before and after scoring."""
    if subject.traits.adaptive:
        raise Skipped("it declares adaptive")
    detector = subject.make().fit(subject.train())
    try:
        before = {name: pickle.dumps(value) for name, value in vars(detector).items()}
    except Exception as error:
        raise Skipped(f"its attributes cannot be pickled ({error}); the check `copies` says so") from error
    detector.score(subject.test())
    after = {name: pickle.dumps(value) for name, value in vars(detector).items()}
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    if changed:
        raise Failed(f"score changes {changed}; make _score pure, or declare adaptive")


@group.check("pure", "A recording's scores depend on it alone: not on what was scored before, nor on chance.")
def pure(subject: DetectorUnderTest) -> None:
    """Score a, b, a again, and b with a detector that has seen nothing else."""
    if subject.traits.adaptive:
        raise Skipped("it declares adaptive")
    detector = subject.fitted
    first = detector.score(subject.test(seed=2))
    other = detector.score(subject.test(seed=3, n_rows=150))
    again = detector.score(subject.test(seed=2))
    alone = subject.fitted.score(subject.test(seed=3, n_rows=150))
    for what, found, expected in (("scored again", again, first), ("scored alone", alone, other)):
        require_equal(found, expected, f"a recording gets other scores when {what}")


@group.check("alignment", "A row's score depends on the row itself, not only on rows before or after it.")
def alignment(subject: DetectorUnderTest) -> None:
    """Change single rows: the score of at least one of them must change."""
    if subject.constant:
        raise Skipped("its scores are constant anyway")
    expected = subject.score(subject.test())
    for at in range(100, 180, 10):

        def impulse(values: FloatArray, at: int = at) -> None:
            values[at] += 20.0 * synthetic.SCALE

        if abs(subject.score(synthetic.changed(subject.test(), impulse))[at] - expected[at]) > 0:
            return
    raise Failed("no row's own score changes with the row: scores stand in other rows than they belong to")


@group.check("borders", "It does not learn from windows that run from one training recording into the next.", "fits")
def borders(subject: DetectorUnderTest) -> None:
    """Join the training recordings: a detector that uses the order of rows, yet learns the same, crosses borders."""
    if subject.traits.memory == 0 and subject.traits.look_ahead == 0:
        raise Skipped("it declares that a score depends on its own row alone: it has no windows")
    first, second = subject.train()
    shifted = synthetic.changed(second, lambda values: values + 4.0 * synthetic.SCALE)
    rows = np.concatenate([first.values, shifted.values])
    of_apart, of_joined = subject.make().fit([first, shifted]), subject.make().fit(synthetic.recording(rows))
    # A detector that remembers windows shows those across the border only when similar ones are scored.
    border = synthetic.recording(rows[first.n_rows - 40 : first.n_rows + 40])
    if difference(of_joined.score(border), of_apart.score(border))[0] is not None:
        return
    joined = of_joined.score(subject.test())
    if difference(joined, of_apart.score(subject.test()))[0] is not None:
        return
    shuffled = synthetic.recording(np.random.default_rng(7).permutation(rows))
    by_order = _typical(subject.make().fit(shuffled).score(subject.test()), joined)
    by_seed = 0.0
    if subject.traits.stochastic and subject.takes_seed:
        other = subject.make(seed=1234).fit(synthetic.recording(rows)).score(subject.test())
        by_seed = _typical(other, joined)
    if by_order > 1e-6 * (1.0 + float(np.nanmedian(np.abs(joined)))) and by_order > 3.0 * by_seed:
        raise Failed(
            "it learns from the order of rows, and learns the same from joined recordings as from separate ones",
            difference_by_order=by_order,
            difference_by_seed=by_seed,
        )


def _typical(found: FloatArray, expected: FloatArray) -> float:
    return float(np.nanmedian(np.abs(found - expected)))


@group.check("bystanders", "Labels in global variables, the environment or the caller do not matter.", "scores")
def bystanders(subject: DetectorUnderTest) -> None:
    """Score with true labels, opposite labels and no labels within reach."""
    faulty, truth = synthetic.with_fault(subject.test(), 120, 160)
    expected = subject.score(faulty)
    for labels in (truth, ~truth):
        require_equal(_score_beside(labels, subject, faulty), expected, "scores follow labels that are within reach")


def _score_beside(labels: BoolArray, subject: DetectorUnderTest, faulty: Recording) -> FloatArray:
    """Score while labels are in global variables, in this frame's ``labels`` and in a live `Labels` object."""
    alive = Labels({"bystander": labels.copy()}, {"overall": ("bystander",)})
    try:
        with _lying_about(labels):
            return subject.score(faulty)
    finally:
        del alive


@group.boxed_check(
    "same-in-box", "In the box, where trials run, it gives the same scores as outside, to the bit.", "fits"
)
def same_in_box(subject: BoxedSubject) -> None:
    """Fit and score in a real box; compare with a fit elsewhere."""
    try:
        boxed = subject.boxed_scores
    except BoxFailure as failure:
        if _REACHED in failure.reason:
            raise Skipped("the check `files` reports why it fails in the box") from failure
        raise
    require_equal(boxed, np.asarray(subject.outside.scores), "scores in the box differ from those outside")


@group.boxed_check("files", "It opens nothing in the folders that hold data sets, labels among them.")
def files(subject: BoxedSubject) -> None:
    """Fit and score in a real box, which ends at the first such attempt."""
    try:
        _ = subject.boxed_scores
    except BoxFailure as failure:
        if _REACHED in failure.reason:
            raise Failed(failure.reason) from failure
        raise Skipped(f"it fails in the box for another reason ({failure.reason})") from failure


@contextmanager
def _lying_about(labels: BoolArray) -> Iterator[None]:
    namespaces = (vars(builtins), vars(sys.modules["__main__"]), vars(np))
    for namespace in namespaces:
        namespace["labels"] = labels
    os.environ["TSADBENCH_LABELS"] = "".join(str(int(label)) for label in labels)
    try:
        yield
    finally:
        for namespace in namespaces:
            del namespace["labels"]
        del os.environ["TSADBENCH_LABELS"]
