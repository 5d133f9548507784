from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tsadbench import DataError, Dataset, Labels, Recording
from tsadbench.base.dataset import Cause, LabelledDataset
from tsadbench.datasets.loading import check_labels


def recording(name: str, value: float = 1.0) -> Recording:
    return Recording(name, np.full((3, 2), value), ("a", "b"))


def dataset(**changes: object) -> Dataset:
    arguments = {
        "name": "d",
        "train": (recording("n"),),
        "test": (recording("f"),),
        "splits": {"overall": ("f",)},
    }
    return Dataset(**{**arguments, **changes})


def test_recordings_must_share_sensors_and_have_unique_ids():
    other = Recording("f", np.ones((3, 1)), ("a",))
    with pytest.raises(DataError, match="'f'"):
        dataset(test=(other,))
    with pytest.raises(DataError, match="ids"):
        dataset(test=(recording("n"),), splits={})


def test_splits_must_name_test_recordings():
    with pytest.raises(DataError, match=r"\['n'\]"):
        dataset(splits={"overall": ("n",)})


@pytest.mark.parametrize("field", ["sessions", "entities"])
@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"n": "day"}, "'f'"),
        ({"n": "day", "f": "day", "g": "day"}, "'g'"),
    ],
)
def test_sessions_and_entities_must_name_every_recording_and_no_other(field, declared, message):
    with pytest.raises(DataError, match=f"{field} .*{message}"):
        dataset(**{field: declared})
    assert getattr(dataset(), field) == {}
    assert dataset().session_of == {"n": "n", "f": "f"}


def test_no_hash_depends_on_sessions_or_entities():
    declared = dataset(sessions={"n": "one", "f": "two"}, entities={"n": "pump", "f": "pump"})
    assert declared.content_hash == dataset().content_hash


def test_the_content_hash_changes_with_any_value_id_or_role():
    hashes = {
        dataset().content_hash,
        dataset(train=(recording("n", 2.0),)).content_hash,
        dataset(train=(recording("m"),)).content_hash,
        dataset(train=(recording("f"),), test=(recording("n"),), splits={}).content_hash,
    }
    assert len(hashes) == 4
    assert dataset().content_hash == dataset(name="other").content_hash


TRUTH = np.array([False, True, True, False, True])
SPREAD = np.zeros(50, dtype=bool)
SPREAD[::10] = TRUTH


@pytest.mark.parametrize(
    "rows",
    [
        SPREAD[::10],
        np.frombuffer(TRUTH.tobytes(), dtype=bool),  # read-only
        TRUTH.astype(int),
        TRUTH.astype(object),
        TRUTH.tolist(),
        pd.Series(TRUTH, index=list("edcba")),
        pd.Series(TRUTH, dtype="boolean"),
    ],
)
def test_labels_in_any_form_are_the_same_labels(rows):
    labels = Labels({"f": rows}, {"overall": ("f",)})
    assert labels.content_hash == Labels({"f": TRUTH.copy()}, {"overall": ("f",)}).content_hash
    assert labels.rows["f"].tolist() == TRUTH.tolist()
    assert not labels.rows["f"].flags.writeable


def test_labels_neither_share_nor_lock_the_callers_array():
    mine = TRUTH.copy()
    labels = Labels({"f": mine}, {"overall": ("f",)})
    mine[:] = False
    assert labels.rows["f"].tolist() == TRUTH.tolist()


@pytest.mark.parametrize(
    "rows",
    [
        [0, 1, 2],
        ["no", "yes"],
        [0.0, float("nan")],
        pd.Series([True, None], dtype="boolean"),
        TRUTH[:, None],
        [[True], [True, False]],
        None,
    ],
)
def test_other_labels_are_refused(rows):
    with pytest.raises(DataError, match="'f'"):
        Labels({"f": rows}, {"overall": ("f",)})


@pytest.mark.parametrize(
    ("rows", "splits", "message"),
    [
        ({"f": 2}, {"overall": ("f",)}, "'f' .*3.*2"),
        ({"x": 3}, {"overall": ("f",)}, "'f'"),
        ({"f": 3, "x": 3}, {"overall": ("f",)}, "'x'"),
        ({"f": 3}, {}, "splits"),
    ],
)
def test_labels_must_fit_the_recordings(rows, splits, message):
    labels = Labels({name: np.zeros(n, dtype=bool) for name, n in rows.items()}, splits)
    with pytest.raises(DataError, match=message):
        check_labels(LabelledDataset(dataset(), labels))


def test_labels_must_be_in_the_order_of_the_recordings():
    two = dataset(test=(recording("f"), recording("g")), splits={})
    with pytest.raises(DataError, match="order"):
        check_labels(LabelledDataset(two, Labels({name: np.zeros(3, dtype=bool) for name in "gf"}, {})))


@pytest.mark.parametrize(
    ("causes", "message"),
    [
        ({"f": (Cause(0, 4, ("a",)),)}, "'f'"),
        ({"f": (Cause(2, 2, ("a",)),)}, "'f'"),
        ({"f": (Cause(-1, 2, ("a",)),)}, "'f'"),
        ({"t": (Cause(0, 1, ("a",)),)}, "'t'"),
        ({"f": (Cause(0, 1, ()),)}, "sensors"),
        ({"f": (Cause(0, 3, ("a",)), Cause(0, 1, ("a", "z")))}, "z"),
    ],
)
def test_causes_must_lie_in_test_recordings_and_name_their_sensors(causes, message):
    data = dataset()
    rows = {"f": np.zeros(3, dtype=bool)}
    check_labels(LabelledDataset(data, Labels(rows, data.splits, {"f": (Cause(1, 3, data.sensors),)})))
    with pytest.raises(DataError, match=message):
        check_labels(LabelledDataset(data, Labels(rows, data.splits, causes)))
