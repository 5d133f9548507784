"""New files are read as the card's own, whose reader is the truth, wherever their bytes are cut."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.german_plant import HEADER, lines
from tsadbench import DataError
from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.cards.reader import load_card
from tsadbench.datasets.reading.cells import MISSING
from tsadbench.datasets.reading.times import iso_time, time_in_seconds
from tsadbench.serving.follow import Lines
from tsadbench.serving.rows import RowReader

SENSORS = ("Pressure [bar]", "Flow")
PLAIN = FileFormat(time=("t",), time_formats=("seconds",))


def read(text: str | bytes, layout: FileFormat, sensors=SENSORS, cuts=()):
    data = text.encode() if isinstance(text, str) else text
    cutter, reader = Lines("x.csv", layout.encoding), RowReader("x.csv", layout, sensors)
    borders = [0, *sorted(cuts), len(data)]
    parts = [reader.read(cutter.feed(data[start:stop])) for start, stop in pairwise(borders)]
    parts.append(reader.read(cutter.end()))
    reader.end()
    time = [part.time for part in parts if len(part) and part.time is not None]
    return np.concatenate([part.values for part in parts]), np.concatenate(time) if time else None, reader.header


def test_the_cards_reader_and_this_one_agree_on_gaps_marks_and_times(plant, tmp_path):
    rows = lines(5, 60)
    rows[7] = rows[7].replace(rows[7].split(";")[1], "Bad Input")
    rows[8] = rows[8].replace(rows[8].split(";")[1], "")
    rows[20] = rows[20].replace(rows[20].split(";")[2], "-999,0")
    text = "\ufeff" + "\r\n".join([HEADER, *rows]) + "\r\n\r\n"
    for name in ("card.toml", "normal.csv"):
        (tmp_path / name).write_bytes((plant / name).read_bytes())
    (tmp_path / "run.csv").write_bytes(text.encode())
    loaded = load_card(tmp_path / "card.toml").dataset
    values, time, header = read(text, loaded.layout)
    np.testing.assert_array_equal(values, loaded.test[0].values)
    np.testing.assert_array_equal(time, loaded.test[0].time)
    assert values[8, 0] == values[6, 0]
    assert header.notes == ()


TEXT = "\r\n".join([HEADER, *lines(6, 12)]) + "\r\n"


@given(st.lists(st.integers(0, len(TEXT)), max_size=12))
@settings(max_examples=60, deadline=None)
def test_it_does_not_matter_where_the_bytes_are_cut(plant_layout, cuts):
    whole, time, _ = read(TEXT, plant_layout)
    values, times, _ = read(TEXT, plant_layout, cuts=cuts)
    np.testing.assert_array_equal(values, whole)
    np.testing.assert_array_equal(times, time)
    assert len(whole) == 12


@pytest.fixture(scope="module")
def plant_layout(plant) -> FileFormat:
    return load_card(plant / "card.toml").dataset.layout


def test_the_missing_values_are_those_of_pandas():
    from pandas._libs.parsers import STR_NA_VALUES

    assert MISSING == STR_NA_VALUES


@given(st.floats(allow_nan=False, allow_infinity=False), st.booleans())
def test_numbers_are_the_nearest_float64(number, comma):
    cell = repr(number).replace(".", ",") if comma else repr(number)
    layout = FileFormat(separator=";", decimal="," if comma else ".")
    values, _, _ = read(f"a;b\n{cell};1\n", layout, ("a", "b"))
    assert values[0].tolist() == [number, 1.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"^x.csv: it is empty"),
        ("t,a\n1,2\n", r"^x.csv: the sensor 'b' is missing"),
        ("t,a,bb\n", r"the sensor 'b' is missing; did you mean 'bb'\?"),
        ("1,2,3\n1,2,3\n", r"expected a line that names the columns, found numbers"),
        ("t;a;b\n1;2;3\n", r"separated by ',', but ';' seems to be used; set separator"),
        ("t,a,b,b\n1,2,3,4\n", r"the column 'b' occurs twice"),
        ("t,a,b\n1,2\n", r"^x.csv, line 2: expected 3 cells separated by ',', found 2"),
        ("t,a,b\n1,2,3\n\n2,3,4\n", r"^x.csv, line 3: the line is empty, but others follow"),
        ("t,a,b\n1,2,3\n2,x,4\n", r"^x.csv, line 3: column 'a': expected a number, found 'x'"),
        ("t,a,b\n1,2,1_0\n", r"line 2: column 'b': expected a number, found '1_0'"),
        ("t,a,b\n1,2,3\n2,3,inf\n", r"line 3: column 'b': expected a finite number, found inf"),
        ("t,a,b\n1,2,3\n2,,4\n", r"line 3: column 'a': a value is missing"),
        ("t,a,b\n5,2,3\n4,2,3\n", r"line 3: the time lies before that of the row above"),
        ("t,a,b\n5,2,3\nnoon,2,3\n", r"line 3: expected a time written as seconds, found 'noon'"),
        (b"t,a,b\n1,2,\xe9\n", r"x.csv, line 2: not utf-8: found the byte 0xe9"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line(text, message):
    with pytest.raises(DataError, match=message):
        read(text, PLAIN, ("a", "b"))


def test_another_unit_is_told_as_one():
    with pytest.raises(DataError, match=r"the sensor 'Pressure \[bar\]', found 'Pressure \[psi\]': the units differ"):
        read("Pressure [psi],Flow\n1,2\n", FileFormat())


def test_another_case_is_told_as_one():
    with pytest.raises(DataError, match="the sensor 'Flow', found 'flow': capital and small letters differ; rename it"):
        read("Pressure [bar],flow\n1,2\n", FileFormat())


def test_other_orders_are_taken_by_name_and_said():
    values, time, header = read("x,Flow,,Pressure [bar]\n9,1,8,2\n", FileFormat(time=("t",)))
    assert values.tolist() == [[2.0, 1.0]]
    assert time is None
    order, times, unused = header.notes
    assert "another order" in order
    assert "no column 't' with times" in times
    assert unused.endswith("are not used: 'x'")


def test_rows_before_a_wrong_one_are_given():
    reader = RowReader("x", PLAIN, ("a", "b"))
    rows = reader.read(["t,a,b", "1,2,3", "2,3,4", "3,x,5", "4,5,6"])
    assert rows.values.tolist() == [[2.0, 3.0], [3.0, 4.0]]
    assert rows.time.tolist() == [1.0, 2.0]
    assert "line 4" in str(reader.fault)


@given(
    st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=25),
    st.none() | st.integers(1, 3),
    st.lists(st.integers(1, 24), max_size=5),
)
@settings(max_examples=150, deadline=None)
def test_gaps_are_filled_as_pandas_fills_them(gaps, at_most, cuts):
    values = np.arange(2.0 * len(gaps)).reshape(-1, 2)
    values[np.array(gaps)] = math.nan
    layout = FileFormat(fill="forward-fill", fill_at_most=at_most)
    text = [",".join("" if math.isnan(value) else repr(value) for value in row) or "," for row in values.tolist()]
    reader, found = RowReader("x", layout, ("a", "b")), []
    text = [f"{line},." for line in text]
    reader.read(["a,b,c"])
    borders = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    for start, stop in pairwise(borders):
        if reader.fault is None:
            found.append(reader.read(text[start:stop]).values)
    frame = pd.DataFrame(values)
    limited = frame.ffill(limit=at_most)
    bad = np.flatnonzero(limited.isna().any(axis=1))
    good = int(bad[0]) if len(bad) else len(values)
    np.testing.assert_array_equal(np.concatenate(found), frame.ffill().to_numpy()[:good])
    assert (reader.fault is not None) == (len(bad) > 0)


@given(
    st.datetimes(
        min_value=pd.Timestamp("1700-01-01").to_pydatetime(), max_value=pd.Timestamp("2200-01-01").to_pydatetime()
    )
)
@settings(max_examples=60, deadline=None)
def test_times_are_those_of_the_standard_library(moment):
    seconds = (moment - datetime(1970, 1, 1)) / timedelta(seconds=1)
    for text, form, expected in (
        (moment.isoformat(), "ISO8601", seconds),
        (f"{moment.isoformat()}+02:00", "ISO8601", seconds - 7200),
        (moment.strftime("%d.%m.%Y %H:%M:%S.%f"), "%d.%m.%Y %H:%M:%S.%f", seconds),
        (repr(seconds * 1000), "milliseconds", seconds),
        ("noon", "ISO8601", math.nan),
    ):
        found = float(time_in_seconds(pd.Series([text]), form)[0])
        # pandas multiplies by a rounded millionth: the last digit may differ.
        assert found == pytest.approx(expected, rel=1e-15, abs=1e-6, nan_ok=True), (text, form)
    assert pd.Timestamp(iso_time(seconds)) == pd.Timestamp(moment)


def test_a_header_can_be_searched_for():
    values, _, header = read("report\nmade by Ann\na,b\n1,2\n", FileFormat(header_line="search"), ("a", "b"))
    assert values.tolist() == [[1.0, 2.0]]
    assert header.line == 3
    with pytest.raises(DataError, match="none of its first 2 lines names all columns"):
        read("report\n1,2\n", FileFormat(header_line="search"), ("a", "b"))
