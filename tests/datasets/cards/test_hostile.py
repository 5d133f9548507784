"""Malicious files: each is refused quickly and by name, and nothing in it runs."""

from __future__ import annotations

import gzip
import os
import pickle
import resource
import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.datasets.cards.test_cards import COLUMNS, FILES, INTERVALS, PARTS, matlab
from tests.helpers.cards import problems, write
from tsadbench.datasets.reader import load_card

HEAD = 'schema = 1\nname = "p"\n'
CARD = HEAD + PARTS + COLUMNS
ARRAYS = '[columns]\nnames = "x{number}"\n'
NUMPY = b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n"
ARRAY = NUMPY + b"cnumpy\nndarray\nK\x00\x85U\x01b\x87R"
FLOAT = b"cnumpy\ndtype\nU\x02f8\x85R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"


class Calls:
    """Pickles as a call of a function."""

    def __init__(self, function: Callable, *arguments: object) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Callable, tuple[object, ...]]:
        return self.call


PICKLES = {
    "runs a command": (pickle.dumps(Calls(os.system, "touch ran"), 0), "system"),
    "evaluates code": (pickle.dumps(Calls(eval, "open('ran', 'w')")), "eval"),
    "makes a file by numpy": (b"\x80\x02cnumpy\nmemmap\nX\x03\x00\x00\x00ran\x85R.", "memmap"),
    "calls an array's class on memory": (
        b"\x80\x02cnumpy\nndarray\nK\x01\x85cnumpy\ndtype\nU\x02O8\x85RU\x08AAAAAAAA\x87R.", ""
    ),
    "holds objects": (pickle.dumps(np.array([[1], [None]], dtype=object)), ""),
    "is of other size than it says": (
        ARRAY + b"(K\x01\x8a\x06\x00\x00\x00\x00\x00\x7f\x85" + FLOAT + b"\x89U\x08AAAAAAAAtb.", ""
    ),
    "announces a terabyte": (b"\x80\x05\x8e" + struct.pack("<Q", 2**40) + b"AAAA.", ""),
    "is kept far off": (b"\x80\x02K\x01r\xff\xff\xff\x7f.", ""),
    "never ends to be hashed": (b"\x80\x02cnumpy\ndtype\n)" + b"q\x01h\x01\x86" * 60 + b"\x85R.", ""),
    "is an object of no table": (pickle.dumps({"a": [1.0]}), ""),
    "is cut off": (pickle.dumps(np.ones((9, 2)))[:-30], ""),
}  # fmt: skip


@pytest.mark.parametrize("kind", PICKLES)
def test_a_pickle_that(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content, name = PICKLES[kind]
    card = HEAD + PARTS.replace("csv", "pkl") + ARRAYS
    card = write(tmp_path, {"card.toml": card, "n.pkl": pickle.dumps(np.ones((3, 2))), "r.pkl": content})
    assert [one for one in problems(card) if one.startswith("r.pkl") and name in one]
    assert not (tmp_path / "ran").exists()


def bomb_of_matlab() -> bytes:
    """A compressed element of 3 GiB of zeros in 3 MiB: one packed block, repeated."""
    packer, zeros = zlib.compressobj(), bytes(2**24)
    first, again = (packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    body = first + 3 * 64 * again
    return matlab()[:128] + struct.pack("<II", 15, len(body)) + body


def forged_matlab() -> bytes:
    """A matrix that says it has two billion rows."""
    content = bytearray(matlab(x=np.zeros((3, 5))))
    place = content.index(struct.pack("<ii", 3, 5))
    content[place : place + 8] = struct.pack("<ii", 2**31 - 1, 5)
    return bytes(content)


def endless_r() -> bytes:
    """An integer sequence of 10^15 values, which R keeps as its length, first value and step."""

    def symbol(value: bytes) -> bytes:
        return struct.pack(">iii", 1, 0x40009, len(value)) + value

    nil = struct.pack(">i", 254)
    info = b"".join(struct.pack(">i", 2) + part for part in (symbol(b"compact_intseq"), symbol(b"base")))
    info += struct.pack(">iiii", 2, 13, 1, 13) + nil
    state = struct.pack(">ii", 14, 3) + struct.pack(">ddd", 1e15, 1.0, 1.0)
    head = b"RDX3\nX\n" + struct.pack(">iiii", 3, 0x40200, 0x30500, 5) + b"UTF-8"
    return head + struct.pack(">i", 0x402) + symbol(b"x") + struct.pack(">i", 238) + info + state + nil + nil


def bomb_of_r() -> bytes:
    """3 GiB of zeros in 3 MiB, as members of one gzip file."""
    return gzip.compress(b"RDX3\nX\n") + gzip.compress(bytes(2**24)) * 3 * 64


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("r.mat", forged_matlab),
        pytest.param("r.mat", bomb_of_matlab, marks=pytest.mark.long),  # unpacks 2 GiB
        ("r.mat", lambda: b"\x89HDF\r\n\x1a\n" + bytes(200)),
        ("r.rda", endless_r),
        pytest.param("r.rda", bomb_of_r, marks=pytest.mark.long),  # the same
    ],
)
def test_an_array_file_that_unpacks_to_more_than_the_memory(tmp_path, name, content):
    if name == "r.rda":
        pytest.importorskip("rdata")
    card = HEAD + PARTS.replace("r.csv", name).replace("n.csv", "n.pkl") + ARRAYS
    card = write(tmp_path, {"card.toml": card, "n.pkl": pickle.dumps(np.ones((3, 2))), name: content()})
    assert any(one.startswith(name) for one in problems(card))


