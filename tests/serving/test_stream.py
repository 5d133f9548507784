"""Streamed rows are answered within the look-ahead, and all answers together equal those of the batch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.tiny import Around
from tsadbench import Detector, Recording, Traits, UsageError
from tsadbench.serving import Stream
from tsadbench.serving.model import Model


def model_of(detector: Detector, card) -> Model:
    sensors = ("a", "b")
    detector.fit(np.random.default_rng(0).normal(size=(20, 2)))
    detector.sensors_ = sensors
    return Model(detector, replace(card, sensors=sensors, threshold=replace(card.threshold, value=0.5)))


CHUNKS = st.lists(st.integers(0, 9), min_size=1, max_size=20)


@given(CHUNKS, st.integers(0, 4), st.integers(0, 4), st.booleans(), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_any_chunks_give_the_batchs_answers(t2_model, chunks, before, after, timed, seed):
    model = model_of(Around(before=before, after=after), t2_model.card)
    rows = np.random.default_rng(seed).normal(size=(sum(chunks), 2))
    stream, found, seen = Stream(model, contributions=True), [], 0
    for count in chunks:
        time = np.arange(seen, seen + count, dtype=float) if timed else None
        found.append(stream.push(rows[seen : seen + count], time))
        seen += count
        assert sum(map(len, found)) == max(0, seen - after)
        assert len(stream._values) <= before + after
    found.append(stream.finish())
    assert len(stream.finish()) == 0
    if seen:
        expected = model.score(_recording(rows), contributions=True)
        pd.testing.assert_frame_equal(pd.concat([one for one in found if len(one)]), expected, check_exact=True)


def _recording(rows):
    return Recording("x", rows, ("a", "b"))


def test_a_row_without_a_score_is_not_flagged(t2_model):
    answers = model_of(Around(before=2, after=0), t2_model.card).score(_recording(np.full((4, 2), 1.0)))
    assert answers["flagged"].tolist() == [False, False, True, True]


def test_scores_that_depend_on_all_rows_need_whole_recordings(t2_model):
    class Leaky(Around):
        def declared_traits(self):
            return Traits(leaky="the scored recording's mean")

    model, rows = model_of(Leaky(), t2_model.card), np.random.default_rng(1).normal(size=(30, 2))
    with pytest.raises(UsageError, match="mean"):
        Stream(model)
    stream = Stream(model, whole=True)
    assert len(stream.push(rows)) == 0
    pd.testing.assert_frame_equal(stream.finish(), model.score(_recording(rows)))
