"""Parquet files by the chunk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.reading.csv import CHUNK_CELLS
from tsadbench.datasets.reading.text import MalformedError, cleaned
from tsadbench.utils.extras import extra

PARQUET = (".parquet", ".pq")


@dataclass(frozen=True, slots=True)
class ParquetFile:
    """A Parquet file whose header has been read.

    Parameters
    ----------
    path
        The file.
    file_format
        Which texts in it mean a missing value.
    header
        The columns' names, cleaned.
    n_rows
        Number of its rows.
    """

    path: Path
    file_format: FileFormat
    header: tuple[str, ...]
    n_rows: int

    def line(self, row: int) -> None:
        """Return None: a Parquet file has no lines."""

    def chunks(self, columns: Sequence[int]) -> Iterator[pd.DataFrame]:
        """Yield some columns' rows in order; columns are named by their numbers."""
        import pyarrow.parquet

        missing = list(self.file_format.missing)
        with pyarrow.parquet.ParquetFile(self.path) as file:
            names = [file.schema_arrow.names[column] for column in columns]
            rows = max(1, CHUNK_CELLS // max(1, len(columns)))
            for batch in file.iter_batches(batch_size=rows, columns=names):
                frame = batch.select(names).to_pandas()
                frame.columns = list(columns)
                yield frame.replace(missing, None) if missing else frame


def open_parquet(path: Path, file_format: FileFormat) -> ParquetFile:
    """Return how a Parquet file is read.

    A MissingExtraError if pyarrow is not installed. A MalformedError if it is no Parquet file. An OSError if it cannot
    be read.
    """
    with extra("reading Parquet files", "parquet"):
        import pyarrow.parquet
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            names = cleaned(file.schema_arrow.names, file_format.remove_prefix)
            return ParquetFile(path, file_format, tuple(names), int(file.metadata.num_rows))
    except ValueError as error:  # pyarrow's own errors are ValueErrors
        raise MalformedError(f"not a Parquet file ({' '.join(str(error).split())[:120]}); copy it again") from error
