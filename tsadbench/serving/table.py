"""Scored rows as tables: CSV line by line, or Parquet as a whole."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from typing import TextIO

import numpy as np
import pandas as pd

from tsadbench.datasets.times import iso_time
from tsadbench.errors import DataError, MissingExtraError
from tsadbench.leaderboard.formatting import inert
from tsadbench.serving.model import ScoredRows

_CONTRIBUTION = "contribution_"
_REASON = "reason"


class CsvTable:
    """Writes a line per scored row: time or row number, score, flagged, contributions if asked for, and reason.

    Parameters
    ----------
    stream
        Where to write.
    sensors
        The model's sensors.
    contributions
        Whether to write a column for each sensor.
    named
        Whether to begin with a column for the file's name.
    """

    def __init__(self, stream: TextIO, sensors: Sequence[str], *, contributions: bool, named: bool = False) -> None:
        self._writer = csv.writer(stream, lineterminator="\n")
        self._sensors = sensors if contributions else ()
        self._named = named
        self._timed: bool | None = None

    def add(self, scored: ScoredRows, file: str = "") -> None:
        """Write the rows, and before the first of them the header.

        A DataError if one file has times and another has none.
        """
        n_rows = len(scored.scores)
        if n_rows == 0:
            return
        timed = scored.time is not None
        if self._timed is None:
            self._timed = timed
            names = [*(["file"] if self._named else []), "time" if timed else "row", "score", "flagged"]
            self._writer.writerow([*names, *(f"{_CONTRIBUTION}{sensor}" for sensor in self._sensors), _REASON])
        if timed != self._timed:
            raise DataError(f"{file}: some files have a column with times, some have none; score them one by one")
        front = [[inert(file)]] * n_rows if self._named else [[]] * n_rows
        when = _rows(scored) if scored.time is None else map(iso_time, scored.time.tolist())
        scores = map(_text, scored.scores.tolist())
        flags = map(int, scored.flagged.tolist())
        split = scored.contributions
        parts = [[]] * n_rows if split is None else ([_text(value) for value in row] for row in split.tolist())
        for first, moment, score, flag, part, reason in zip(
            front, when, scores, flags, parts, _reasons(scored), strict=True
        ):
            self._writer.writerow([*first, moment, score, flag, *part, reason])


def parquet_bytes(tables: Sequence[tuple[str, ScoredRows]], sensors: Sequence[str]) -> bytes:
    """Return the scored rows of several files as one Parquet file.

    A DataError if one file has times and another has none. A MissingExtraError if pyarrow is not installed.
    """
    timed = {scored.time is not None for _, scored in tables}
    if len(timed) > 1:
        raise DataError("some files have a column with times, some have none; score them one by one")
    table = pd.concat([_frame(scored, sensors) for _, scored in tables], ignore_index=True)
    if len(tables) > 1:
        counts = [len(scored.scores) for _, scored in tables]
        table.insert(0, "file", np.repeat([file for file, _ in tables], counts))
    buffer = io.BytesIO()
    try:
        table.to_parquet(buffer, index=False)
    except ImportError as error:
        raise MissingExtraError("writing Parquet files", "parquet") from error
    return buffer.getvalue()


def _frame(scored: ScoredRows, sensors: Sequence[str]) -> pd.DataFrame:
    columns: dict[str, object] = {"row": np.fromiter(_rows(scored), dtype=np.int64)}
    if scored.time is not None:
        columns = {"time": pd.to_datetime(np.round(scored.time * 1e6).astype(np.int64), unit="us")}
    columns |= {"score": scored.scores, "flagged": scored.flagged}
    if scored.contributions is not None:
        columns |= {f"{_CONTRIBUTION}{sensor}": scored.contributions[:, i] for i, sensor in enumerate(sensors)}
    return pd.DataFrame(columns | {_REASON: _reasons(scored)})


def _reasons(scored: ScoredRows) -> list[str]:
    return [scored.reasons.get(row, "") for row in range(len(scored))]


def _rows(scored: ScoredRows) -> Sequence[int]:
    if scored.numbers is not None:
        return list(map(int, scored.numbers))
    return range(scored.first_row, scored.first_row + len(scored.scores))


def _text(value: float) -> str:
    return "" if math.isnan(value) else repr(value)
