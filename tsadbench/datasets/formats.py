"""Files as tables: CSV, Parquet, and arrays of MATLAB, R and NumPy; cells as numbers."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from packaging.version import Version

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.boxed import ARRAYS, read_arrays
from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench.utils.extras import extra
from tsadbench.utils.issues import SHOWN, Issue, condensed
from tsadbench.utils.text import first_of, one_line

PARQUET = (".parquet", ".pq")
# What pandas takes for a missing value unless it is told otherwise.
MISSING = frozenset(
    (
        "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
        "NULL", "NaN", "None", "n/a", "nan", "null",
    )
)  # fmt: skip
BLANK_LINE = "the line is empty, but others follow; remove it"
SEARCHED_LINES = 10
_MOST_ISSUES = 1_000
# Numbers are read to the last bit: what pandas does by itself from version 3.1 on, where this option is deprecated.
_EXACTLY: Literal["round_trip"] | None = "round_trip" if Version(pd.__version__) < Version("3.1") else None


class BadFileError(Exception):
    """A file cannot be read as a table."""

    def __init__(self, *issues: Issue) -> None:
        super().__init__("; ".join(map(str, issues)))
        self.issues = issues


@dataclass(slots=True, eq=False)
class Table:
    """The columns of a file, or of one array in it."""

    name: str  # what messages call it
    path: Path
    frame: pd.DataFrame  # with names of columns, unless the array has none (`RangeIndex`)
    # The lines of the columns' names and of the first row, counted from 1; None if the file has no lines.
    header_line: int | None = None
    first_line: int | None = None

    def issue(self, row: int, text: str, kind: str | None = None, count: int = 1) -> Issue:
        """Return what is wrong with a row, counted from 0."""
        if self.first_line is None:
            return Issue(self.name, f"{text} (row {row}, counted from 0)", None, kind, count)
        return Issue(self.name, text, self.first_line + row, kind, count)


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name is one of these, or fits one of them as a pattern."""
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)


def states_of(form: FileFormat, sensor: str) -> dict[str, float]:
    """Return the numbers that stand for texts in a sensor's cells; of two patterns that fit it, the first decides."""
    fitting = [dict(codes) for pattern, codes in form.states if matches(sensor, [pattern])]
    return {text: code for codes in reversed(fitting) for text, code in codes.items()}


def read_files(
    files: Mapping[str, Path], form: Callable[[str], FileFormat], **wanted: Sequence[str]
) -> tuple[dict[str, dict[str, Table]], list[Issue]]:
    """Read files, given by the names that messages call them; ``form`` returns the format of each.

    Returns the tables of each file that can be read, by the names of its arrays ("" for a file that is one table), and
    what is wrong with the others. ``wanted`` are arguments of `read_csv`.
    """
    tables, issues = dict[str, dict[str, Table]](), list[Issue]()
    arrays = read_arrays([path for path in files.values() if path.suffix.lower() in ARRAYS])
    for name, path in files.items():
        try:
            found = arrays.get(path)
            if isinstance(found, str):
                raise BadFileError(Issue(name, found))
            if found is not None:
                several = len(found) > 1
                tables[name] = {
                    array: Table(f"{name}, variable {array}" if several else name, path, frame)
                    for array, frame in found.items()
                }
            elif path.suffix.lower() in PARQUET:
                tables[name] = {"": _read_parquet(path, name, form(name))}
            else:
                tables[name] = {"": read_csv(path, name, form(name), **wanted)}
        except BadFileError as error:
            issues += error.issues
        except (OSError, ValueError) as error:
            issues.append(Issue(name, f"cannot be read: {one_line(str(error), 200)}"))
    return tables, issues


def _read_parquet(path: Path, name: str, form: FileFormat) -> Table:
    with extra("reading Parquet files", "parquet"):
        import pyarrow.parquet

    frame = pyarrow.parquet.read_table(path, use_threads=False).to_pandas()
    return Table(name, path, frame.set_axis(names_of(map(str, frame.columns), form), axis=1))


