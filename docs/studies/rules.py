"""What version 2 of the rules changed in the committed tables: the records and tables of rules.md.

    python docs/studies/rules.py --before     # keep the rows of version 1 from this repository's history, then the page
    python docs/studies/rules.py              # makes the page from these rows and today's leaderboards

Rows are paired by label. The data of pumploop are others now, so its two tables are not compared.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from study_files import Record, page_of, parser_of, read_records, write_page, write_records

from tsadbench.leaderboard.ranking import Summary
from tsadbench.utils.markdown import table_lines

PAGE = Path(__file__).with_suffix(".md")
BEFORE = PAGE.with_suffix(".jsonl")
ROOT = PAGE.parents[2]
# The last version of this repository whose tables are of version 1 of the rules.
VERSION_1 = "dcc9942"
TABLES = {
    "skab/published": "overall",
    "skab/strict": "overall",
    "skab/skab": "overall",
    "tep/strict": "detectable",
}
METRICS = {"auroc": "AUROC", "auprc": "AUPRC", "mcc": "MCC", "prac_f1": "Prac-F1"}


def rows_of(table: str, split: str, board: str, records: str) -> list[Record]:
    """Return the rows of a committed table: metrics as mean and deviation, and the fewest training steps of a fit.

    Parameters
    ----------
    table, split
        Names.
    board, records
        Texts of the table's CSV file and of the records behind it.
    """
    steps: dict[str, list[int]] = {}
    for line in records.splitlines():
        trial = json.loads(line)
        for fit in trial.get("training", []):
            if "steps" in fit["facts"]:
                steps.setdefault(trial["label"], []).append(fit["facts"]["steps"])
    return [
        {
            "table": table,
            "split": split,
            "row": row["detector"],
            "seeds": int(row["seeds"]),
            "steps": min(steps[row["detector"]]) if row["detector"] in steps else None,
            **{name: [_number(row[f"{name}_mean"]), _number(row[f"{name}_std"])] for name in METRICS},
        }
        for row in csv.DictReader(board.splitlines())
    ]


def before() -> Iterable[Record]:
    """Yield the rows of version 1, from this repository's history."""
    for table, split in TABLES.items():
        yield from rows_of(table, split, *(_shown(f"leaderboards/{table}/{file}") for file in _files(split)))


def today() -> Iterable[Record]:
    """Yield the rows of today's leaderboards."""
    for table, split in TABLES.items():
        texts = ((ROOT / "leaderboards" / table / file).read_text(encoding="utf-8") for file in _files(split))
        yield from rows_of(table, split, *texts)


def lines(table: str, old: Sequence[Record], new: Sequence[Record]) -> list[str]:
    """Return one table of the page: each row of today beside the row of its label in version 1."""
    header = ["row", "seeds", "steps", *METRICS.values()]
    earlier: Mapping[str, Record] = {row["row"]: row for row in old if row["table"] == table}
    return table_lines(
        header,
        [
            [
                f"`{row['row']}`",
                _change(earlier.get(row["row"]), row, "seeds"),
                _change(earlier.get(row["row"]), row, "steps"),
                *(_metric(earlier.get(row["row"]), row, name) for name in METRICS),
            ]
            for row in new
            if row["table"] == table
        ],
    )


def page() -> str:
    """Return the page, made of the kept rows and today's leaderboards."""
    return page_of(PAGE, _block())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the script and return the exit code."""
    parser = parser_of(__doc__)
    parser.add_argument("--before", action="store_true", help=f"read the rows of version 1 from commit {VERSION_1}")
    if parser.parse_args(arguments).before:
        write_records(BEFORE, before())
    write_page(PAGE, _block())
    return 0


def _block() -> Callable[[str], Sequence[str]]:
    old, new = read_records(BEFORE), list(today())
    return lambda table: lines(table, old, new)


def _files(split: str) -> tuple[str, str]:
    return f"{split}.csv", "records.jsonl"


def _shown(path: str) -> str:
    command = ["git", "show", f"{VERSION_1}:{path}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _number(text: str) -> float | None:
    return float(text) if text else None


def _text(row: Record, name: str) -> str:
    return "-" if row[name] is None else str(row[name])


def _change(old: Record | None, new: Record, name: str) -> str:
    now = _text(new, name)
    return now if old is None or _text(old, name) == now else f"{_text(old, name)} → {now}"


def _metric(old: Record | None, new: Record, name: str) -> str:
    now = Summary(*new[name]).text()
    then = None if old is None else Summary(*old[name]).text()
    return f"new: {now}" if then is None else now if then == now else f"{then} → {now}"


if __name__ == "__main__":
    sys.exit(main())