@pytest.mark.parametrize(
    ("kind", "ending"),
    [
        *(("an endless device", ending) for ending in ("csv", "parquet", "pkl", "mat", "rda")),
        *((kind, "csv") for kind in ("a pipe", "a link to itself", "a link out of the folder")),
    ],
)
def test_special_files_and_links_are_refused(tmp_path, kind, ending):
    folder, path = tmp_path / "folder", tmp_path / f"folder/r.{ending}"
    card = write(folder, {"card.toml": HEAD + PARTS.replace("r.csv", path.name) + COLUMNS, **FILES})
    path.unlink(missing_ok=True)
    if kind == "a pipe":
        os.mkfifo(path)
    else:
        path.symlink_to({"an endless device": "/dev/zero", "a link to itself": path.name}.get(kind, folder / "../x"))
        (tmp_path / "x").write_text(FILES["r.csv"])
    assert any(path.name in one for one in problems(card))


@pytest.mark.parametrize("file", ["r.pkl", "description.md", "prior.json"])
def test_a_file_of_a_terabyte_is_not_read(tmp_path, file):
    text = (
        CARD.replace("r.csv", file)
        if file == "r.pkl"
        else CARD.replace("[train]", f'{file.partition(".")[0]} = "{file}"\n[train]')
    )
    card = write(tmp_path, {"card.toml": text, **FILES})
    with (tmp_path / file).open("wb") as stream:
        stream.truncate(2**40)
    assert any(file in one for one in problems(card))


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("x = " + "[" * 100_000, id="nested"),
        pytest.param(".".join("a" * 2_000) + " = 1", id="a long key"),
        pytest.param("x = " + "9" * 5000, id="a long number"),
    ],
)
def test_toml_that_is_deep_or_huge(tmp_path, line):
    found = problems(write(tmp_path, {"card.toml": CARD.replace("[train]", f"{line}\n[train]"), **FILES}))
    assert found[0].startswith("card.toml")
    assert len("\n".join(found)) < 100_000


def test_a_pattern_or_an_interval_never_leaves_the_folder(tmp_path):
    files = {"secret/n.csv": FILES["n.csv"], "events.csv": "recording,start,end\nr,1,1\n", "folder/x": ""}
    write(tmp_path, files)
    for text in (
        CARD.replace("n.csv", "../secret/*.csv"),
        CARD.replace("n.csv", str(tmp_path / "secret/n.csv")),
        HEAD + INTERVALS.replace("events.csv", "../events.csv"),
        CARD.replace("[train]", 'description = "../secret/n.csv"\n[train]'),
    ):
        assert problems(write(tmp_path / "folder", {"card.toml": text, **FILES}))[0]


def test_a_link_to_the_folder_above_causes_no_endless_search(tmp_path):
    card = write(tmp_path, {"card.toml": CARD.replace("n.csv", "**/n.csv"), **FILES, "below/x": ""})
    (tmp_path / "below/up").symlink_to("..")
    assert [one.id for one in load_card(card).dataset.train] == ["n"]


@pytest.mark.parametrize("name", [b"x\xff.csv", b"x\n\x1b[31m.csv"])
def test_a_name_that_breaks_a_terminal_is_not_printed_as_it_is(tmp_path, name):
    card = write(tmp_path, {"card.toml": CARD.replace("r.csv", "x*.csv"), **FILES})
    Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name))).write_text(FILES["r.csv"])
    assert all(line.isprintable() for line in problems(card))


@pytest.mark.long
def test_a_parquet_file_that_unpacks_to_gigabytes_fills_no_memory_of_ours(tmp_path):
    parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    card = write(tmp_path, {"card.toml": HEAD + PARTS.replace("r.csv", "r.parquet") + COLUMNS, **FILES})
    table = pyarrow.table({name: np.zeros(2**22) for name in "abcd"})  # 128 MiB
    with parquet.ParquetWriter(tmp_path / "r.parquet", table.schema) as writer:
        for _ in range(40):
            writer.write_table(table)
    del table
    assert (tmp_path / "r.parquet").stat().st_size < 2**22
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert any(one.startswith("r.parquet") for one in problems(card))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**18  # KiB


@pytest.mark.parametrize(
    "part",
    [
        'files = ["r.csv"]\njoin = "(([a-z]*)*)*!"',
        'files = ["r.csv"]\njoin = "*{a}*{b}*"',
        'files = ["**/d/**/d/**/d/**/d/*.x"]',
    ],
)
def test_patterns_that_could_search_endlessly_are_refused(tmp_path, part):
    (tmp_path / "/".join("d" * 60)).mkdir(parents=True)
    card = write(tmp_path, {"card.toml": CARD.replace('files = ["r.csv"]', part), **FILES})
    start = time.process_time()
    assert problems(card)
    assert time.process_time() - start < 5
