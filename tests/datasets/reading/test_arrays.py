"""MATLAB, R and pickled arrays: what is read, and what is refused in one message."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import pickle
import struct
import sys
import zlib
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import rdata
import scipy.io
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.reading.arrays import open_arrays
from tsadbench.datasets.reading.matlab import read_matlab
from tsadbench.datasets.reading.pickled import read_pickle
from tsadbench.datasets.reading.r_data import read_r
from tsadbench.datasets.reading.text import MalformedError
from tsadbench.errors import MissingExtraError

VALUES = np.random.default_rng(0).normal(size=(5, 3))


def frame(table):
    """All of a table's rows, by column number."""
    columns = range(len(table.header))
    return pd.concat(list(table.chunks(columns))) if table.n_rows else pd.DataFrame(columns=columns, dtype=float)


def frames(tables, *names):
    """Each of these tables' rows."""
    return [frame(tables[name]) for name in names]


def matlab(variables, **options):
    file = io.BytesIO()
    scipy.io.savemat(file, variables, **options)
    return file.getvalue()


def saved(objects, tmp_path: Path, **options):
    """What R's save() writes of some objects."""
    rdata.write_rda(tmp_path / "saved.rda", objects, **options)
    return (tmp_path / "saved.rda").read_bytes()


class TestPickle:
    @pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
    @pytest.mark.parametrize("order", ["C", "F"])
    @pytest.mark.parametrize("dtype", ["f4", ">f8", "i2", "?", "u8", "f2"])
    def test_reads_what_numpy_reads(self, protocol, order, dtype):
        values = np.array(np.arange(12).reshape(4, 3) % 7, dtype=dtype, order=order)
        table = read_pickle(pickle.dumps(values, protocol=protocol))[""]
        assert table.header == ("", "", "")
        assert np.array_equal(frame(table).to_numpy(), values)

    @pytest.mark.parametrize("protocol", range(4))
    def test_reads_what_older_numpy_has_written(self, protocol):
        content = pickle.dumps(VALUES, protocol=protocol).replace(b"numpy._core", b"numpy.core")
        assert np.array_equal(frame(read_pickle(content)[""]).to_numpy(), VALUES)

    def test_reads_what_python_2_has_written(self):
        values = np.array([1.0, -2.5])
        head = b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
        state = b"(K\x01K\x02\x85cnumpy\ndtype\nU\x02f8K\x00K\x01\x87R(K\x03U\x01<NNN"
        state += b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        state += b"\x89U\x10" + values.tobytes() + b"tb."
        assert np.array_equal(pickle.loads(head + state, encoding="latin1"), values)
        assert frame(read_pickle(head + state)[""])[0].tolist() == [1.0, -2.5]

    @settings(deadline=None, max_examples=50)
    @given(
        arrays_of.arrays(np.float64, arrays_of.array_shapes(min_dims=1, max_dims=2)), st.integers(0, 5), st.booleans()
    )
    def test_reads_any_matrix(self, values, protocol, transposed):
        values = values.T if transposed else values
        table = read_pickle(pickle.dumps(values, protocol=protocol))[""]
        assert np.array_equal(frame(table).to_numpy(), values.reshape(len(values), -1), equal_nan=True)
        assert table.n_rows == len(values)
        assert table.line(0) is None

    def test_yields_some_columns_by_the_chunk(self):
        values = np.arange(1_200_000.0).reshape(600_000, 2)
        chunks = list(read_pickle(pickle.dumps(values))[""].chunks([1, 0]))
        assert len(chunks) > 1
        assert np.array_equal(pd.concat(chunks)[[1, 0]].to_numpy(), values[:, ::-1])


class RanError(Exception):
    """A pickle ran something."""


def run(*_):
    raise RanError


