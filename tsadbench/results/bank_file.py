"""Reads a file of the score bank; runs in a box, so it imports little."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

RECORD = b"tsadbench.record"  # where a file's metadata have the record


def unpacked(content: npt.NDArray[np.uint8]) -> dict[str, bytes]:
    """Return a file's record by the name "", and its scores, float32, by series."""
    import pyarrow
    from pyarrow import parquet

    with parquet.ParquetFile(pyarrow.BufferReader(content), read_dictionary=["series"]) as file:
        text = (file.schema_arrow.metadata or {}).get(RECORD, b"")
        frame = file.read(["series", "score"], use_threads=False).to_pandas()
    parts = frame.groupby("series", sort=False, observed=True)["score"]
    return {"": text} | {str(name): part.to_numpy(np.float32).tobytes() for name, part in parts}
