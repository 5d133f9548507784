"""Labels as intervals of rows or of time, and what may be wrong with them."""

from __future__ import annotations

from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

from tests.datasets.cards.test_load import problems
from tests.helpers.cards import CARD, frame
from tsadbench.base.dataset import Cause
from tsadbench.datasets.cards.reader import load_card

BOTH = "card.toml: the card: give columns.label, the column that marks anomalous rows, or [labels], and not both"
UNLABELLED = CARD.replace('label = "fault"\n', "")


def write(plant: Path, events: str, keys: str = "", *, card: str = UNLABELLED) -> Path:
    """Write a card with intervals, and the intervals."""
    (plant / "events.csv").write_text(events)
    (plant / "card.toml").write_text(f'{card}ignore = ["fault"]\n[labels]\nintervals = "events.csv"\n{keys}')
    return plant / "card.toml"


class TestRows:
    def test_both_ends_belong_to_an_interval(self, plant):
        card = write(plant, "recording,start,end\ntest/c,40,49\ntest/d,30,30\ntest/d,0,3\n")
        data, labels = load_card(card)
        assert data.sensors == ("flow", "head")
        assert np.flatnonzero(labels.rows["test/c"]).tolist() == list(range(40, 50))
        assert np.flatnonzero(labels.rows["test/d"]).tolist() == [0, 1, 2, 3, 30]
        assert labels.causes == {}

    def test_the_same_labels_as_a_column_gives(self, plant):
        expected = load_card(plant / "card.toml").labels.content_hash
        assert (
            load_card(write(plant, "start,end,recording\n40,49,test/c\n30,59,test/d\n")).labels.content_hash == expected
        )

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
    @given(truth=st.lists(st.booleans(), min_size=60, max_size=60), shuffled=st.randoms(use_true_random=False))
    def test_any_labels_come_back(self, plant, truth, shuffled):
        rows = pd.Series(truth)
        runs = rows.index[rows].to_series().groupby((rows != rows.shift()).cumsum()[rows])
        events = [f"test/d,{run.min()},{run.max()}" for _, run in runs]
        shuffled.shuffle(events)
        labels = load_card(write(plant, "\n".join(["recording,start,end", *events]))).labels
        assert labels.rows["test/d"].tolist() == truth
        assert not labels.rows["test/c"].any()

    def test_sensors_to_blame(self, plant):
        events = "recording,start,end,sensors\ntest/c,40,49,head ; flow\ntest/c,3,4,flow\ntest/d,1,2,\n"
        labels = load_card(write(plant, events)).labels
        assert labels.causes == {"test/c": (Cause(3, 5, ("flow",)), Cause(40, 50, ("head", "flow")))}

    def test_sensors_to_blame_in_the_rows_of_a_test_part(self, plant):
        single = UNLABELLED.replace('[train]\nfiles = ["train/*.csv"]\n', "").replace(
            "[test]", "[single]\ntrain_rows = 10"
        )
        events = "recording,start,end,sensors\ntest/c,10,19,head\ntest/d,30,59,flow\n"
        data, labels = load_card(write(plant, events, card=single))
        assert [recording.n_rows for recording in data.test] == [50, 50]
        assert labels.causes == {"test/c/test": (Cause(0, 10, ("head",)),), "test/d/test": (Cause(20, 50, ("flow",)),)}

    def test_written_as_the_data_files_are(self, plant):
        for path in plant.glob("*/*.csv"):
            pd.read_csv(path).to_csv(path, sep=";", index=False)
        semicolons = UNLABELLED.replace("[train]", "[files]\nseparator = ';'\n[train]")
        card = write(plant, "recording;start;end\ntest/c;1;2\n", card=semicolons)
        assert np.flatnonzero(load_card(card).labels.rows["test/c"]).tolist() == [1, 2]


class TestTime:
    def test_in_the_format_of_the_recordings(self, plant):
        events = (
            "recording,start,end\n"
            "test/c,2024-05-01 12:00:39.5,2024-05-01 12:00:49\n"
            "test/d,2024-05-01 12:00:30,2024-05-01 13:00:00\n"
        )
        labels = load_card(write(plant, events, 'unit = "time"\n')).labels
        times = pd.to_datetime(frame(60)["time"])
        for name, start, end in (("test/c", "12:00:39.5", "12:00:49"), ("test/d", "12:00:30", "13:00:00")):
            expected = times.between(f"2024-05-01 {start}", f"2024-05-01 {end}")
            assert np.array_equal(labels.rows[name], expected)

    def test_moments_may_touch(self, plant):
        events = "recording,start,end,sensors\ntest/c,1,2,flow\ntest/c,2,4,head\n"
        labels = load_card(write(plant, events, 'unit = "time"\norigin = "recording"\n')).labels
        assert np.flatnonzero(labels.rows["test/c"]).tolist() == [1, 2, 3, 4]
        assert labels.causes["test/c"] == (Cause(1, 3, ("flow",)), Cause(2, 5, ("head",)))

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
    @given(st.floats(0, 59), st.floats(0, 59))
    def test_seconds_from_the_beginning(self, plant, one, other):
        start, end = sorted((one, other))
        expected = [row for row in range(60) if start <= row <= end]
        card = write(plant, f"recording,start,end\ntest/c,{start},{end}\n", 'unit = "time"\norigin = "recording"\n')
        if expected:
            assert np.flatnonzero(load_card(card).labels.rows["test/c"]).tolist() == expected
        else:
            assert "has no row from" in problems(card)[0]

    def test_with_a_period(self, plant):
        card = write(plant, "recording,start,end\ntest/c,2,3\n", 'unit = "time"\n')
        card.write_text(
            card.read_text().replace('time = "time"\n', "period = 0.5\n").replace('["fault"]', '["fault", "time"]')
        )
        assert np.flatnonzero(load_card(card).labels.rows["test/c"]).tolist() == [4, 5, 6]


