"""Writes the site: pages, scripts and data, from a folder of committed tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tsadbench._version import __version__
from tsadbench.errors import UsageError
from tsadbench.reporting.html.page import embedded
from tsadbench.reporting.site import content, detector_pages, table_pages
from tsadbench.reporting.site.names import file_names
from tsadbench.reporting.site.render import Pages, assets
from tsadbench.reporting.site.scores import Bank, scores_of
from tsadbench.reporting.site.source import Table, read_suites, read_tables
from tsadbench.reporting.site.suites import suite_content, suite_entry
from tsadbench.utils.files import require_own_folder, write_file
from tsadbench.utils.parameters import JsonValue

SCHEMA = 1
# What every page loads. It is written first, so that a site whose writing was interrupted is known as one.
_MARKER = "data/index.js"


@dataclass(frozen=True, slots=True)
class Site:
    """What was written: the folder, its pages, and the size of all files in bytes."""

    folder: Path
    pages: tuple[Path, ...]
    n_bytes: int


@dataclass(frozen=True, slots=True)
class _Names:
    """The addresses of pages from the site's top, by name."""

    detectors: Mapping[str, str]
    datasets: Mapping[str, str]
    protocols: Mapping[str, str]


def write_site(tables: Path, out: Path, *, documentation: str = "", bank: Path | None = None) -> Site:
    """Write the site of a folder of tables; files of an earlier site there are replaced.

    A UsageError if the folder holds no tables, lies inside the one to be written, the one to be written holds other
    files, or a file cannot be written. A StoreError if a table, or a file of the bank, cannot be read.
    """
    if tables.resolve().is_relative_to(out.resolve()):
        raise UsageError(f"{out}: it contains the tables that are read; choose another folder")
    require_own_folder(out, _MARKER, "that of an earlier site")
    menu = [("index.html", "Leaderboard"), ("detectors/index.html", "Detectors"), ("datasets/index.html", "Data sets")]
    menu += [("protocols/index.html", "Protocols"), *([(documentation, "Documentation")] if documentation else [])]
    pages = Pages(tuple(menu))
    found = read_tables(tables)
    scores = None if bank is None else Bank.open(bank)
    written = [write_file(out / name, text) for name, text in _files(pages, found, tables, scores)]
    html = tuple(file for file in written if file.suffix == ".html")
    return Site(out, html, sum(file.stat().st_size for file in written))


def _files(pages: Pages, tables: Sequence[Table], folder: Path, bank: Bank | None) -> Iterator[tuple[str, str]]:
    """Yield each file's path from the site's top, and its text."""
    suites = list(read_suites(folder))
    names = _names(tables)
    files = file_names(table.name for table in tables)
    suite_files = file_names(f"suite {one.suite} {one.protocol.rpartition(' ')[0]}" for one in suites)
    splits_of = {
        table.name: file_names(["table", "recordings", *(split for (*_, split) in table.board.tables())])
        for table in tables
    }
    entries = [suite_entry(one, file) for one, file in zip(suites, suite_files.values(), strict=True)]
    entries += [content.index_entry(table, files[table.name], splits_of[table.name]) for table in tables]
    yield _MARKER, f"const content = {embedded(_index(tables, entries, names))};\n"
    for one, file in zip(suites, suite_files.values(), strict=True):
        yield f"data/{file}.js", content.script(file, suite_content(one, tables, names.detectors))
    for table in tables:
        splits, folder_of = splits_of[table.name], files[table.name]
        yield _data(folder_of, "table", content.board_content(table))
        yield from _recordings(folder_of, table, bank)
        for *_, split in table.board.tables():
            yield _data(folder_of, splits[split], content.split_content(table, split, names.detectors))
    for name, text in assets().items():
        yield f"assets/{name}", text
    yield "index.html", pages.page("index", "index.html", "tsadbench leaderboards", kind="index", lead=_lead(tables))
    yield from detector_pages.files(pages, tables, suites, names.detectors)
    yield from table_pages.dataset_files(pages, tables, names.datasets)
    yield from table_pages.protocol_files(pages, tables, names.protocols)


def _recordings(folder: str, table: Table, bank: Bank | None) -> Iterator[tuple[str, str]]:
    """Yield the metrics of a table's recordings, and the scores of each."""
    scores = None if bank is None else scores_of(table, bank)
    files = file_names(scores.recordings if scores is not None else ())
    if by_recording := content.recordings_content(table, scores, files):
        yield _data(folder, "recordings", by_recording)
    if scores is not None:
        for name, found in scores.recordings.items():
            yield _data(f"{folder}/scores", files[name], found)


def _data(folder: str, name: str, found: Mapping[str, JsonValue]) -> tuple[str, str]:
    return f"data/{folder}/{name}.js", content.script(f"{folder}/{name}", found)


def _names(tables: Sequence[Table]) -> _Names:
    def addresses(folder: str, names: Iterable[str]) -> dict[str, str]:
        return {name: f"{folder}/{file}.html" for name, file in file_names(names).items()}

    labels = sorted({content.target_of(row.label) for table in tables for row in table.main}, key=str.casefold)
    return _Names(
        addresses("detectors", labels),
        addresses("datasets", (table.first.dataset for table in tables)),
        addresses("protocols", (table.first.protocol for table in tables)),
    )


def _index(tables: Sequence[Table], entries: Sequence[Mapping[str, JsonValue]], names: _Names) -> dict[str, JsonValue]:
    """Return what every page knows before it loads a table."""
    kinds: dict[str, JsonValue] = {**content.kinds_of(tables)}
    return {
        "schema": SCHEMA,
        "tsadbench": __version__,
        "boards": [dict(entry) for entry in entries],
        "kinds": kinds,
        "pages": {"datasets": dict[str, JsonValue](names.datasets), "protocols": dict[str, JsonValue](names.protocols)},
    }


def _lead(tables: Sequence[Table]) -> str:
    rows = [row for table in tables for row in table.main if not row.floor]
    trials = {record.trial for table in tables for row in table.board.rows for record in row.records}
    n_data = len({table.first.dataset for table in tables})
    n_detectors = len({content.target_of(row.label) for row in rows})
    return f"{n_detectors} detectors on {n_data} data sets, {len(trials):,} trials."
