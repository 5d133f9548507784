from __future__ import annotations

import hashlib
import math
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tsadbench.datasets.csv_file import Table, read_csv
from tsadbench.datasets.csv_layout import Layout
from tsadbench.errors import DataError

LAYOUT = Layout(
    separator=";",
    sensors=("flow", "speed"),
    time="when",
    time_format="%Y-%m-%d %H:%M:%S",
    label="anomaly",
    unread=("changepoint",),
)
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


def read(path: Path, text: str | bytes, layout: Layout = LAYOUT) -> Table:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_csv(path, layout)


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
        table = read(path, content)
        np.testing.assert_array_equal(table.values, [[-2.0, 1.5], [0.25, 1000.0], [0.1, 7.0]])
        start = datetime(2020, 1, 1, tzinfo=UTC).timestamp()
        np.testing.assert_array_equal(table.time, [start, start + 1, start + 3])
        assert table.labels is not None
        assert table.labels.tolist() == [False, True, False]
        assert table.sha256 == hashlib.sha256(content).hexdigest()

    def test_neither_time_nor_label(self, path: Path) -> None:
        table = read(path, "b,a,text\n1,2,x\n3,4,\n", Layout(separator=",", sensors=("a", "b")))
        np.testing.assert_array_equal(table.values, [[2.0, 1.0], [4.0, 3.0]])
        assert table.time is None
        assert table.labels is None

    def test_times_with_a_zone_become_utc(self, path: Path) -> None:
        layout = Layout(separator=",", sensors=("a",), time="t")
        table = read(path, "t,a\n2020-01-01T00:30:00+01:00,1\n2020-01-01T00:30:00Z,2\n", layout)
        start = datetime(2020, 1, 1, tzinfo=UTC) - timedelta(minutes=30)
        np.testing.assert_array_equal(table.time, [start.timestamp(), start.timestamp() + 3600])

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
    @given(
        st.lists(
            st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * 2),
            min_size=1,
            max_size=20,
        )
    )
    def test_every_number_is_read_to_the_bit(self, path: Path, rows: list[tuple[float, float]]) -> None:
        text = "a\tb\n" + "".join(f"{a!r}\t{b!r}\n" for a, b in rows)
        table = read(path, text, Layout(separator="\t", sensors=("a", "b")))
        assert table.values.tobytes() == np.array(rows, dtype=np.float64).tobytes()


class TestFilesThatCannotBeRead:
    def test_missing(self, path: Path) -> None:
        with pytest.raises(DataError, match=r"pump\.csv: there is no such file; check the path, or fetch"):
            read_csv(path, LAYOUT)

    def test_folder(self, path: Path) -> None:
        path.mkdir()
        with pytest.raises(DataError, match=r"pump\.csv: expected a file, found a folder; put the CSV file"):
            read_csv(path, LAYOUT)

    @pytest.mark.parametrize("content", ["", "\n\n"])
    def test_empty(self, path: Path, content: str) -> None:
        with pytest.raises(DataError, match=rf"pump\.csv: the file is empty \({len(content)} bytes\); fetch or copy"):
            read(path, content)

    def test_no_permission(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(self: Path) -> bytes:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "read_bytes", refuse)
        with pytest.raises(DataError, match=r"pump\.csv: cannot be read \(Permission denied\); check its permissions"):
            read_csv(path, LAYOUT)

    @pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
    def test_not_utf8(self, path: Path, line_end: bytes) -> None:
        lines = [line.encode() for line in GOOD]
        lines[2] += b"\xb0C"
        with pytest.raises(
            DataError, match=r"pump\.csv, line 3: expected UTF-8, found the byte 0xb0; convert the file"
        ):
            read(path, line_end.join(lines))


