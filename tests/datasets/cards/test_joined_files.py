"""Several files that are one recording."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.datasets.cards.test_load import problems
from tests.helpers.cards import frame
from tsadbench.datasets.cards.reader import load_card

JOIN = '["test/*.csv"]\njoin = "test/(\\\\w+)-\\\\d+"'


@pytest.fixture
def parts(plant, edit):
    """The plant whose test recordings come in three files each, with a card that joins them."""
    for name in ("c", "d"):
        table = pd.read_csv(plant / f"test/{name}.csv")
        for number, (start, stop) in enumerate(((0, 10), (10, 45), (45, 60)), start=9):
            table[start:stop].to_csv(plant / f"test/{name}-{number}.csv", index=False)
        (plant / f"test/{name}.csv").unlink()
    return edit('["test/*.csv"]', JOIN)


def test_is_the_recording_in_one_file(parts):
    data, labels = load_card(parts)
    assert [one.id for one in data.test] == ["c", "d"]
    for recording, seed, faults in zip(data.test, (2, 3), ((40, 50), (30, 60)), strict=True):
        expected = frame(seed=seed, faults=faults)
        assert np.array_equal(recording.values, expected[["flow", "head"]])
        assert np.array_equal(labels.rows[recording.id], expected["fault"] == 1)
        assert recording.time is not None
        assert np.array_equal(np.diff(recording.time), np.ones(59))


def test_gaps_are_filled_across_files(parts, plant, edit):
    table = pd.read_csv(plant / "test/c-10.csv")
    table.loc[0, "flow"] = np.nan
    table.to_csv(plant / "test/c-10.csv", index=False)
    assert problems(parts)[0].startswith("test/c-10.csv, line 2: column 'flow': a value is missing")
    edit("[train]", '[missing]\npolicy = "forward-fill"\n[train]')
    recording = load_card(parts).dataset.test[0]
    assert recording.values[10, 0] == pd.read_csv(plant / "test/c-9.csv")["flow"].iloc[-1]


def test_periods_go_on(parts, plant, edit):
    for path in plant.glob("*/*.csv"):
        pd.read_csv(path).drop(columns="time").to_csv(path, index=False)
    edit('time = "time"', "period = 2")
    recording = load_card(parts).dataset.test[0]
    assert recording.time is not None
    assert recording.time.tolist() == list(range(0, 120, 2))


def test_the_rows_before_the_first_event_of_all_files(parts, edit):
    edit('["train/*.csv"]', f'{JOIN}\nrows = "before first event"')
    data, _ = load_card(parts)
    assert [(one.id, one.n_rows) for one in (*data.train, *data.test)] == [
        ("c/train", 40), ("d/train", 30), ("c/test", 20), ("d/test", 30)
    ]  # fmt: skip


def test_faults_are_told_with_the_file_that_has_them(parts, plant):
    table = pd.read_csv(plant / "test/d-11.csv")
    table.loc[3, "time"] = "2024-05-01 12:00:46"
    table.to_csv(plant / "test/d-11.csv", index=False)
    (plant / "test/c-9.csv").rename(plant / "test/c-12.csv")
    (plant / "test/odd.csv").write_text("")
    assert problems(parts) == [
        "card.toml: test.join: 'test/(\\\\w+)-\\\\d+' finds no group in 'test/odd.csv'; correct either",
        "test/odd.csv: it is empty; expected a line with the columns' names, and rows",
        "test/c-12.csv, line 2: column 'time': the time lies before that of the row above; sort the rows by time "
        "(if a clock was set back, write times in UTC), or correct join or the order of files",
        "test/d-11.csv, line 5: column 'time': the time lies before that of the row above; sort the rows by time "
        "(if a clock was set back, write times in UTC), or correct join or the order of files",
    ]


@pytest.mark.parametrize(
    ("join", "expected"),
    [
        ("(", "test.join: expected a regular expression, found '('"),
        ("a", "test.join: expected a regular expression with one group in parentheses, found 'a'"),
        ("(a)(b)", "test.join: expected a regular expression with one group in parentheses, found '(a)(b)'"),
    ],
)
def test_what_cannot_join(plant, edit, join, expected):
    assert any(expected in problem for problem in problems(edit('["test/*.csv"]', f'["test/*.csv"]\njoin = "{join}"')))


def test_a_file_may_be_of_one_recording_only(parts, edit):
    edit('["train/*.csv"]', '["test/c-9.csv"]\nrows = "before first event"')
    assert "card.toml: test/c-9.csv belongs to two recordings, 'test/c-9' and 'c'" in problems(parts)[0]


def test_columns_may_be_in_another_order(parts, plant):
    table = pd.read_csv(plant / "test/c-10.csv")
    table[["fault", "head", "time", "flow"]].to_csv(plant / "test/c-10.csv", index=False)
    expected = frame(seed=2)[["flow", "head"]]
    assert np.array_equal(load_card(parts).dataset.test[0].values, expected)


@pytest.mark.parametrize("labelled", ["column", "file"])
def test_one_grid_is_laid_over_all_files(parts, plant, edit, labelled):
    edit("[train]", '[resample]\nevery = "7s"\nby = "mean"\n[train]')
    if labelled == "file":
        edit('label = "fault"', 'ignore = ["fault"]\n[labels]\nfile = "{id}.txt"')
        for name, faults in (("c", (40, 50)), ("d", (30, 60))):
            frame(faults=faults)["fault"].to_csv(plant / f"{name}.txt", index=False, header=False)
    data, labels = load_card(parts)
    truth = frame(seed=2, faults=(40, 50)).groupby(np.arange(60) // 7)
    assert np.allclose(data.test[0].values, truth[["flow", "head"]].mean(), rtol=1e-12)
    assert np.array_equal(labels.rows["c"], truth["fault"].max() == 1)
    assert data.test[0].time is not None
    assert np.diff(data.test[0].time).tolist() == [7.0] * 8


def test_intervals_of_rows_do_not_fit_a_grid(plant, edit):
    edit("[train]", '[resample]\nevery = "7s"\n[train]')
    card = edit('label = "fault"', '[labels]\nintervals = "events.csv"')
    assert problems(card) == [
        'card.toml: the card: [resample] makes other rows than the files have: tell intervals by unit = "time"'
    ]
