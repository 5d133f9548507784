from __future__ import annotations

import json
import math
import re
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.extra.numpy import arrays

from tests.helpers.cards import CARD, frame, line_of
from tsadbench.datasets.cards.reader import load_card
from tsadbench.errors import DataError


def problems(card: Path) -> list[str]:
    """Return the problems of a card, one a line, as the message of the error lists them."""
    with pytest.raises(DataError) as caught:
        load_card(card)
    first, *others = str(caught.value).splitlines()
    assert re.fullmatch(rf"data set card {re.escape(str(card))}: \d+ problems?", first)
    return [line.strip() for line in others]


class TestSound:
    def test_recordings_labels_and_times(self, plant):
        data, labels = load_card(plant / "card.toml")
        assert data.name == "plant"
        assert data.sensors == ("flow", "head")
        assert [one.id for one in data.train] == ["train/a", "train/b"]
        assert [one.id for one in data.test] == ["test/c", "test/d"]
        expected = frame(seed=2, faults=(40, 50))
        assert np.array_equal(data.test[0].values, expected[["flow", "head"]].to_numpy())
        assert np.array_equal(labels.rows["test/c"], expected["fault"] == 1)
        assert np.flatnonzero(labels.rows["test/d"]).tolist() == list(range(30, 60))
        start = pd.Timestamp("2024-05-01 12:00:00", tz="UTC").timestamp()
        assert data.test[0].time is not None
        assert np.array_equal(data.test[0].time, start + np.arange(60))
        assert data.notes == ()
        assert data.folder == plant.resolve()

    def test_splits_description_prior_and_the_rest(self, plant, edit):
        (plant / "system.md").write_text("A loop.")
        (plant / "prior.json").write_text('[{"source": "head", "target": "flow"}]')
        card = edit(
            "[train]",
            'description = "system.md"\nprior = "prior.json"\ncitation = "me"\nlicence = "MIT"\n'
            '[splits]\nearly = ["test/c"]\nboth = ["test/*"]\n[train]',
        )
        data, labels = load_card(card)
        assert data.splits == {
            "overall": ("test/c", "test/d"),
            "early": ("test/c",),
            "both": ("test/c", "test/d"),
        }
        assert labels.splits == data.splits
        assert (data.description, data.citation, data.licence) == ("A loop.", "me", "MIT")
        assert data.prior is not None
        assert data.prior.matrix(data.sensors).tolist() == [[0, 0], [1, 0]]

    def test_sessions_and_entities(self, plant, edit):
        card = edit(
            "[train]",
            '[sessions]\n"day 1" = ["train/*", "test/c"]\n"day 2" = ["test/[d-z]"]\n[entities]\npump = ["*"]\n[train]',
        )
        data, _ = load_card(card)
        assert data.sessions == {"train/a": "day 1", "train/b": "day 1", "test/c": "day 1", "test/d": "day 2"}
        assert data.entities == dict.fromkeys(("train/a", "train/b", "test/c", "test/d"), "pump")
        # A recording that two patterns of one session name is in it once.
        assert load_card(edit('"train/*", "test/c"', '"train/*", "t*/c", "test/c"')).dataset.sessions == data.sessions

    def test_the_same_data_however_written(self, plant, edit):
        expected = load_card(plant / "card.toml")
        for path in plant.glob("*/*.csv"):
            table = pd.read_csv(path)
            table["fault"] = np.where(table["fault"] == 1, "Störung", "gut")
            table["time"] = pd.to_datetime(table["time"]).dt.strftime("%d.%m.%Y %H:%M:%S")
            table = table[["head", "fault", "time", "flow"]].rename(columns={"head": " head ", "flow": "plant.flow"})
            table["comment"] = '"so; so"'
            table.to_csv(path, sep=";", decimal=",", index=False, encoding="cp1252")
            path.write_bytes(b"exported by hand\r\n" + path.read_bytes().replace(b"\n", b"\r\n") + b"\r\n;;;;\r\n")
        card = edit(
            "[train]",
            '[files]\nseparator = ";"\ndecimal = ","\nencoding = "cp1252"\nheader_line = 2\nremove_prefix = "plant."\n'
            "[train]",
        )
        edit(
            'label = "fault"',
            'sensors = ["flow", "h*"]\ntime_format = ["ISO8601", "%d.%m.%Y %H:%M:%S"]\nlabel = "fault"\n'
            'anomalous = ["Störung"]\nnormal = ["gut"]',
        )
        found = load_card(card)
        assert found.dataset.content_hash == expected.dataset.content_hash
        assert found.labels.content_hash == expected.labels.content_hash

    def test_parquet_gives_the_same_data_as_csv(self, plant, edit):
        expected = load_card(plant / "card.toml")
        for path in plant.glob("*/*.csv"):
            table = pd.read_csv(path)
            table["time"] = pd.to_datetime(table["time"])
            table["fault"] = table["fault"].astype(bool)
            table.to_parquet(path.with_suffix(".parquet"))
            path.unlink()
        edit("train/*.csv", "train/*.parquet")
        found = load_card(edit("test/*.csv", "test/*.parquet"))
        assert found.dataset.content_hash == expected.dataset.content_hash
        assert found.labels.content_hash == expected.labels.content_hash

    @pytest.mark.parametrize(
        ("form", "write"),
        [
            ("seconds", lambda times: times.astype("int64") // 10**9),
            ("milliseconds", lambda times: times.astype("int64") // 10**6),
            ("%d/%m/%Y %I:%M:%S %p", lambda times: times.dt.strftime(" %d/%m/%Y %I:%M:%S %p")),
            ("ISO8601", lambda times: times.dt.strftime("%Y-%m-%dT%H:%M:%SZ")),
        ],
    )
    def test_formats_of_times(self, plant, edit, form, write):
        expected = load_card(plant / "card.toml").dataset.train[0].time
        for path in plant.glob("*/*.csv"):
            table = pd.read_csv(path)
            table["time"] = write(pd.to_datetime(table["time"]).astype("datetime64[ns]"))
            table.to_csv(path, index=False)
        card = edit('time = "time"', f'time = "time"\ntime_format = "{form}"')
        assert np.array_equal(load_card(card).dataset.train[0].time, expected)

    def test_times_in_two_columns(self, plant, edit):
        expected = load_card(plant / "card.toml").dataset.content_hash
        for path in plant.glob("*/*.csv"):
            table = pd.read_csv(path)
            table[["date", "clock"]] = table.pop("time").str.split(" ", expand=True)
            table.to_csv(path, index=False)
        card = edit('time = "time"', 'time = ["date", "clock"]')
        assert load_card(card).dataset.content_hash == expected

    def test_a_period_in_place_of_times(self, plant, edit):
        card = edit('time = "time"', 'period = 0.5\nignore = ["time"]')
        assert np.array_equal(load_card(card).dataset.train[0].time, np.arange(60) / 2)

    def test_no_times_at_all(self, plant, edit):
        assert load_card(edit('time = "time"', 'ignore = ["t*"]')).dataset.train[0].time is None

    def test_repeated_times_are_no_fault(self, plant, edit):
        edit("12:00:31", "12:00:30", "train/a.csv")
        assert load_card(plant / "card.toml").dataset.train[0].n_rows == 60

    def test_training_files_need_no_label(self, plant):
        for path in plant.glob("train/*.csv"):
            pd.read_csv(path).drop(columns="fault").to_csv(path, index=False)
        assert len(load_card(plant / "card.toml").dataset.train) == 2

    def test_recordings_called_by_their_files_names(self, plant, edit):
        card = edit('files = ["train/*.csv"]', 'files = ["train/*.csv"]\nids = "file name"')
        data = load_card(card).dataset
        assert [recording.id for recording in (*data.train, *data.test)] == ["a", "b", "test/c", "test/d"]
        (plant / "train/more").mkdir()
        (plant / "train/b.csv").rename(plant / "train/more/a.csv")
        edit('"train/*.csv"', '"train/*.csv", "train/more/*.csv"')
        (problem,) = problems(card)
        assert "train/more/a.csv and train/a.csv would have the same name as recordings" in problem

    def test_the_files_of_a_pattern_come_as_people_count(self, plant):
        (plant / "test/c.csv").rename(plant / "test/run10.csv")
        (plant / "test/d.csv").rename(plant / "test/run9.csv")
        assert [one.id for one in load_card(plant / "card.toml").dataset.test] == ["test/run9", "test/run10"]

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
    @given(
        values=arrays(np.float64, (40, 2), elements=st.floats(allow_nan=False, allow_infinity=False)),
        separator=st.sampled_from(",;\t|"),
        decimal=st.sampled_from(".,"),
    )
    def test_every_number_comes_back_to_the_bit(self, plant, values, separator, decimal):
        table = pd.DataFrame({"flow": values[:, 0], "head": values[:, 1]})
        if decimal == "," and separator == ",":
            decimal = "."
        for path in plant.glob("*/*.csv"):
            table.assign(fault=0).to_csv(path, index=False, sep=separator, decimal=decimal)
        (plant / "card.toml").write_text(
            CARD.replace(
                "[train]", f"[files]\nseparator = {json.dumps(separator)}\ndecimal = {json.dumps(decimal)}\n[train]"
            ).replace('time = "time"\n', "")
        )
        # Written as float64's shortest text, a number has one reading only.
        assert np.array_equal(load_card(plant / "card.toml").dataset.train[0].values, values)


class TestMissing:
    @pytest.mark.parametrize("cell", ["", "NaN", "NULL", "n/a", " "])
    def test_is_a_fault_unless_the_card_says_otherwise(self, plant, cell):
        lines = (plant / "train/b.csv").read_text().splitlines()
        time, flow, _, fault = lines[8].split(",")
        lines[8] = f"{time},{flow},{cell},{fault}"
        (plant / "train/b.csv").write_text("\n".join(lines))
        assert problems(plant / "card.toml") == [
            "train/b.csv, line 9: column 'head': a value is missing; fill it in, put the column under ignore, or set "
            'missing.policy = "forward-fill"'
        ]

    def test_is_filled_forward_and_every_table_says_so(self, plant, edit):
        table = pd.read_csv(plant / "test/c.csv")
        rng = np.random.default_rng(0)
        table.loc[rng.integers(1, 60, 20), "flow"] = np.nan
        table.loc[50:, "head"] = np.nan
        table.to_csv(plant / "test/c.csv", index=False)
        edit("[train]", '[missing]\npolicy = "forward-fill"\n[train]')
        data = load_card(plant / "card.toml").dataset
        assert np.array_equal(data.test[0].values, table[["flow", "head"]].ffill().to_numpy())
        count = int(table.isna().sum().sum())
        assert data.notes == (
            f"{count} missing values ({count / 480:.2%}) in 1 files are filled with the sensor's last value, as its "
            "card says",
        )

    def test_never_comes_from_another_recording_or_a_later_row(self, plant, edit):
        table = pd.read_csv(plant / "test/d.csv")
        table.loc[0, "flow"] = np.nan
        table.to_csv(plant / "test/d.csv", index=False)
        card = edit("[train]", '[missing]\npolicy = "forward-fill"\n[train]')
        (problem,) = problems(card)
        assert problem.startswith("test/d.csv, line 2: column 'flow': the first value is missing")

    def test_longer_than_allowed(self, plant, edit):
        table = pd.read_csv(plant / "test/d.csv")
        table.loc[10:14, "flow"] = np.nan
        table.to_csv(plant / "test/d.csv", index=False)
        card = edit("[train]", '[missing]\npolicy = "forward-fill"\nat_most = 5\n[train]')
        assert load_card(card).dataset.notes
        (problem,) = problems(edit("at_most = 5", "at_most = 4"))
        assert problem.startswith("test/d.csv, line 16: column 'flow': more than 4 values in a row are missing")

    def test_a_column_without_any_value(self, plant, edit):
        table = pd.read_csv(plant / "test/d.csv")
        table["flow"] = np.nan
        table.to_csv(plant / "test/d.csv", index=False)
        (problem,) = problems(edit("[train]", '[missing]\npolicy = "forward-fill"\n[train]'))
        assert "column 'flow': it has no value at all; put the column under ignore" in problem

    def test_other_words_for_missing(self, plant, edit):
        _, flow, *_ = line_of(plant, "train/a.csv", 5).split(",")
        card = edit(flow, "Bad Input", "train/a.csv")
        assert "expected a number, found 'Bad Input'" in problems(card)[0]
        edit("[train]", '[missing]\npolicy = "forward-fill"\nvalues = ["Bad Input"]\n[train]')
        assert "1 missing values" in load_card(card).dataset.notes[0]


class TestFaults:
    """Each is told with its file and line, and what to do about it."""

    def test_all_of_them_in_one_go(self, plant, edit):
        _, flow, *_ = line_of(plant, "train/a.csv", 3).split(",")
        edit(flow, "twelve", "train/a.csv")
        edit("2024-05-01 12:00:20", "2024-05-01 11:00:20", "train/b.csv")
        edit("head", "heat", "test/c.csv")
        edit(",0\n", ",2\n", "test/d.csv")
        (plant / "card.toml").write_text("colour = 1\n" + CARD + '[splits]\nnone = ["nobody"]\n')
        assert problems(plant / "card.toml") == [
            "card.toml, line 1: unknown key colour; did you mean 'columns'?",
            "train/a.csv, line 5: column 'flow': expected a number, found 'twelve'; correct the cell, name it in "
            "missing.values, or put the column under ignore",
            "train/b.csv, line 22: column 'time': the time lies before that of the row above; sort the rows by time "
            "(if a clock was set back, write times in UTC)",
            "test/c.csv, line 1: the sensor 'head' is missing; did you mean 'heat'?",
            "test/d.csv, line 2: column 'fault': expected one of the declared values, [1] or [0], found '2'; declare "
            "it or correct it",
            "card.toml: splits.none: no test recording is called ['nobody']; there are ['test/d']",
        ]

    def test_many_alike_are_a_few_and_a_count(self, plant, edit):
        for path in plant.glob("test/*.csv"):
            table = pd.read_csv(path)
            table["flow"] = "?"
            table.to_csv(path, index=False)
        found = problems(plant / "card.toml")
        assert len(found) == 6
        assert [line.endswith("(and 57 more such)") for line in found] == [False, False, True] * 2

    @pytest.mark.parametrize(
        ("old", "new", "expected"),
        [
            ("train/*.csv", "nothing/*.csv", "card.toml: files 'nothing/*.csv': there is no such file"),
            ("train/*.csv", "../plant/train/*.csv", "card.toml: files '../plant/train/*.csv': expected a path below"),
            ("train/*.csv", "/etc/passwd", "card.toml: files '/etc/passwd': expected a path below the card's folder"),
            ("train/*.csv", "train/a.csv", None),
            ('"train/*.csv"', '"test/c.csv", "train/*.csv"', "test/c.csv is a training file and a test file"),
            ('label = "fault"', 'label = "faults"', "the label column 'faults' is missing; did you mean 'fault'?"),
            ('time = "time"', 'time = "clock"', "the time column 'clock' is missing"),
            ('time = "time"', "", "column 'time': expected a number, found '2024-05-01 12:00:00'"),
            ('time = "time"', 'time = "time"\ntime_format = "%d.%m.%Y"', "expected a time written as %d.%m.%Y, found"),
            ('time = "time"', 'time = "time"\nsensors = ["x*"]', "no column is a sensor by columns.sensors = ['x*']"),
            ("[train]", '[files]\nseparator = ";"\n[train]', "expected columns separated by ';', but ',' seems"),
            ("[train]", "[files]\nheader_line = 400\n[train]", "expected columns' names on line 400, found none"),
            ("[train]", 'prior = "prior.json"\n[train]', "prior 'prior.json': there is no such file"),
            ("[train]", 'description = "../x.md"\n[train]', "description '../x.md': expected a path below"),
            ("schema = 1\n", "", "card.toml: schema: is missing; add it"),
            ("schema = 1", "schema = 2", "card.toml, line 1: schema: expected 1, found 2"),
            ('"plant"', '"a plant/x"', "card.toml, line 2: name: string should match pattern"),
            ('"plant"', '"plant', "card.toml, line 2: not TOML"),
            ('label = "fault"', 'label = "fault"\nnormal = [1]', "a value cannot be both anomalous and normal: [1]"),
            ('time = "time"', 'time = "time"\nperiod = 1', "give time or period, not both"),
            ("[test]", "[single]\ntrain_rows = 9", "give [train], and [test] if there are test files, or"),
            ("[train]", '[splits]\noverall = ["*"]\n[train]', "'overall' always holds all test recordings"),
            ("[train]", '[files]\nencoding = "klingon"\n[train]', "there is no encoding 'klingon'"),
            ("[train]", '[files]\ndecimal = ";"\n[train]', "line 5: files.decimal: expected '.' or ',', found ';'"),
            ('label = "fault"', 'label = "fault"\nlabels = [1]', "unknown key columns.labels; did you mean 'label'"),
        ],
    )  # fmt: skip
    def test_in_the_card(self, plant, edit, old, new, expected):
        card = edit(old, new)
        if expected is None:
            assert len(load_card(card).dataset.train) == 1
        else:
            assert any(expected in problem for problem in problems(card)), problems(card)

    @pytest.mark.parametrize(
        ("old", "new", "expected"),
        [
            ("12:00:07,", "12:00:07;", "line 9: expected 4 cells separated by ',', found 3; correct the line"),
            ("12:00:07,", "12:00:07,1,", "line 9: expected 4 cells separated by ',', found 5; correct the line"),
            ("2024-05-01 12:00:07", "\n2024-05-01 12:00:07", "line 9: the line is empty, but others follow; remove it"),
            ("2024-05-01 12:00:07", "noon", "line 9: column 'time': expected a time written as ISO8601, found 'noon'"),
            ("2024-05-01 12:00:07", "-2", "line 9: column 'time': expected a time written as ISO8601, found '-2'"),
            ("2024-05-01 12:00:07", "", "line 9: column 'time': expected a time written as ISO8601"),
            ("2024-05-01 12:00:07,", "2024-05-01 12:00:07,inf,", "expected 4 cells"),
            ("time,flow", "time,head", "line 1: the sensor 'flow' is missing"),
            (",head", ",head,flow", "line 1: the column 'flow' occurs twice"),
            (",0\n", ",\n", "line 2: column 'fault': expected one of the declared values, [1] or [0], found an empty"),
            ("12:00:07", "\x00", "line 9: found a NUL character"),
        ],
    )
    def test_in_a_file(self, plant, edit, old, new, expected):
        card = edit(old, new, "test/c.csv")
        if "flow,flow" in (plant / "test/c.csv").read_text() or ",head,flow" in new:
            body = (plant / "test/c.csv").read_text().splitlines()
            (plant / "test/c.csv").write_text("\n".join([body[0], *(f"{line},1" for line in body[1:])]))
        assert any(problem.startswith("test/c.csv") and expected in problem for problem in problems(card))

    @pytest.mark.parametrize("table", ["sessions", "entities"])
    @pytest.mark.parametrize(
        ("groups", "expected"),
        [
            (
                'one = ["train/*", "test/c"]\ntwo = ["test/*"]',
                "card.toml, line 7: {table}.two: recording 'test/c' belongs to {table}.one too; take it out of one",
            ),
            (
                'one = ["train/*", "test/c"]',
                "card.toml, line 5: {table}: recording 'test/d' belongs to none of them; add it, or leave [{table}] "
                "out",
            ),
            (
                'one = ["*"]\n"shift 2" = ["test/x"]',
                "card.toml, line 7: {table}.shift 2: no recording is called 'test/x'; there are ['train/a', 'train/b', "
                "'test/c', 'test/d']",
            ),
            ('one = "*"', "card.toml, line 6: {table}.one: expected a list, found '*'"),
        ],
    )
    def test_in_sessions_and_entities(self, plant, edit, table, groups, expected):
        assert problems(edit("[train]", f"\n[{table}]\n{groups}\n[train]")) == [expected.format(table=table)]

    def test_infinity_and_another_decimal_mark(self, plant):
        table = pd.read_csv(plant / "test/c.csv").astype({"flow": "object"})
        table.loc[3, "flow"] = "inf"
        table.loc[4, "flow"] = "1,5"
        table.to_csv(plant / "test/c.csv", index=False)
        found = "\n".join(problems(plant / "card.toml"))
        assert "test/c.csv, line 5: column 'flow': expected a finite number, found inf; correct the cell" in found
        assert "test/c.csv, line 6: column 'flow': expected a number, found '1,5'; another decimal mark?" in found

    def test_a_training_recording_with_anomalies(self, plant, edit):
        frame(seed=0, faults=(20, 23)).to_csv(plant / "train/a.csv", index=False)
        (problem,) = problems(plant / "card.toml")
        assert problem.startswith("train/a.csv, line 22: recording 'train/a' is for training, which takes normal rows")
        assert problem.endswith("(and 2 more such)")

    def test_a_file_without_rows(self, plant):
        frame(0).to_csv(plant / "test/c.csv", index=False)
        (problem,) = problems(plant / "card.toml")
        assert problem.startswith("test/c.csv: recording 'test/c' has no rows")

    def test_another_encoding(self, plant):
        path = plant / "test/c.csv"
        path.write_bytes(path.read_bytes().replace(b"flow", "flöw".encode("latin-1")))
        (problem,) = problems(plant / "card.toml")
        assert problem.startswith("test/c.csv, line 1: not utf-8: found the byte 0xf6; set encoding")
        path.write_bytes(path.read_bytes().replace(b"fl\xf6w", b"flow").replace(b"12:00:30", b"12:00:\xf60"))
        (problem,) = problems(plant / "card.toml")
        assert problem.startswith("test/c.csv, line 32: not utf-8: found the byte 0xf6")

    def test_a_link_that_leads_out(self, plant, tmp_path):
        frame().to_csv(tmp_path / "secret.csv", index=False)
        (plant / "train/z.csv").symlink_to(tmp_path / "secret.csv")
        (problem,) = problems(plant / "card.toml")
        assert problem.startswith("card.toml: files 'train/z.csv': is a link out of the card's folder")

    def test_a_folder_that_leads_out(self, plant, tmp_path):
        (tmp_path / "elsewhere").mkdir()
        frame().to_csv(tmp_path / "elsewhere/x.csv", index=False)
        (plant / "linked").symlink_to(tmp_path / "elsewhere")
        card = plant / "card.toml"
        card.write_text(CARD.replace("train/*.csv", "linked/*.csv"))
        assert "card.toml: files 'linked/x.csv': is a link out of the card's folder" in problems(card)[0]

    def test_a_prior_that_does_not_fit(self, plant, edit):
        (plant / "prior.json").write_text('[{"source": "head", "target": "current"}]')
        (problem,) = problems(edit("[train]", 'prior = "prior.json"\n[train]'))
        assert "names sensors that the data do not have: ['current']" in problem

    def test_no_card(self, tmp_path):
        (problem,) = problems(tmp_path / "card.toml")
        assert "there is no such file; tsadbench data new FOLDER  writes a card" in problem

    def test_no_parquet_file(self, plant, edit):
        (plant / "train/x.parquet").write_text("no")
        (problem,) = problems(edit('"train/*.csv"', '"train/*"'))
        assert problem.startswith("train/x.parquet: not a Parquet file")

    def test_two_files_of_one_name(self, plant, edit):
        pd.read_csv(plant / "test/c.csv").to_parquet(plant / "test/c.parquet")
        (problem,) = problems(edit('"test/*.csv"', '"test/*"'))
        assert "test/c.parquet and test/c.csv would have the same name as recordings" in problem


class TestSingle:
    """TSB-AD's convention: one file, whose first rows are for training."""

    @pytest.fixture
    def card(self, tmp_path: Path) -> Path:
        folder = tmp_path / "series"
        folder.mkdir()
        table = frame(200, faults=(150, 160)).drop(columns="time").rename(columns={"fault": "Label"})
        table.to_csv(folder / "057_SMD_id_1_Facility_tr_80_1st_150.csv", index=False)
        card = folder / "card.toml"
        card.write_text(
            'schema = 1\nname = "smd"\n[single]\nfiles = ["*.csv"]\ntrain_rows = "file name"\n'
            '[columns]\nlabel = "Label"\n'
        )
        return card

    def test_the_file_name_tells_how_many_rows_train(self, card):
        data, labels = load_card(card)
        id_ = "057_SMD_id_1_Facility_tr_80_1st_150"
        expected = frame(200, faults=(150, 160))[["flow", "head"]].to_numpy()
        assert [(one.id, one.n_rows) for one in data.train] == [(f"{id_}/train", 80)]
        assert np.array_equal(data.train[0].values, expected[:80])
        assert np.array_equal(data.test[0].values, expected[80:])
        assert np.flatnonzero(labels.rows[f"{id_}/test"]).tolist() == list(range(70, 80))

    def test_a_number_in_the_card(self, card):
        card.write_text(card.read_text().replace('"file name"', "100"))
        assert load_card(card).dataset.train[0].n_rows == 100

    @pytest.mark.parametrize(
        ("rows", "expected"),
        [
            ("155", "is for training, which takes normal rows only"),
            ("200", "none is left to test on"),
        ],
    )
    def test_wrong_numbers(self, card, rows, expected):
        card.write_text(card.read_text().replace('"file name"', rows))
        assert any(expected in problem for problem in problems(card))

    def test_a_name_without_a_number(self, card):
        path = next(card.parent.glob("*.csv"))
        path.rename(card.parent / "smd.csv")
        assert "expected the number of training rows in the file's name" in problems(card)[0]


def test_numbers_of_rows_are_those_of_pandas(plant):
    path = plant / "test/c.csv"
    path.write_text(path.read_text() + "\n\n   \n,,,\n")
    assert load_card(plant / "card.toml").dataset.test[0].n_rows == len(pd.read_csv(plant / "test/d.csv"))
    assert math.isfinite(load_card(plant / "card.toml").dataset.test[0].values.sum())