class TestHeader:
    @pytest.mark.parametrize("used", [",", "\t", "|"])
    def test_wrong_separator(self, path: Path, used: str) -> None:
        message = f"pump.csv, line 1: expected columns separated by ';', but {used!r} seems to be used; write the file"
        with pytest.raises(DataError, match=re.escape(message)):
            read(path, "\n".join(GOOD).replace(";", used))

    def test_wrong_separator_beside_other_names(self, path: Path) -> None:
        with pytest.raises(DataError, match=r"line 1: expected columns separated by ';', but ',' seems to be used"):
            read(path, "time,flow,speed\n1,2,3\n")

    def test_missing_columns(self, path: Path) -> None:
        message = r"pump\.csv, line 1: columns are missing: \['flow', 'changepoint'\]; found \['when', .*; correct the"
        with pytest.raises(DataError, match=message):
            read(path, "when;speed;anomaly\n2020-01-01 00:00:00;1;0\n")

    def test_column_twice(self, path: Path) -> None:
        with pytest.raises(DataError, match=r"pump\.csv, line 1: columns occur twice: \['flow'\]; remove or rename"):
            read(path, with_line(1, f"{HEADER};flow"))

    def test_nothing_but_a_header(self, path: Path) -> None:
        with pytest.raises(DataError, match=r"pump\.csv, line 1: a header, but no rows follow; fetch or copy"):
            read(path, f"{HEADER}\n")


