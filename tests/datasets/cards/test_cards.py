"""Small cards and files in every format, and everything that is loaded from them."""

from __future__ import annotations

import gzip
import io
import pickle
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.io

from tests.helpers.cards import write
from tsadbench.base.dataset import Cause
from tsadbench.datasets.loading import check_labels
from tsadbench.datasets.reader import as_counted, load_card

NOON = 1_714_564_800.0  # 2024-05-01 12:00:00 UTC
NORMAL = "t,a,b,y\n2024-05-01 12:00:00,1,2,0\n2024-05-01 12:00:01,3,4.5,0\n"
RUN = "t,a,b,y\n2024-05-01 12:00:00,5,6,0\n2024-05-01 12:00:01,7,8.5,1\n2024-05-01 12:00:03,9,10,0\n"
FILES: Mapping[str, str] = {"n.csv": NORMAL, "r.csv": RUN}
PARTS = '[train]\nfiles = ["n.csv"]\n[test]\nfiles = ["r.csv"]\n'
LABELS = '[labels]\nkind = "column"\ncolumn = "y"\n'
COLUMNS = LABELS + '[columns]\ntime = "t"\n'
UNLABELLED = '[columns]\ntime = "t"\nignore = ["y"]\n'
TRAIN = {"n": [[1, 2], [3, 4.5]]}
TEST = {"r": [[5, 6], [7, 8.5], [9, 10]]}


@dataclass(frozen=True)
class Case:
    """A card without its first two lines, the files next to it, and what is loaded; `FILES` by default."""

    card: str = PARTS + COLUMNS
    files: Mapping[str, str | bytes] = field(default_factory=lambda: FILES)
    sensors: tuple[str, ...] = ("a", "b")
    train: Mapping[str, list] = field(default_factory=lambda: TRAIN)
    test: Mapping[str, list] = field(default_factory=lambda: TEST)
    labels: Mapping[str, str] = field(default_factory=lambda: {"r": "010"})
    times: Mapping[str, list | None] = field(default_factory=lambda: {"n": [0, 1], "r": [0, 1, 3]})
    start: float = NOON  # from which `times` count
    splits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # in addition to "overall"
    sessions: Mapping[str, str] = field(default_factory=dict)
    entities: Mapping[str, str] = field(default_factory=dict)
    causes: Mapping[str, tuple[Cause, ...]] = field(default_factory=dict)
    missing: str = ""
    note: str = ""  # a number or a name in the only note


def matlab(**arrays: object) -> bytes:
    file = io.BytesIO()
    scipy.io.savemat(file, arrays)
    return file.getvalue()


def parquet(text: str) -> bytes:
    table = pd.read_csv(io.StringIO(text), parse_dates=["t"])
    file = io.BytesIO()
    table.assign(y=table["y"] == 1).to_parquet(file)
    return file.getvalue()


def both(change: Callable[[str], str | bytes]) -> dict[str, str | bytes]:
    return {name: change(text) for name, text in FILES.items()}


def german(text: str) -> bytes:
    """A semicolon, decimal commas, German dates, an umlaut, two lines above, CRLF, and empty lines at the end."""
    for old, new in ((",", ";"), (".5", ",5"), ("2024-05-01", "01.05.2024"), ("a;b", "PLC.Fluß ;PLC.b")):
        text = text.replace(old, new)
    return ("Export\nvon Hand\n" + text + "\n;;;\n").replace("\n", "\r\n").encode("cp1252")


