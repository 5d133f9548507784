"""A Parquet file by the chunk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tsadbench.datasets.cards.columns import cleaned
from tsadbench.datasets.cards.files import CHUNK_CELLS
from tsadbench.errors import MissingExtraError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Parquet:
    """How one Parquet file is read.

    Parameters
    ----------
    path
        The file.
    header
        The columns' names, cleaned.
    n_rows
        Its rows.
    """

    path: Path
    header: tuple[str, ...]
    n_rows: int

    def line(self, row: int) -> None:
        """Return None: a Parquet file has no lines."""

    def chunks(self, places: Sequence[int], missing: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Give the rows in order, with the numbers of the columns as their names.

        Parameters
        ----------
        places
            The columns wanted, by number.
        missing
            Texts that mean a missing value in columns of texts.
        """
        import pyarrow.parquet

        with pyarrow.parquet.ParquetFile(self.path) as file:
            names = [file.schema_arrow.names[place] for place in places]
            rows = max(1, CHUNK_CELLS // max(1, len(places)))
            for batch in file.iter_batches(batch_size=rows, columns=names):
                frame = batch.select(names).to_pandas()
                frame.columns = list(places)
                yield frame.replace(list(missing), None) if missing else frame


def open_parquet(path: Path, prefix: str) -> Parquet:
    """Return a Parquet file's header and number of rows.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.
    ValueError, OSError
        If it is no such file, or cannot be read.
    """
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("reading Parquet files", "parquet") from error
    with pyarrow.parquet.ParquetFile(path) as file:
        names = list(file.schema_arrow.names)
        return Parquet(path, tuple(cleaned(names, prefix)), int(file.metadata.num_rows))