def read_csv(
    path: Path,
    name: str,
    form: FileFormat,
    *,
    needed: Sequence[str] = (),
    sensors: Sequence[str] = (),
    skipped: Sequence[str] = (),
    values: Sequence[str] = (),
    texts: Sequence[str] = (),
) -> Table:
    """Read a CSV file; a BadFileError if its lines are not a table.

    A header is searched for by the ``needed`` columns and the patterns ``sensors``. Columns whose names fit ``skipped``
    are left out unless they are needed. If the first line holds nothing but ``values``, the file has one column without
    a name. Columns ``texts`` hold texts even where they look like numbers.
    """
    try:
        with path.open(encoding=codec(form.encoding), newline=None) as file:
            header_line, names, n_rows = _checked(file, name, form, needed, sensors, values)
    except UnicodeDecodeError:
        raise BadFileError(_encoding_issue(path, name, form.encoding)) from None
    first = header_line + 1 + (form.units_line and header_line > 0)
    kept = {column: text for column, text in enumerate(names) if text in needed or not matches(text, skipped)}
    missing = MISSING | frozenset(form.missing)
    present = {column: frozenset() if text in texts else _texts(form, text) for column, text in kept.items()}
    absent = {column: sorted(missing - (found or frozenset())) for column, found in present.items()}
    frame: pd.DataFrame = pd.read_csv(
        path,
        sep=form.separator,
        decimal=form.decimal,
        encoding=codec(form.encoding),
        header=None,
        names=range(len(names)),
        usecols=list(kept),
        index_col=False,
        na_values=absent,  # type: ignore[arg-type]  # the stubs know names of columns alone
        keep_default_na=False,
        dtype={column: "str" for column, found in present.items() if found is not None},
        float_precision=_EXACTLY,
        skip_blank_lines=False,
        skipinitialspace=True,
        skiprows=first - 1,
        nrows=n_rows - (first - header_line - 1),
    )
    return Table(name, path, frame.set_axis(list(kept.values()), axis=1), header_line, first)


def _texts(form: FileFormat, column: str) -> frozenset[str] | None:
    """Return which texts of a column do not mean a missing value, as elsewhere; None if it may be numbers."""
    if form.long is not None:
        if column == form.long[0]:  # a sensor may be called NA
            return MISSING - {""}
        return (
            frozenset(text for _, codes in form.states for text, _ in codes) or None if column == form.long[1] else None
        )
    if column in form.time and not {"seconds", "milliseconds"}.issuperset(form.time_formats):
        return frozenset()  # 01052024 has a zero in front
    return frozenset(states_of(form, column)) or None


def _checked(
    file: Iterable[str],
    name: str,
    form: FileFormat,
    needed: Sequence[str],
    sensors: Sequence[str],
    values: Sequence[str],
) -> tuple[int, list[str], int]:
    """Return the header's line, the names in it, and the number of lines below it.

    All lines are counted and checked: pandas would fill up a line that has been cut off without a word.
    """
    separator, issues, blank = form.separator, list[Issue](), list[int]()
    header, names, last = 0, list[str](), 0
    for number, line in enumerate(file, start=1):
        if not names:
            found = names_of(split(line.rstrip("\n"), separator), form)
            if values and set(found) <= set(values):
                header, names, last = 0, [""] * len(found), number
            elif number == form.header_line and (fault := other_separator(found, form)):
                raise BadFileError(Issue(name, fault, number))
            elif is_header(number, found, form, needed, sensors):
                header, names, last = number, found, number
            elif number >= (SEARCHED_LINES if form.header_line == "search" else form.header_line):
                break
            continue
        if is_blank(line, separator):
            blank.append(number)
            continue
        issues += [Issue(name, BLANK_LINE, empty, kind="empty") for empty in blank]
        blank.clear()
        cells = line.count(separator) + 1 if '"' not in line else len(split(line.rstrip("\n"), separator))
        if cells != len(names):
            issues.append(Issue(name, cells_fault(len(names), cells, separator), number, kind="cells"))
            if len(issues) > _MOST_ISSUES:  # a long file of another form must not fill the memory
                issues = condensed(issues)
        last = number
    if not names:
        where = f"the first {SEARCHED_LINES} lines" if form.header_line == "search" else f"line {form.header_line}"
        issues.append(Issue(name, f"expected the columns' names in {where}, found none; set header_line", 1))
    if issues:
        raise BadFileError(*issues)
    return header, names, last - header


def is_header(
    number: int, names: Sequence[str], form: FileFormat, needed: Sequence[str], sensors: Sequence[str] = ()
) -> bool:
    """Whether a line, counted from 1, with these cells names the columns."""
    if form.header_line != "search":
        return number == form.header_line and any(names)
    return set(needed) <= set(names) and all(any(matches(one, [pattern]) for one in names) for pattern in sensors)


def is_blank(line: str, separator: str) -> bool:
    """Whether a line has no cell with content."""
    return not line.strip(f"{separator} \t\r\n")


