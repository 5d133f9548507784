"""The form of a file of the score bank: Parquet, with the trial's record in its metadata. Needs pyarrow."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import numpy as np

from tsadbench.errors import BrokenTrialError, StoreError
from tsadbench.execution.record import Record
from tsadbench.results.bank.bank_file import MOST_FILE_BYTES, MOST_ROWS, ROLES, BankFile, single_precision
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.extras import extra
from tsadbench.utils.names import label_fault

with extra("the score bank", "parquet"):
    import pyarrow
    from pyarrow import parquet

# The trials with most arrays here have some three hundred.
_MOST_ARRAYS = 100_000
# A column of names is a few bytes a run of rows, scores are four bytes a row.
_BYTES_PER_ROW = 8
_NAMES = ("role", "episode", "recording")
_SCORE = "score"
_FORM, _RECORD = "tsadbench.bank", "tsadbench.record"
# 1: the first.
_VERSION = "1"


def bank_bytes(record: Record, scores: Mapping[str, FloatArray]) -> bytes:
    """Return the file of a trial: one row a scored row, in the order of the recordings' rows.

    Its columns are ``role`` (train, calibration or test), ``episode``, ``recording`` and ``score``. The same trial
    gives the same bytes with the same version of pyarrow.

    Parameters
    ----------
    record
        The trial's record; its status is "ok".
    scores
        As a run store returns them.

    Raises
    ------
    StoreError
        As for `single_precision`.
    """
    arrays = single_precision(scores)
    if not arrays:
        raise StoreError("it has no scores")
    episodes = sorted((entry.episode for entry in record.thresholds), key=len, reverse=True)
    parts = [_parts(name, episodes) for name in arrays]
    lengths = [len(array) for array in arrays.values()]
    columns = [_names_column(column, lengths) for column in zip(*parts, strict=True)]
    values = pyarrow.array(np.concatenate([*arrays.values()]), pyarrow.float32())
    schema = _schema()
    buffer = io.BytesIO()
    with parquet.ParquetWriter(
        buffer,
        schema,
        compression="zstd",
        compression_level=9,
        use_dictionary=[*_NAMES],
        column_encoding={_SCORE: "BYTE_STREAM_SPLIT"},
        write_statistics=False,
        store_schema=False,  # it would hold the types that every reader knows
    ) as writer:
        writer.write_table(pyarrow.Table.from_arrays([*columns, values], schema=schema))
        writer.add_key_value_metadata({_FORM: _VERSION, _RECORD: record.to_json(indent=None)})
    return buffer.getvalue()


def read_bank_file(content: bytes, origin: str) -> BankFile:
    """Return what a file of the bank holds, checked; nothing in it is believed.

    Parameters
    ----------
    content
        The whole file.
    origin
        What messages call it.

    Raises
    ------
    BrokenTrialError
        If it is no such file.
    """
    try:
        with parquet.ParquetFile(pyarrow.BufferReader(content), read_dictionary=[*_NAMES]) as file:
            metadata = file.metadata.metadata or {}
            if metadata.get(_FORM.encode()) != _VERSION.encode():
                raise ValueError(f"expected a file of the score bank of form {_VERSION}")
            _check_sizes(file.metadata)
            if not file.schema_arrow.equals(_schema()):
                raise ValueError(f"expected the columns {', '.join([*_NAMES, _SCORE])} without empty cells")
            table = file.read()
        scores = _arrays(table)
    except (pyarrow.ArrowException, KeyError, ValueError, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise BrokenTrialError(f"{origin}: not a file of the score bank ({reason}); fetch it again") from error
    record = Record.from_json(metadata.get(_RECORD.encode(), b""), origin)
    if record.status != "ok":
        raise BrokenTrialError(f"{origin}: its record has the status {record.status}, expected ok")
    return BankFile(record, scores)


def _schema() -> pyarrow.Schema:
    text = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    fields = [*((name, text) for name in _NAMES), (_SCORE, pyarrow.float32())]
    return pyarrow.schema([pyarrow.field(name, kind, nullable=False) for name, kind in fields])


def _parts(name: str, episodes: Sequence[str]) -> tuple[str, str, str]:
    """Return role, episode and recording of an array; ids may hold slashes: the longest episode that fits counts."""
    role, _, rest = name.partition("/")
    episode = next((one for one in episodes if rest.startswith(f"{one}/")), rest.partition("/")[0])
    return role, episode, rest[len(episode) + 1 :]


def _names_column(names: Sequence[str], lengths: Sequence[int]) -> pyarrow.DictionaryArray:
    """Return a column that holds each name as often as its array has rows."""
    known = list(dict.fromkeys(names))
    places = {name: place for place, name in enumerate(known)}
    codes = np.repeat(np.array([places[name] for name in names], dtype=np.int32), lengths)
    return pyarrow.DictionaryArray.from_arrays(pyarrow.array(codes), pyarrow.array(known, pyarrow.string()))


def _check_sizes(metadata: pyarrow.FileMetaData) -> None:
    """Raise a ValueError if reading a file would take much more memory than its scores need."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    columns = [group.column(i) for group in groups for i in range(group.num_columns)]
    if not 0 < metadata.num_rows <= MOST_ROWS:
        raise ValueError(f"expected 1 to {MOST_ROWS:,} rows, found {metadata.num_rows:,}")
    most = _BYTES_PER_ROW * metadata.num_rows + MOST_FILE_BYTES
    if sum(column.total_uncompressed_size for column in columns) > most:
        raise ValueError(f"it is larger unpacked than its {metadata.num_rows:,} rows need")


def _arrays(table: pyarrow.Table) -> dict[str, FloatArray]:
    """Return the scores by the names of their arrays; a ValueError if they are not what a detector can have given."""
    table = table.unify_dictionaries().combine_chunks()
    if any(column.null_count for column in table.columns):
        raise ValueError("some cells are empty")
    columns = [table.column(name).chunk(0) for name in _NAMES]
    codes = np.stack([column.indices.to_numpy() for column in columns])
    known = [column.dictionary.to_pylist() for column in columns]
    scores = table.column(_SCORE).to_numpy().astype(np.float64)
    if np.isinf(scores).any():
        raise ValueError("some scores are infinite")
    borders = np.flatnonzero((codes[:, 1:] != codes[:, :-1]).any(axis=0)) + 1
    if len(borders) >= _MOST_ARRAYS:
        raise ValueError(f"expected at most {_MOST_ARRAYS:,} recordings")
    arrays: dict[str, FloatArray] = {}
    for start, part in zip((0, *borders), np.split(scores, borders), strict=True):
        role, episode, recording = (names[code] for names, code in zip(known, codes[:, start], strict=True))
        name = f"{role}/{episode}/{recording}"
        if fault := label_fault(name) or ("" if role in ROLES else f"expected a role of {', '.join(ROLES)}"):
            raise ValueError(f"the name of an array: {fault}")
        if name in arrays:
            raise ValueError(f"the rows of {name!r:.200} are not together")
        part.flags.writeable = False
        arrays[name] = part
    return arrays
