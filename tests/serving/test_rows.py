"""New files are read as the card's own, whose reader is the truth, wherever their bytes are cut."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.german_plant import HEADER, lines
from tsadbench import DataError
from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.reader import load_card
from tsadbench.serving.follow import Lines
from tsadbench.serving.rows import RowReader, Rows

SENSORS = ("Pressure [bar]", "Flow")
PLAIN = FileFormat(time=("t",), time_formats=("seconds",))


def read(text: str | bytes, layout: FileFormat, sensors=SENSORS, cuts=()):
    data = text.encode() if isinstance(text, str) else text
    cutter, reader = Lines("x.csv", layout.encoding), RowReader("x.csv", layout, sensors)
    borders = [0, *sorted(cuts), len(data)]
    parts = [part for start, stop in pairwise(borders) for part in reader.read(cutter.feed(data[start:stop]))]
    parts += reader.read(cutter.end())
    header, rows = reader.end(), Rows.joined(parts)
    return rows.values, rows.time, header


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


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("t,a,bb\n", "'b'.*'bb'"),
        ("t,a,b\n1,2\n", "line 2"),
        ("t,a,b\n1,2,3\n2,x,4\n", "line 3.*'a'.*'x'"),
        ("t,a,b\n1,2,3\n2,3,inf\n", "line 3.*'b'.*inf"),
        ("t,a,b\n5,2,3\n4,2,3\n", "line 3"),
        (b"t,a,b\n1,2,\xe9\n", "line 2.*0xe9"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text, names):
    with pytest.raises(DataError, match=f"^x.csv.*{names}"):
        read(text, PLAIN, ("a", "b"))


def test_other_orders_are_taken_by_name_and_said():
    values, time, header = read("x,Flow,,Pressure [bar]\n9,1,8,2\n", FileFormat(time=("t",)))
    assert values.tolist() == [[2.0, 1.0]]
    assert time is None
    assert len(header.notes) == 3  # another order, no times, and a column that is not used
    assert "'t'" in header.notes[1]
    assert "'x'" in header.notes[2]


def test_rows_before_a_wrong_one_are_given():
    reading = RowReader("x", PLAIN, ("a", "b")).read(["t,a,b", "1,2,3", "2,3,4", "3,x,5", "4,5,6"])
    rows = next(reading)
    assert rows.values.tolist() == [[2.0, 3.0], [3.0, 4.0]]
    assert rows.time.tolist() == [1.0, 2.0]
    with pytest.raises(DataError, match="line 4"):
        next(reading)


def test_a_header_can_be_searched_for():
    values, _, header = read("report\nmade by Ann\na,b\n1,2\n", FileFormat(header_line="search"), ("a", "b"))
    assert values.tolist() == [[1.0, 2.0]]
    assert header.line == 3
    with pytest.raises(DataError, match=r"x\.csv"):
        read("report\n1,2\n", FileFormat(header_line="search"), ("a", "b"))


def test_a_line_of_units_is_left_out():
    layout = FileFormat(units_line=True)
    values, _, _ = read("a,b\nbar,m3/h\n1,2\n", layout, ("a", "b"), cuts=[6])
    assert values.tolist() == [[1.0, 2.0]]
    with pytest.raises(DataError, match="line 4"):
        read("a,b\nbar,m3/h\n1,2\n1,x\n", layout, ("a", "b"))