N, R = np.array(TRAIN["n"]), np.array(TEST["r"])
TRUTH = np.array([0.0, 1.0, 0.0])
SINGLE = "t,a,b,y\n0,1,2,0\n1,3,4,0\n2,5,6,0\n3,7,8,1\n4,9,10,0\n"
SINGLE_CARD = LABELS + '[columns]\ntime = "t"\ntime_format = "seconds"\n'
DIVIDED = {
    "start": 0.0,
    "train": {"s/train": [[1, 2], [3, 4]]},
    "test": {"s/test": [[5, 6], [7, 8], [9, 10]]},
    "labels": {"s/test": "010"},
    "times": {"s/train": [0, 1], "s/test": [2, 3, 4]},
}
BY_EVENT = DIVIDED | {
    "train": {"s/train": [[1, 2], [3, 4], [5, 6]]},
    "test": {"s/test": [[7, 8], [9, 10]]},
    "labels": {"s/test": "10"},
    "times": {"s/train": [0, 1, 2], "s/test": [3, 4]},
}
# Rows 2, 5 and 6 lack a value.
GAPS = "t,a,b,y\n0,1,2,0\n1,3,4,0\n2,,6,1\n3,7,8,1\n4,9,10,0\n5,-999,12,0\n6,13,Bad Input,0\n7,15,16,0\n8,17,18,0\n"
GAPS_CARD = SINGLE_CARD + '[files]\nmissing = ["Bad Input", "-999"]\n[gaps]\n'
LONG = "at,tag,value,y\n0.5,a,1,0\n0.6,b,on,0\n0.9,a,2,0\n1.4,b,off,0\n4.4,a,5,1\n4.6,x,7,0\n"
LONG_CARD = """[long]
name = "tag"
value = "value"
[resample]
every = 1
by = "last"
[labels]
kind = "column"
column = "y"
[columns]
time = "at"
time_format = "seconds"
ignore = ["x"]
[states.b]
on = 1
off = 0
"""
GRID = "t,a,y\n10,1,0\n11,4,1\n12,2,0\n13,8,0\n16,6,0\n"
INTERVALS = PARTS + UNLABELLED + '[labels]\nkind = "intervals"\nfile = "events.csv"\n'
FOUR = {f"{name}.csv": NORMAL if name[0] == "n" else RUN for name in ("n1", "n2", "r9", "r10")}
FOUR_CARD = '[train]\nfiles = ["n*.csv"]\n[test]\nfiles = ["r*.csv"]\n' + COLUMNS
OF_FOUR = {
    "train": dict.fromkeys(("n1", "n2"), TRAIN["n"]),
    "test": dict.fromkeys(("r9", "r10"), TEST["r"]),
    "labels": {"r9": "010", "r10": "010"},
    "times": {"n1": [0, 1], "n2": [0, 1], "r9": [0, 1, 3], "r10": [0, 1, 3]},
}

