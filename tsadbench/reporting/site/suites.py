"""Rankings over the data sets of a suite, as the site's table and figure take them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from tsadbench.analysis.significance.ranking import Ranking
from tsadbench.leaderboard.ranking import Row
from tsadbench.reporting.site.content import rounded, target_of
from tsadbench.reporting.site.source import Table
from tsadbench.utils.parameters import JsonValue

_INTERVAL = "Intervals hold 90 % of resamples of data sets and of sessions inside them (docs/comparing.md)."


def suite_entry(ranking: Ranking, file: str) -> dict[str, JsonValue]:
    """Return what the list of tables says of a suite."""
    return {
        "id": file,
        "kind": "suite",
        "dataset": f"suite {ranking.suite}",
        "protocol": ranking.protocol,
        "tables": [{"split": "all data sets"}],
        "by_recording": False,
    }


def suite_content(ranking: Ranking, tables: Sequence[Table], pages: Mapping[str, str]) -> dict[str, JsonValue]:
    """Return mean ranks with intervals, floors beaten, wins, and the rank on each data set."""
    rows = [row for table in tables if table.first.rules == ranking.protocol for row in table.main]
    parts = ranking.datasets["dataset"].tolist()
    lines = ranking.frame.astype(object).where(ranking.frame.notna(), None).to_dict("records")
    return {
        "summary": ranking.title,
        "legend": _INTERVAL,
        "notes": list[JsonValue](ranking.sentences),
        "metrics": [],
        "parts": list[JsonValue](parts),
        "rows": [_standing(one, parts, [row for row in rows if row.label == one["detector"]], pages) for one in lines],
    }


def _standing(
    line: Mapping[Hashable, Any], parts: Sequence[str], rows: Sequence[Row], pages: Mapping[str, str]
) -> JsonValue:
    label = line["detector"]
    estimates = {
        key: {"value": line[name], "low": line[f"{name}_low"], "high": line[f"{name}_high"]}
        for key, name in (("rank", "rank"), ("beats", "beats_floors"))
    }
    return rounded(
        {
            "label": label,
            "floor": line["floor"],
            "folded": False,
            "status": "ok",
            "marks": {},
            "metrics": {},
            "page": pages.get(target_of(label), ""),
            "kind": rows[0].first.family if rows else "",
            "look_ahead": max((row.first.look_ahead for row in rows), default=0),
            "seal": "guarded" if any(row.seal == "guarded" for row in rows) else "sealed",
            "pretrained": ", ".join(dict.fromkeys(name for row in rows for name in row.pretrained_on)),
            "complete": line["complete"],
            "n_datasets": line["datasets"],
            **estimates,
            "wins": line["wins"],
            "pairs": line["pairs"],
            "on": {
                name: {key: line[f"{name}_{key}"] for key in ("rank", "value", "status", "beats_floors")}
                for name in parts
            },
        }
    )
