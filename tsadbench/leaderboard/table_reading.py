"""Reads emitted tables back: CSV, JSON, Markdown and LaTeX, as `Leaderboard` writes them."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from tsadbench.errors import UsageError
from tsadbench.leaderboard.latex import PREAMBLE
from tsadbench.utils.parameters import JsonValue

TableFormat: TypeAlias = Literal["csv", "json", "markdown", "latex"]
_ENDINGS: dict[str, TableFormat] = {".csv": "csv", ".json": "json", ".md": "markdown", ".tex": "latex"}
# The columns that tell tables of one CSV apart; a file of one table lacks them.
_TABLE = ("dataset", "protocol", "protocol_version", "split")
_CAPTION = re.compile(r"\\caption\{(.*)\. Mean\(standard deviation\) over .*\}$")


@dataclass(frozen=True, slots=True)
class ReadTable:
    """A table of a file: its title, and each row's cells as texts by column; rows of one name are told apart."""

    title: str
    rows: Mapping[str, Mapping[str, str]]


def format_of(file: Path, text: str) -> TableFormat:
    """Return the format of a file by its ending, or else by how it begins; a UsageError if neither tells."""
    if file.suffix in _ENDINGS:
        return _ENDINGS[file.suffix]
    begins: dict[str, TableFormat] = {"{": "json", "### ": "markdown", PREAMBLE: "latex", "detector,": "csv"}
    begins["dataset,"] = "csv"
    for beginning, form in begins.items():
        if text.startswith(beginning):
            return form
    raise UsageError(f"--table {file}: expected a table as CSV, JSON, Markdown or LaTeX (.csv, .json, .md, .tex)")


def read_tables(text: str, form: TableFormat) -> list[ReadTable]:
    """Return the tables of a text.

    Raises
    ------
    UsageError
        If it is not a table of that format.
    """
    readers = {"csv": _csv, "json": _json, "markdown": _markdown, "latex": _latex}
    try:
        tables = readers[form](text)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, csv.Error) as error:
        raise UsageError(f"expected a table as {form}: {type(error).__name__}: {error}") from error
    if not tables:
        raise UsageError(f"expected a table as {form}, found none")
    return tables


def _csv(text: str) -> list[ReadTable]:
    rows = [{key: str(value) for key, value in row.items()} for row in csv.DictReader(io.StringIO(text))]
    tables: dict[str, list[tuple[str, Mapping[str, str]]]] = {}
    for row in rows:
        title = ", ".join(row[column] for column in _TABLE if column in row and "dataset" in row)
        tables.setdefault(title, []).append((row["detector"], row))
    return [ReadTable(title, _by_name(found)) for title, found in tables.items()]


def _json(text: str) -> list[ReadTable]:
    tables: dict[str, list[tuple[str, Mapping[str, str]]]] = {}
    for row in json.loads(text)["rows"]:
        title = ", ".join(str(row[key]) for key in _TABLE)
        tables.setdefault(title, []).append((row["label"], _flat("", row)))
    return [ReadTable(title, _by_name(found)) for title, found in tables.items()]


def _flat(name: str, value: JsonValue) -> dict[str, str]:
    if not isinstance(value, dict):
        return {name: json.dumps(value)}
    return {key: text for part, item in value.items() for key, text in _flat(f"{name}.{part}".strip("."), item).items()}


def _markdown(text: str) -> list[ReadTable]:
    tables = []
    for part in text.split("### ")[1:]:
        title, *lines = part.splitlines()
        cells = [re.split(r"(?<!\\) \| ", line[2:-2]) for line in lines if line.startswith("| ")]
        header, _, *rows = cells
        tables.append(ReadTable(title, _named(header, rows)))
    return tables


def _latex(text: str) -> list[ReadTable]:
    tables = []
    for part in text.split(r"\begin{table*}")[1:]:
        title = next(found[1] for line in part.splitlines() if (found := _CAPTION.match(line)))
        body = part.partition(r"\toprule")[2].partition(r"\bottomrule")[0]
        lines = [line.removesuffix(r" \\") for line in body.splitlines() if line.endswith(r" \\")]
        header, *rows = [line.split(" & ") for line in lines]
        tables.append(ReadTable(title, _named(header, rows)))
    return tables


def _named(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Mapping[str, Mapping[str, str]]:
    return _by_name([(_name(row[0]), dict(zip(header, row, strict=False))) for row in rows])


def _name(cell: str) -> str:
    """Return a row's name without the marks before it, which are words without a letter or a digit."""
    text = cell.removeprefix(r"\texttt{").removeprefix("{").removesuffix("}") if cell.endswith("}") else cell
    words = re.sub(r"\$[^$]*\$", "", text).split(" ")
    while len(words) > 1 and not re.search(r"\w", words[0]):
        words.pop(0)
    return " ".join(words)


def _by_name(rows: Sequence[tuple[str, Mapping[str, str]]]) -> Mapping[str, Mapping[str, str]]:
    found: dict[str, Mapping[str, str]] = {}
    for name, cells in rows:
        count = sum(known == name or known.startswith(f"{name} (row ") for known in found)
        found[f"{name} (row {count + 1} of this name)" if count else name] = cells
    return found
