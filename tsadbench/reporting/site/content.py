"""What the site's scripts read: the list of tables, each split's rows, metrics by recording, rankings over suites."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import cast

from tsadbench.errors import UsageError
from tsadbench.leaderboard.cells import legend, summary_of
from tsadbench.leaderboard.presentation import KINDS, kind_place
from tsadbench.leaderboard.ranking import Row
from tsadbench.reporting.html import tables as report_tables
from tsadbench.reporting.html.compact import packed
from tsadbench.reporting.html.extent import Extent
from tsadbench.reporting.html.page import embedded
from tsadbench.reporting.site.scores import Scores
from tsadbench.reporting.site.source import Table, by_recording, recordings, split_members
from tsadbench.utils.parameters import JsonValue, parse_label

# Significant digits of a number: more than tables show, at half the size.
_DIGITS = 6
# Keys of the report's rows that no part of the site shows.
_UNUSED = ("pretrained_on", "replay", "seal_reasons", "diagnostics", "stored")


def script(name: str, content: Mapping[str, JsonValue]) -> str:
    """Return a script that hands content to the page that loads it: also pages from a file can load it."""
    return f"arrived({json.dumps(name, ensure_ascii=True)}, {embedded(content)});\n"


def split_content(table: Table, split: str, pages: Mapping[str, str]) -> dict[str, JsonValue]:
    """Return the rows of one split, with all that their table shows."""
    rows = next(rows for (*_, name), rows in table.board.tables().items() if name == split)
    board = table.board.where(table.board.frame["split"] == split)
    (shown,) = _objects(report_tables.tables(board, Extent.of(board, (), best=0)))
    by_label = {row.label: row for row in rows}
    return {**shown, "rows": [_row(one, by_label[str(one["label"])], pages) for one in _objects(shown["rows"])]}


def _row(shown: Mapping[str, JsonValue], row: Row, pages: Mapping[str, str]) -> JsonValue:
    kept = {key: value for key, value in shown.items() if key not in _UNUSED}
    return rounded(
        {
            **kept,
            "kind": row.first.family,
            "pretrained": ", ".join(row.pretrained_on),
            "checked": row.verdict.checked,
            "page": pages.get(target_of(row.label), ""),
        }
    )


def board_content(table: Table) -> dict[str, JsonValue]:
    """Return what the splits of a data set and protocol have in common."""
    first = table.first
    return {
        "summary": summary_of(table.board.rows),
        "legend": legend(table.board.rows),
        "notes": [str(note) for note in table.board.notes if note.concerns(first.dataset, first.protocol)],
        "metrics": metrics(table),
    }


def metrics(table: Table) -> list[JsonValue]:
    """Return the metrics of a table."""
    return report_tables.metrics(table.board)


def recordings_content(table: Table, scores: Scores | None, files: Mapping[str, str]) -> dict[str, JsonValue]:
    """Return the metrics of each recording by itself, in the form in which a report holds them; empty without any."""
    found = by_recording(table)
    if not found or table.values is None:
        return {}
    members = split_members(table)
    everywhere = [split for (*_, split) in table.board.tables() if split not in members]
    return {
        "recordings": [
            {
                "id": name,
                "n_rows": table.values.units[name,][0],
                "n_anomalous": table.values.units[name,][1],
                "splits": [*(split for split, ids in members.items() if name in ids), *everywhere],
                "scores": files.get(name),
            }
            for name in recordings(table.values)
        ],
        "unknown": list[JsonValue](everywhere),
        "detectors": [
            {
                "label": row.label,
                "floor": row.floor,
                "by_recording": {
                    name: packed([math.nan if value is None else value for value in values])
                    for name, values in found[row.label].items()
                },
            }
            for row in table.main
            if row.label in found
        ],
        "scores": None
        if scores is None
        else {
            "seeds": dict(scores.seeds),
            "usual": list(scores.usual),
            "unlabelled": scores.unlabelled,
            "others": list(scores.others),
        },
    }


def index_entry(table: Table, file: str, splits: Mapping[str, str]) -> dict[str, JsonValue]:
    """Return what the list of tables says of one: the folder of its data, and the file of each split."""
    return {
        "id": file,
        "kind": "table",
        "dataset": table.first.dataset,
        "protocol": table.first.rules,
        "tables": [{"split": split, "file": splits[split]} for (*_, split) in table.board.tables()],
        "by_recording": bool(by_recording(table)),
    }


def kinds_of(tables: Sequence[Table]) -> dict[str, str]:
    """Return the kinds of the rows with what they are in a word or two."""
    kinds = {row.first.family for table in tables for row in table.main}
    return {kind: KINDS.get(kind, kind).partition(":")[0] for kind in sorted(kinds, key=kind_place)}


def target_of(label: str) -> str:
    """Return the detector's name in a label, without its parameters; a label that is none stands for itself."""
    try:
        return parse_label(label).target
    except UsageError:
        return label


def rounded(value: JsonValue) -> JsonValue:
    """Return content with its numbers rounded to what readers can use."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def _objects(value: JsonValue) -> list[dict[str, JsonValue]]:
    return cast("list[dict[str, JsonValue]]", value)
