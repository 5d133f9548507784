"""Errors in a card or its files raise a `DataError` that names the file, the line and the error."""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from tests.datasets.cards.test_cards import (
    COLUMNS,
    FILES,
    FOUR,
    FOUR_CARD,
    INTERVALS,
    NORMAL,
    PARTS,
    RUN,
    UNLABELLED,
    matlab,
)
from tests.helpers.cards import problems, write

HEAD = 'schema = 1\nname = "p"\n'
CARD = HEAD + PARTS + COLUMNS
OF_FILES = HEAD + PARTS + UNLABELLED + '[labels]\nkind = "file"\nfile = "{id}_y.csv"\n'
IN_TIME = HEAD + INTERVALS + 'unit = "time"\n'


def broken(folder, card: str, files: Mapping[str, str | bytes]) -> list[str]:
    return problems(write(folder, {"card.toml": card, **files}))


def names(problem: str, name: str) -> bool:
    """Check that a problem contains a name; names of one letter must be in quotes."""
    return (f"'{name}'" if len(name) == 1 and name.isalpha() else name) in problem


CELLS = {
    "no number": ("7,8.5", "7,fast", 3, "b"),
    "another decimal mark": ("7,8.5", '7,"8,5"', 3, "b"),
    "infinite": ("7,8.5", "inf,8.5", 3, "a"),
    "missing": ("7,8.5", "7,", 3, "b"),
    "missing, as a text": ("7,8.5", "NULL,8.5", 3, "a"),
    "a number as Python writes it": ("7,8.5", "1_0,8.5", 3, "a"),
    "a cell too few": ("7,8.5,", "7,", 3, ""),
    "a cell too many": ("7,8.5", "7,8.5,1", 3, ""),
    "an empty line": ("2024-05-01 12:00:01", "\n2024-05-01 12:00:01", 3, ""),
    "a label that is not declared": ("8.5,1", "8.5,2", 3, "y"),
    "no label": ("8.5,1", "8.5,", 3, "y"),
    "no time": ("2024-05-01 12:00:01", "noon", 3, "t"),
    "a time before that of the row above": ("2024-05-01 12:00:01", "2024-05-01 11:00:01", 3, "t"),
    "a NUL": ("7,8.5", "7,8\0.5", 3, ""),
    "a column twice": ("t,a,b,y", "t,b,b,y", 1, "b"),
    "a sensor that is missing": ("t,a,b,y", "t,a,c,y", 1, "b"),
    "a sensor in another unit": ("t,a,b,y", "t,a,b [bar],y", 1, "b"),
    "no header": ("t,a,b,y", "1,2,3,4", 1, ""),
    "another separator": ("t,a,b,y", "t;a;b;y", 1, ";"),
}


@pytest.mark.parametrize("kind", CELLS)
def test_in_a_cell_of_a_file(tmp_path, kind):
    old, new, line, name = CELLS[kind]
    assert old in RUN
    found = broken(tmp_path, CARD, {**FILES, "r.csv": RUN.replace(old, new)})
    assert any(one.startswith(f"r.csv, line {line}: ") and (not name or names(one, name)) for one in found), found
    assert len(found) <= 4


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_alike_whatever_their_ends(tmp_path, line_end):
    wrong = RUN.replace("9,10", "9,x").replace("\n", line_end)
    (found,) = broken(tmp_path, CARD, {**FILES, "r.csv": wrong.encode()})
    assert found.startswith("r.csv, line 4: ")


def parquet(**changes: object) -> bytes:
    file = io.BytesIO()
    pd.read_csv(io.StringIO(RUN)).assign(**changes).to_parquet(file)
    return file.getvalue()


