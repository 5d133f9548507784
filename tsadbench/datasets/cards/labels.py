"""Labels in files of their own, one a row."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.cards.files import File, find_file
from tsadbench.datasets.cards.opening import open_tables
from tsadbench.datasets.cards.rows import RowReader
from tsadbench.datasets.cards.schema import Card
from tsadbench.datasets.cards.sections import LabelFiles
from tsadbench.datasets.reading.cells import canonical
from tsadbench.datasets.reading.text import MalformedError
from tsadbench.utils.arrays import BoolArray
from tsadbench.utils.issues import Issue
from tsadbench.utils.parameters import nearest


def label_format(card: Card, labels: LabelFiles) -> FileFormat:
    """Return how files of labels are written: as the data files, but with the columns' names in the first line."""
    own = labels.model_dump(include={"header_line", "remove_prefix"}, exclude_none=True)
    return card.file_format(labels.model_copy(update={"header_line": 1, "remove_prefix": ""} | own))


def label_file(labels: LabelFiles, id_: str) -> str:
    """Return the file, relative to the data folder, that has the labels of a recording."""
    return str(labels.file).replace("{id}", id_).replace("{name}", PurePosixPath(id_).name)


def labels_of_rows(
    card: Card, labels: LabelFiles, folder: Path, id_: str, n_rows: int, *, required: bool
) -> tuple[BoolArray | None, list[Issue]]:
    """Return the labels of one recording from its own file, and what is wrong with them."""
    name = label_file(labels, id_)
    if not required and not (folder / name).exists():
        return None, []
    try:
        file = File(find_file(folder, name, "labels.file"), name, id_)
    except MalformedError as error:
        return None, [Issue(name, f"{error.text}; it holds the labels of recording {id_!r}")]
    declared = {canonical(value) for value in (*card.columns.anomalous, *card.columns.normal)}
    tables, issues = open_tables(
        file,
        label_format(card, labels),
        lambda names: labels.column is None or labels.column in names,
        is_label=lambda text: canonical(text) in declared,
    )
    if issues:
        return None, issues
    try:
        if len(tables) != 1:
            raise MalformedError(f"expected one array with the labels, found {list(tables)[:10]}")
        table = next(iter(tables.values()))
        if labels.column is not None and labels.column not in table.header:
            raise MalformedError(f"the label column {labels.column!r} is missing{nearest(labels.column, table.header)}")
        if labels.column is None and len(table.header) != 1:
            raise MalformedError(f"expected one column, found {len(table.header)}; name the labels' by labels.column")
        if table.n_rows != n_rows:
            raise MalformedError(
                f"expected {n_rows} labels, one for each row of recording {id_!r}, found {table.n_rows}"
            )
        column = 0 if labels.column is None else table.header.index(labels.column)
        return RowReader([name], [table], label_format(card, labels), card.columns).labels(column)
    except MalformedError as error:
        return None, [Issue(name, error.text, error.line)]
    except (OSError, ValueError) as error:
        return None, [Issue(name, f"cannot be read ({' '.join(str(error).split())[:200]})")]
