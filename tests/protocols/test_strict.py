"""The protocol `strict`, on small systems worked by hand."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import pytest

from tests.helpers.protocol_plant import SENSORS, plant, pressure, recording, scores_of, trial
from tsadbench.base.dataset import LabelledDataset, Labels
from tsadbench.base.protocol import Scored, Threshold
from tsadbench.base.recording import Recording
from tsadbench.errors import ContractError, DataError, UsageError
from tsadbench.utils.arrays import FloatArray
from tsadbench_protocols import pot
from tsadbench_protocols.metrics import METRICS
from tsadbench_protocols.strict import Strict


def test_it_trains_only_on_rows_that_are_not_in_the_test() -> None:
    train = recording("free", 100, start=0)
    data = plant((train,), (train.rows(60, 80, id="a"), recording("b", 40, start=1000)))
    (episode,) = Strict().episodes(data.dataset)
    assert [(one.id, one.n_rows) for one in episode.train] == [("free[0:60]", 60), ("free[80:100]", 20)]
    assert episode.test == data.dataset.test


def test_no_training_row_left_is_an_error_that_says_so() -> None:
    train = recording("free", 100, start=0)
    data = plant((train,), (train.rows(0, 100, id="a"),))
    with pytest.raises(DataError, match="plant"):
        list(Strict().episodes(data.dataset))


def test_metrics_are_over_the_rows_after_the_warm_up() -> None:
    scores = {"a": [9, 9, 1, 5, 2, 6], "b": [9, 9, 7, 3], "short": [9, 9], "shorter": [9]}
    test = tuple(Recording(name, np.column_stack([one, one]), SENSORS) for name, one in scores.items())
    data = plant((recording("free", 500),), test)
    splits = {"overall": ("a", "b", "short", "shorter"), "b": ("b",), "short": ("shorter", "short")}
    # After two rows: a 1 5 2 6, of which 5 2 are anomalous; b 7 3, of which 7 is. Flagged, above 4: 5 6 7.
    rows = {"a": [0, 1, 0, 1, 1, 0], "b": [1, 1, 1, 0], "short": [1, 1], "shorter": [1]}
    labels = Labels({name: np.array(one, dtype=np.bool_) for name, one in rows.items()}, splits)
    found = trial(Strict(warm_up=2), LabelledDataset(data.dataset, labels), pressure, fixed=4.0)
    overall, b, short = found.splits["overall"], found.splits["b"], found.splits["short"]
    assert (overall.n_rows, overall.n_anomalous, overall.coverage) == (6, 3, 1.0)
    assert overall.metrics == pytest.approx(
        {
            "precision": 2 / 3,
            "recall": 2 / 3,
            "prac_f1": 2 / 3,
            "mcc": (2 * 2 - 1 * 1) / 9,
            "auroc": (3 + 2 + 1) / 9,  # 7 beats 6 3 1, 5 beats 3 1, 2 beats 1
            "auprc": (1 + 2 / 3 + 3 / 5) / 3,
            "bf_f1": 3 / 4,  # the first five: 7 6 5 3 2
            "flagged": 1 / 2,
            **dict.fromkeys(("events_at_1", "events_at_01"), 1 / 2),  # 7, but not 5 2: 6 is normal
            # The means over a's rows are 19/3 24/4 26/5 32/6, over b's 25/3 28/4: 7 6.3 6 5.3 5.2 beside 8.3.
            "auprc_mean10": (1 + 2 / 4 + 3 / 6) / 3,
        }
    )
    assert (b.n_rows, b.n_anomalous, b.metrics["auroc"], b.metrics["prac_f1"]) == (2, 1, 1.0, 1.0)
    assert (short.n_rows, short.n_anomalous, short.coverage) == (0, 0, 0.0)
    assert short.metrics == dict.fromkeys((metric.name for metric in METRICS), None)
    assert [re.findall(r"'(\w+)' \((\d+) rows\)", note) for note in found.notes] == [
        [("short", "2")],
        [("shorter", "1")],
    ]


def test_the_threshold_comes_from_all_training_recordings_after_their_warm_up() -> None:
    train = (recording("one", 300), recording("two", 400, seed=1), recording("short", 30, seed=2))
    data = plant(train, (recording("a", 50),))
    (found,) = trial(Strict(), data, pressure).thresholds
    pooled = np.concatenate([one.values[30:, 0] for one in train])
    assert found.threshold == pot.fit(pooled, level=0.98, q=1e-3)
    assert (found.episode, found.threshold.n) == ("all", 270 + 370 + 0)


def test_level_and_risk_are_passed_on() -> None:
    data = plant((recording("free", 3000),), (recording("a", 50),))
    (found,) = trial(Strict(warm_up=0, level=0.95, q=0.01), data, pressure).thresholds
    assert found.threshold == pot.fit(data.dataset.train[0].values[:, 0], level=0.95, q=0.01)


def test_the_threshold_depends_on_neither_test_scores_nor_labels() -> None:
    data = plant((recording("free", 500),), (recording("a", 80),), {"a": slice(40, 60)})
    labels = Labels({"a": np.ones(80, dtype=np.bool_)}, data.labels.splits)
    (episode,) = Strict().episodes(data.dataset)
    scored = scores_of(episode, pressure)
    louder = Scored(episode, scored.train, tuple(1e6 * rows for rows in scored.test))
    thresholds = [
        Strict().judge([scored], data.labels).thresholds,
        Strict().judge([louder], data.labels).thresholds,
        Strict().judge([scored], labels).thresholds,
    ]
    assert thresholds[0] == thresholds[1] == thresholds[2]


def test_training_rows_without_score_are_left_out_of_the_threshold() -> None:
    data = plant((recording("free", 500),), (recording("a", 80),))

    def late(one: Recording) -> FloatArray:
        rows = pressure(one)
        rows[:40] = rows[-9:] = math.nan
        return rows

    (found,) = trial(Strict(), data, late).thresholds
    assert found.threshold == pot.fit(data.dataset.train[0].values[40:-9, 0])


def test_fewer_than_95_percent_of_the_calibration_rows_scored_breaks_the_contract() -> None:
    data = plant((recording("free", 430),), (recording("a", 80),))  # 400 rows set the threshold

    def silent(n_rows: int) -> Callable[[Recording], FloatArray]:
        def rule(one: Recording) -> FloatArray:
            rows = pressure(one)
            rows[30 : 30 + n_rows * (one.id == "free")] = math.nan
            return rows

        return rule

    assert trial(Strict(), data, silent(20)).thresholds[0].threshold.n == 380
    with pytest.raises(ContractError, match=r"\b400 .* 379\b"):
        trial(Strict(), data, silent(21))
    assert trial(Strict(), data, silent(21), fixed=0.5).thresholds[0].threshold.value == 0.5


def test_a_fixed_threshold_replaces_peaks_over_threshold() -> None:
    data = plant((recording("free", 500),), (recording("a", 80),))
    found = trial(Strict(), data, lambda one: np.ones(one.n_rows), fixed=0.0)
    assert found.thresholds[0].threshold == Threshold(value=0.0, method="fixed", status="fixed")
    assert found.splits["overall"].metrics["flagged"] == 1.0


def test_coverage_is_the_share_of_evaluated_rows_with_a_score() -> None:
    data = plant(
        (recording("free", 500),),
        (recording("a", 50), recording("b", 50, seed=1)),
        {"a": slice(45, 50), "b": slice(30, 35)},
        {"overall": ("a", "b"), "a": ("a",), "b": ("b",)},
    )

    def only_a(one: Recording) -> FloatArray:
        rows = pressure(one)
        rows[:35] = math.nan
        return np.full(50, math.nan) if one.id == "b" else rows

    found = trial(Strict(), data, only_a).splits
    assert {name: split.coverage for name, split in found.items()} == {"overall": 15 / 40, "a": 15 / 20, "b": 0.0}
    # All normal rows count as flagged, no anomalous one does.
    assert (found["b"].metrics["auroc"], found["b"].metrics["flagged"]) == (0.0, 15 / 20)
    a = data.dataset.test[0].values[30:, 0].copy()
    a[:5] = a[5:].max() + 1
    anomalous, normal = a[15:], a[:15]
    assert found["a"].metrics["auroc"] == pytest.approx(np.mean(anomalous[:, None] > normal[None, :]))


def test_nothing_scored_breaks_the_contract() -> None:
    data = plant((recording("free", 500),), (recording("a", 50), recording("b", 20)))

    def warm_up_only(one: Recording) -> FloatArray:
        rows = pressure(one)
        if one.id != "free":
            rows[30:] = math.nan
        return rows

    with pytest.raises(ContractError, match=r"\b20 "):
        trial(Strict(), data, warm_up_only)


@pytest.mark.parametrize("where", ["free", "a"])
def test_an_infinite_score_breaks_the_contract(where: str) -> None:
    data = plant((recording("free", 100),), (recording("a", 50),))

    def rule(one: Recording) -> FloatArray:
        rows = pressure(one)
        rows[40] = math.inf if one.id == where else 0.0
        return rows

    with pytest.raises(ContractError, match="infinite"):
        trial(Strict(), data, rule)


@pytest.mark.parametrize(
    ("lengths", "named"), [({"a": 49}, "50 .*'a'.* 49"), ({"b": 50}, "'a'.* 0"), ({"a": 50, "b": 50}, "none of b$")]
)
def test_labels_that_do_not_fit_the_scores_are_an_error(lengths: dict[str, int], named: str) -> None:
    data = plant((recording("free", 100),), (recording("a", 50),))
    labels = Labels({name: np.zeros(n, dtype=np.bool_) for name, n in lengths.items()}, {"overall": ("a",)})
    with pytest.raises(DataError, match=named):
        trial(Strict(), LabelledDataset(data.dataset, labels), pressure)


def test_a_split_that_names_an_unknown_recording_is_an_error() -> None:
    data = plant((recording("free", 100),), (recording("a", 50),))
    labels = Labels(data.labels.rows, {"overall": ("a",), "valves": ("a", "valve1")})
    with pytest.raises(DataError, match="valve1"):
        trial(Strict(), LabelledDataset(data.dataset, labels), pressure)


@pytest.mark.parametrize(
    ("parameters", "name"),
    [({"warm_up": -1}, "warm_up"), ({"warm_up": 2.5}, "warm_up"), ({"level": 1.0}, "level"), ({"q": 0.02}, "q")],
)
def test_a_parameter_out_of_range_is_a_usage_error_that_names_it(parameters: dict[str, float], name: str) -> None:
    protocol = Strict(**parameters)  # the constructor only stores
    with pytest.raises(UsageError, match=name):
        protocol.check()


class TestHeldOut:
    """The threshold on the last fifth of the normal rows: of 5,000, 3,900 train, 100 are the gap, 1,000 calibrate."""

    HELD_OUT = Strict(calibration="held-out", warm_up=0)

    def test_the_last_fifth_is_not_trained_on_nor_are_the_rows_before_it(self) -> None:
        data = plant((recording("free", 5000),), (recording("a", 50),))
        (episode,) = self.HELD_OUT.episodes(data.dataset)
        (train,), (calibration,) = episode.train, episode.calibration
        assert (train.id, calibration.id) == ("free[0:3900]", "free[4000:5000]")
        whole = data.dataset.train[0].values
        assert (train.values == whole[:3900]).all()
        assert (calibration.values == whole[4000:]).all()
        assert episode.test == data.dataset.test

    def test_rows_are_counted_over_all_recordings(self) -> None:
        names = ("one", 2000), ("two", 1950), ("three", 150), ("four", 900)
        data = plant(tuple(recording(name, n) for name, n in names), (recording("a", 50),))
        (episode,) = self.HELD_OUT.episodes(data.dataset)
        assert [one.id for one in episode.train] == ["one", "two[0:1900]"]
        assert [one.id for one in episode.calibration] == ["three[50:150]", "four"]
        assert episode.calibration[1] is data.dataset.train[3]

    def test_the_threshold_comes_from_held_out_rows_after_their_warm_up(self) -> None:
        data = plant((recording("one", 4000), recording("two", 2000, seed=1)), (recording("a", 50),))
        found = trial(Strict(calibration="held-out"), data, pressure)
        assert found.thresholds[0].threshold == pot.fit(data.dataset.train[1].values[830:, 0], level=0.98, q=1e-3)
        assert found.notes == ()

    @pytest.mark.parametrize(("n_rows", "n_held"), [(5149, None), (5150, 1030)])
    def test_with_fewer_than_1000_rows_after_the_warm_up_the_training_rows_calibrate(self, n_rows, n_held) -> None:
        data = plant((recording("free", n_rows),), (recording("a", 50),))
        protocol = Strict(calibration="held-out")
        (episode,) = protocol.episodes(data.dataset)
        found = trial(protocol, data, pressure)
        if n_held is None:
            assert (episode.train, episode.calibration) == (data.dataset.train, ())
            assert found.thresholds == trial(Strict(calibration="training"), data, pressure).thresholds
            (note,) = found.notes
            assert re.search(r"\b999 .*\b1,000 ", note)
        else:
            assert [one.n_rows for one in episode.calibration] == [n_held]
            assert found.notes == ()

    def test_rows_that_recur_in_the_test_are_in_neither_part(self) -> None:
        train = recording("free", 6000, start=0)
        data = plant((train,), (train.rows(5500, 5600, id="a"),))
        (episode,) = self.HELD_OUT.episodes(data.dataset)
        times = np.concatenate([one.time for one in (*episode.train, *episode.calibration) if one.time is not None])
        assert len(times) == 5900 - 100
        assert not np.isin(np.arange(5500, 5600), times).any()

    def test_an_unknown_calibration_is_refused(self) -> None:
        with pytest.raises(UsageError, match="calibration"):
            Strict(calibration="test").check()  # type: ignore[arg-type] - what a user may write
