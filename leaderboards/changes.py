"""Write what has changed between two versions of the leaderboards into their changelog: rows new, gone and moved.

A row has moved if the mean of a metric is another by more than the spread of its seeds, in either version; one that has
a single seed if it is another at all. Rows that other rules judged, or that were made on another version of the data,
are not compared. Why something changed is for a person to write: each table has a line for it, and what is written
there is kept.

    python leaderboards/changes.py                # since the newest frozen version: prints the section
    python leaderboards/changes.py --write        # writes it into leaderboards/CHANGELOG.md
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

HERE = Path(__file__).parent
FROZEN = "frozen.json"
CHANGELOG = "CHANGELOG.md"
# Rows by split and label.
Splits: TypeAlias = Mapping[str, Mapping[str, "Row"]]
UNWRITTEN = "_to be written_"
TITLE = """# Changelog of the leaderboards

What rows are new, are gone or have moved in each version of the committed tables, and why. `make changes` writes the
section since the newest frozen version; the lines that begin with "Why:" are written by a person
([versions](../docs/protocol.md#versions)).
"""
METRICS = ("prac_f1", "mcc", "auroc", "auprc", "f1")
# What the last bits of a mean over seeds differ by.
ROUNDING = 1e-9
_WHY = re.compile(r"^### (.+?)\n\nWhy: (.+?)\n\n", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table: its metrics' means and spreads over seeds, NaN-free; and what it can be compared with."""

    status: str
    rules: str
    means: Mapping[str, float]
    spreads: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Changes:
    """What is another in one table."""

    table: str
    rules: str = ""
    new: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.rules or self.new or self.gone or self.moved)

    def lines(self, why: str) -> Iterator[str]:
        """Yield the section of the changelog on this table."""
        yield from (f"### {self.table}", "", f"Why: {why}", "")
        if self.rules:
            yield f"- not compared: {self.rules}"
        for what, rows in (("new", self.new), ("gone", self.gone)):
            if rows:
                yield f"- {what}: {', '.join(f'`{row}`' for row in rows)}"
        yield from (f"- moved: {row}" for row in self.moved)
        yield ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print or write the changes, and return the exit code."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--tables", type=Path, default=HERE, help="folder of the committed tables")
    parser.add_argument("--write", action="store_true", help="write the section into CHANGELOG.md (default: print it)")
    options = parser.parse_args(arguments)
    top: Path = options.tables
    text = section(top)
    if not options.write:
        sys.stdout.write(text)
        return 0
    file = top / CHANGELOG
    _, older = parts(file)
    file.write_text(f"{TITLE}\n{text}{older}", encoding="utf-8")
    print(f"{file}: {text.count(UNWRITTEN)} reasons to be written")
    return 0


def section(top: Path) -> str:
    """Return the section on the tables as they are now, with the reasons that are written already."""
    last = newest(top)
    whys = dict(_WHY.findall(parts(top / CHANGELOG)[0]))
    now = tables_of(top)
    if last is None:
        rows = {table: {label for rows in splits.values() for label in rows} for table, splits in now.items()}
        lines = [
            f"- {table}: {len(labels)} rows in {len(now[table])} split{'s' if len(now[table]) > 1 else ''}"
            for table, labels in rows.items()
        ]
        return "\n".join(["## First version", "", *lines, "", ""])
    before = tables_of(last)
    versions = dataset_versions(last), dataset_versions(top)
    lines = [f"## Since {last.name}", ""]
    for table in sorted({*before, *now}):
        then, today = (one.get(table.partition("/")[0], 1) for one in versions)
        if found := changes(table, before.get(table, {}), now.get(table, {}), then, today):
            lines += found.lines(whys.get(table, UNWRITTEN))
    return "\n".join([*lines, *([] if len(lines) > 2 else ["Nothing has changed.", ""]), ""])


