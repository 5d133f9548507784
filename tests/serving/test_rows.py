"""New files are read as the card reader reads the card's own files, wherever their bytes are cut."""

from __future__ import annotations

import os
import threading
import time as clock
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.german_plant import HEADER, lines
from tsadbench import DataError
from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.reader import load_card
from tsadbench.serving.reading import BREAK, RowReader, Rows

PLAIN = FileFormat(time=("t",), time_formats=("seconds",))


@pytest.fixture(scope="session")
def read(t2_model):
    """A function that reads a text through a pipe in pieces for a model with these sensors; returns rows and notes."""

    def reading(text: str | bytes, form=PLAIN, sensors=("a", "b"), cuts=(), layout=None) -> tuple[Rows, list[str]]:
        data = text.encode() if isinstance(text, str) else text
        notes: list[str] = []
        card = replace(t2_model.card, sensors=tuple(sensors), layout=layout or form)
        return Rows.joined(list(RowReader("x.csv", form, card, notes.append).read(_piped(data, cuts)))), notes

    return reading


def _piped(data: bytes, cuts) -> int:
    """Return a pipe into which a thread writes pieces, with a short pause after each, so they are read one by one."""
    reads, writes = os.pipe()

    def write() -> None:
        with os.fdopen(writes, "wb", buffering=0) as pipe:
            for start, stop in pairwise([0, *sorted(cuts), len(data)]):
                pipe.write(data[start:stop])
                if cuts:
                    clock.sleep(0.002)

    threading.Thread(target=write).start()
    return reads


def faults(rows: Rows) -> dict[int, str]:
    return {row: text for row, text in enumerate(rows.places["reason"]) if text}


def test_the_cards_reader_and_this_one_agree_on_gaps_marks_and_times(plant, read, tmp_path):
    rows = lines(5, 60)
    rows[7] = rows[7].replace(rows[7].split(";")[1], "Bad Input")
    rows[8] = rows[8].replace(rows[8].split(";")[1], "")
    rows[20] = rows[20].replace(rows[20].split(";")[2], "-999,0")
    text = "\ufeff" + "\r\n".join([HEADER, *rows]) + "\r\n\r\n"
    for name in ("card.toml", "normal.csv"):
        (tmp_path / name).write_bytes((plant / name).read_bytes())
    (tmp_path / "run.csv").write_bytes(text.encode())
    loaded = load_card(tmp_path / "card.toml").dataset
    for cuts in ((), (700, 905, 911, 1500)):
        found, notes = read(text, loaded.layout, loaded.sensors, cuts)
        np.testing.assert_array_equal(found.values, loaded.test[0].values)
        np.testing.assert_array_equal(found.seconds, loaded.test[0].time)
        assert notes == []


@given(st.lists(st.integers(0, 700), max_size=6))
@settings(max_examples=25, deadline=None)
def test_it_does_not_matter_where_the_bytes_are_cut(t2_model, read, cuts):
    text, card = "\r\n".join([HEADER, *lines(6, 12)]) + "\r\n", t2_model.card
    whole, _ = read(text, card.layout, card.sensors)
    found, _ = read(text, card.layout, card.sensors, [cut for cut in cuts if cut <= len(text)])
    np.testing.assert_array_equal(found.values, whole.values)
    np.testing.assert_array_equal(found.seconds, whole.seconds)
    assert len(whole.values) == 12


BAD = {
    "1,2": "2 cells",
    "1,2,3,4": "4 cells",
    "5,oops,3": "'a': 'oops'",
    "5,inf,1": "'a': 'inf'",
    "-7,1,2": "earlier",
    "not a time,1,2": "'not a time'",
    "t,a,b": "'a': 'a'",
    "5;1;2": "1 cells",
    '5,1,"2': "quote",
    " , ,": "time",
    "1001,,2": "no value of 'a'",
}


def test_each_broken_line_has_a_reason_with_its_place_and_the_others_none(read):
    text = ["t,a,b", "1000,1,2", *BAD, "", "1002,3,4"]
    rows, _ = read("\n".join(text))
    found = faults(rows)
    assert list(found) == list(range(1, 1 + len(BAD)))
    for row, reason in zip(found, BAD.values(), strict=True):
        assert found[row].startswith(f"line {row + 2}: ")
        assert reason in found[row]
    assert rows.values[[0, -1]].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert len(rows.values) == 2 + len(BAD)  # an empty line is not a row


def test_values_are_carried_over_broken_rows_and_after_many_times_may_restart(read):
    form = FileFormat(time=("t",), time_formats=("seconds",), fill="forward-fill")
    text = ["t,a,b", "50,1,1", *["oops"] * BREAK, "3,,7", "4,2,2", "5,,3", *["oops"] * (BREAK - 1), "4,5,5", "6,,4"]
    for cuts in ((), (20, 60, 75, 90)):
        rows, _ = read("\n".join(text), form, cuts=cuts)
        good = [0, BREAK + 1, BREAK + 2, BREAK + 3, 2 * BREAK + 4]
        assert rows.seconds[good].tolist() == [50, 3, 4, 5, 6]
        np.testing.assert_array_equal(rows.values[good, 0], [1, 1, 2, 2, 2])
        assert "earlier" in faults(rows)[2 * BREAK + 3]


def test_a_header_can_be_searched_for_and_units_are_left_out(read):
    form = FileFormat(header_line="search", units_line=True)
    rows, _ = read("report\nmade by Ann\na,b\nbar,m3/h\n1,2\n1,x\n", form, cuts=(20, 30))
    assert rows.values[0].tolist() == [1.0, 2.0]
    assert faults(rows)[1].startswith("line 6")
    with pytest.raises(DataError, match=r"x\.csv"):
        read("report\n1,2\n", form)
