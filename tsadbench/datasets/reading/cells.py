"""Cells of sensors: which texts are numbers, and which mean that a value is missing."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from tsadbench.base.file_format import FileFormat
from tsadbench.utils.arrays import FloatArray, IntArray

# What pandas takes for a missing value unless it is told otherwise.
MISSING = frozenset(
    (
        "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
        "NULL", "NaN", "None", "n/a", "nan", "null",
    )
)  # fmt: skip

# Stricter than float(), which also reads 1_000 and other scripts' digits.
_NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?)", re.ASCII | re.IGNORECASE)
# Of cells that float() reads as `as_number` does, if it reads them.
_PLAIN = re.compile(r"[0-9eE+. \t-]*")
_OTHER_MARK = re.compile(r"[+-]?\d+[.,]\d+")


def missing_texts(file_format: FileFormat) -> frozenset[str]:
    """Return all texts that mean a missing value."""
    return MISSING | frozenset(file_format.missing)


def as_number(cell: str, decimal: str = ".") -> float | None:
    """Return the nearest float64 to the number in a cell, or None if it holds no number.

    Examples
    --------
    >>> as_number(" 1e3"), as_number("1,5", decimal=","), as_number("1.000", decimal=","), as_number("1_000")
    (1000.0, 1.5, None, None)
    """
    text = cell.strip(" \t")
    if decimal != ".":
        text = "" if "." in text else text.replace(decimal, ".")
    return float(text) if _NUMBER.fullmatch(text) else None


def numbers_of(
    cells: pd.Series, file_format: FileFormat, states: Mapping[str, float] | None = None
) -> tuple[FloatArray, IntArray]:
    """Return a column's numbers, and the rows whose cells hold none.

    Parameters
    ----------
    cells
        [n_rows], numbers or texts as pandas has read them.
    file_format
        How the file is written.
    states
        The numbers that stand for texts in this column.

    Returns
    -------
    tuple
        [n_rows], NaN if a value is missing, 0 if a cell is no number; the rows of such cells.
    """
    wrong: list[int] = []
    if states:
        return _with_states(cells, file_format, states)
    if pd.api.types.is_numeric_dtype(cells.dtype) and not pd.api.types.is_bool_dtype(cells.dtype):
        numbers = cells.to_numpy(np.float64, na_value=np.nan, copy=bool(file_format.missing))
    else:
        missing = missing_texts(file_format)
        numbers = np.full(len(cells), np.nan)
        objects = cells.astype(object).to_numpy()
        for row in np.flatnonzero(~pd.isna(objects)).tolist():
            cell = objects[row]
            if isinstance(cell, str) and cell.strip() in missing:
                continue
            number = None if isinstance(cell, bool) else as_number(str(cell), file_format.decimal)
            numbers[row] = 0.0 if number is None else number
            if number is None:
                wrong.append(row)
    blank_codes(numbers, file_format)
    return numbers, np.array(wrong, dtype=np.int64)


def _with_states(cells: pd.Series, file_format: FileFormat, states: Mapping[str, float]) -> tuple[FloatArray, IntArray]:
    """Return what `numbers_of` does for a column in which texts stand for numbers; each of its texts is read once."""
    codes, found = pd.factorize(cells.astype(object).to_numpy())
    numbers, wrong = numbers_of(pd.Series(found, dtype=object), file_format)
    is_wrong = np.zeros(len(found) + 1, dtype=np.bool_)  # the last entry is for empty cells, whose code is -1
    is_wrong[wrong] = True
    for i, cell in enumerate(found):
        text = str(cell).strip()
        # Parquet holds truth values, which Python writes with a capital letter.
        state = text.lower() if text not in states and isinstance(cell, (bool, np.bool_)) else text
        if state in states:
            numbers[i], is_wrong[i] = states[state], False
    return np.append(numbers, np.nan)[codes], np.flatnonzero(is_wrong[codes])


def row_of_numbers(cells: Sequence[str], file_format: FileFormat) -> tuple[list[float], list[int]]:
    """Return a line's cells as numbers, as `numbers_of` does, and the places of those that hold none."""
    if file_format.decimal == "." and not file_format.missing and _PLAIN.fullmatch("".join(cells)):
        with contextlib.suppress(ValueError):
            return list(map(float, cells)), []
    missing = missing_texts(file_format)
    numbers, wrong = list[float](), list[int]()
    for place, cell in enumerate(cells):
        number = math.nan if cell.strip() in missing else as_number(cell, file_format.decimal)
        numbers.append(0.0 if number is None else number)
        if number is None:
            wrong.append(place)
    return numbers, wrong


