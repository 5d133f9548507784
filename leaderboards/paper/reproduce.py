"""Write the paper's tables next to ours from the committed records: ``python leaderboards/paper/reproduce.py``.

With ``--run FOLDER`` the missing trials are run first (half an hour on two cores), kept in that run store, and their
records replace the committed ones (``make reproduce``).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from comparison import beside_paper
from figures import draw
from page import page, unexplained
from paper import HERE, PROTOCOL, SEEDS, TABLES, labels
from repository import repository_page

import tsadbench

RECORDS = "records.jsonl"
DOCS = HERE.parents[1] / "docs"


def run(store: Path) -> tuple[tsadbench.Record, ...]:
    """Run the missing trials of all tables, and return the records of every row, floors included."""
    board = tsadbench.run(labels(), "skab", PROTOCOL, seeds=SEEDS, out=store)
    return tuple(board.records)


def committed(folder: Path) -> tuple[tsadbench.Record, ...]:
    """Return the records of a committed table."""
    file = folder / RECORDS
    return tuple(tsadbench.Record.from_json(line, str(file)) for line in file.read_text("utf-8").splitlines())


def write(records: tuple[tsadbench.Record, ...]) -> list[str]:
    """Write pages, tables and figures; return the labels of rows that are off without an explanation."""
    skab = HERE.parent / "skab"
    tables = (records, committed(skab / "strict"), committed(skab / "skab"))
    rows, strict, as_skab = (tsadbench.Leaderboard.from_records(one).frame for one in tables)
    compared = {table: beside_paper(table, rows) for table in TABLES}
    texts = {
        DOCS / "reproduction.md": page(compared, rows, strict),
        DOCS / "skab-leaderboard.md": repository_page(as_skab),
    }
    for table, cells in compared.items():
        texts[HERE / f"{table.file}.csv"] = cells.to_csv(index=False)
        draw(table, cells, DOCS / "reproduction" / f"{table.file}.svg")
    for file, text in texts.items():
        file.write_text(text, encoding="utf-8")
    return unexplained(compared)


def main() -> int:
    """Write everything; exit code 1 if a trial failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, metavar="FOLDER", help="run store: run what it lacks")
    arguments = parser.parse_args()
    if arguments.run is None:
        records = committed(HERE)
    else:
        records = run(arguments.run)
        ordered = sorted(records, key=lambda one: (one.label, one.seed))
        text = "".join(f"{one.to_json(indent=None)}\n" for one in ordered)
        (HERE / RECORDS).write_text(text, encoding="utf-8")
    for label in write(records):
        print(f"{label} differs from the paper without an explanation yet", file=sys.stderr)
    failed = [record for record in records if record.status != "ok"]
    for record in failed:
        print(f"{record.label}, seed {record.seed}: {record.status}: {record.reason}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
