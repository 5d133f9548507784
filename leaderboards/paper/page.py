"""The page ``docs/reproduction.md``: written from records, never by hand."""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import reading
from comparison import MARKS, ComparedRow, to_markdown
from paper import HERE, PROTOCOL, SEEDS, Table, contradictions, labels, summary_of

from tsadbench.api import number, table_lines

Compared: TypeAlias = Mapping[Table, Sequence[ComparedRow]]

# Why rows are off: written by hand, each with the script that showed it.
_EXPLANATIONS = {
    label: one
    for one in tomllib.loads((HERE / "explanations.toml").read_text(encoding="utf-8"))["explanation"]
    for label in one["labels"]
}
_GRAPHS = {
    "the prior": "dprgm",
    "no graph": "dprgm[graph=none]",
    "random": "dprgm[graph=random]",
    "complete": "dprgm[graph=complete]",
}


def page(compared: Compared, published: reading.Rows, strict: reading.Rows) -> str:
    """Return the page as Markdown.

    Parameters
    ----------
    compared
        The rows of each table next to the paper's.
    published, strict
        Our rows under the paper's protocol and under `strict`, by label and split, including floors.
    """
    shown = [label for label in labels() if not label.startswith("dprgm[")]
    row = published["dprgm", "overall"]
    best = reading.best_floors(published, "overall")
    template = (HERE / "page.md").read_text(encoding="utf-8")
    return template.format(
        protocol=PROTOCOL,
        n_rows=f"{row.n_rows:,.0f} rows",
        last_seed=SEEDS - 1,
        verdicts=_verdicts(compared),
        tables="\n".join(_table(table, rows) for table, rows in compared.items()),
        flagging="\n\n".join(_flagging(published, split, shown) for split in ("valve1", "valve2")),
        best_floors=", ".join(f"{metric} {number(value, 4)} (`{label}`)" for metric, (label, value) in best.items()),
        above_floors=reading.above_floors(published, "overall", shown),
        **_graphs(published),
        ranks=number(reading.rank_agreement(published, strict, "overall", shown), 3),
        contradictions=_contradictions(),
        made=_made(row.records[0].manifest),
    )


def unexplained(compared: Compared) -> list[str]:
    """Return the labels of rows that are off without an explanation."""
    off = {row.method.label for rows in compared.values() for row in rows if row.off}
    return sorted(label for label in off if label not in _EXPLANATIONS)


def _verdicts(compared: Compared) -> str:
    lines = []
    for table, rows in compared.items():
        cells = [cell for row in rows for cell in row.cells if cell.paper is not None]
        counts = Counter(cell.verdict for cell in cells)
        lines.append([_name(table), str(len(cells)), *(str(counts[verdict]) for verdict in (*MARKS, None))])
    return "\n".join(table_lines(["table", "cells", *MARKS.values(), "not run"], lines))


def _name(table: Table) -> str:
    return table.title if table.number is None else f"Table {table.number}: {table.title}"


def _table(table: Table, rows: Sequence[ComparedRow]) -> str:
    lines = [f"## {_name(table)}", ""]
    if table.number is None:
        lines += [
            "Commented out in the paper's source, over 20 runs; ours are five. `random` and `complete` are ours.",
            "",
        ]
    lines += [f"![{_name(table)}](reproduction/{table.file}.svg)", "", to_markdown(table, rows)]
    for label in dict.fromkeys(row.method.label for row in rows if row.off):
        why = _EXPLANATIONS.get(label)
        if why is None:
            lines += [f"**`{label}`**: not explained yet.", ""]
        else:
            output = Path(why["script"]).with_suffix(".txt").name
            source = f"[{output}](reproduction/{output}), commit {why['commit']}"
            lines += [f"**`{label}`**: {why['text'].strip()} ({source})", ""]
    return "\n".join(lines)


def _flagging(published: reading.Rows, split: str, shown: Sequence[str]) -> str:
    flagging = reading.flags_everything(published, split, shown)
    n_detectors = len(reading.of_split(published, split, shown))
    names = ", ".join(f"`{label}`" for label in flagging) or "none"
    return f"On {split}, {len(flagging)} of {n_detectors} detectors flag more than 99.9 % of the rows: {names}."


def _graphs(published: reading.Rows) -> dict[str, str]:
    """Return DPR-GM's AUPRC by the source of its graph, and the largest distance of another source from the prior."""
    rows = {name: published.get((label, "overall")) for name, label in _GRAPHS.items()}
    auprc = {name: summary_of(row, "auprc") for name, row in rows.items() if row is not None and row.ok}
    means = {name: one.mean for name, one in auprc.items() if one.mean is not None}
    prior = means.get("the prior", math.nan)
    return {
        "graphs": ", ".join(f"{name} {one.text()}" for name, one in auprc.items()),
        "prior_gap": number(max((abs(mean - prior) for mean in means.values()), default=math.nan), 3),
    }


def _contradictions() -> str:
    lines = []
    for metric, means in contradictions():
        values = ", ".join(f"{number(mean, 4)} in {_short(table)}" for table, mean in means)
        lines.append(f"- {metric}: {values}")
    return "\n".join(lines)


def _short(table: Table) -> str:
    return "the ablation that is commented out" if table.number is None else f"Table {table.number}"


def _made(manifest: Mapping[str, Any]) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in manifest["versions"].items())
    return (
        f"\n## Made with\n\n{packages}; {manifest['platform']}, {manifest['cpu_count']} cores; data "
        f"{manifest['data_hash']}. Every trial's record: `leaderboards/paper/records.jsonl`."
    )