class TestRows:
    @pytest.mark.parametrize(
        ("line", "cells", "message"),
        [
            (2, "2020-01-01 00:00:00;1.5;-2;0", ": expected 5 cells separated by ';', found 4; correct the line"),
            (2, "2020-01-01 00:00:00;1;2;0;0;", ": expected 5 cells separated by ';', found 6; correct the line"),
            (3, "", ": the line is blank; remove it"),
            (4, "2020-01-01 00:00:03;1;2;0;0;9", ": expected 5 cells separated by ';', found 6; correct the line"),
            (4, "2020-01-01 00:00:0", ": expected 5 cells separated by ';', found 1; the file ends here and seems to"),
            (2, "2020-01-01 00:00:00;fast;2;0;0", ", column 'speed': expected a number, found 'fast'; correct the"),
            (3, "2020-01-01 00:00:01;1_000;2;0;0", ", column 'speed': expected a number, found '1_000'; correct the"),
            (3, "2020-01-01 00:00:01;1;0x1F;0;0", ", column 'flow': expected a number, found '0x1F'; correct the"),
            (
                3,
                "2020-01-01 00:00:01;1,5;2;0;0",
                ", column 'speed': expected a number, found '1,5'; write numbers with",
            ),
            (3, '2020-01-01 00:00:01;1;"2";0;0', ", column 'flow': expected a number, found '\"2\"'; correct the"),
            (
                3,
                "2020-01-01 00:00:01;1\0;2;0;0",
                ": found the control character '\\x00'; the file seems to be damaged:",
            ),
            (
                4,
                "2020-01-01 00:00:03;1;2\x1f;0;0",
                ": found the control character '\\x1f'; the file seems to be damaged:",
            ),
            (3, "2020-01-01 00:00:01;1;;0;0", ", column 'flow': a value is missing (the cell holds ''); fill it in"),
            (3, "2020-01-01 00:00:01;1; ;0;0", ", column 'flow': a value is missing (the cell holds ' '); fill it in"),
            (4, "2020-01-01 00:00:03;nan;1;0;0", ", column 'speed': a value is missing (the cell holds 'nan'); fill"),
            (4, "2020-01-01 00:00:03;N/A;1;0;0", ", column 'speed': a value is missing (the cell holds 'N/A'); fill"),
            (4, "2020-01-01 00:00:03;-Inf;1;0;0", ", column 'speed': expected a finite number, found '-Inf'; replace"),
            (
                4,
                "2020-01-01 00:00:03;1e999;1;0;0",
                ", column 'speed': expected a finite number, found '1e999'; replace",
            ),
            (4, "2020-01-01 00:00:03;1;1;2;0", ", column 'anomaly': expected a label 0 or 1, found '2'; correct the"),
            (4, "2020-01-01 00:00:03;1;1;0.5;0", ", column 'anomaly': expected a label 0 or 1, found '0.5'; correct"),
            (4, "2020-01-01 00:00:03;1;1;-1;0", ", column 'anomaly': expected a label 0 or 1, found '-1'; correct the"),
            (4, "2020-01-01 00:00:03;1;1;True;0", ", column 'anomaly': expected a number, found 'True'; correct the"),
            (4, "2020-01-01 00:00:03;1;1;;0", ", column 'anomaly': a value is missing (the cell holds ''); fill it in"),
            (
                3,
                "01.01.2020;1;2;0;0",
                ", column 'when': expected a time written as %Y-%m-%d %H:%M:%S, found '01.01.2020';",
            ),
            (3, "2020-02-30 00:00:00;1;2;0;0", ", column 'when': expected a time written as %Y-%m-%d %H:%M:%S, found"),
            (3, ";1;2;0;0", ", column 'when': the time is missing (the cell holds ''); fill it in or remove the line"),
            (
                3,
                "2020-01-01 00:00:00;1;2;0;0",
                ", column 'when': the time '2020-01-01 00:00:00' is that of line 2 too; remove one of the two lines",
            ),
            (
                3,
                "2019-12-31 23:59:59;1;2;0;0",
                ", column 'when': the time '2019-12-31 23:59:59' lies before that of line 2, '2020-",
            ),
        ],
    )
    def test_message_names_line_and_column_and_what_to_do(
        self, path: Path, line: int, cells: str, message: str
    ) -> None:
        with pytest.raises(DataError) as caught:
            read(path, with_line(line, cells))
        assert f"{path}, line {line}{message}" in str(caught.value)
        assert "more such" not in str(caught.value)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
    def test_lines_are_counted_alike_whatever_the_line_end(self, path: Path, line_end: str) -> None:
        with pytest.raises(DataError, match=r"line 4, column 'flow'"):
            read(path, with_line(4, "2020-01-01 00:00:03;1;x;0;0").replace("\n", line_end))

    def test_open_last_line_that_is_cut_off(self, path: Path) -> None:
        with pytest.raises(DataError, match=r"line 4: expected 5 cells separated by ';', found 4; the file ends here"):
            read(path, "\n".join(GOOD)[:-4])

    @pytest.mark.parametrize(("bad", "more"), [(2, " (and 1 more such line)"), (6, " (and 5 more such lines)")])
    def test_first_line_and_how_many_more(self, path: Path, bad: int, more: str) -> None:
        rows = [f"2020-01-01 00:00:{i:02};{'x' if i >= 20 - bad else 1};2;0;0" for i in range(20)]
        with pytest.raises(DataError, match=rf"line {22 - bad}, column 'speed': .*{re.escape(more)}$"):
            read(path, "\n".join([HEADER, *rows]))

    def test_a_line_with_two_faults_counts_once_and_names_the_first_column(self, path: Path) -> None:
        with pytest.raises(DataError, match=r"line 3, column 'flow': expected a number, found 'y'; correct the cell$"):
            read(path, with_line(3, "2020-01-01 00:00:01;x;y;z;0"))

    def test_missing_cells_of_columns_that_are_not_read_do_no_harm(self, path: Path) -> None:
        table = read(path, with_line(3, "2020-01-01 00:00:01;1;2;0;"))
        assert table.values.shape == (3, 2)

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300)
    @given(
        st.text(alphabet=st.characters(exclude_characters=";\r\n", exclude_categories=["Cs"]), max_size=6)
        | st.text(alphabet="0123456789+-.eE_ nafi", max_size=6)
    )
    def test_any_cell_is_read_as_its_number_or_named(self, path: Path, cell: str) -> None:
        layout = Layout(separator=";", sensors=("a", "b"))
        try:
            table = read(path, f"a;b\n1;2\n3;{cell}\n", layout)
        except DataError as error:
            assert re.search(", line 3(, column 'b': |: found the control character)", str(error))  # noqa: PT017
        else:
            assert table.values[1, 1] == float(cell)
            assert math.isfinite(table.values[1, 1])