class Calls:
    """Pickles as a call of a function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


GLOBALS = b"\x80\x02c%s\n%s\n."
RECONSTRUCT = b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n"
ARRAY = RECONSTRUCT + b"cnumpy\nndarray\nK\x00\x85U\x01b\x87R"
NUMPY_2 = np.lib.NumpyVersion(np.__version__) >= "2.0.0"
HOSTILE = {
    "system": (pickle.dumps(Calls(os.system, "exit 1"), 0), r"asks for '(posix|nt)\.system'"),
    "eval": (pickle.dumps(Calls(eval, "1"), 4), r"asks for 'builtins\.eval'"),
    "own function": (pickle.dumps(Calls(run), 2), r"asks for '.*\.run'"),
    "getattr": (pickle.dumps(Calls(getattr, "a", "upper"), 2), r"asks for '__builtin__\.getattr'"),
    "numpy runs tests": (GLOBALS % (b"numpy.testing._private.utils", b"runstring"), "asks for 'numpy.testing"),
    "numpy loads": (GLOBALS % (b"numpy", b"load"), r"asks for 'numpy\.load'"),
    "numpy opens files": (GLOBALS % (b"numpy", b"memmap"), r"asks for 'numpy\.memmap'"),
    "numpy reads files": (GLOBALS % (b"numpy", b"fromfile"), r"asks for 'numpy\.fromfile'"),
    "numpy compiles": (GLOBALS % (b"numpy.f2py", b"compile"), r"asks for 'numpy\.f2py\.compile'"),
    "attribute of one that is admitted": (
        b"\x80\x04\x8c\x05numpy\x8c\x1adtype.__class__.__base__.x\x93.",
        r"asks for 'numpy\.dtype\.__class__",
    ),
    "name with control characters": (GLOBALS % (b"os", b"sys\x1b[31mtem"), r"asks for 'os\.sys"),
    "masked array": (pickle.dumps(np.ma.array([1.0])), r"asks for 'numpy\.ma\..*'"),
    "scalar": (pickle.dumps(np.float64(1)), r"asks for 'numpy\._?core\.multiarray\.scalar'"),
    "registered extension": (b"\x80\x02\x82\x01.", "instruction EXT1"),
    "persistent": (b"\x80\x02K\x01Q.", "instruction BINPERSID"),
    "old instance": (b"(ios\nsystem\n.", "instruction INST"),
    "new object": (b"\x80\x02cnumpy\nndarray\n)\x81.", "instruction NEWOBJ"),
    "items": (pickle.dumps(OrderedDict(a=1)), "instruction SETITEM"),
    "dictionary": (pickle.dumps({"a": VALUES}), "instruction EMPTY_DICT"),
    "array class called": (
        b"\x80\x02cnumpy\nndarray\nK\x05\x85R.",
        "calls what arrays never call",
    ),
    "array class called on memory": (
        b"\x80\x02cnumpy\nndarray\nK\x01\x85cnumpy\ndtype\nU\x02O8\x85RU\x08AAAAAAAA\x87R.",
        "found Python objects",
    ),
    "function changed": (RECONSTRUCT + b"Nb.", "changes a function"),
    "encodes by a codec": (b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x03\x00\x00\x00zip\x86R.", "encodes a text"),
    "kept far off": (b"\x80\x02K\x01r\xff\xff\xff\x7f.", "very long list of instructions"),
    "kept far off, as text": (b"I1\np2147483647\n.", "very long list of instructions"),
    "endless": (b"\x80\x02" + b"N0" * 50_000 + b"N.", "very long list of instructions"),
    "text of another kind of number": (
        RECONSTRUCT.replace(b"numpy.core.multiarray\n_reconstruct", b"numpy\ndtype") + b"U\x02V8\x85R.",
        "found V8",
    ),
    "no array": (pickle.dumps([1, 2]), "expected a pickled array of numpy"),
    "function alone": (RECONSTRUCT + b".", "expected a pickled array of numpy"),
    "array without content": (ARRAY + b".", "in an unknown way"),
    "array of objects": (pickle.dumps(np.array([[1], None], dtype=object)), "found Python objects"),
    "array of objects, protocol 5": (pickle.dumps(np.array(["a", 1], dtype=object), 5), "found Python objects"),
    "texts": (pickle.dumps(np.array(["a", "b"])), "expected an array of numbers, found U1"),
    "structured": (pickle.dumps(np.zeros(2, dtype=[("a", "f8")])), "instruction EMPTY_DICT"),
    "complex": (pickle.dumps(np.ones((2, 2), dtype=complex)), "expected real numbers, found complex128"),
    # Releases before 2 write the unit of time with an empty dictionary.
    "times": (
        pickle.dumps(np.zeros(2, dtype="M8[s]")),
        "found M8" if NUMPY_2 else "instruction EMPTY_DICT",
    ),
    "of three dimensions": (pickle.dumps(np.zeros((2, 2, 2))), r"the shape \[2, 2, 2\]"),
    "without dimensions": (pickle.dumps(np.array(1.0)), r"the shape \[\]"),
    "without columns": (pickle.dumps(np.zeros((2, 0))), r"the shape \[2, 0\]"),
    "cut off": (pickle.dumps(VALUES)[:-30], "a damaged one"),
    "empty": (b"", "a damaged one"),
    "a table of texts": (b"a,b\n1,2\n", "a damaged one"),
}


class TestHostilePickle:
    @pytest.mark.parametrize("kind", HOSTILE)
    def test_is_refused_and_nothing_runs(self, kind):
        content, message = HOSTILE[kind]
        with pytest.raises(MalformedError, match=message) as caught:
            read_pickle(content)[""]
        assert "\n" not in caught.value.text
        assert caught.value.text.isprintable()
        assert len(caught.value.text) < 400

    @pytest.mark.parametrize("shape", [b"\x8a\x06\x00\x00\x00\x00\x00\x7f", b"J\xff\xff\xff\xff"])
    def test_with_a_size_that_it_does_not_have(self, shape):
        dtype = b"cnumpy\ndtype\nU\x02f8\x85R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        content = ARRAY + b"(K\x01" + shape + b"\x85" + dtype + b"\x89U\x08AAAAAAAAtb."
        with pytest.raises(MalformedError, match=r"should have \d+ bytes, it has 8|in an unknown way"):
            read_pickle(content)[""]

    @pytest.mark.parametrize("opcode", [b"\x8e", b"\x96"])  # BINBYTES8, BYTEARRAY8
    def test_with_bytes_that_it_does_not_have(self, opcode):
        with pytest.raises(MalformedError, match="a damaged one"):
            read_pickle(b"\x80\x05" + opcode + struct.pack("<Q", 2**40) + b"AAAA.")

    def test_nested_so_that_hashing_it_never_ends(self):
        doubled = b")" + b"q\x01h\x01\x86" * 60
        with pytest.raises(MalformedError, match="found another kind"):
            read_pickle(b"\x80\x02cnumpy\ndtype\n" + doubled + b"\x85R.")

    def test_nested_deeply(self):
        with pytest.raises(MalformedError):
            read_pickle(b"\x80\x02)" + b"\x85" * 9_000 + b".")[""]

    @settings(deadline=None, max_examples=300)
    @given(st.integers(0, 5), st.data())
    def test_any_damage_is_one_message_or_numbers(self, protocol, data):
        content = bytearray(pickle.dumps(VALUES, protocol=protocol))
        for _ in range(data.draw(st.integers(1, 3))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        try:
            rows = frame(read_pickle(bytes(content))[""])
        except MalformedError:
            return
        assert all(dtype.kind in "iuf" for dtype in rows.dtypes)

    def test_leaves_the_readers_own_functions_as_they_are(self):
        for content, _ in HOSTILE.values():
            with pytest.raises(MalformedError):
                read_pickle(content)[""]
        assert np.array_equal(frame(read_pickle(pickle.dumps(VALUES))[""]).to_numpy(), VALUES)


class TestMatlab:
    @pytest.mark.parametrize("options", [{}, {"do_compression": True}, {"format": "4"}])
    def test_reads_every_array_by_its_name(self, options):
        tables = read_matlab(matlab({"first": VALUES, "second": VALUES[:, :1]}, **options))
        assert list(tables) == ["first", "second"]
        assert np.array_equal(frame(tables["first"]).to_numpy(), VALUES)
        assert tables["second"].header == ("",)
        assert tables["second"].n_rows == 5

    @pytest.mark.parametrize("dtype", ["f4", "i8", "u1", "?"])
    def test_reads_every_kind_of_number(self, dtype):
        values = np.array([[0, 1], [1, 0]], dtype=dtype)
        assert np.array_equal(frame(read_matlab(matlab({"x": values}))["x"]).to_numpy(), values)

    OTHERS = (
        ("cell", np.array([VALUES, "text"], dtype=object), "expected a matrix of numbers, found cell"),
        ("struct", {"a": VALUES}, "expected a matrix of numbers, found struct"),
        ("text", "pressure", "expected a matrix of numbers, found char"),
        ("sparse", scipy.sparse.csc_matrix(np.eye(3)), "expected a matrix of numbers, found sparse"),
        ("complex", VALUES + 1j, "expected real numbers, found complex ones"),
        ("cube", np.zeros((2, 3, 4)), r"expected rows by columns, found the shape \[2, 3, 4\]"),
        ("empty", np.zeros((3, 0)), r"expected rows by columns, found the shape \[3, 0\]"),
    )

    @pytest.mark.parametrize(("name", "value", "message"), OTHERS, ids=[name for name, _, _ in OTHERS])
    def test_what_is_no_matrix_of_numbers_says_so_and_leaves_the_others_readable(self, name, value, message):
        tables = read_matlab(matlab({name: value, "values": VALUES}))
        with pytest.raises(MalformedError, match=f"array '{name}': {message}"):
            tables[name]
        assert np.array_equal(frame(tables["values"]).to_numpy(), VALUES)

    @pytest.mark.parametrize("head", [b"\x89HDF\r\n\x1a\n" + bytes(200), b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM"])
    def test_of_version_7_3_says_how_to_save_it(self, head):
        with pytest.raises(MalformedError, match=r"version 7\.3, or HDF5; save it with  save"):
            read_matlab(head + b"\0" * 1000)

    @pytest.mark.parametrize("compressed", [False, True])
    def test_cut_off_anywhere_is_one_message(self, compressed):
        content = matlab({"x": VALUES, "y": VALUES}, do_compression=compressed)
        for stop in range(0, len(content), 7):
            with pytest.raises((MalformedError, KeyError)):  # an array that is cut off whole is not there
                frames(read_matlab(content[:stop]), "x", "y")

    @pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"\0" * 200, b"MATLAB 5.0" + b" " * 300])
    def test_what_is_no_such_file_is_refused(self, content):
        with pytest.raises(MalformedError):
            read_matlab(content)

    def test_that_decompresses_to_more_than_the_memory(self, monkeypatch):
        monkeypatch.setattr("tsadbench.datasets.reading.matlab.MOST_BYTES", 2**20)
        body = zlib.compress(bytes(2**21))
        content = matlab({})[:128] + struct.pack("<II", 15, len(body)) + body
        with pytest.raises(MalformedError, match="more than 2 GiB"):
            read_matlab(content)

    def test_that_declares_more_than_it_holds(self):
        content = bytearray(matlab({"x": np.zeros((3, 5))}))
        place = content.index(struct.pack("<ii", 3, 5))
        content[place : place + 8] = struct.pack("<ii", 2**31 - 1, 5)
        with pytest.raises(MalformedError, match="more than 2 GiB"):
            read_matlab(bytes(content))["x"]

    @settings(deadline=None, max_examples=100)
    @given(st.sampled_from([{}, {"do_compression": True}, {"format": "4"}]), st.data())
    def test_any_damage_is_one_message_or_numbers(self, options, data):
        content = bytearray(matlab({"x": VALUES, "text": "pressure"}, **options))
        for _ in range(data.draw(st.integers(1, 3))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        try:
            tables = read_matlab(bytes(content))
            rows = frames(tables, *tables)
        except MalformedError:
            return
        assert all(dtype.kind in "iuf" for table in rows for dtype in table.dtypes)


class TestR:
    TABLE = pd.DataFrame(
        {
            "Time": [0.5, 1.5, 2.5],
            " flow ": [1.0, np.nan, 3.0],
            "count": pd.array([1, None, 3], dtype="Int32"),
            "EVENT": pd.array([True, False, True], dtype="boolean"),
            "state": pd.array(["open", "closed", None], dtype=pd.StringDtype("python")),
            "mode": pd.Categorical(["b", "a", "b"]),
        }
    )

    def test_reads_a_data_frame(self, tmp_path):
        tables = read_r(saved({"plant": self.TABLE}, tmp_path))
        assert list(tables) == ["plant"]
        table = tables["plant"]
        assert table.header == ("Time", "flow", "count", "EVENT", "state", "mode")
        rows = frame(table)
        assert rows[0].tolist() == [0.5, 1.5, 2.5]
        assert np.array_equal(rows[1], [1.0, np.nan, 3.0], equal_nan=True)
        assert np.array_equal(rows[2], [1.0, np.nan, 3.0], equal_nan=True)
        assert rows[3].tolist() == [1, 0, 1]
        assert rows[4][:2].tolist() == ["open", "closed"]
        assert pd.isna(rows[4][2])
        assert rows[5].tolist() == ["b", "a", "b"]

    @pytest.mark.parametrize("compression", ["none", "gzip", "bzip2", "xz"])
    def test_reads_every_compression(self, tmp_path, compression):
        content = saved({"m": VALUES}, tmp_path, compression=None)
        compress = {"none": bytes, "gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress}[compression]
        table = read_r(compress(content))["m"]
        assert table.header == ("", "", "")
        assert np.array_equal(frame(table).to_numpy(), VALUES)

    def test_reads_several_objects_and_what_is_no_table_says_so(self, tmp_path):
        tables = read_r(saved({"x": VALUES, "words": {"a": np.array([1.0]), "b": np.array([1.0, 2.0])}}, tmp_path))
        assert np.array_equal(frame(tables["x"]).to_numpy(), VALUES)
        with pytest.raises(MalformedError, match="object 'words': expected a data frame or a matrix"):
            tables["words"]

    def test_removes_a_prefix_from_names(self, tmp_path):
        (tmp_path / "x.RDA").write_bytes(saved({"x": pd.DataFrame({"PLC.a": [1.0]})}, tmp_path))
        tables = open_arrays(tmp_path / "x.RDA", FileFormat(remove_prefix="PLC."))
        assert tables["x"].header == ("a",)

    def test_of_complex_numbers_says_so(self, tmp_path):
        with pytest.raises(MalformedError, match="R's type CPLX"):
            read_r(saved({"x": VALUES + 1j}, tmp_path))["x"]

    @pytest.mark.parametrize("compression", [None, "gzip"])
    def test_cut_off_anywhere_is_one_message(self, tmp_path, compression):
        content = saved({"plant": self.TABLE}, tmp_path, compression=compression)
        for stop in range(0, len(content) - 1, 3):
            with pytest.raises(MalformedError):
                read_r(content[:stop])["plant"]

    @pytest.mark.parametrize(
        "content", [b"", b"a,b\n1,2\n", gzip.compress(b"text", mtime=0), b"RDX3\n", b"RDA3\nA\n3\n"]
    )
    def test_what_is_no_such_file_is_refused(self, content):
        with pytest.raises(MalformedError):
            read_r(content)

    @pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
    def test_that_decompresses_to_more_than_the_memory(self, monkeypatch, compress):
        monkeypatch.setattr("tsadbench.datasets.reading.r_data.MOST_BYTES", 2**20)
        with pytest.raises(MalformedError, match="more than 2 GiB"):
            read_r(compress(bytes(2**21)))

    @staticmethod
    def sequence(length):
        """A file with an integer sequence, which R keeps as its length, first value and step."""

        def text(value):
            return struct.pack(">ii", 0x40009, len(value)) + value

        def symbol(value):
            return struct.pack(">i", 1) + text(value)

        nil = struct.pack(">i", 254)
        info = b"".join(struct.pack(">i", 2) + part for part in (symbol(b"compact_intseq"), symbol(b"base")))
        info += struct.pack(">i", 2) + struct.pack(">iii", 13, 1, 13) + nil
        state = struct.pack(">ii", 14, 3) + struct.pack(">ddd", length, 1.0, 1.0)
        head = b"RDX3\nX\n" + struct.pack(">iii", 3, 0x40200, 0x30500) + struct.pack(">i", 5) + b"UTF-8"
        return head + struct.pack(">i", 0x402) + symbol(b"x") + struct.pack(">i", 238) + info + state + nil + nil

    def test_reads_a_sequence(self):
        assert frame(read_r(self.sequence(4))["x"])[0].tolist() == [1, 2, 3, 4]

    def test_that_declares_an_endless_sequence(self):
        with pytest.raises(MalformedError, match="more than 2 GiB"):
            read_r(self.sequence(1e15))

    @settings(deadline=None, max_examples=100)
    @given(st.data())
    def test_any_damage_is_one_message_or_a_table(self, data):
        content = bytearray(self.sequence(4))
        for _ in range(data.draw(st.integers(1, 3))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        try:
            tables = read_r(bytes(content))
            rows = frames(tables, *tables)
        except MalformedError:
            return
        assert [len(table) for table in rows] == [tables[name].n_rows for name in tables]


def test_without_rdata_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdata.parser", None)
    with pytest.raises(MissingExtraError, match=r"reading files of R needs packages .* pip install 'tsadbench\[r\]'"):
        read_r(b"RDX3\n")


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    with (tmp_path / "large.pkl").open("wb") as file:
        file.truncate(2**31 + 1)
    with pytest.raises(OSError, match="too large"):
        open_arrays(tmp_path / "large.pkl", FileFormat())
