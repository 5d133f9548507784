"""The protocol `published`, on small systems worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.protocol_plant import plant, pressure, recording, trial
from tsadbench.base.dataset import LabelledDataset, Labels
from tsadbench.base.protocol import Scored
from tsadbench.errors import DataError, UsageError
from tsadbench_protocols import pot
from tsadbench_protocols.metrics import METRICS
from tsadbench_protocols.published import Published

SPLITS = {"overall": ("a", "b", "c"), "a": ("a",), "b": ("b",), "c": ("c",), "ends": ("c", "a")}


def three(n_a: int, n_b: int, n_c: int) -> LabelledDataset:
    test = (recording("a", n_a, start=0), recording("b", n_b, start=0, seed=1), recording("c", n_c, seed=2))
    return plant((recording("free", 300, start=0),), test, splits=SPLITS)


def test_the_test_recordings_are_one_series_without_time_in_their_order() -> None:
    data = three(50, 20, 60)
    (episode,) = Published().episodes(data.dataset)
    (series,) = episode.test
    assert series.time is None
    assert series.sensors == data.dataset.sensors
    np.testing.assert_array_equal(series.values, np.concatenate([one.values for one in data.dataset.test]))


def test_training_rows_that_recur_in_the_test_are_kept() -> None:
    train = recording("free", 100, start=0)
    (episode,) = Published().episodes(plant((train,), (train.rows(60, 80, id="a"),)).dataset)
    assert episode.train == (train,)


@pytest.mark.parametrize(
    ("lengths", "counted"),
    [
        ((50, 20, 60), (20, 20, 51)),  # the first 30 rows and the last 9 of the series do not count
        ((30, 20, 9), (0, 20, 0)),
        ((10, 25, 12), (0, 5, 3)),  # the first 30 rows reach into b
        ((60, 10, 4), (30, 5, 0)),  # the last 9 rows reach into b
        ((20, 10, 10), (0, 0, 1)),  # one window of 30 + 10 rows
    ],
)
def test_as_many_rows_count_as_there_are_windows(lengths: tuple[int, int, int], counted: tuple[int, int, int]) -> None:
    found = trial(Published(), three(*lengths), pressure).splits
    assert tuple(found[name].n_rows for name in "abc") == counted
    assert found["overall"].n_rows == sum(counted) == sum(lengths) - (30 + 10 - 1)
    assert found["ends"].n_rows == counted[0] + counted[2]


@pytest.mark.parametrize("n", [1, 30, 36])
def test_a_series_shorter_than_a_window_has_no_row_that_counts(n: int) -> None:
    found = trial(Published(), three(n, 1, 2), pressure).splits["overall"]
    assert (found.n_rows, found.n_anomalous, found.coverage) == (0, 0, 0.0)
    assert found.metrics == dict.fromkeys((metric.name for metric in METRICS), None)


def test_a_splits_rows_are_the_slices_of_its_recordings() -> None:
    data = three(8, 4, 6)
    rows = {
        "a": np.array([1, 1, 0, 1, 1, 0, 0, 0], dtype=np.bool_),
        "b": np.array([0, 0, 1, 0], dtype=np.bool_),
        "c": np.array([0, 1, 0, 0, 1, 1], dtype=np.bool_),
    }
    #         a: 3 rows of input | 5 count     b: 4 count     c: 4 count | 2 do not
    scores = [9.0, 9.0, 9.0, 5.0, 1.0, 3.0, 2.0, 1.0, 7.0, 1.0, 6.0, 1.0, 2.0, 8.0, 1.0, 1.0, 9.0, 9.0]
    protocol = Published(window=3, horizon=3)
    (episode,) = protocol.episodes(data.dataset)
    scored = Scored(episode, (np.zeros(300),), (np.array(scores),), fixed_threshold=4.0)
    found = protocol.judge([scored], Labels(rows, SPLITS)).splits
    assert {name: (split.n_rows, split.n_anomalous) for name, split in found.items()} == {
        "overall": (13, 4),
        "a": (5, 2),
        "b": (4, 1),
        "c": (4, 1),
        "ends": (9, 3),
    }
    # Flagged: 5 in a (right); 7 in b (wrong) and 6 (right); 8 in c (right). Missed: 1 in a.
    assert {name: (split.metrics["precision"], split.metrics["recall"]) for name, split in found.items()} == {
        "overall": (3 / 4, 3 / 4),
        "a": (1.0, 1 / 2),
        "b": (1 / 2, 1.0),
        "c": (1.0, 1.0),
        "ends": (1.0, 2 / 3),
    }
    assert found["c"].metrics["auroc"] == 1.0
    assert found["b"].metrics["auroc"] == 2 / 3


def test_the_threshold_comes_from_the_same_rows_of_each_training_recording() -> None:
    train = (recording("one", 300), recording("two", 400, seed=1), recording("short", 39, seed=2))
    data = plant(train, (recording("a", 50),))
    (found,) = trial(Published(), data, pressure).thresholds
    pooled = np.concatenate([one.values[30 : one.n_rows - 10 + 1, 0] for one in train])
    assert found.threshold == pot.fit(pooled, level=0.98, q=1e-3)
    assert (found.episode, found.threshold.n) == ("all", 261 + 361 + 0)


def test_labels_that_do_not_fit_the_scores_are_an_error() -> None:
    data = three(50, 20, 60)
    with pytest.raises(DataError, match="130"):
        trial(Published(), LabelledDataset(data.dataset, three(49, 20, 60).labels), pressure)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"window": 0}, "^published: window .* 0$"),
        ({"horizon": 0}, "^published: horizon .* 0$"),
        ({"horizon": 1.5}, r"^published: horizon .* 1\.5$"),
    ],
)
def test_a_parameter_out_of_range_is_a_usage_error_that_names_it(parameters: dict[str, float], message: str) -> None:
    protocol = Published(**parameters)  # the constructor only stores
    with pytest.raises(UsageError, match=message):
        protocol.check()
