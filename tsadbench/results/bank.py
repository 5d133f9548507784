"""The score bank: one Parquet file per trial with its scores, so that a new metric needs no fit. Needs pyarrow.

A bank is a folder with these files and `REGISTRY`, lines of ``NAME SHA-256`` in pooch's format. It may come from a
stranger, so files are read in boxes, checksums compared, and records validated.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import pooch
import requests
from pydantic import StringConstraints, TypeAdapter

from tsadbench.datasets.arrays import in_box
from tsadbench.errors import BrokenTrialError, DataError, StoreError, UsageError
from tsadbench.execution.judging import Shapes
from tsadbench.execution.record import Record
from tsadbench.execution.store import Store
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.extras import extra
from tsadbench.utils.files import digest, open_regular, read_bytes, replacing, require_own_folder, write_file
from tsadbench.utils.progress import progress
from tsadbench.utils.text import one_line

with extra("the score bank", "parquet"):
    import pyarrow
    from pyarrow import parquet

REGISTRY = "registry.txt"
MOST_BYTES = 2**24  # several times the largest trial of the committed tables
_RECORD = b"tsadbench.record"
_SERIES = ("train/", "calibration/", "test/")
_SECONDS = 30.0  # seconds without data from a server
_NAME = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8,64}\.parquet$")]
_SHA256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
_CHECKSUMS = TypeAdapter(dict[_NAME, _SHA256])


class BankFolder:
    """A folder of a bank, whose trials are judged like those of a run store.

    Raises a UsageError if it has none of the registry's files, a StoreError if the registry cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read = lru_cache(maxsize=1)(self._read_file)  # callers read a record, then its scores
        registry = _registry(path)
        self._sha256 = {Path(name).stem: sha256 for name, sha256 in registry.items() if (path / name).exists()}
        if not self._sha256:
            raise UsageError(f"{path}: none of the {len(registry)} files of {REGISTRY} is here")

    def trials(self) -> list[str]:
        """Return the names of the trials whose files exist."""
        return [*self._sha256]

    def record(self, trial: str) -> Record:
        """Return a trial's record; a BrokenTrialError if its file cannot be used."""
        return self._read(trial)[0]

    def scores(self, record: Record, shapes: Shapes | None = None) -> dict[str, FloatArray]:
        """Return a trial's scores by ``<role>/<episode>/<recording>``; errors as for `record`."""
        return {name: one for name, one in self._read(record.trial)[1].items() if shapes is None or name in shapes}

    def _read_file(self, trial: str) -> tuple[Record, dict[str, FloatArray]]:
        file = self.path / f"{trial}.parquet"
        try:
            content = read_bytes(file, MOST_BYTES)
        except OSError as error:
            raise BrokenTrialError(f"{file}: cannot be read ({error.strerror or error})") from error
        if digest(content) != self._sha256[trial]:
            raise BrokenTrialError(f"{file}: its SHA-256 is not that of {REGISTRY}; fetch it again")
        record, scores = read_file(content, str(file))
        if record.trial != trial:
            raise BrokenTrialError(f"{file}: it holds trial {record.trial}")
        return record, scores


def _registry(folder: Path) -> dict[str, str]:
    """Return the checksums of a bank's files by name; a StoreError if the registry is invalid."""
    file = folder / REGISTRY
    try:
        with open_regular(file, MOST_BYTES) as stream:
            return _CHECKSUMS.validate_python(dict(line.split() for line in stream.read().decode().splitlines()))
    except (OSError, ValueError) as error:
        raise StoreError(f"{file}: expected lines of NAME SHA-256 ({one_line(str(error), 200)})") from error


def build_bank(stores: Sequence[Store], out: Path) -> dict[str, str]:
    """Write the scores of all ok trials of run stores, and the registry; return why some trials were left out.

    Raises a UsageError if no trial has scores, or the folder holds other files. Existing files of a bank are kept.
    """
    require_own_folder(out, REGISTRY, "that of a bank")
    found = [(one, store) for store in stores for one in store.records() if one.status == "ok"]
    if not found:
        raise UsageError("there is nothing to build: none of the stores has a trial with scores")
    if not (out / REGISTRY).exists():  # the mark of a bank's folder
        write_file(out / REGISTRY, "")
    left_out: dict[str, str] = {}
    for done, (record, store) in enumerate(found):
        progress(done, len(found), record.label)
        try:
            content = file_bytes(record, store.scores(record))
            if len(content) > MOST_BYTES:
                raise StoreError(f"its file would have more than {MOST_BYTES:,} bytes")
            write_file(out / f"{record.trial}.parquet", content)
        except StoreError as error:
            left_out[record.trial] = str(error)
    files = sorted(out.glob("*.parquet"))
    write_file(out / REGISTRY, "".join(f"{file.name} {digest(file.read_bytes())}\n" for file in files))
    return left_out