class TestFaults:
    def test_all_of_them_in_one_go(self, plant):
        events = (
            "recording,start,end,sensors\n"
            "test/c,40,49,\n"
            "test/c,49,52,\n"
            "test/d,9,8,\n"
            "test/d,50,60,\n"
            "test/x,1,2,\n"
            "test/d,1.5,2,\n"
            "test/d,-1,2,\n"
            "test/d,20,21,heat\n"
            "train/a,5,6,\n"
        )
        assert problems(write(plant, events)) == [
            "events.csv, line 3: the interval of recording 'test/c' overlaps that of line 2; merge or part them",
            "events.csv, line 4: the end, 8, lies before the start, 9; correct either",
            "events.csv, line 7: column 'start': expected a row, counted from 0, found '1.5'; correct it",
            "events.csv, line 8: column 'start': expected a row, counted from 0, found '-1'; correct it",
            "events.csv, line 9: there is no sensor 'heat'; did you mean 'head'?",
            "events.csv, line 6: there is no recording 'test/x'; there are ['train/a', 'train/b', 'test/c', 'test/d']",
            "train/a.csv, line 7: recording 'train/a' is for training, which takes normal rows only, but this row is "
            "labelled anomalous; take the recording out, cut it before the anomaly, or set "
            'rows = "before first event" in [train] (and 1 more such)',
            "events.csv, line 5: the interval lies outside of recording 'test/d', which has rows 0 to 59",
        ]

    @pytest.mark.parametrize(
        ("first", "second", "overlap"),
        [((3, 9), (4, 5), True), ((3, 9), (3, 9), True), ((3, 9), (9, 12), True), ((3, 9), (10, 12), False)],
    )
    @pytest.mark.parametrize("turned", [False, True])
    def test_overlaps(self, plant, first, second, overlap, turned):
        lines = [f"test/c,{start},{end}" for start, end in ((second, first) if turned else (first, second))]
        card = write(plant, "\n".join(["recording,start,end", *lines]))
        if not overlap:
            load_card(card)
            return
        text = "events.csv, line 3: the interval of recording 'test/c' overlaps that of line 2; merge or part them"
        assert problems(card) == [text]

    @pytest.mark.parametrize(
        ("events", "keys", "expected"),
        [
            ("recording,start\ntest/c,1\n", "", "events.csv, line 1: the column 'end' is missing"),
            ("recording,start,end\ntest/c,1\n", "", "events.csv, line 2: expected 3 cells separated by ',', found 2"),
            ("recording;start;end\ntest/c;1;2\n", "", "events.csv, line 1: expected columns separated by ','"),
            ("", "", "events.csv: it is empty"),
            (
                "recording,start,end\ntest/c,noon,1\n",
                'unit = "time"\n',
                "line 2: column 'start': expected a time",
            ),
            ("recording,start,end\ntest/c,-1,2024\n", 'unit = "time"\n', "line 2: column 'start': expected a time"),
            (
                "recording,start,end\ntest/c,noon,1\n",
                'unit = "time"\norigin = "recording"\n',
                "line 2: column 'start': expected seconds, found 'noon'",
            ),
            (
                "recording,start,end\ntest/c,2023-05-01,2023-05-02\n",
                'unit = "time"\n',
                "events.csv, line 2: the interval lies outside of recording 'test/c', which has no row from",
            ),
            ("recording,start,end\n", 'origin = "recording"\n', 'labels: origin is for unit = "time"'),
            ("recording,start,end\n", 'column = "x"\n', "labels: column is for file; leave it out"),
            ("recording,start,end\n", 'file = "{id}.csv"\n', "labels: give file, for one label a row, or intervals"),
            ("recording,start,end\n", "[columns.x]\ny = 1\n", "unknown key columns.x"),
        ],
    )
    def test_in_a_file(self, plant, events, keys, expected):
        assert expected in problems(write(plant, events, keys))[0]

    def test_no_such_file(self, plant):
        card = write(plant, "")
        (plant / "events.csv").unlink()
        assert "events.csv: labels.intervals 'events.csv': there is no such file in" in problems(card)[0]
        card.write_text(card.read_text().replace('"events.csv"', '"../events.csv"'))
        assert "expected a path below the card's folder" in problems(card)[0]

    def test_times_where_there_are_none(self, plant):
        card = write(plant, "recording,start,end\ntest/c,1,2\n", 'unit = "time"\n')
        card.write_text(card.read_text().replace('time = "time"\n', "").replace('["fault"]', '["fault", "time"]'))
        assert "which has no times; name columns.time or columns.period" in problems(card)[0]

    def test_a_label_in_a_column_as_well(self, plant, edit):
        assert problems(edit("[columns]", '[labels]\nintervals = "events.csv"\n[columns]')) == [BOTH]

    def test_a_label_that_would_be_a_sensor_for_lack_of_labels(self, plant):
        (plant / "card.toml").write_text(UNLABELLED)
        assert problems(plant / "card.toml") == [
            "train/a.csv: column 'fault' is called like a label, and the card names none: name it under columns.label, "
            "put it under columns.ignore, or, if it is a sensor, name it under columns.sensors"
        ]
        (plant / "card.toml").write_text(f'{UNLABELLED}sensors = ["flow", "head", "fault"]\n')
        assert load_card(plant / "card.toml").dataset.sensors == ("flow", "head", "fault")


