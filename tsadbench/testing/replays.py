"""The replay audit of trials as a check: under the parameters of its runs too, and on longer recordings."""

from __future__ import annotations

import time

from tsadbench.base.detector import Traits
from tsadbench.base.protocol import Episode, Scored
from tsadbench.base.replay import MIN_CORRELATION, Replay
from tsadbench.sandbox import Box, BoxFailure, Construction, Crossing
from tsadbench.sandbox.replay import Audit, Copies, may_fork
from tsadbench.testing import synthetic
from tsadbench.testing.check import Failed, Group, Skipped, Warned
from tsadbench.testing.detector_under_test import BoxedSubject

group = Group("replay")

# What is drawn is the same in each check, so that its result repeats.
_SECRET = "0123456789abcdef" * 2
_LONG, _SHORT = 2000, 240


@group.boxed_check(
    "replays", "Parts of test recordings, renamed and at another time, are scored as the whole was.", "scores"
)
def replays(subject: BoxedSubject) -> None:
    """Replay a trial of 2,000 and of 240 rows, with the cheap parameters and with those of its runs."""
    outside = subject.outside
    own = cheap = _replay(subject, subject.construction, outside.traits, "")
    if not outside.same_parameters:
        own = _replay(subject, subject.own, outside.own_traits, "in its runs, ")
    if outside.traits.floor:
        return
    for replay in (cheap, own):
        if not replay.forgets and not outside.traits.adaptive:
            raise Failed(
                f"behind other rows, ranks of scores change even 500 rows later: correlation {replay.correlation:.2f}, "
                f"expected {MIN_CORRELATION}; if scores depend on the rows before theirs alone, declare memory",
                correlation=replay.correlation,
            )
        if not replay.calibrated:
            raise Warned(
                "its training scores are of another size than fresh scores of the same rows: thresholds set on them "
                "are too high or too low",
                median_ratio=replay.median_ratio,
                tail_ratio=replay.tail_ratio,
            )


def _replay(subject: BoxedSubject, construction: Construction, traits: Traits, when: str) -> Replay:
    """Return the replay audit of a trial on simulated recordings."""
    crossing = Crossing(synthetic.SENSORS, _SECRET)
    train = subject.train()
    faulty, _ = synthetic.with_fault(synthetic.normal(_LONG, 1004, "long"), 1500, 1600)
    episode = Episode("check", train, (faulty, synthetic.normal(_SHORT, 1005, "short")))

    def fresh() -> Box:
        return Box(construction, threads=1, crossing=crossing)

    try:
        with fresh() as box:
            box.fit(train)
            copies = Copies(
                box,
                fresh,
                train,
                n_copies=1,
                may_fork=may_fork(construction, threads=1),
                adaptive=traits.adaptive,
                audited=True,
            )
            with copies, copies.take(construction, ()) as copy:
                of_training, start = box.training_scores(), time.perf_counter()
                scored = Scored(episode, of_training, tuple(box.score(one) for one in episode.test))
                return Audit(copy, copies.how, traits, crossing, scored, time.perf_counter() - start).run()
    except BoxFailure as failure:
        if failure.status != "invalid" and not when:
            raise Skipped(f"it fails in the box ({failure.reason}), as other checks say") from failure
        raise Failed(when + failure.reason) from failure