def other_separator(names: Sequence[str], form: FileFormat) -> str:
    """Return the message for a header whose only name holds other separators; else an empty text."""
    if len(names) > 1 or not re.search(r"[,;\t|]", "".join(names)):
        return ""
    return f"expected cells separated by {form.separator!r}, found {names[0][:80]!r}; set separator"


def cells_fault(expected: int, found: int, separator: str) -> str:
    """Return the message for a line with too few or too many cells."""
    return f"expected {expected} cells separated by {separator!r}, found {found}; correct the line"


def split(line: str, separator: str) -> list[str]:
    """Return a line's cells; a quoted cell may hold the separator."""
    if '"' not in line:
        return line.split(separator)
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:  # a cell beyond csv's limit is no number or name either way
        return line.split(separator)


def names_of(cells: Iterable[str], form: FileFormat) -> list[str]:
    """Return column names without the spaces around them and without the prefix."""
    return [cell.strip().strip('"').strip().removeprefix(form.remove_prefix).strip() for cell in cells]


def codec(encoding: str) -> str:
    """Return the codec of an encoding; for UTF-8, the one that drops the byte order mark that spreadsheets write."""
    return "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding


def _encoding_issue(path: Path, name: str, encoding: str) -> Issue:
    """Return the first line that is not written in the encoding."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode(encoding)
            except UnicodeDecodeError as error:
                return Issue(name, encoding_fault(encoding, line[error.start]), number)
    return Issue(name, f"not {encoding}; set encoding")


def encoding_fault(encoding: str, byte: int) -> str:
    """Return the message for a byte that the encoding does not allow."""
    return f"not {encoding}: found the byte 0x{byte:02x}; set encoding (often cp1252), or convert the file"


def numbers_of(
    cells: pd.Series, form: FileFormat, states: Mapping[str, float] | None = None
) -> tuple[FloatArray, BoolArray]:
    """Return a column's numbers [n_rows], NaN if a value is missing; and where a cell holds no finite number.

    ``states`` are numbers that stand for texts.
    """
    absent = np.zeros(len(cells), dtype=np.bool_)
    if not pd.api.types.is_numeric_dtype(cells.dtype):
        texts = cells.astype(object).map(lambda cell: cell.strip() if isinstance(cell, str) else cell)
        if states:
            # Parquet holds truth values, which Python writes with a capital letter.
            texts = texts.map(lambda cell: states.get(str(cell), states.get(str(cell).lower(), cell)))
        absent = (texts.isna() | texts.isin(MISSING | set(form.missing))).to_numpy()
        if form.decimal != ".":
            texts = texts.map(lambda cell: _pointed(cell, form.decimal) if isinstance(cell, str) else cell)
        cells = pd.to_numeric(texts, errors="coerce")
    elif states and pd.api.types.is_bool_dtype(cells.dtype):
        cells = cells.map({truth: states.get(str(truth).lower(), float(truth)) for truth in (True, False)})
    else:
        absent = cells.isna().to_numpy()
    numbers = cells.to_numpy(np.float64, na_value=np.nan)
    codes = pd.to_numeric(pd.Series(form.missing, dtype=object), errors="coerce").dropna().tolist()
    if codes:  # -999 and -999.0 alike
        absent = absent | np.isin(numbers, codes)
    wrong = ~np.isfinite(numbers) & ~absent
    return (np.where(absent, np.nan, numbers) if codes else numbers), wrong


def _pointed(cell: str, decimal: str) -> str:
    """Return a number's text with a decimal point; a text that has one already is no number."""
    return "?" if "." in cell else cell.replace(decimal, ".")


def number_fault(cell: object, states: Mapping[str, float] | None = None) -> str:
    """Return the message for a cell that holds no finite number."""
    found = str(cell).strip()[:40]
    if states:
        declared = ", ".join(map(repr, list(states)[:10]))
        return f"expected a number or one of the declared states {declared}, found {found!r}"
    advice = "another decimal mark? then set decimal" if re.fullmatch(r"[+-]?\d+[.,]\d+", found) else "correct the cell"
    return f"expected a finite number, found {found!r}; {advice}, name it in files.missing, or ignore the column"


def header_fault(names: Sequence[str], needed: Mapping[str, str]) -> str:
    """Return which columns, given by name with what they are, are missing or occur twice; else an empty text."""
    faults = [
        f"the {what} {name!r} {'occurs twice' if name in names else 'is missing'}"
        for name, what in needed.items()
        if names.count(name) != 1
    ]
    return f"{first_of(faults, SHOWN)}; the columns are {first_of([*map(repr, names)], 20)}" if faults else ""
