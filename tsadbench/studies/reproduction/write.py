"""Writes the pages, tables and figures of a reproduction."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tsadbench.errors import UsageError
from tsadbench.execution.record import Record
from tsadbench.execution.records_file import RECORDS
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.results.shipped import stored_records
from tsadbench.studies.reproduction.comparison import beside_paper, to_csv, to_markdown
from tsadbench.studies.reproduction.figures import draw
from tsadbench.studies.reproduction.page import page, unexplained
from tsadbench.studies.reproduction.paper import TABLES
from tsadbench.studies.reproduction.reading import Rows
from tsadbench.studies.reproduction.repository import repository_page
from tsadbench.utils.atomic_files import write_file

_OPERATING_POINTS = "reproduction/operating_points.txt"


def write(records: Sequence[Record], docs: Path, tables: Path) -> tuple[list[Path], list[str]]:
    """Write the pages, the tables and their figures.

    Parameters
    ----------
    records
        Our records under the paper's protocol, including floors.
    docs
        Folder of ``reproduction.md``, ``skab-leaderboard.md`` and, below ``reproduction/``, the figures.
    tables
        Folder of the tables as CSV and Markdown, and of all records.

    Returns
    -------
    tuple
        The files, and the labels of rows that are off without an explanation.

    Raises
    ------
    UsageError
        If a folder cannot be written to.
    """
    board = Leaderboard.from_records(records)
    rows = _rows(board)
    texts = {docs / "reproduction.md": page(rows, _shipped("strict"), _printed(docs / _OPERATING_POINTS))}
    if skab := _shipped("skab"):
        texts[docs / "skab-leaderboard.md"] = repository_page(skab)
    for table in TABLES:
        compared = beside_paper(table, rows)
        texts[tables / f"{table.file}.csv"] = to_csv(compared)
        texts[tables / f"{table.file}.md"] = f"# {table.title}\n\n{to_markdown(table, compared)}"
    texts[tables / RECORDS] = "".join(f"{line}\n" for lines in board.record_lines().values() for line in lines)
    for file, text in texts.items():
        write_file(file, text)
    figures = [docs / "reproduction" / f"{table.file}.svg" for table in TABLES]
    for table, figure in zip(TABLES, figures, strict=True):
        draw(table, beside_paper(table, rows), figure)
    return [*texts, *figures], unexplained(rows)


def _printed(file: Path) -> str:
    """Return the output of a script beside the page, if it has been run."""
    return file.read_text(encoding="utf-8") if file.is_file() else f"{file} is not here: run the script"


def _rows(board: Leaderboard) -> Rows:
    return {(row.label, row.split): row for row in board.rows}


def _shipped(protocol: str) -> Rows:
    """Return the rows of a leaderboard that ships with the package; none if there is no such leaderboard."""
    try:
        return _rows(Leaderboard.from_records(stored_records("skab", protocol)))
    except UsageError:
        return {}