CASES = {
    "plain": Case(),
    "german": Case(
        '[files]\nseparator = ";"\ndecimal = ","\nencoding = "cp1252"\nheader_line = 3\nremove_prefix = "PLC."\n'
        + PARTS
        + COLUMNS
        + 'time_format = "%d.%m.%Y %H:%M:%S"\n',
        both(german),
        sensors=("Fluß", "b"),
    ),
    "a line of units below the header": Case(
        "[files]\nunits_line = true\n" + PARTS + COLUMNS,
        both(lambda text: text.replace("y\n", "y\n,bar,m/s,-\n", 1)),
    ),
    "a byte order mark and old line ends": Case(
        files=both(lambda text: b"\xef\xbb\xbf" + text.rstrip().replace("\n", "\r").encode())
    ),
    "quoted cells, spaces and a separator in an ignored one": Case(
        PARTS + COLUMNS + 'ignore = ["who"]\n',
        both(
            lambda text: text.replace("\n", ',"Ann, Bob"\n').replace('y,"Ann, Bob"', "y,who").replace(",1,", ', "1" ,')
        ),
    ),
    "a header that is searched for": Case(
        '[files]\nheader_line = "search"\n' + PARTS + COLUMNS + 'sensors = ["a", "b"]\n',
        {"n.csv": "made,by,Ann,x\n" + NORMAL, "r.csv": RUN},
    ),
    "sensors by pattern, in the card's order": Case(
        PARTS + COLUMNS + 'sensors = ["b*", "a"]\n',
        sensors=("b", "a"),
        train={"n": N[:, ::-1].tolist()},
        test={"r": R[:, ::-1].tolist()},
    ),
    "columns in another order in one file": Case(
        files={"n.csv": NORMAL, "r.csv": "y,b,t,a\n" + "".join(
            f"{y},{b},{t},{a}\n" for t, a, b, y in (line.split(",") for line in RUN.splitlines()[1:])
        )},
    ),
    "another form in the test part": Case(
        PARTS.replace('["r.csv"]', '["r.csv"]\nseparator = ";"') + COLUMNS,
        {"n.csv": NORMAL, "r.csv": RUN.replace(",", ";")},
    ),
    "times with a zone": Case(
        files=both(lambda text: re.sub(r" 12:00:0(\d)", r"T14:00:0\1+02:00", text)),
    ),
    "times in two columns": Case(
        PARTS + COLUMNS.replace('"t"', '["d", "t"]'), both(lambda text: text.replace("t,", "d,t,").replace(" ", ","))
    ),
    "times in milliseconds": Case(
        PARTS + COLUMNS + 'time_format = "milliseconds"\n',
        both(lambda text: re.sub(r"2024-05-01 12:00:0(\d)", r"171456480\g<1>000", text)),
    ),
    "a period in place of times": Case(
        PARTS + LABELS + '[columns]\nperiod = 0.5\nignore = ["t"]\n',
        start=0.0,
        times={"n": [0, 0.5], "r": [0, 0.5, 1]},
    ),
    "no times": Case(
        PARTS + LABELS + '[columns]\nignore = ["t"]\n', times={"n": None, "r": None}
    ),
    "labels in words, none in the training file": Case(
        PARTS + COLUMNS.replace("[columns]", 'anomalous = ["Attack", "A ttack"]\nnormal = ["Normal"]\n[columns]'),
        {
            "n.csv": NORMAL.replace(",y", "").replace(",0\n", "\n"),
            "r.csv": RUN.replace(",1\n", ",A ttack\n").replace(",0\n", ",Normal\n").replace("10,Normal", "10,Attack"),
        },
        labels={"r": "011"},
    ),
    "labels of many digits": Case(
        PARTS + COLUMNS.replace("[columns]", "anomalous = [1000002]\nnormal = [1000001]\n[columns]"),
        both(lambda text: text.replace(",0\n", ",1000001\n").replace(",1\n", ",1000002\n")),
        labels={"r": "010"},
    ),
    "states": Case(
        PARTS + COLUMNS + '[states."b*"]\nOPEN = 4.5\nNone = -1\n[states."*"]\nOPEN = 7\n',
        {"n.csv": NORMAL.replace("4.5", "OPEN"), "r.csv": RUN.replace("8.5", " OPEN").replace(",10,", ",None,")},
        test={"r": [[5, 6], [7, 4.5], [9, -1]]},
    ),
    "gaps filled forward": Case(
        '[train]\nfiles = ["n.csv"]\n[test]\nfiles = ["g.csv"]\n'
        + GAPS_CARD
        + 'policy = "forward-fill"\nat_most = 2\n',
        {"n.csv": SINGLE.replace("7,8,1", "7,8,0"), "g.csv": GAPS},
        start=0.0,
        train={"n": [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]]},
        test={"g": [[1, 2], [3, 4], [3, 6], [7, 8], [9, 10], [9, 12], [13, 12], [15, 16], [17, 18]]},
        labels={"g": "001100000"},
        times={"n": [*range(5)], "g": [*range(9)]},
        note="3",
    ),
    "gaps cut": Case(
        '[train]\nfiles = ["n.csv"]\n[test]\nfiles = ["g.csv"]\n'
        + GAPS_CARD
        + 'policy = "cut"\n[splits]\nall = ["g"]\nlast = ["g/3"]\n',
        {"n.csv": SINGLE.replace("7,8,1", "7,8,0"), "g.csv": GAPS.replace("1,3,4,0\n", "1,3,4,1\n")},
        start=0.0,
        train={"n": [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]]},
        test={"g/1": [[1, 2], [3, 4]], "g/2": [[7, 8], [9, 10]], "g/3": [[15, 16], [17, 18]]},
        labels={"g/1": "01", "g/2": "10", "g/3": "00"},
        times={"n": [*range(5)], "g/1": [0, 1], "g/2": [3, 4], "g/3": [7, 8]},
        splits={"all": ("g/1", "g/2", "g/3"), "last": ("g/3",)},
        sessions={"n": "n", "g/1": "g", "g/2": "g", "g/3": "g"},
        note="3",
    ),
    "a file in both parts, a number of training rows": Case(
        '[train]\nfiles = ["s.csv"]\nrows = 2\n[test]\nfiles = ["s.csv"]\n' + SINGLE_CARD,
        {"s.csv": SINGLE},
        **DIVIDED,
        sessions=dict.fromkeys(("s/train", "s/test"), "s"),
    ),
    "a file in both parts, with splits by its name and sessions by its parts": Case(
        '[train]\nfiles = ["s.csv"]\nrows = "before first event"\n[test]\nfiles = ["s.csv"]\n'
        + SINGLE_CARD
        + '[splits]\nlater = ["s"]\n[sessions]\none = ["s/*"]\n[entities]\npump = ["s"]\n',
        {"s.csv": SINGLE},
        **BY_EVENT,
        splits={"later": ("s/test",)},
        sessions=dict.fromkeys(("s/train", "s/test"), "one"),
        entities=dict.fromkeys(("s/train", "s/test"), "pump"),
    ),
    "training rows before the first event of other files": Case(
        PARTS.replace('["n.csv"]', '["n.csv"]\nrows = "before first event"') + COLUMNS,
        {"n.csv": NORMAL + "2024-05-01 12:00:02,0,0,1\n2024-05-01 12:00:03,0,0,0\n", "r.csv": RUN},
    ),
    "training rows before an event that is not there": Case(
        PARTS.replace('["n.csv"]', '["n.csv"]\nrows = "before first event"') + COLUMNS, note="'n':"
    ),
    "long, changes held": Case(
        PARTS + LONG_CARD,
        {"n.csv": LONG.replace("5,1", "5,0"), "r.csv": LONG},
        start=0.5,
        train={"n": [[2, 0], [2, 0], [2, 0], [5, 0], [5, 0]]},
        test={"r": [[2, 0], [2, 0], [2, 0], [5, 0], [5, 0]]},
        labels={"r": "00010"},
        times={"n": [0, 1, 2, 3, 4], "r": [0, 1, 2, 3, 4]},
    ),
    "resampled, the mean, by a period": Case(
        PARTS + '[resample]\nevery = 60\nby = "mean"\n[columns]\nperiod = 20\nignore = ["t"]\n' + LABELS,
        {"n.csv": GRID.replace("4,1", "4,0"), "r.csv": GRID},
        ("a",),
        start=0.0,
        train={"n": [[7 / 3], [7]]},
        test={"r": [[7 / 3], [7]]},
        labels={"r": "10"},
        times={"n": [0, 60], "r": [0, 60]},
    ),
    "intervals of rows, with sensors to blame": Case(
        INTERVALS,
        {**FILES, "events.csv": "start,end,recording,sensors\n2,2,r,\n0,1,r,b ; a\n"},
        labels={"r": "111"},
        causes={"r": (Cause(0, 2, ("b", "a")),)},
    ),
    "intervals of times": Case(
        INTERVALS + 'unit = "time"\n',
        {**FILES, "events.csv": "recording,start,end\nr,2024-05-01 12:00:00.5,2024-05-01 12:00:01\n"},
    ),
    "intervals of days without separators": Case(
        INTERVALS + 'unit = "time"\ntime_format = "%d%m%Y"\n',
        {**FILES, "events.csv": "recording,start,end\nr,01052024,02052024\n"},
        labels={"r": "111"},
    ),
    "intervals in seconds that binary numbers round": Case(
        INTERVALS.replace('time = "t"', "period = 0.1").replace('["y"]', '["t", "y"]') + 'unit = "seconds"\n',
        {**FILES, "r.csv": RUN + "x,11,12,0\nx,13,14,0\n", "events.csv": "recording,start,end\nr,0.1,0.3\n"},
        test={"r": [[5, 6], [7, 8.5], [9, 10], [11, 12], [13, 14]]},
        labels={"r": "01110"},
        times={"n": [0, 0.1], "r": [0, 0.1, 0.2, 0.30000000000000004, 0.4]},
        start=0.0,
    ),
    "intervals in seconds from a recording's start": Case(
        INTERVALS + 'unit = "seconds"\n',
        {**FILES, "events.csv": "recording,start,end,sensors\nr,1,2.5,a\nr,2.5,9,b\n"},
        labels={"r": "011"},
        causes={"r": (Cause(1, 2, ("a",)), Cause(2, 3, ("b",)))},
    ),
    "intervals of a test part": Case(
        '[train]\nfiles = ["s.csv"]\nrows = 2\n[test]\nfiles = ["s.csv"]\n'
        '[columns]\nignore = ["y"]\ntime = "t"\ntime_format = "seconds"\n'
        '[labels]\nkind = "intervals"\nfile = "events.csv"\n',
        {"s.csv": SINGLE, "events.csv": "recording,start,end,sensors\ns,3,3,b\n"},
        **DIVIDED,
        sessions=dict.fromkeys(("s/train", "s/test"), "s"),
        causes={"s/test": (Cause(1, 2, ("b",)),)},
    ),
    "a log book, which names no recording": Case(
        INTERVALS
        + 'unit = "time"\nstart = "Beginn"\nend = "Ende"\ntime_format = "%d.%m.%Y %H:%M:%S"\nseparator = ";"\n',
        {
            "n.csv": NORMAL.replace("05-01", "04-30"),
            "r.csv": RUN,
            "events.csv": "Beginn;Ende;Was\n01.05.2024 12:00:01;01.05.2024 12:00:02;Pumpe\n"
            "02.05.2024 12:00:00;02.05.2024 12:00:01;-\n",
        },
        times={"n": [-86_400, -86_399], "r": [0, 1, 3]},
        note="1",
    ),
    "a file of labels for each recording": Case(
        PARTS + UNLABELLED + '[labels]\nkind = "file"\nfile = "of/{id}.csv"\n', {**FILES, "of/r.csv": "0\n1\n0\n"}
    ),
    "a column of a file of labels": Case(
        PARTS + UNLABELLED + '[labels]\nkind = "file"\nfile = "{id}.labels.csv"\ncolumn = "truth"\n',
        {**FILES, "r.labels.csv": "row,truth\n1,0\n1,1\n1,0\n"},
    ),
    "sessions, entities and splits by pattern; files as people count": Case(
        FOUR_CARD
        + '[splits]\nlate = ["r1*"]\nboth = ["*"]\n[sessions]\n"day 1" = ["n1", "r9", "r9"]\n"day 2" = ["n2", "r10"]\n'
        '[entities]\npump = ["?1", "r9"]\nmotor = ["n2", "r10"]\n',
        FOUR,
        **OF_FOUR,
        splits={"late": ("r10",), "both": ("r9", "r10")},
        sessions={"n1": "day 1", "n2": "day 2", "r9": "day 1", "r10": "day 2"},
        entities={"n1": "pump", "n2": "motor", "r9": "pump", "r10": "motor"},
    ),
    "folders, called by path in one part and by file name in the other": Case(
        '[train]\nfiles = ["**/n.csv"]\nids = "{name}"\n[test]\nfiles = ["runs/*.csv"]\n' + COLUMNS,
        {"deep/er/n.csv": NORMAL, "runs/[1] Süd.csv": RUN},
        test={"runs/[1] Süd": TEST["r"]},
        labels={"runs/[1] Süd": "010"},
        times={"n": [0, 1], "runs/[1] Süd": [0, 1, 3]},
    ),
    "files that are one recording": Case(
        '[train]\nfiles = ["n.csv"]\n[test]\nfiles = ["r-*.csv"]\njoin = "{id}-*.csv"\n' + COLUMNS,
        {
            "n.csv": NORMAL,
            "r-9.csv": "\n".join(f"{line},," for line in RUN.splitlines()[:3]),
            "r-10.csv": "t,a,b,y\n" + RUN.splitlines()[3],
        },
    ),
    "training files alone": Case(
        PARTS.partition("[test]")[0] + COLUMNS, {"n.csv": NORMAL}, test={}, labels={}, times={"n": [0, 1]},
        missing="test recordings",
    ),
    "nobody has labelled it": Case(PARTS + UNLABELLED, labels={}, missing="labels"),
    "Parquet": Case(
        PARTS.replace(".csv", ".parquet") + COLUMNS, {"n.parquet": parquet(NORMAL), "r.parquet": parquet(RUN)}
    ),
    "MATLAB": Case(
        '[train]\nfiles = ["*.mat"]\nvariables = ["n"]\n[test]\nfiles = ["*.mat"]\nvariables = ["r?"]\n'
        '[columns]\nnames = ["a", "b", "c"]\nignore = ["c"]\nperiod = 2\n'
        '[labels]\nkind = "intervals"\nfile = "events.csv"\n',
        {
            "x.mat": matlab(n=np.c_[N, [7, 7]].T, r1=np.c_[R, R[:, 0]].astype("f4"), size=np.zeros((4, 1))),
            "events.csv": "recording,start,end\nr1,1,1\n",
        },
        start=0.0,
        test={"r1": TEST["r"]},
        labels={"r1": "010"},
        times={"n": [0, 2], "r1": [0, 2, 4]},
    ),
    "pickles of arrays": Case(
        PARTS.replace("csv", "pkl") + '[columns]\nnames = "x{number}"\n[labels]\nkind = "file"\nfile = "{id}_y.pkl"\n',
        {
            "n.pkl": pickle.dumps(N, protocol=3).replace(b"numpy._core", b"numpy.core"),
            "r.pkl": pickle.dumps(np.asfortranarray(R.astype(">f4"))),
            "r_y.pkl": pickle.dumps(TRUTH),
        },
        sensors=("x1", "x2"),
        times={"n": None, "r": None},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_loaded(name, tmp_path):
    case = CASES[name]
    assert_loaded(case, write(tmp_path, {"card.toml": f'schema = 1\nname = "p"\n{case.card}', **case.files}))


def assert_loaded(case: Case, card: Path) -> None:
    data = load_card(card)
    check_labels(data)
    dataset, labels = data
    assert dataset.name == "p"
    assert dataset.sensors == case.sensors
    for recordings, expected in ((dataset.train, case.train), (dataset.test, case.test)):
        assert {one.id: one.values.tolist() for one in recordings} == expected
        assert [one.id for one in recordings] == [*expected]
    times = {one.id: one.time for one in (*dataset.train, *dataset.test)}
    expected_times = {
        id_: None if one is None else [case.start + second for second in one] for id_, one in case.times.items()
    }
    assert {id_: None if time is None else time.tolist() for id_, time in times.items()} == expected_times
    assert {id_: "".join(map(str, rows.astype(int))) for id_, rows in labels.rows.items()} == case.labels
    assert dataset.splits == labels.splits == (({"overall": tuple(case.test)} | case.splits) if case.test else {})
    assert dataset.sessions == (case.sessions or {id_: id_ for id_ in (*case.train, *case.test)})
    assert dataset.entities == case.entities
    assert labels.causes == case.causes
    assert data.missing == case.missing
    assert dataset.folder == card.parent.resolve()  # which a detector may not open
    assert len(dataset.notes) == bool(case.note)
    assert all(case.note in note.split() for note in dataset.notes)


def test_r(tmp_path):
    rdata = pytest.importorskip("rdata")
    for name, text in FILES.items():
        table = pd.read_csv(io.StringIO(text)).assign(t=[NOON + second for second in (0, 1, 3)[: text.count("\n") - 1]])
        rdata.write_rda(tmp_path / f"{name[0]}.rda", {"plant": table.assign(y=table["y"] == 1)}, compression=None)
    (tmp_path / "r.rda").write_bytes(gzip.compress((tmp_path / "r.rda").read_bytes()))
    card = PARTS.replace(".csv", ".rda") + COLUMNS + 'time_format = "seconds"\n'
    assert_loaded(Case(), write(tmp_path, {"card.toml": f'schema = 1\nname = "p"\n{card}'}))


def test_description_prior_version_and_terms(tmp_path):
    card = 'version = 4\ndescription = "d.md"\nprior = "p.json"\ncitation = "me"\nlicence = "MIT"\n' + Case().card
    files = {"d.md": "A loop.", "p.json": '[{"source": "b", "target": "a"}]', **FILES}
    dataset = load_card(write(tmp_path, {"card.toml": f'schema = 1\nname = "p"\n{card}', **files})).dataset
    assert (dataset.version, dataset.description, dataset.citation, dataset.licence) == (4, "A loop.", "me", "MIT")
    assert dataset.prior.matrix(dataset.sensors).tolist() == [[0, 0], [1, 0]]


def test_a_shipped_card_is_in_another_folder_than_its_files(tmp_path):
    text = f'schema = 1\nname = "p"\n{INTERVALS}'
    data = write(tmp_path / "data", {"events.csv": "recording,start,end\nr,1,1\n", **FILES}).parent
    card = write(tmp_path / "cards", {"card.toml": text})
    assert load_card(card, data).labels.rows["r"].tolist() == [False, True, False]
    write(tmp_path / "cards", {"events.csv": "recording,start,end\nr,1,2\n"})  # the file next to the card comes first
    assert load_card(card, data).labels.rows["r"].tolist() == [False, True, True]
    assert load_card(card, data).dataset.folder == data.resolve()


def test_files_are_in_the_order_of_their_numbers():
    assert sorted(["10.csv", "1²2.csv", "2.csv"], key=as_counted) == ["1²2.csv", "2.csv", "10.csv"]
