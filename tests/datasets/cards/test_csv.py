"""Every cell of a CSV file is what it has to be, or a message says where it is not and what to do."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tsadbench.base.recording import Recording
from tsadbench.datasets.cards.reader import load_card
from tsadbench.errors import DataError
from tsadbench.utils.arrays import BoolArray

CARD = """\
schema = 1
name = "pump"
[train]
files = ["normal.csv"]
[test]
files = ["pump.csv"]
"""
PUMP = """\
[files]
separator = ";"
[columns]
sensors = ["flow", "speed"]
time = "when"
time_format = "%Y-%m-%d %H:%M:%S"
label = "anomaly"
ignore = ["changepoint"]
"""
HEADER = "when;speed;flow;anomaly;changepoint"
GOOD = (
    HEADER,
    "2020-01-01 00:00:00;1.5;-2;0;0",
    "2020-01-01 00:00:01;1e3;.25;1.0;0",
    "2020-01-01 00:00:03;7;0.1;0.0;1",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "pump.csv"


def read(
    path: Path, text: str | bytes, rest: str = PUMP, normal: str = "\n".join(GOOD[:2])
) -> tuple[Recording, BoolArray]:
    """Return the recording and the labels of a test file, as a card with this text reads it."""
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.with_name("normal.csv").write_text(normal)
    path.with_name("card.toml").write_text(CARD + rest)
    dataset, labels = load_card(path.with_name("card.toml"))
    return dataset.test[0], labels.rows["pump"]


def problems(path: Path, text: str | bytes, rest: str = PUMP) -> list[str]:
    with pytest.raises(DataError) as caught:
        read(path, text, rest)
    return [line.strip() for line in str(caught.value).splitlines()[1:]]


def with_line(number: int, line: str) -> str:
    """Return the good file with its line of this number (1 = header) replaced."""
    lines = [*GOOD]
    lines[number - 1] = line
    return "\n".join([*lines, ""])


class TestGoodFiles:
    @pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
    @pytest.mark.parametrize("last", [True, False], ids=["last line ended", "last line open"])
    @pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["no mark", "byte order mark"])
    def test_line_ends_and_byte_order_mark(self, path: Path, line_end: str, last: bool, mark: bytes) -> None:
        content = mark + (line_end.join(GOOD) + (line_end if last else "")).encode()
        recording, labels = read(path, content)
        assert recording.sensors == ("flow", "speed")
        np.testing.assert_array_equal(recording.values, [[-2.0, 1.5], [0.25, 1000.0], [0.1, 7.0]])
        start = datetime(2020, 1, 1, tzinfo=UTC).timestamp()
        np.testing.assert_array_equal(recording.time, [start, start + 1, start + 3])
        assert labels.tolist() == [False, True, False]

    def test_times_with_a_zone_become_utc(self, path: Path) -> None:
        text = "t,a,y\n2020-01-01T00:30:00+01:00,1,0\n2020-01-01T00:30:00Z,2,0\n"
        recording, _ = read(path, text, '[columns]\ntime = "t"\nlabel = "y"\n', text)
        start = datetime(2020, 1, 1, tzinfo=UTC) - timedelta(minutes=30)
        np.testing.assert_array_equal(recording.time, [start.timestamp(), start.timestamp() + 3600])

    def test_missing_cells_of_columns_that_are_not_read_do_no_harm(self, path: Path) -> None:
        recording, _ = read(path, with_line(3, "2020-01-01 00:00:01;1;2;0;"))
        assert recording.n_rows == 3


class TestFilesThatCannotBeRead:
    def test_folder(self, path: Path) -> None:
        path.mkdir()
        path.with_name("card.toml").write_text(CARD + PUMP)
        with pytest.raises(DataError, match=r"files 'pump\.csv': is a folder; expected a file"):
            load_card(path.with_name("card.toml"))

    @pytest.mark.parametrize("content", ["", "\n\n"])
    def test_empty(self, path: Path, content: str) -> None:
        assert problems(path, content) == [
            "pump.csv: it is empty; expected a line with the columns' names, and rows"
            if not content
            else "pump.csv, line 1: expected the columns' names, found an empty line"
        ]

    @pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
    def test_not_utf8(self, path: Path, line_end: bytes) -> None:
        lines = [line.encode() for line in GOOD]
        lines[2] += b"\xb0C"
        assert problems(path, line_end.join(lines)) == [
            "pump.csv, line 3: not utf-8: found the byte 0xb0; set encoding (often cp1252), or convert the file"
        ]


class TestHeader:
    @pytest.mark.parametrize("used", [",", "\t", "|"])
    def test_wrong_separator(self, path: Path, used: str) -> None:
        assert problems(path, "\n".join(GOOD).replace(";", used)) == [
            f"pump.csv, line 1: expected columns separated by ';', but {used!r} seems to be used; set separator"
        ]

    def test_missing_columns(self, path: Path) -> None:
        assert problems(path, "when;speed;anomaly\n2020-01-01 00:00:00;1;0\n") == [
            "pump.csv, line 1: the sensor 'flow' is missing; there are: anomaly, speed, when"
        ]

    def test_another_unit(self, path: Path) -> None:
        (fault,) = problems(path, "\n".join(GOOD).replace("flow", "flow [l/h]"))
        assert fault == (
            "pump.csv, line 1: expected the sensor 'flow', found 'flow [l/h]': the units differ; convert and rename it"
        )

    def test_no_header(self, path: Path) -> None:
        (fault,) = problems(path, "1;2;3\n1;2;3\n")
        assert "line 1: expected a line that names the columns, found numbers" in fault

    def test_column_twice(self, path: Path) -> None:
        assert problems(path, "\n".join(f"{line};0" for line in GOOD).replace("changepoint;0", "changepoint;flow")) == [
            "pump.csv, line 1: the column 'flow' occurs twice; remove or rename one"
        ]

    def test_nothing_but_a_header(self, path: Path) -> None:
        assert problems(path, f"{HEADER}\n") == [
            "pump.csv: recording 'pump' has no rows; complete the file, or leave it out"
        ]


class TestRows:
    @pytest.mark.parametrize(
        ("line", "cells", "message"),
        [
            (2, "2020-01-01 00:00:00;1.5;-2;0", "expected 5 cells separated by ';', found 4; correct the line"),
            (2, "2020-01-01 00:00:00;1;2;0;0;", "expected 5 cells separated by ';', found 6; correct the line"),
            (3, "", "the line is empty, but others follow; remove it"),
            (4, "2020-01-01 00:00:03;1;2;0;0;9", "expected 5 cells separated by ';', found 6; correct the line"),
            (4, "2020-01-01 00:00:0", "expected 5 cells separated by ';', found 1; the file ends here and seems to"),
            (2, "2020-01-01 00:00:00;fast;2;0;0", "column 'speed': expected a number, found 'fast'; correct the"),
            (3, "2020-01-01 00:00:01;1_000;2;0;0", "column 'speed': expected a number, found '1_000'; correct the"),
            (3, "2020-01-01 00:00:01;1;0x1F;0;0", "column 'flow': expected a number, found '0x1F'; correct the"),
            (3, "2020-01-01 00:00:01;1,5;2;0;0", "column 'speed': expected a number, found '1,5'; another decimal"),
            (3, "2020-01-01 00:00:01;1\0;2;0;0", "found a NUL character; the file seems damaged"),
            (4, "2020-01-01 00:00:03;1;2\x1f;0;0", "column 'flow': expected a number, found '2"),
            (3, "2020-01-01 00:00:01;1;;0;0", "column 'flow': a value is missing; fill it in"),
            (3, "2020-01-01 00:00:01;1; ;0;0", "column 'flow': a value is missing; fill it in"),
            (4, "2020-01-01 00:00:03;nan;1;0;0", "column 'speed': a value is missing; fill"),
            (4, "2020-01-01 00:00:03;N/A;1;0;0", "column 'speed': a value is missing; fill"),
            (4, "2020-01-01 00:00:03;-Inf;1;0;0", "column 'speed': expected a finite number, found -inf; correct"),
            (4, "2020-01-01 00:00:03;1e999;1;0;0", "column 'speed': expected a finite number, found inf; correct"),
            (
                4,
                "2020-01-01 00:00:03;1;1;2;0",
                "column 'anomaly': expected one of the declared values, [1] or [0]",
            ),
            (4, "2020-01-01 00:00:03;1;1;0.5;0", "column 'anomaly': expected one of the declared values, [1] or [0]"),
            (4, "2020-01-01 00:00:03;1;1;;0", "column 'anomaly': expected one of the declared values, [1] or [0]"),
            (
                3,
                "01.01.2020;1;2;0;0",
                "column 'when': expected a time written as %Y-%m-%d %H:%M:%S, found '01.01.",
            ),
            (3, "2020-02-30 00:00:00;1;2;0;0", "column 'when': expected a time written as %Y-%m-%d %H:%M:%S, found"),
            (3, ";1;2;0;0", "column 'when': expected a time written as %Y-%m-%d %H:%M:%S, found an empty cell"),
            (3, "2019-12-31 23:59:59;1;2;0;0", "column 'when': the time lies before that of the row above; sort"),
        ],
    )
    def test_message_names_line_and_column_and_what_to_do(
        self, path: Path, line: int, cells: str, message: str
    ) -> None:
        (fault,) = problems(path, with_line(line, cells))
        assert fault.startswith(f"pump.csv, line {line}: {message}")
        assert "more such" not in fault

    @pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
    def test_lines_are_counted_alike_whatever_the_line_end(self, path: Path, line_end: str) -> None:
        (fault,) = problems(path, with_line(4, "2020-01-01 00:00:03;1;x;0;0").replace("\n", line_end))
        assert fault.startswith("pump.csv, line 4: column 'flow'")

    def test_open_last_line_that_is_cut_off(self, path: Path) -> None:
        assert problems(path, "\n".join(GOOD)[:-4]) == [
            "pump.csv, line 4: expected 5 cells separated by ';', found 4; the file ends here and seems to be cut off, "
            "copy it again"
        ]

    def test_long_files_of_another_form_are_told_in_short(self, path: Path) -> None:
        found = problems(path, "\n".join([HEADER, *["1;2"] * 5_000]))
        assert [line.partition(":")[0] for line in found] == [f"pump.csv, line {number}" for number in (2, 3, 4)]
        assert found[2].endswith("(and 4997 more such)")

    def test_a_line_with_two_faults_is_told_twice(self, path: Path) -> None:
        assert [fault[:38] for fault in problems(path, with_line(3, "2020-01-01 00:00:01;x;y;0;0"))] == [
            "pump.csv, line 3: column 'flow': expec",
            "pump.csv, line 3: column 'speed': expe",
        ]

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
    @given(
        st.text(alphabet=st.characters(exclude_characters=';\r\n"', exclude_categories=["Cs"]), max_size=6)
        | st.text(alphabet="0123456789+-.eE_ nafi", max_size=6)
    )
    def test_any_cell_is_read_as_its_number_or_named(self, path: Path, cell: str) -> None:
        rest = '[files]\nseparator = ";"\n[columns]\nlabel = "y"\n'
        try:
            recording, _ = read(path, f"a;b;y\n1;2;0\n3;{cell};0\n", rest, "a;b;y\n1;2;0\n3;4;0\n")
        except DataError as error:
            assert re.search("pump.csv, line 3: (column 'b': |found a NUL)", str(error))  # noqa: PT017
        else:
            assert recording.values[1, 1] == float(cell)
            assert math.isfinite(recording.values[1, 1])
