"""DSPOT against a plain loop, on drifting scores; the rows it assumes normal; bad options."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsadbench.base import Episode, FloatArray, Labels, Recording, Scored
from tsadbench.errors import UsageError
from tsadbench.execution.plan import make_protocol
from tsadbench_protocols import pot


def loop(scores: FloatArray, t: float) -> tuple[list[float], list[bool]]:
    """Return by how much log scores exceed their moving mean (from row 60 on), and which rows are flagged."""
    normal: list[float] = []
    x, flags = [], []
    for row, score in enumerate(scores):
        u = math.log(max(score, float(np.finfo(float).tiny)))
        excess = u - float(np.mean(normal[-100:])) if row >= 60 else -math.inf
        flags.append(excess > t)
        if not flags[-1]:
            normal.append(u)
        if row >= 60:
            x.append(excess)
    return x, flags


def _scored(train: list[FloatArray], test: list[FloatArray]) -> Scored:
    def recordings(name: str, series: list[FloatArray]) -> tuple[Recording, ...]:
        return tuple(Recording(f"{name}{n}", one[:, None], ("x",)) for n, one in enumerate(series))

    episode = Episode("all", recordings("train", train), recordings("test", test))
    return Scored(episode, tuple(train), tuple(test))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1_000), st.sampled_from([0.0, 0.01]))
def test_it_matches_a_plain_loop(seed: int, silence: float) -> None:
    rng = np.random.default_rng(seed)
    train, test = ([np.exp(rng.normal(size=n)) for n in sizes] for sizes in ((400, 700), (300, 500, 40)))
    for number, drifting in enumerate(test[:2]):
        drifting *= np.exp(np.linspace(0, 5 * (1 + number), len(drifting)))  # a fixed threshold would flag its end
        drifting[150:190] *= 50.0
        drifting[rng.random(len(drifting)) < silence] = 0.0
    protocol, _ = make_protocol("strict", {"threshold": "dspot"})
    normal = np.concatenate([loop(one, math.inf)[0] for one in train])
    expected = pot.fit(normal).value
    scored = _scored(train, test)
    threshold = protocol.find_threshold(scored)
    assert (threshold.method, threshold.value) == ("dspot", pytest.approx(expected, rel=1e-6))
    limits = protocol.limits(scored, threshold)
    for scores, limit in zip(test, limits, strict=True):
        flags = loop(scores, expected)[1]
        np.testing.assert_array_equal(scores > limit, flags)
        assert np.isinf(limit[:60]).all()

    # The judge misses a fault within the first 60 rows, and notes that they are assumed normal.
    truth = np.zeros(len(test[0]), dtype=bool)
    truth[[*range(40, 50), *range(150, 190)]] = True
    alone = _scored(train, test[:1])
    judged = protocol.judge([alone], Labels({"test0": truth}, {"overall": ("test0",)}))
    assert judged.splits["overall"].metrics["recall"] == np.mean((test[0] > limits[0])[truth]) <= 0.8
    assert any("first 60 rows" in note for note in judged.notes)
    still = make_protocol("strict", {})[0].judge([alone], Labels({"test0": truth}, {"overall": ("test0",)}))
    same = ("auprc", "auroc", "bf_f1")
    assert [judged.splits["overall"].metrics[one] for one in same] == [
        still.splits["overall"].metrics[one] for one in same
    ]


@pytest.mark.parametrize("threshold", ["DSPOT", ""])
def test_another_threshold_is_refused(threshold: str) -> None:
    with pytest.raises(UsageError, match="threshold"):
        make_protocol("strict", {"threshold": threshold})


def test_constant_scores_are_never_flagged() -> None:
    protocol, _ = make_protocol("strict", {"threshold": "dspot"})
    scored = _scored([np.full(500, 0.3)], [np.full(300, 0.3), np.zeros(300)])
    threshold = protocol.find_threshold(scored)
    for scores, limit in zip(scored.test, protocol.limits(scored, threshold), strict=True):
        assert not (scores > limit).any()