def fetch_bank(source: str, out: Path) -> int:
    """Fetch missing and changed files of a bank (a folder or an http or https address); return how many were missing.

    Raises a UsageError if ``out`` holds other files, a StoreError if the registry is invalid, a DataError if a file
    cannot be fetched or has another checksum; files fetched before it are kept.
    """
    require_own_folder(out, REGISTRY, "that of a bank")
    out.mkdir(parents=True, exist_ok=True)
    pooch.get_logger().setLevel("ERROR")
    address = f"{source.rstrip('/')}/{REGISTRY}"
    try:
        with replacing(out / REGISTRY) as stream:
            _save(address, stream.name)
        registry = _registry(out)
        lacking = [name for name in registry if not (out / name).exists()]
        for done, name in enumerate(registry):
            progress(done, len(registry), name)
            address = f"{source.rstrip('/')}/{name}"
            pooch.retrieve(address, registry[name], name, out, downloader=_save)
    except StoreError:
        raise
    except (OSError, ValueError) as error:
        raise DataError(f"{address}: {one_line(str(error), 200)}") from error
    return len(lacking)


def _save(address: str, file: str, _bank: object = None) -> None:
    """Save a file from a server or a folder, at most `MOST_BYTES`."""
    if "://" not in address:
        Path(file).write_bytes(read_bytes(Path(address), MOST_BYTES))
        return
    with requests.get(address, stream=True, timeout=_SECONDS) as response, Path(file).open("wb") as out:
        response.raise_for_status()
        for chunk in response.iter_content(65_536):
            out.write(chunk)
            if out.tell() > MOST_BYTES:
                raise ValueError(f"it has more than {MOST_BYTES} bytes")


def file_bytes(record: Record, scores: Mapping[str, FloatArray]) -> bytes:
    """Return the file of a trial: a column ``series`` (``<role>/<episode>/<recording>``) and one of scores, float32.

    Raises a StoreError if float32 cannot hold a score, or makes it 0.
    """
    values = np.concatenate([*scores.values(), np.empty(0)])
    with np.errstate(over="ignore", under="ignore"):
        kept = values.astype(np.float32)
    if not len(kept) or np.isinf(kept).any() or ((kept == 0) & (values != 0)).any():
        raise StoreError("it has no scores, or scores beyond float32")
    series = np.repeat([*scores], [len(one) for one in scores.values()])
    table = pyarrow.table({"series": series, "score": kept})
    table = table.replace_schema_metadata({_RECORD: record.to_json(indent=None).encode()})
    stream = io.BytesIO()
    parquet.write_table(
        table, stream, compression="zstd", use_dictionary=["series"], column_encoding={"score": "BYTE_STREAM_SPLIT"}
    )
    return stream.getvalue()


def read_file(content: bytes, origin: str) -> tuple[Record, dict[str, FloatArray]]:
    """Return a trial's record and scores from its file; a BrokenTrialError if the file is invalid."""
    try:
        parts = in_box(_unpacked, np.frombuffer(content, np.uint8))
        text = parts.pop("", b"")
        scores = {name: np.frombuffer(part, np.float32).astype(np.float64) for name, part in parts.items()}
        if not all(name.startswith(_SERIES) and not np.isinf(one).any() for name, one in scores.items()):
            raise ValueError("expected finite scores of series like test/EPISODE/RECORDING")
    except ValueError as error:
        raise BrokenTrialError(f"{origin}: not a file of the score bank ({one_line(str(error), 200)})") from error
    record = Record.from_json(text, origin)
    if record.status != "ok":
        raise BrokenTrialError(f"{origin}: its record has the status {record.status}")
    return record, scores


def _unpacked(content: npt.NDArray[np.uint8]) -> dict[str, bytes]:
    """Return a file's record under the key "", and its scores, float32, by series. Runs in a box."""
    with parquet.ParquetFile(pyarrow.BufferReader(content), read_dictionary=["series"]) as file:
        text = (file.schema_arrow.metadata or {}).get(_RECORD, b"")
        frame = file.read(["series", "score"], use_threads=False).to_pandas()
    parts = frame.groupby("series", sort=False, observed=True)["score"]
    return {"": text} | {str(name): part.to_numpy(np.float32).tobytes() for name, part in parts}
