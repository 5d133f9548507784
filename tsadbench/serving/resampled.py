"""Files whose rows a model takes from a regular grid: long tables, and rows that were resampled to fit it."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.card import Card, WrittenAs
from tsadbench.datasets.reader import CardReader
from tsadbench.errors import DataError
from tsadbench.serving.rows import Rows
from tsadbench.utils.issues import raise_if_any


def read_resampled(path: Path, form: FileFormat, sensors: Sequence[str]) -> Rows:
    """Return the rows of a file on the grid that its format names.

    A DataError if the file is malformed; the message lists everything that is wrong, with its line.
    """
    if not path.is_file():
        raise DataError(f"{path}: there is no such file; correct the name")
    fill = {"policy": form.fill} | ({"at_most": form.fill_at_most} if form.fill_at_most else {})
    card = {
        "schema": 1,
        "name": "new",
        "files": {key: getattr(form, key) for key in WrittenAs.model_fields} | {"missing": [*form.missing]},
        "train": {"files": [glob.escape(path.name)]},
        "columns": {"sensors": [*sensors], "time_format": [*form.time_formats]}
        | ({"time": [*form.time]} if form.time else {"period": form.period}),
        "long": None if form.long is None else dict(zip(("name", "value"), form.long, strict=True)),
        "resample": {"every": form.resample_every, "by": form.resample_by},
        "gaps": fill,
        "states": {pattern: dict(codes) for pattern, codes in form.states},
    }
    reader = CardReader(Card.model_validate(card), "", path, path.parent)
    loaded = reader.read()
    raise_if_any(str(path), reader.issues)
    assert loaded is not None
    recording = loaded.dataset.train[0]
    return Rows(recording.values, recording.time, np.arange(recording.n_rows))
