"""The page ``docs/reproduction.md``: written from records, never by hand."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd
import reading
from comparison import MARKS, off, to_markdown
from paper import HERE, PROTOCOL, SEEDS, Table, labels, mean_std

from tsadbench.api import number, table_lines

Compared: TypeAlias = Mapping[Table, pd.DataFrame]  # the cells of each table next to the paper's

# Why rows are off: written by hand, each with the script that showed it.
_EXPLANATIONS = {
    label: one
    for one in tomllib.loads((HERE / "explanations.toml").read_text(encoding="utf-8"))["explanation"]
    for label in one["labels"]
}
_GRAPHS = {
    "dprgm": "the prior",
    "dprgm[graph=none]": "no graph",
    "dprgm[graph=random]": "random",
    "dprgm[graph=complete]": "complete",
}


def page(compared: Compared, published: pd.DataFrame, strict: pd.DataFrame) -> str:
    """Return the page as Markdown; our rows under both protocols are each a `Leaderboard.frame`."""
    shown = [label for label in labels() if not label.startswith("dprgm[")]
    dprgm = reading.of_split(published, "overall", ["dprgm"]).iloc[0]
    best = reading.best_floors(published, "overall")
    template = (HERE / "page.md").read_text(encoding="utf-8")
    return template.format(
        protocol=PROTOCOL,
        n_rows=f"{dprgm['n_rows']:,.0f} rows",
        last_seed=SEEDS - 1,
        verdicts=_verdicts(compared),
        tables="\n".join(_table(table, cells) for table, cells in compared.items()),
        flagging="\n\n".join(_flagging(published, split, shown) for split in ("valve1", "valve2")),
        best_floors=", ".join(f"{metric} {number(value, 4)} (`{label}`)" for metric, (label, value) in best.items()),
        above_floors=reading.above_floors(published, "overall", shown),
        **_graphs(published),
        ranks=number(reading.rank_agreement(published, strict, "overall", shown), 3),
        contradictions=_contradictions(compared),
        made=_made(dprgm["records"][0].manifest),
    )


def unexplained(compared: Compared) -> list[str]:
    """Return the labels of rows that are off without an explanation."""
    return sorted({label for cells in compared.values() for label in off(cells)} - {*_EXPLANATIONS})


def _verdicts(compared: Compared) -> str:
    lines = []
    for table, cells in compared.items():
        printed = cells.dropna(subset="paper_mean")
        counts = Counter(printed["verdict"].fillna("not run"))
        lines.append([table.name, str(len(printed)), *(str(counts[verdict]) for verdict in (*MARKS, "not run"))])
    return "\n".join(table_lines(["table", "cells", *MARKS.values(), "not run"], lines))


def _table(table: Table, cells: pd.DataFrame) -> str:
    lines = [f"## {table.name}", ""]
    if table.number is None:
        lines += [
            "Commented out in the paper's source, over 20 runs; ours are five. `random` and `complete` are ours.",
            "",
        ]
    lines += [f"![{table.name}](reproduction/{table.file}.svg)", "", to_markdown(cells)]
    for label in off(cells):
        why = _EXPLANATIONS.get(label)
        if why is None:
            lines += [f"**`{label}`**: not explained yet.", ""]
        else:
            output = Path(why["script"]).with_suffix(".txt").name
            source = f"[{output}](reproduction/{output}), commit {why['commit']}"
            lines += [f"**`{label}`**: {why['text'].strip()} ({source})", ""]
    return "\n".join(lines)


def _flagging(published: pd.DataFrame, split: str, shown: Sequence[str]) -> str:
    flagging = reading.flags_everything(published, split, shown)
    n_detectors = len(reading.of_split(published, split, shown))
    names = ", ".join(f"`{label}`" for label in flagging) or "none"
    return f"On {split}, {len(flagging)} of {n_detectors} detectors flag more than 99.9 % of the rows: {names}."


def _graphs(published: pd.DataFrame) -> dict[str, str]:
    """Return DPR-GM's AUPRC by the source of its graph, and the largest distance of another source from the prior."""
    rows = reading.of_split(published, "overall", list(_GRAPHS))
    named = zip(map(_GRAPHS.__getitem__, rows.index), rows["auprc_mean"], rows["auprc_std"], strict=True)
    return {
        "graphs": ", ".join(f"{name} {mean_std(mean, std)}" for name, mean, std in named),
        "prior_gap": number((rows["auprc_mean"] - rows["auprc_mean"]["dprgm"]).abs().max(), 3),
    }


def _contradictions(compared: Compared) -> str:
    """Return the metrics of DPR-GM's overall row that differ from table to table in the paper."""
    cells = pd.concat({_short(table): cells for table, cells in compared.items()}, names=["table"]).reset_index("table")
    printed = cells[(cells["detector"] == "dprgm") & (cells["split"] == "overall")].dropna(subset="paper_mean")
    lines = []
    for metric, means in printed.groupby("metric", sort=False):
        if means["paper_mean"].nunique() > 1:
            values = zip(means["paper_mean"], means["table"], strict=True)
            lines.append(f"- {metric}: " + ", ".join(f"{number(mean, 4)} in {table}" for mean, table in values))
    return "\n".join(lines)


def _short(table: Table) -> str:
    return "the ablation that is commented out" if table.number is None else f"Table {table.number}"


def _made(manifest: Mapping[str, Any]) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in manifest["versions"].items())
    return (
        f"\n## Made with\n\n{packages}; {manifest['platform']}, {manifest['cpu_count']} cores; data "
        f"{manifest['data_hash']}. Every trial's record: `leaderboards/paper/records.jsonl`."
    )
