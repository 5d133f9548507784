"""Rankings over the data sets of a suite, as the site's table and figure take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from tsadbench.leaderboard.ranking import Row
from tsadbench.reporting.site.content import rounded, target_of
from tsadbench.reporting.site.source import Table
from tsadbench.utils.parameters import JsonValue

_INTERVAL = "Intervals hold 90 % of resamples of data sets and of sessions inside them (docs/comparing.md)."


def suite_entry(ranking: Mapping[str, JsonValue], file: str) -> dict[str, JsonValue]:
    """Return what the list of tables says of a suite."""
    return {
        "id": file,
        "kind": "suite",
        "dataset": f"suite {ranking['suite']}",
        "protocol": f"{ranking['protocol']} {ranking.get('protocol_version', 1)}",
        "tables": [{"split": "all data sets"}],
        "by_recording": False,
    }


def suite_content(
    ranking: Mapping[str, JsonValue], tables: Sequence[Table], pages: Mapping[str, str]
) -> dict[str, JsonValue]:
    """Return mean ranks with intervals, floors beaten, wins, and the rank on each data set."""
    name = str(ranking["protocol"]), ranking.get("protocol_version", 1)
    rows = [
        row
        for table in tables
        if (table.first.protocol, table.first.first.protocol_version) == name
        for row in table.main
    ]
    standings = cast("list[dict[str, JsonValue]]", ranking["standings"])
    metric = str(ranking.get("metric", "auprc"))
    parts = [str(part["dataset"]) for part in cast("list[dict[str, JsonValue]]", ranking["parts"])]
    return {
        "summary": f"mean rank by {metric.upper()} over {len(parts)} data sets: {', '.join(parts)}",
        "legend": _INTERVAL,
        "notes": cast("list[JsonValue]", ranking.get("notes", [])),
        "metrics": [],
        "parts": list[JsonValue](parts),
        "rows": [_standing(one, [row for row in rows if row.label == one["label"]], pages) for one in standings],
    }


def _standing(standing: Mapping[str, JsonValue], rows: Sequence[Row], pages: Mapping[str, str]) -> JsonValue:
    label = str(standing["label"])
    on = cast("dict[str, dict[str, JsonValue]]", standing.get("on", {}))
    return rounded(
        {
            "label": label,
            "floor": standing["floor"],
            "folded": False,
            "status": "ok",
            "marks": {},
            "metrics": {},
            "page": pages.get(target_of(label), ""),
            "kind": rows[0].first.family if rows else "",
            "look_ahead": max((row.first.look_ahead for row in rows), default=0),
            "seal": "guarded" if any(row.seal == "guarded" for row in rows) else "sealed",
            "pretrained": ", ".join(dict.fromkeys(name for row in rows for name in row.pretrained_on)),
            "complete": bool(standing.get("complete", True)),
            "n_datasets": standing.get("n_datasets"),
            "rank": standing.get("mean_rank"),
            "beats": standing.get("beats_floors"),
            "wins": standing.get("wins"),
            "pairs": standing.get("pairs"),
            "on": {
                name: {key: one.get(key) for key in ("rank", "value", "status", "beats_floors")}
                for name, one in on.items()
            },
        }
    )