def finite_numbers(rows: pd.DataFrame, file_format: FileFormat) -> FloatArray | None:
    """Return all columns' numbers at once, [n_rows, n_columns], NaN if a value is missing; None if some are none."""
    if not all(isinstance(dtype, np.dtype) and dtype.kind in "iuf" for dtype in rows.dtypes):
        return None
    numbers = rows.to_numpy(np.float64, copy=bool(file_format.missing))
    blank_codes(numbers, file_format)
    return None if np.isinf(numbers).any() else numbers


def blank_codes(numbers: FloatArray, file_format: FileFormat) -> None:
    """Replace in place every number that means "missing" however it is written: -999, -999.0."""
    codes = [number for number in map(as_number, file_format.missing) if number is not None]
    if codes:
        numbers[np.isin(numbers, codes)] = np.nan


def number_fault(cell: object, advice: str = "correct the cell") -> str:
    """Return the message for a cell that holds no number."""
    text = str(cell).strip()
    if _OTHER_MARK.fullmatch(text):
        advice = "another decimal mark? then set decimal"
    return f"expected a number, found {text[:40]!r}; {advice}"


def infinite_fault(number: float) -> str:
    """Return the message for an infinite number."""
    return f"expected a finite number, found {number}; correct the cell"


def columns_of_numbers(
    columns: Sequence[pd.Series], file_format: FileFormat, states: Sequence[Mapping[str, float]] = ()
) -> tuple[FloatArray, tuple[int, int] | None]:
    """Return columns as numbers [n_rows, n_sensors]; row and sensor of the first cell that is no number, or None."""
    declared = states or [{}] * len(columns)
    read = [numbers_of(cells, file_format, texts) for cells, texts in zip(columns, declared, strict=True)]
    wrong = [(int(rows[0]), sensor) for sensor, (_, rows) in enumerate(read) if len(rows)]
    return np.column_stack([numbers for numbers, _ in read]), min(wrong, default=None)


def rows_of_numbers(
    rows: Sequence[Sequence[str]], file_format: FileFormat, states: Sequence[Mapping[str, float]] = ()
) -> tuple[FloatArray, tuple[int, int] | None]:
    """Return rows of texts as `columns_of_numbers` does: fast if they are few and hold nothing but numbers."""
    if file_format.decimal == "." and not file_format.missing and not any(states):
        with contextlib.suppress(ValueError):
            values = np.array([[float(cell) for cell in row] for row in rows], dtype=np.float64)
            plain = all(cell.isascii() and "_" not in cell for row in rows for cell in row)
            if plain and not np.isnan(values).any():
                return values, None
    columns = zip(*rows, strict=True)
    return columns_of_numbers([pd.Series(list(cells), dtype=object) for cells in columns], file_format, states)


def canonical(value: object) -> str:
    """Return a label's value as text in which equal values are equal: 1, 1.0, true and " 1" are the same.

    Examples
    --------
    >>> canonical(1), canonical("1.0"), canonical(True), canonical(" A ttack")
    ('1', '1', '1', 'A ttack')
    """
    text = str(value).strip()
    if text.lower() in ("true", "false"):
        return "1" if text.lower() == "true" else "0"
    try:
        number = float(text)
    except ValueError:
        return text
    return str(int(number)) if number.is_integer() else str(number)
