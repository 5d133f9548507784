"""Cards that lay rows on a grid, read long tables and texts, and choose among sensors; what each mistake is told."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.datasets.cards.test_load import problems
from tests.helpers.cards import frame, line_of
from tsadbench.base.dataset import Labels
from tsadbench.datasets.cards.reader import load_card

LONG_CARD = """\
schema = 1
name = "plant"
[train]
files = ["train/*.csv"]
[test]
files = ["test/*.csv"]
[long]
time = "at"
name = "tag"
value = "value"
[resample]
every = "2s"
by = "last"
[columns]
time_format = "seconds"
label = "fault"
[states."door*"]
Open = 1
Closed = 0
"""


def _wide(folder, name):
    table = pd.read_csv(folder / name)
    return table.set_index(pd.to_datetime(table["time"])).drop(columns="time")


@pytest.fixture
def changes(tmp_path):
    """Return a folder with long files of two sensors, a level and a door, and their card."""
    rng = np.random.default_rng(5)
    for part, name, anomalous in (("train", "a", ()), ("test", "b", (7, 8, 30))):
        (tmp_path / part).mkdir()
        at = np.sort(rng.uniform(0.0, 60.0, 40)).round(3)
        is_door = rng.random(40) < 0.3
        is_door[:2] = False, True
        at[1] = at[0]
        value = [rng.choice(["Open", "Closed"]) if door else repr(float(rng.normal())) for door in is_door]
        table = pd.DataFrame({"at": at, "tag": np.where(is_door, "door 1", "level"), "value": value})
        table["fault"] = np.isin(np.arange(40), anomalous).astype(int)
        table.to_csv(tmp_path / part / f"{name}.csv", index=False)
    (tmp_path / "card.toml").write_text(LONG_CARD)
    return tmp_path


class TestResampling:
    @pytest.mark.parametrize("by", ["median", "mean", "last"])
    def test_rows_are_those_of_pandas(self, plant, edit, by):
        card = edit("[columns]", f'[resample]\nevery = "7 s"\nby = "{by}"\n[columns]')
        data, labels = load_card(card)
        for recording in (*data.train, *data.test):
            table = _wide(plant, f"{recording.id}.csv").resample("7s", origin="start")
            expected = getattr(table[["flow", "head"]], by)()
            np.testing.assert_allclose(recording.values, expected, rtol=1e-12)
            since_1970 = (expected.index - pd.Timestamp(0)) / pd.Timedelta(seconds=1)
            np.testing.assert_array_equal(recording.time, since_1970)
            if recording.id in labels.rows:
                np.testing.assert_array_equal(labels.rows[recording.id], table["fault"].max() == 1)
        assert data.layout.resample_every == 7.0

    def test_a_gap_is_missing_and_filled_only_if_the_card_says_so(self, plant, edit):
        lines = (plant / "test/d.csv").read_text().splitlines(keepends=True)
        (plant / "test/d.csv").write_text("".join(lines[:16] + lines[41:]))  # seconds 15 to 39
        card = edit("[columns]", '[resample]\nevery = "5s"\n[columns]')
        (problem, _) = problems(card)
        # Rows 3 to 7 of the grid are missing; the first is told by the line of the first row after it.
        assert problem.startswith("test/d.csv, line 17: column 'flow': a value is missing")
        assert problem.endswith("(and 4 more such)")
        card.write_text(card.read_text() + '[missing]\npolicy = "forward-fill"\n')
        data, labels = load_card(card)
        values = data.test[1].values
        assert (values[3:8] == values[2]).all()
        assert len(values) == 12
        assert labels.rows["test/d"].tolist() == [False] * 8 + [True] * 4

    def test_training_rows_and_intervals_count_rows_of_the_grid(self, plant, edit):
        card = edit("[columns]", '[resample]\nevery = "10s"\n[columns]')
        text = card.read_text().replace('label = "fault"', 'ignore = ["fault"]')
        (plant / "events.csv").write_text("recording,start,end\ntest/c,41,44\ntest/d,19.5,20\n")
        card.write_text(text + '[labels]\nintervals = "events.csv"\nunit = "time"\norigin = "recording"\n')
        labels = load_card(card).labels
        assert np.flatnonzero(labels.rows["test/c"]).tolist() == [4]
        assert np.flatnonzero(labels.rows["test/d"]).tolist() == [1, 2]

    def test_an_anomalous_training_row_is_told_by_its_line(self, plant, edit):
        edit(line_of(plant, "train/b.csv", 23), line_of(plant, "train/b.csv", 23)[:-1] + "1", "train/b.csv")
        card = edit("[columns]", '[resample]\nevery = "10s"\n[columns]')
        (problem,) = problems(card)
        assert problem.startswith("train/b.csv, line 22: recording 'train/b' is for training")  # row 20 begins it

    @pytest.mark.parametrize(
        ("table", "expected"),
        [
            ('every = "500ms"', "train/a.csv, line 3: resample.every is 0.5 s, but half of its rows or more lie 1 s"),
            ('every = "10"', "card.toml, line 11: resample.every: expected a number above 0 and a unit (ms, s, min, h"),
            ('every = "0s"', "card.toml, line 11: resample.every: expected a number above 0"),
            ('every = "3 parsecs"', "card.toml, line 11: resample.every: expected a number above 0"),
            ("every = 3", "card.toml, line 11: resample.every: expected a string, found 3"),
            ('every = "3s"\nby = "max"', "card.toml, line 12: resample.by: expected 'median', 'mean' or 'last'"),
            ('by = "last"', "card.toml, line 10: resample.every: is missing; add it"),
        ],
    )
    def test_a_wrong_grid_is_told(self, edit, table, expected):
        card = edit("[columns]", f"[resample]\n{table}\n[columns]")
        assert problems(card)[0].startswith(expected)

    def test_a_grid_needs_times(self, edit):
        card = edit('[columns]\ntime = "time"', '[resample]\nevery = "5s"\n[columns]\nignore = ["time"]')
        (problem,) = problems(card)
        assert problem.endswith("[resample] needs times: give columns.time or columns.period")

    def test_a_time_far_from_the_others_is_told_by_its_line(self, plant, edit):
        last = line_of(plant, "test/c.csv", 59)
        edit(last, last.replace("2024-05-01", "2254-05-01"), "test/c.csv")
        card = edit("[columns]", '[resample]\nevery = "1s"\n[columns]')
        (problem,) = problems(card)
        assert problem.startswith("test/c.csv, line 61: resample.every = 1 s would make 7,258,032,060 rows of its 60")

    def test_rows_without_times_may_have_a_period(self, plant, edit):
        card = edit('[columns]\ntime = "time"', '[resample]\nevery = "1min"\n[columns]\nignore = ["time"]\nperiod = 15')
        data, _ = load_card(card)
        expected = frame(seed=0)[["flow", "head"]].groupby(np.arange(60) // 4).median()
        np.testing.assert_array_equal(data.train[0].values, expected)
        np.testing.assert_array_equal(data.train[0].time, 60.0 * np.arange(15))


class TestLong:
    @pytest.mark.parametrize("by", ["last", "mean", "median"])
    def test_rows_are_those_of_a_pivot(self, changes, by):
        card = changes / "card.toml"
        card.write_text(LONG_CARD.replace('"last"', f'"{by}"') + '[missing]\npolicy = "forward-fill"\n')
        data, labels = load_card(card)
        assert data.sensors == ("level", "door 1")
        for recording in (*data.train, *data.test):
            table = pd.read_csv(changes / f"{recording.id}.csv", dtype={"value": "str"})
            numbers = table["value"].replace({"Open": "1", "Closed": "0"}).astype(float)
            bins = ((table["at"] - table["at"][0]) // 2).astype(int)
            expected = numbers.groupby([bins, table["tag"]]).agg(by).unstack().reindex(range(bins.max() + 1)).ffill()
            np.testing.assert_allclose(recording.values, expected[["level", "door 1"]], rtol=1e-12)
            np.testing.assert_allclose(recording.time, table["at"][0] + 2.0 * np.arange(bins.max() + 1))
        anomalous = (table["fault"].groupby(bins).max()).reindex(range(bins.max() + 1)).ffill() == 1
        np.testing.assert_array_equal(labels.rows["test/b"], anomalous)

    def test_parquet_files_are_read_alike(self, changes):
        expected = load_card(changes / "card.toml").dataset
        for file in changes.glob("*/*.csv"):
            pd.read_csv(file, dtype={"value": "str"}).to_parquet(file.with_suffix(".parquet"))
            file.unlink()
        card = changes / "card.toml"
        card.write_text(LONG_CARD.replace("*.csv", "*.parquet"))
        found = load_card(card).dataset
        assert found.content_hash == expected.content_hash

    @pytest.mark.parametrize(
        ("old", "new", "expected"),
        [
            (
                "Open",
                "Ajar",
                "column 'door 1': expected a number or one of the declared states 'Open', 'Closed', found",
            ),
            ("level,", "level,x", "column 'level': expected a number, found 'x"),
            ("level,", "level,inf,0\n0,level,", None),
            (",level,", ",,", "column 'tag': expected a sensor's name, found an empty cell"),
            ("\n", "\n99,level,1,0\n", None),
        ],
    )
    def test_a_wrong_cell_is_told_by_its_line(self, changes, old, new, expected):
        file = changes / "train/a.csv"
        head, _, rows = file.read_text().partition("\n")
        row = rows.index(old)
        line = 2 + rows[:row].count("\n")
        file.write_text(f"{head}\n{rows[:row]}{rows[row:].replace(old, new, 1)}")
        found = problems(changes / "card.toml")
        if expected is not None:
            assert found[0].startswith(f"train/a.csv, line {line}: {expected}")
        elif "inf" in new:
            assert f"train/a.csv, line {line}: column 'level': expected a finite number, found inf" in found[0]
        else:
            assert found[0].startswith(f"train/a.csv, line {line + 2}: column 'at': the time lies before")

    @pytest.mark.parametrize(
        ("old", "new", "expected"),
        [
            ('[resample]\nevery = "2s"\nby = "last"\n', "", "card.toml: the card: [long] needs [resample]"),
            ('name = "tag"', 'name = "node"', "train/a.csv, line 1: the column of sensors' names 'node' is missing"),
            ('value = "value"', 'value = "v"', "train/a.csv, line 1: the column of values 'v' is missing"),
            ('time = "at"\n', "", "card.toml, line 7: long.time: is missing; add it"),
            ("[columns]\n", '[columns]\ntime = "at"\n', "card.toml: the card: [long] names the column with the times"),
            ("Open = 1", 'Open = "up"', "card.toml, line 18: states.door*.Open: expected a number, found 'up'"),
            ("Open = 1", "Open = inf", "card.toml, line 18: states.door*.Open: expected a finite number, found inf"),
            ("[columns]\n", '[columns]\nsensors = ["lvl"]\n', "train/a.csv: no column is a sensor by columns.sensors"),
        ],
    )
    def test_a_wrong_card_is_told(self, changes, old, new, expected):
        card = changes / "card.toml"
        assert old in LONG_CARD
        card.write_text(LONG_CARD.replace(old, new, 1))
        assert problems(card)[0].startswith(expected)

    def test_a_sensor_that_a_file_lacks_is_told(self, changes):
        file = changes / "test/b.csv"
        file.write_text(file.read_text().replace("door 1", "door 2"))
        (problem,) = problems(changes / "card.toml")
        assert problem.startswith("test/b.csv: the sensor 'door 1' is missing; did you mean 'door 2'?")


class TestStates:
    def test_texts_stand_for_numbers(self, plant, edit):
        for file in plant.glob("*/*.csv"):
            table = pd.read_csv(file)
            table["head"] = np.where(table["head"] > 10, "High", "none")
            table.to_csv(file, index=False)
        data, _ = load_card(edit("[columns]", "[states.head]\nHigh = 2\nnone = -1.5\n[columns]"))
        expected = np.where(frame(seed=0)["head"] > 10, 2.0, -1.5)
        np.testing.assert_array_equal(data.train[0].values[:, 1], expected)

    def test_an_undeclared_text_is_told_by_its_line(self, plant, edit):
        cells = line_of(plant, "test/c.csv", 7).split(",")
        edit(line_of(plant, "test/c.csv", 7), ",".join([*cells[:2], "Half", cells[3]]), "test/c.csv")
        card = edit("[columns]", "[states.head]\nHigh = 2\nLow = 1\n[columns]")
        (problem,) = problems(card)
        words = "column 'head': expected a number or one of the declared states 'High', 'Low', found 'Half'; declare it"
        assert problem.startswith(f"test/c.csv, line 9: {words}")


class TestChoice:
    @pytest.fixture
    def with_more(self, plant):
        """Give each file a sensor that is constant in training, and one that a test file lacks."""
        for file in plant.glob("*/*.csv"):
            table = pd.read_csv(file).assign(spare=1.0 if file.parent.name == "train" else np.arange(60.0))
            if file.name != "d.csv":
                table["extra"] = np.arange(60.0)
            table.to_csv(file, index=False)
        return plant

    def test_optional_sensors_are_kept_if_every_file_has_them(self, with_more, edit):
        (with_more / "prior.json").write_text(
            '[{"source": "head", "target": "extra"}, {"source": "head", "target": "flow"}]'
        )
        card = edit("[columns]", '[columns]\noptional = ["extra", "spare"]')
        card.write_text('prior = "prior.json"\n' + card.read_text())
        data, _ = load_card(card)
        assert data.sensors == ("flow", "head", "spare")
        assert data.notes == ("sensors that some files lack are left out: extra",)
        assert [(edge.source, edge.target) for edge in data.prior.edges] == [("head", "flow")]

    def test_the_first_file_may_be_the_one_that_lacks_it(self, with_more, edit):
        (with_more / "test/d.csv").rename(with_more / "train/0.csv")
        table = pd.read_csv(with_more / "train/0.csv").assign(fault=0)
        table.to_csv(with_more / "train/0.csv", index=False)
        data, _ = load_card(edit("[columns]", '[columns]\noptional = ["ex*"]'))
        assert data.sensors == ("flow", "head", "spare")
        assert data.notes == ("sensors that some files lack are left out: extra",)

    def test_a_sensor_that_is_not_optional_must_be_there(self, with_more):
        (problem,) = problems(with_more / "card.toml")
        assert problem.startswith("test/d.csv, line 1: the sensor 'extra' is missing")

    def test_an_optional_pattern_without_a_column_is_told(self, edit):
        card = edit("[columns]", '[columns]\noptional = ["heat", "x*"]')
        assert problems(card) == [
            "card.toml, line 11: columns.optional: no column is called 'heat'; did you mean 'head'?",
            "card.toml, line 11: columns.optional: no column is called 'x*'; there are: fault, flow, head, time",
        ]

    def test_a_sensor_that_the_card_names_must_be_there(self, with_more, edit):
        card = edit("[columns]", '[columns]\nsensors = ["haed", "flow", "y*"]')
        assert problems(card) == [
            "card.toml, line 11: columns.sensors: no column is called 'haed'; did you mean 'head'?",
            "card.toml, line 11: columns.sensors: no column is called 'y*'; there are: "
            "extra, fault, flow, head, spare, time",
        ]
        card.write_text(card.read_text().replace('"haed", "flow", "y*"', '"extra", "flow"'))
        (with_more / "test/d.csv").rename(with_more / "train/0.csv")
        table = pd.read_csv(with_more / "train/0.csv").assign(fault=0)
        table.to_csv(with_more / "train/0.csv", index=False)
        (problem,) = problems(card)
        assert problem.startswith("train/0.csv, line 1: the sensor 'extra' is missing")

    def test_constant_sensors_are_left_out_of_everything(self, with_more, edit):
        (with_more / "prior.json").write_text(
            '[{"source": "head", "target": "spare"}, {"source": "head", "target": "flow"}]'
        )
        (with_more / "events.csv").write_text("recording,start,end,sensors\ntest/c,3,4,spare;head\ntest/d,5,6,spare\n")
        card = edit('label = "fault"', 'ignore = ["fault"]\noptional = ["extra"]\nconstant = "leave out"')
        labels = '[labels]\nintervals = "events.csv"\n'
        card.write_text('prior = "prior.json"\n' + card.read_text() + labels)
        data, truth = load_card(card)
        assert data.sensors == ("flow", "head")
        assert data.notes[-1] == "sensors that are constant over all training rows are left out: spare"
        assert [(edge.source, edge.target) for edge in data.prior.edges] == [("head", "flow")]
        assert isinstance(truth, Labels)
        assert {id_: [cause.sensors for cause in events] for id_, events in truth.causes.items()} == {
            "test/c": [("head",)]
        }
        np.testing.assert_array_equal(data.test[0].values, frame(seed=2)[["flow", "head"]])
        assert data.test[0].values.flags.c_contiguous

    def test_constant_sensors_are_kept_by_default(self, with_more, edit):
        assert "spare" in load_card(edit("[columns]", '[columns]\noptional = ["extra"]')).dataset.sensors

    def test_a_data_set_of_constant_sensors_is_told(self, plant, edit):
        for file in plant.glob("train/*.csv"):
            pd.read_csv(file).assign(flow=1, head=2).to_csv(file, index=False)
        card = edit("[columns]", '[columns]\nconstant = "leave out"')
        with pytest.raises(Exception, match="all 2 sensors are constant over the training rows"):
            load_card(card)


@pytest.mark.parametrize("command", [("data", "validate"), ("run", "-d", "t2", "--dataset")])
def test_commands_end_with_2(tsadbench, edit, command):
    card = edit("[columns]", '[resample]\nevery = "100ms"\n[columns]')
    done = tsadbench(*command, card)
    assert done.code == 2
    for file in ("train/a", "train/b", "test/c", "test/d"):
        assert done.err.count(f"  {file}.csv, line 3: resample.every is 0.1 s") == 1
    assert "Traceback" not in done.err