FILE = {
    "empty": (CARD, {"r.csv": ""}, "r.csv"),
    "without rows": (CARD, {"r.csv": RUN.splitlines()[0]}, "r.csv"),
    "cut off": (CARD, {"r.csv": RUN[:-4]}, "r.csv, line 4"),
    "another encoding": (CARD, {"r.csv": RUN.replace("8.5", "8\xb0").encode("cp1252")}, "r.csv, line 3: ", "0xb0"),
    "no such file": (CARD.replace("r.csv", "x.csv"), {}, "x.csv"),
    "a folder": (CARD.replace("r.csv", "folder"), {"folder/a": ""}, "folder"),
    "above the card": (CARD.replace("r.csv", "../r.csv"), {}, "../r.csv"),
    "in both parts": (CARD.replace("r.csv", "n.csv"), {}, "n.csv"),
    "in a joined recording and alone": (
        CARD.replace("n.csv", "n1.csv").replace('["r.csv"]', '["n?.csv"]\njoin = "{id}?.csv"'),
        {"n1.csv": NORMAL, "n2.csv": NORMAL}, "n1.csv"
    ),
    "a quote that is not closed": (
        HEAD + PARTS + UNLABELLED, {"r.csv": RUN.replace(",0\n", ',"\n', 1).replace(",1\n", ',"\n')}, "r.csv"
    ),
    "a quote after a space that is not closed": (
        HEAD + PARTS + UNLABELLED, {"r.csv": RUN.replace(",0\n", ', "\n', 1).replace(",1\n", ', "\n')}, "r.csv"
    ),
    "a second column of labels": (
        CARD, {name: text.replace(",y", ",y,attack").replace(",0\n", ",0,0\n").replace(",1\n", ",1,1\n")
               for name, text in FILES.items()}, "n.csv", "attack"
    ),
    "a hole that the last value does not fill": (
        CARD + '[resample]\nevery = 2\nby = "last"\n', {"r.csv": RUN + "2024-05-01 12:00:09,1,1,0\n"}, "r.csv, line 5: "
    ),
    "an anomaly in training": (CARD, {"n.csv": NORMAL.replace("4.5,0", "4.5,1")}, "n.csv, line 3: "),
    "two of one name": (CARD.replace("r.csv", "r.*"), {"r.parquet": parquet()}, "card.toml", "r"),
    "no Parquet file": (CARD.replace("r.csv", "r.parquet"), {"r.parquet": b"no"}, "r.parquet"),
    "a text in a Parquet file": (
        CARD.replace("r.csv", "r.parquet"), {"r.parquet": parquet(b=["6", "x", "10"])}, "r.parquet", "b"
    ),
    "no MATLAB file": (CARD.replace("r.csv", "r.mat"), {"r.mat": b"no"}, "r.mat"),
    "several arrays": (
        CARD.replace("r.csv", "r.mat"), {"r.mat": matlab(one=np.ones((3, 2)), two=np.ones((3, 2)))}, "r.mat", "two"
    ),
    "an array of other columns": (
        HEAD + PARTS.replace("csv", "mat") + '[columns]\nnames = ["a", "b"]\n',
        {"n.mat": matlab(x=np.ones((3, 2))), "r.mat": matlab(x=np.ones((3, 3)))}, "r.mat", "3"
    ),
    "an array wider than the first": (
        HEAD + PARTS.replace("csv", "mat") + '[columns]\nnames = "x{number}"\n',
        {"n.mat": matlab(x=np.ones((3, 2))), "r.mat": matlab(x=np.ones((3, 3)))}, "r.mat", "3"
    ),
    "no pickle": (CARD.replace("r.csv", "r.pkl"), {"r.pkl": b"no"}, "r.pkl"),
    "a value missing in an array": (
        HEAD + PARTS.replace("csv", "pkl") + '[columns]\nnames = ["a", "b"]\n',
        {"n.pkl": pickle.dumps(np.ones((3, 2))), "r.pkl": pickle.dumps(np.array([[1, 2], [np.nan, 4]]))},
        "r.pkl", "a", "1"
    ),
    "no file of R": (CARD.replace("r.csv", "r.rda"), {"r.rda": b"no"}, "r.rda"),
    "another ending": (CARD.replace("r.csv", "r.docx"), {"r.docx": b"no"}, "r.docx"),
    "a gap longer than allowed": (
        CARD + '[gaps]\npolicy = "forward-fill"\nat_most = 1\n', {"r.csv": RUN.replace("8.5", "").replace("10", "")},
        "r.csv, line 4: ", "b", "1"
    ),
    "a gap at the beginning": (
        CARD + '[gaps]\npolicy = "forward-fill"\n', {"r.csv": RUN.replace("5,6", ",6")}, "r.csv, line 2: ", "a"
    ),
    "a text that is no state": (
        CARD + "[states.b]\nOPEN = 1\n", {"r.csv": RUN.replace("8.5", "AJAR")}, "r.csv, line 3: ", "b", "AJAR", "OPEN"
    ),
    "a step finer than the rows": (
        CARD + '[resample]\nevery = 0.1\n', {}, "n.csv", "resample.every"
    ),
    "a time far from the others": (
        CARD + '[resample]\nevery = 1\n', {"r.csv": RUN.replace("2024-05-01 12:00:03", "2254-05-01 12:00:03")},
        "r.csv, line 4: "
    ),
    "a gap in the grid": (
        CARD + '[resample]\nevery = 2\n', {"r.csv": RUN + "2024-05-01 12:00:09,1,1,0\n"}, "r.csv, line 5: ", "a"
    ),
    "labels of another length": (
        OF_FILES,
        {"r_y.csv": "0\n1\n"}, "r_y.csv", "3", "2"
    ),
    "no file of labels": (
        OF_FILES, {}, "r_y.csv"
    ),
    "a joined file before another": (
        CARD.replace('["r.csv"]', '["r*.csv"]\njoin = "{id}?.csv"'), {"r.csv": "", "r1.csv": RUN, "r2.csv": RUN}, "r"
    ),
    "more training rows than rows": (
        HEAD + '[train]\nfiles = ["r.csv"]\nrows = 9\n[test]\nfiles = ["r.csv"]\n' + COLUMNS, {}, "r.csv", "9"
    ),
    "no number in the file's name": (
        HEAD + '[train]\nfiles = ["r.csv"]\nrows = "tr_{n}"\n' + COLUMNS, {}, "r.csv"
    ),
    "a prior of other sensors": (
        CARD.replace("[train]", 'prior = "p.json"\n[train]'), {"p.json": '[{"source": "a", "target": "x"}]'}, "x"
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", FILE)
def test_in_a_file(tmp_path, kind):
    card, files, start, *named = FILE[kind]
    found = broken(tmp_path, card, {**FILES, **files})
    assert any(start in one and all(names(one, name) for name in named) for one in found), found


EVENTS = {
    "the end before the start": ("r,2,1,", 2, "1"),
    "outside of the recording": ("r,2,3,", 2, "r"),
    "no row": ("r,0.5,1,", 2, "0.5"),
    "no such recording": ("x,0,1,", 2, "x"),
    "no such sensor": ("r,0,1,c", 2, "c"),
    "a cell too few": ("r,0", 2, ""),
}


@pytest.mark.parametrize("kind", EVENTS)
def test_in_a_file_of_intervals(tmp_path, kind):
    rows, line, name = EVENTS[kind]
    events = f"recording,start,end,sensors\n{rows}\n"
    found = broken(tmp_path, HEAD + INTERVALS, {**FILES, "events.csv": events})
    assert found[0].startswith(f"events.csv, line {line}: ")
    assert not name or names(found[0], name)


@pytest.mark.parametrize(
    ("events", "named"),
    [
        ("recording,start\nr,1\n", ("events.csv, line 1: ", "end")),
        ("recording,start,end,sensors,sensors\nr,2024-05-01,2024-05-02,a,b\n", ("events.csv, line 1: ", "sensors")),
        ("recording,start,end\nr,noon,noon\n", ("events.csv, line 2: ", "start", "noon")),
        ("recording,start,end\nr,2023-01-01,2023-01-02\n", ("events.csv, line 2: ", "r")),
        ("recording,start,end\nn,2024-05-01,2024-05-02\n", ("n.csv, line 2: ", "n")),
    ],
)
def test_in_intervals_of_time(tmp_path, events, named):
    found = broken(tmp_path, IN_TIME, {**FILES, "events.csv": events})
    assert found[0].startswith(named[0])
    assert all(names(found[0], name) for name in named)


def test_a_log_book_of_another_year(tmp_path):
    (found,) = broken(tmp_path, IN_TIME, {**FILES, "events.csv": "start,end\n2023-05-01 12:00,2023-05-01 13:00\n"})
    assert found.startswith("events.csv, line 2: ")


LONG = HEAD + PARTS + '[long]\nname = "a"\nvalue = "b"\n[resample]\nevery = 1\n' + COLUMNS


def test_a_long_table_with_two_columns_of_sensor_names(tmp_path):
    found = broken(tmp_path, LONG, {**FILES, "n.csv": "t,a,a,b\n2024-05-01 00:00:00,x,x,1\n"})
    assert found[0].startswith("n.csv, line 1: ")
    assert names(found[0], "a")


IN_CARD = {
    "an unknown key": (CARD.replace("[columns]", "colour = 1\n[columns]"), 10, "colour"),
    "no TOML": (CARD.replace('"p"', '"p'), 2, ""),
    "a missing key": (CARD.replace("schema = 1\n", ""), None, "schema"),
    "another schema": (CARD.replace("1", "2", 1), 1, "schema"),
    "a version of 0": (CARD.replace("[train]", "version = 0\n[train]"), 3, "version"),
    "an encoding that nobody knows": (CARD + '[files]\nencoding = "klingon"\n', None, "klingon"),
    "a separator that separates nothing": (CARD + '[files]\nseparator = ""\n', None, "separator"),
    "a format that no time has": (CARD + 'time_format = "%Q"\n', None, "%Q"),
    "times and a period": (CARD + "period = 1\n", None, "period"),
    "labels of no kind": (CARD.replace('kind = "column"', 'kind = "row"'), None, "row"),
    "a key of another kind": (IN_TIME + 'column = "y"\n', 14, "column"),
    "a file of labels for all": (OF_FILES.replace("{id}_", ""), None, "labels.file"),
    "a value of both kinds": (CARD.replace("[columns]", "normal = [1]\n[columns]"), None, "1"),
    "a split that always is": (CARD + '[splits]\noverall = ["r"]\n', None, "overall"),
    "a split of nobody": (CARD + '[splits]\nlate = ["x"]\n', None, "'late'"),
    "no training files": (CARD.replace('[train]\nfiles = ["n.csv"]\n', ""), None, "train"),
    "an event without labels": (
        HEAD + PARTS.replace("[test]", 'rows = "before first event"\n[test]') + UNLABELLED, None, "labels"
    ),
    "a column that is not there": (CARD.replace('"y"', '"z"'), None, "z"),
    "a time that is not there": (CARD.replace('"t"', '"z"'), None, "z"),
    "a sensor that is not there": (CARD + 'sensors = ["a", "z"]\n', 12, "z"),
    "a label among the sensors": (HEAD + PARTS + '[columns]\ntime = "t"\n', None, "y"),
    "a join without a group": (CARD.replace("[test]", 'join = "a"\n[test]'), None, "join"),
    "variables of a table": (CARD.replace("[test]", 'variables = ["q"]\n[test]'), None, "q"),
    "a step that is none": (CARD + '[resample]\nevery = "3 parsecs"\n', 13, "resample.every"),
    "long without a step": (LONG.replace('[resample]\nevery = 1\n', ""), None, "[resample]"),
    "long, a column that is not there": (LONG.replace('"b"', '"z"'), None, "z"),
    "intervals of rows on a grid": (HEAD + INTERVALS + '[resample]\nevery = 1\n', None, "unit"),
    "no such description": (CARD.replace("[train]", 'description = "d.md"\n[train]'), None, "d.md"),
}  # fmt: skip


@pytest.mark.parametrize("kind", IN_CARD)
def test_in_the_card(tmp_path, kind):
    card, line, name = IN_CARD[kind]
    found = broken(tmp_path, card, {**FILES, "events.csv": "recording,start,end\nr,1,1\n"})
    place = "" if line is None else f"card.toml, line {line}: "
    assert any(one.startswith(place) and names(one, name) for one in found), found


@pytest.mark.parametrize("table", ["sessions", "entities"])
@pytest.mark.parametrize(
    ("groups", "place", "name"),
    [
        ('one = ["n*", "r9"]\ntwo = ["r*"]', "card.toml, line 15: ", "r9"),
        ('one = ["n*", "r9"]', "card.toml", "r10"),
        ('one = ["*"]\n"shift 2" = ["x"]', "card.toml, line 15: ", "shift 2"),
    ],
)
def test_in_sessions_and_entities(tmp_path, table, groups, place, name):
    (found,) = broken(tmp_path, f"{HEAD}{FOUR_CARD}\n[{table}]\n{groups}\n", FOUR)
    assert found.startswith(place)
    assert name in found


def test_an_entity_without_training_rows(tmp_path):
    (found,) = broken(tmp_path, f'{HEAD}{FOUR_CARD}[entities]\none = ["n*", "r9"]\ntwo = ["r10"]\n', FOUR)
    assert found.startswith("card.toml, line 14: ")
    assert "entities.two" in found


def test_all_in_one_go(tmp_path):
    files = {
        **FOUR,
        "n1.csv": NORMAL.replace("4.5", "x"),
        "n2.csv": NORMAL.replace("12:00:00", "13:00:00"),
        "r9.csv": RUN.replace("a,b", "a,c"),
        "r10.csv": "t,a,b,y\n" + RUN.splitlines()[1] + "\n" + 60 * "2024-05-01 12:00:01,?,8.5,1\n",
    }
    found = broken(tmp_path, f"{HEAD}{FOUR_CARD}", files)
    assert [one.partition(":")[0] for one in found] == [
        "n1.csv, line 3", "n2.csv, line 3", "r9.csv, line 1",
        "r10.csv, line 3", "r10.csv, line 4", "r10.csv, line 5",
    ]  # fmt: skip
    assert "57" in found[-1]  # more such cells


def test_a_card_with_a_wrong_key_is_corrected_first(tmp_path):
    (found,) = broken(tmp_path, f"colour = 1\n{CARD}", {**FILES, "r.csv": RUN.replace("8.5", "x")})
    assert found.startswith("card.toml, line 1: ")


def test_no_card(tmp_path):
    (found,) = problems(tmp_path / "card.toml")
    assert "card.toml" in found


@pytest.mark.parametrize("command", [("data", "validate"), ("run", "-d", "tests.helpers.tiny:Distance", "--dataset")])
def test_commands_end_with_2(tsadbench, tmp_path, command):
    card = write(tmp_path, {"card.toml": CARD, **FILES, "r.csv": RUN.replace("8.5", "x")})
    done = tsadbench(*command, card)
    assert (done.code, done.out) == (2, "")
    assert "r.csv, line 3: " in done.err
    assert "Traceback" not in done.err