def test_a_shipped_card_finds_intervals_beside_it_or_beside_the_data(plant, tmp_path):
    card = write(plant, "recording,start,end\ntest/c,1,2\n")
    elsewhere = tmp_path / "cards"
    elsewhere.mkdir()
    (elsewhere / "plant.toml").write_text(card.read_text())
    assert load_card(elsewhere / "plant.toml", plant).labels.rows["test/c"].sum() == 2
    (elsewhere / "events.csv").write_text("recording,start,end\ntest/c,1,3\n")
    loaded = load_card(elsewhere / "plant.toml", plant)
    assert loaded.labels.rows["test/c"].sum() == 3
    assert loaded.dataset.folder == plant.resolve()


class TestLogBook:
    """A list of disturbances with begin and end, in words of its own and without a column that names recordings."""

    KEYS = 'unit = "time"\nstart = "Beginn"\nend = "Ende"\ntime_format = "%d.%m.%Y %H:%M"\nseparator = ";"\n'

    def test_its_intervals_count_wherever_there_are_rows(self, plant):
        later = plant / "test/d.csv"
        later.write_text(later.read_text().replace("2024-05-01 12:00", "2024-05-01 12:30"))
        for name in ("train/a.csv", "train/b.csv"):  # the day before
            path = plant / name
            path.write_text(path.read_text().replace("2024-05-01", "2024-04-30"))
        events = "Beginn;Ende;Bemerkung\n01.05.2024 11:59;01.05.2024 12:00;pump\n01.05.2024 12:00;01.05.2024 12:30;\n"
        card = write(plant, f"{events}02.05.2024 12:00;02.05.2024 12:10;elsewhere\n", self.KEYS)
        loaded = load_card(card)
        assert loaded.labels.rows["test/c"].all()  # from 12:00 on, by the second line
        assert loaded.labels.rows["test/d"].nonzero()[0].tolist() == [0]
        assert loaded.dataset.notes == ("1 of the 3 intervals in events.csv contain no row of any recording",)

    def test_a_normal_day_in_it_is_an_error_and_so_is_a_book_of_other_days(self, plant):
        normal = "Beginn;Ende\n01.05.2024 12:00;01.05.2024 12:01\n"
        assert "'train/a' is for training, which takes normal rows only" in problems(write(plant, normal, self.KEYS))[0]
        other = "Beginn;Ende\n01.05.2023 12:00;01.05.2023 12:01\n"
        assert problems(write(plant, other, self.KEYS)) == [
            "events.csv, line 2: none of its 1 intervals contains a row of any recording; correct labels.time_format, "
            "or name the right file"
        ]

    @pytest.mark.parametrize(
        ("keys", "expected"),
        [
            ('start = "Beginn"\nend = "Ende"\nseparator = ";"\n', 'start and end must be times: set unit = "time"'),
            ('time_format = "%d.%m.%Y"\n', "time_format is for unit"),
            ('unit = "time"\ntime_format = "%Q"\n', "%Q"),
            (
                'unit = "time"\nrecording = "Anlage"\nseparator = ";"\nstart = "Beginn"\nend = "Ende"\n',
                "'Anlage' is miss",
            ),
        ],
    )
    def test_what_does_not_fit(self, plant, keys, expected):
        found = problems(write(plant, "Beginn;Ende\n01.05.2024 12:00;01.05.2024 12:01\n", keys))
        assert any(expected in line for line in found), found

    def test_other_names_of_the_columns_alone(self, plant):
        events = "Anlage,from,to\ntest/c,40,49\ntest/d,30,59\n"
        card = write(plant, events, 'recording = "Anlage"\nstart = "from"\nend = "to"\n')
        assert load_card(card).labels.rows["test/c"].nonzero()[0].tolist() == list(range(40, 50))
