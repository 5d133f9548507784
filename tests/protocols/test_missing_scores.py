"""Omitting test scores never pays: it improves no point-wise metric, under any protocol."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.helpers.protocol_plant import SENSORS, scores_of
from tsadbench.base.dataset import Dataset, Labels
from tsadbench.base.protocol import Protocol, Scored, SplitJudgement
from tsadbench.base.recording import Recording
from tsadbench.errors import ContractError
from tsadbench.utils.arrays import FloatArray
from tsadbench_protocols.published import Published
from tsadbench_protocols.skab import Skab
from tsadbench_protocols.strict import Strict

PROTOCOLS = (Strict(warm_up=2), Published(window=2, horizon=2), Skab(train_rows=3))
IDS = ("strict", "published", "skab")
# Few values, so that most scores tie.
SCORE = st.one_of(st.integers(-2, 2).map(float), st.just(math.nan))


def split_judgements(protocol: Protocol, fits: Sequence[Scored], labels: Labels) -> Mapping[str, SplitJudgement] | None:
    """Return a protocol's judgements; None if the scores break the contract."""
    try:
        return protocol.judge(fits, labels).splits
    except ContractError:
        return None


def assert_not_better(
    protocol: Protocol, before: Mapping[str, SplitJudgement], after: Mapping[str, SplitJudgement]
) -> None:
    for split, judged in before.items():
        for metric in protocol.metrics:
            old, new = judged.metrics[metric.name], after[split].metrics[metric.name]
            assert (old is None) == (new is None), (split, metric.name)
            if old is not None and new is not None and metric.better is not None:
                gain = (new - old) * (1 if metric.better == "higher" else -1)
                assert gain <= 1e-12, (split, metric.name, old, new)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=IDS)
@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_omitting_test_scores_improves_no_metric(protocol: Protocol, data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=3).filter(lambda some: max(some) > 4))
    test = tuple(Recording(f"r{i}", np.zeros((n, 2)) + i, SENSORS) for i, n in enumerate(lengths))
    splits = {"overall": tuple(one.id for one in test), "last": (test[-1].id,)}
    dataset = Dataset("plant", (Recording("free", np.ones((9, 2)), SENSORS),), test, splits)
    labels = Labels({one.id: data.draw(hnp.arrays(np.bool_, one.n_rows)) for one in test}, splits)

    threshold = data.draw(st.integers(-3, 2)) + 0.5
    fits = [scores_of(one, lambda rows: np.zeros(rows.n_rows), threshold) for one in protocol.episodes(dataset)]

    def drawn(fit: Scored) -> tuple[FloatArray, ...]:
        return tuple(data.draw(hnp.arrays(np.float64, len(rows), elements=SCORE)) for rows in fit.test)

    def silenced(rows: FloatArray) -> FloatArray:
        if data.draw(st.booleans(), label="a leading run"):
            return np.where(np.arange(len(rows)) < data.draw(st.integers(0, len(rows))), math.nan, rows)
        return np.where(data.draw(hnp.arrays(np.bool_, len(rows))), math.nan, rows)

    loud = [Scored(fit.episode, fit.train, drawn(fit), threshold) for fit in fits]
    quiet = [Scored(fit.episode, fit.train, tuple(map(silenced, fit.test)), threshold) for fit in loud]
    before, after = (split_judgements(protocol, some, labels) for some in (loud, quiet))
    if before is None:
        assert after is None
    elif after is not None:  # invalid is no improvement
        assert_not_better(protocol, before, after)
