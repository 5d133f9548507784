"""Frames as data sets: every form of time and label gives the same data set, and every fault is one line."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import tsadbench
from tsadbench import DataError, UsageError, dataset_from_frames

RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=(60, 2))
TRAIN = pd.DataFrame(VALUES[:40], columns=["flow", "pressure"])
TEST = pd.DataFrame(VALUES[40:], columns=["flow", "pressure"])
TRUTH = np.zeros(20, dtype=bool)
TRUTH[5:9] = True
TIME = pd.date_range("2026-03-01 12:00", periods=20, freq="s")
SECONDS = (TIME - pd.Timestamp(0)) / pd.Timedelta(seconds=1)


def test_one_frame_each_is_a_data_set():
    data, labels = dataset_from_frames(TRAIN, TEST, TRUTH, name="mine", sessions={"train": "a", "test": "b"})
    assert (data.name, data.sensors, data.sessions) == ("mine", ("flow", "pressure"), {"train": "a", "test": "b"})
    np.testing.assert_array_equal(data.train[0].values, VALUES[:40])
    np.testing.assert_array_equal(data.test[0].values, VALUES[40:])
    assert data.test[0].time is None
    assert data.splits == labels.splits == {"overall": ("test",)}
    assert labels.rows["test"].tolist() == TRUTH.tolist()


@pytest.mark.parametrize(
    "labels",
    [
        TRUTH,
        TRUTH.astype(float).tolist(),
        pd.Series(TRUTH, index=TIME).astype("Int64"),
        {"test": TRUTH},
        [("2026-03-01 12:00:05", "2026-03-01 12:00:08")],
        [(TIME[5], TIME[6]), (TIME[7], TIME[8].tz_localize("UTC"))],
        [("2026-03-01T13:00:04.5+01:00", "2026-03-01T13:00:08.5+01:00")],
    ],
)
def test_every_form_of_labels_is_the_same_truth(labels):
    found = dataset_from_frames(TRAIN, TEST.set_index(TIME), labels).labels
    assert found.rows["test"].tolist() == TRUTH.tolist()


@pytest.mark.parametrize(
    ("frame", "time", "intervals"),
    [
        (TEST, None, [(5, 6), (np.int64(6), 8.0)]),
        (TEST.assign(t=TIME.strftime("%Y-%m-%dT%H:%M:%SZ")), "t", [("2026-03-01 12:00:05", "2026-03-01 12:00:08")]),
        (TEST.assign(t=np.arange(20) / 2), "t", [(2.5, 4)]),
        (TEST.set_index(pd.to_timedelta(np.arange(20), unit="s")), None, [("5s", "8s")]),
        (TEST.set_index(TIME.tz_localize("Europe/Berlin")), None, [("2026-03-01 11:00:05Z", "2026-03-01 11:00:08Z")]),
        (TEST.assign(t=TIME.tz_localize("Asia/Tokyo")), "t", [("2026-03-01 12:00:05", "2026-03-01T12:00:08+09:00")]),
    ],
)
def test_intervals_are_in_the_time_of_the_frame(frame, time, intervals):
    train = TRAIN if time is None else TRAIN.assign(t=frame["t"].iloc[0])
    data, labels = dataset_from_frames(train, frame, intervals, time=time)
    assert labels.rows["test"].tolist() == TRUTH.tolist()
    assert data.sensors == ("flow", "pressure")


def test_a_time_column_gives_seconds_since_1970_and_is_no_sensor():
    data, _ = dataset_from_frames(TRAIN.assign(t=TIME[0]), TEST.assign(t=TIME), TRUTH, time="t")
    np.testing.assert_array_equal(data.test[0].time, SECONDS)
    assert data.sensors == ("flow", "pressure")


def test_a_column_of_labels_is_no_sensor_and_may_be_missing_in_training():
    for train in (TRAIN, TRAIN.assign(attack=0)):
        data, labels = dataset_from_frames(train, TEST.assign(attack=TRUTH.astype(int)), "attack")
        assert data.sensors == ("flow", "pressure")
        assert labels.rows["test"].tolist() == TRUTH.tolist()


def test_several_frames_have_ids_splits_sessions_and_labels_of_their_own():
    turned = TEST[["pressure", "flow"]]  # in another order
    data, labels = dataset_from_frames(
        [TRAIN, TRAIN], {"a": TEST, "b": turned}, {"b": [], "a": TRUTH}, splits={"only": "b"}
    )
    assert [one.id for one in (*data.train, *data.test)] == ["train-0", "train-1", "a", "b"]
    assert data.splits == {"overall": ("a", "b"), "only": ("b",)}
    np.testing.assert_array_equal(data.test[1].values, data.test[0].values)
    assert {name: int(rows.sum()) for name, rows in labels.rows.items()} == {"a": 4, "b": 0}
    _, labels = dataset_from_frames(TRAIN, [TEST, TEST], [TRUTH, [(0, 2)]])
    assert {name: int(rows.sum()) for name, rows in labels.rows.items()} == {"test-0": 4, "test-1": 3}


GAP = TEST.copy()
GAP.iloc[3, 1] = np.nan
TEXT = TEST.assign(state="open")

WRONG = [
    (DataError, (3, TEST), {}, "train: .*int"),
    (DataError, ([TRAIN, "x.csv"], TEST), {}, r"train\[1\]"),
    (UsageError, ([], TEST), {}, "train: .*none"),
    (DataError, (TRAIN, {"a": GAP}), {}, r"test\['a'\]: .*row 3, sensor 'pressure'"),
    (DataError, (TEXT, TEST), {}, r"train: .*\['state'\]"),
    (DataError, (TRAIN, TEST.assign(x=1.0)), {}, "test: .*'x'"),
    (DataError, (TRAIN, TEST[["flow", "flow", "pressure"]]), {}, "test: .*unique"),
    (DataError, (TRAIN[:0], TEST), {}, "train: .*row"),
    (UsageError, (TRAIN, TEST), {"time": "t"}, "time: train .*'t'"),
    (DataError, (TRAIN.assign(t="noon"), TEST), {"time": "t"}, "train: column 't'"),
    (DataError, (TRAIN, TEST.set_index(TIME[::-1])), {}, "test: row 1 .*time"),
    (UsageError, (TRAIN, TEST, "attack"), {}, "labels: test .*'attack'"),
    (DataError, (TRAIN, TEST, TRUTH[:7]), {}, r"labels: test .*\b20 "),
    (DataError, (TRAIN, TEST, TRUTH.astype(int) * 2), {}, "labels of test: .*0 .*1"),
    (DataError, (TRAIN, TEST, pd.Series(TRUTH, index=range(1, 21))), {}, "labels: .*index"),
    (UsageError, (TRAIN, {"a": TEST}, {"b": TRUTH}), {}, r"labels: .*\['a'\]"),
    (DataError, (TRAIN, TEST, [(5, 30)]), {}, "labels: interval 0 .*5 .*30"),
    (DataError, (TRAIN, TEST, [(0, 1), (8, 5)]), {}, "labels: interval 1 .*8 .*5"),
    (DataError, (TRAIN, TEST.set_index(TIME), [(5, 8)]), {}, "times.*5"),
    (DataError, (TRAIN.assign(y=1), TEST.assign(y=0), "y"), {}, "train: 'y'"),
    (DataError, (TRAIN, TEST), {"splits": {"a": "tset"}}, "split 'a' .*'tset'"),
    (DataError, (TRAIN, TEST), {"sessions": {"test": "a"}}, "sessions"),
    (UsageError, (TRAIN, TEST), {"name": "skab"}, "name: 'skab'"),
]


@pytest.mark.parametrize(("error", "arguments", "options", "match"), WRONG)
def test_an_error_is_one_line_that_names_argument_and_frame(error, arguments, options, match):
    with pytest.raises(error, match=match) as caught:
        dataset_from_frames(*arguments, **options)
    assert "\n" not in str(caught.value)


def test_without_labels_it_can_be_fitted_and_scores_but_not_be_judged(tmp_path):
    mine = dataset_from_frames(TRAIN, TEST, name="mine")
    with pytest.raises(UsageError, match="dataset: 'mine'.* labels"):
        tsadbench.run("t2", mine)
    with pytest.raises(UsageError, match="dataset: 'mine'"):
        tsadbench.run("t2", dataset_from_frames(TRAIN, name="mine"))
    model = tsadbench.fit_model("t2", mine, tmp_path / "t2.model")
    scored = tsadbench.load_model(tmp_path / "t2.model").score(TEST)
    pd.testing.assert_frame_equal(scored, model.score(TEST))
    assert len(scored) == len(TEST)


def test_a_run_on_frames_equals_the_run_on_a_card_of_the_same_files(tiny_plugin, tmp_path):
    rows = pd.DataFrame(np.random.default_rng(1).normal(size=(240, 2)), columns=["flow", "pressure"])
    truth = np.zeros(120, dtype=int)
    truth[60:80] = 1
    rows.iloc[180:200] += 4
    train, test = rows[:120], rows[120:].reset_index(drop=True)
    train.to_csv(tmp_path / "train.csv", index=False)
    test.assign(fault=truth).to_csv(tmp_path / "test.csv", index=False)
    (tmp_path / "plant.toml").write_text(
        'schema = 1\nname = "mine"\n'
        '[train]\nfiles = ["train.csv"]\n[test]\nfiles = ["test.csv"]\n[labels]\nkind = "column"\ncolumn = "fault"\n'
    )
    mine = dataset_from_frames(train, test, truth, name="mine")
    boards = [tsadbench.run("distance", data, floors=False) for data in (mine, tmp_path / "plant.toml")]
    (of_frames,), (of_card,) = (board.records for board in boards)
    assert of_frames.splits == of_card.splits
    assert of_frames.splits["overall"].metrics["auroc"] > 0.9
    assert {name: of_frames.manifest[name] for name in ("data_hash", "labels_hash")} == {
        name: of_card.manifest[name] for name in ("data_hash", "labels_hash")
    }