def changes(table: str, before: Splits, now: Splits, then: int, today: int) -> Changes:
    """Compare one table of two versions.

    Parameters
    ----------
    table
        ``<data set>/<protocol>``.
    before, now
        Its rows by split and label.
    then, today
        The version of its data set.
    """
    labels_before, labels = ({label: None for rows in one.values() for label in rows} for one in (before, now))
    new = [label for label in labels if label not in labels_before]
    gone = [label for label in labels_before if label not in labels]
    both = [label for label in labels if label in labels_before]
    if both and then != today:
        return Changes(table, f"the data set was version {then} and is now {today}", new, gone)
    rules: dict[str, None] = {}
    moved: dict[str, list[str]] = {}
    for split, label in ((split, label) for split, rows in now.items() for label in rows):
        former = before.get(split, {}).get(label)
        if former is None:
            continue
        row = now[split][label]
        if former.rules != row.rules:
            rules[f"rules {former.rules} are now {row.rules}"] = None
        elif what := moves(former, row):
            moved.setdefault(label, []).append(f"`{label}` on {split}: {what}")
    lines = [first + (f", and in {len(others)} more splits" if others else "") for first, *others in moved.values()]
    return Changes(table, "; ".join(rules), new, gone, lines)


def moves(before: Row, now: Row) -> str:
    """Return which metrics of a row are others by more than its seeds' spread; empty if none is."""
    if before.status != now.status:
        return f"status {before.status} is now {now.status}"
    found = []
    for metric in METRICS:
        if (metric in before.means) != (metric in now.means):
            found.append(f"{metric} {'is defined now' if metric in now.means else 'is no longer defined'}")
        elif metric in now.means:
            spread = max(before.spreads.get(metric, 0.0), now.spreads.get(metric, 0.0))
            if abs(now.means[metric] - before.means[metric]) > max(spread, ROUNDING):
                values = f"{before.means[metric]:.4f} is now {now.means[metric]:.4f}"
                found.append(f"{metric} {values} (seeds {spread:.4f})" if spread else f"{metric} {values}")
    return ", ".join(found)


def tables_of(folder: Path) -> dict[str, dict[str, dict[str, Row]]]:
    """Return the rows of all tables below a folder, by ``<data set>/<protocol>``, split (overall first) and label."""
    files = [file for file in folder.glob("*/*/*.csv") if file.parts[-3] != "suites"]
    tables: dict[str, dict[str, dict[str, Row]]] = {}
    for file in sorted(files, key=lambda one: (one.parent, one.stem != "overall", one.stem)):
        tables.setdefault("/".join(file.parts[-3:-1]), {})[file.stem] = rows_of(file)
    return tables


def rows_of(file: Path) -> dict[str, Row]:
    """Return the rows of a table by label."""
    with file.open(encoding="utf-8", newline="") as stream:
        return {row["detector"]: _row(row) for row in csv.DictReader(stream)}


def _row(cells: Mapping[str, str]) -> Row:
    def numbers(ending: str) -> dict[str, float]:
        return {name: float(text) for name in METRICS if (text := cells.get(f"{name}_{ending}") or "")}

    return Row(cells["status"], cells.get("protocol_version") or "1", numbers("mean"), numbers("std"))


def dataset_versions(folder: Path) -> dict[str, int]:
    """Return the version of each data set: of a frozen folder as it was noted, else of its tables' JSON."""
    if (folder / FROZEN).is_file():
        noted = json.loads((folder / FROZEN).read_text(encoding="utf-8"))["datasets"]
        return {name: one["version"] for name, one in noted.items()}
    found: dict[str, int] = {}
    for file in sorted(folder.glob("*/*/*.json")):
        rows = json.loads(file.read_text(encoding="utf-8")).get("rows", ())
        for row in rows:
            found[row["dataset"]] = max(found.get(row["dataset"], 1), row.get("dataset_version", 1))
    return found


def newest(top: Path) -> Path | None:
    """Return the folder of the newest frozen version; None if there is none."""
    return max(frozen(top), key=number, default=None)


def frozen(top: Path) -> list[Path]:
    """Return the folders of frozen versions, oldest first."""
    return sorted((one for one in top.glob("v*") if re.fullmatch(r"v[1-9]\d*", one.name) and one.is_dir()), key=number)


def number(folder: Path) -> int:
    """Return the number of a frozen version."""
    return int(folder.name[1:])


def parts(file: Path) -> tuple[str, str]:
    """Return a changelog's section on what is not frozen yet, and all older sections; empty if there is none."""
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)[1:]
    if sections and not re.match(r"## v[1-9]", sections[0]):
        return sections[0], "".join(sections[1:])
    return "", "".join(sections)


if __name__ == "__main__":
    sys.exit(main())
