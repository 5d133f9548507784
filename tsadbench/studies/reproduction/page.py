"""The page ``docs/reproduction.md``: written from records, never by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tsadbench.leaderboard.ranking import Row
from tsadbench.studies.reproduction import reading
from tsadbench.studies.reproduction.comparison import ComparedRow, compare, to_markdown
from tsadbench.studies.reproduction.explanations import explanation_of
from tsadbench.studies.reproduction.paper import PROTOCOL, SEEDS, TABLES, Table, contradictions, labels
from tsadbench.utils.markdown import number, table_lines

_SPLITS = ("overall", "valve1", "valve2", "other")
_NO_REASON = "**not explained yet**"


def page(published: reading.Rows, strict: reading.Rows, operating_points: str) -> str:
    """Return the page as Markdown.

    Parameters
    ----------
    published
        Our rows under the paper's protocol, by label and split, including floors.
    strict
        Our rows under `strict`; empty if there are none.
    operating_points
        The output of ``operating_points.py``.
    """
    tables = [(table, compare(table, published)) for table in TABLES]
    parts = [
        _head(published, tables),
        *(_table(table, compared) for table, compared in tables),
        _honest_reading(published, strict, operating_points),
        _contradictions(),
        _costs(published),
        _made(published),
    ]
    return "\n".join(parts)


def unexplained(published: reading.Rows) -> list[str]:
    """Return the labels of rows that are off without an explanation."""
    off = {row.method.label for table in TABLES for row in compare(table, published) if row.off}
    return sorted(label for label in off if explanation_of(label) is None)


def _head(published: reading.Rows, tables: Sequence[tuple[Table, list[ComparedRow]]]) -> str:
    row = published.get(("dprgm", "overall"))
    n_rows = f"{row.n_rows:,} rows" if row is not None and row.n_rows else "no rows yet"
    lines = [
        "# The paper's tables beside ours",
        "",
        f"Written by `tsadbench reproduce` (`make reproduce`), not by hand. SKAB, protocol `{PROTOCOL}` ({n_rows}), "
        f"seeds 0 to {SEEDS - 1}, one thread a trial; a detector that draws nothing runs once. Nothing was tuned on "
        "test labels, and no value was adapted to the paper's.",
        "",
        "A cell reads: ours mean(std) [the paper's mean(std)] difference, and a verdict: **=** within two pooled "
        "standard deviations, **≈** not that but within .02, **✗** off. The pooled deviation is "
        "sqrt((s1² + s2²) / 2); one run counts as s = 0. The same cells as CSV: `leaderboards/paper/`.",
        "",
    ]
    rows = []
    for table, compared in tables:
        cells = [cell for row in compared for cell in row.cells if cell.paper is not None]
        counts = Counter(cell.verdict for cell in cells)
        verdicts = [str(counts[verdict]) for verdict in ("within 2 sd", "within .02", "off", None)]
        rows.append([_name(table), str(len(cells)), *verdicts])
    return "\n".join([*lines, *table_lines(["table", "cells", "=", "≈", "✗", "not run"], rows)]) + "\n"


def _name(table: Table) -> str:
    return table.title if table.number is None else f"Table {table.number}: {table.title}"


def _table(table: Table, compared: Sequence[ComparedRow]) -> str:
    lines = [f"## {_name(table)}", ""]
    if table.number is None:
        lines += [
            "Apart, for it is not among the paper's results: it stands in the paper's source, commented out, over 20 "
            "runs; ours are five. `random` and `complete` are ours.",
            "",
        ]
    lines += [f"![{_name(table)}](reproduction/{table.file}.svg)", "", to_markdown(table, compared)]
    lines += _reasons(compared)
    return "\n".join(lines)


def _reasons(compared: Sequence[ComparedRow]) -> list[str]:
    off: dict[str, list[str]] = {}
    for row in compared:
        for cell in row.off:
            difference = number(cell.difference or 0.0, 3, signed=True)
            off.setdefault(row.method.label, []).append(f"{row.split} {cell.metric} {difference}")
    lines = []
    for label, cells in off.items():
        lines += [f"**`{label}` is off** in {', '.join(cells)}.", ""]
        why = explanation_of(label)
        if why is None:
            lines += [_NO_REASON, ""]
        else:
            lines += [why.text, "", f"`{why.script}` prints:", "", "```", why.printed, "```", ""]
    return lines


def _honest_reading(published: reading.Rows, strict: reading.Rows, operating_points: str) -> str:
    shown = [label for label in labels() if not label.startswith("dprgm[")]
    lines = ["## What the tables say when read honestly", "", "### On valve1 and valve2 thresholds flag everything", ""]
    for split in ("valve1", "valve2"):
        flagging = reading.flags_everything(published, split, shown)
        n = len(reading.of_split(published, split, shown))
        named = ", ".join(f"`{label}`" for label in flagging) or "none"
        lines += [f"On {split}, {len(flagging)} of {n} detectors flag more than 99.9 % of the rows: {named}.", ""]
    lines += [
        "Precision is then the share of anomalous rows, recall 1, F1 that of `all-positive`, MCC 0: the row says "
        "nothing about the detector. The reason lies in the data: training and test run at different operating points. "
        "`docs/reproduction/operating_points.py` prints how far:",
        "",
        "```",
        operating_points.strip(),
        "```",
        "",
        reading.flagged_table(published, _SPLITS, shown),
        "",
        "### Which detectors beat the floors",
        "",
        *_floors(published, shown),
        "",
        "### What DPR-GM's graph is worth",
        "",
        *_graphs(published),
        "",
        "### How the ranking changes from `published` to `strict`",
        "",
        *_ranks(published, strict, shown),
    ]
    return "\n".join(lines) + "\n"


def _floors(published: reading.Rows, shown: Sequence[str]) -> list[str]:
    best = reading.best_floors(published, "overall")
    named = ", ".join(f"{metric} {number(value, 4)} (`{label}`)" for metric, (label, value) in best.items())
    return [f"The best floors, overall: {named}.", "", reading.above_floors(published, "overall", shown)]


def _graphs(published: reading.Rows) -> list[str]:
    sources = {
        "the prior": "dprgm",
        "no graph": "dprgm[graph=none]",
        "random": "dprgm[graph=random]",
        "correlation": "dprgm[graph=correlation]",
    }
    rows = {name: published.get((label, "overall")) for name, label in sources.items()}
    auroc = {name: row.metrics["auroc"] for name, row in rows.items() if row is not None and row.ok}
    means = {name: summary.mean for name, summary in auroc.items() if summary.mean is not None}
    if len(means) < 2:
        return ["Its variants are not there yet."]
    values = ", ".join(f"{name} {number(mean, 4)}({number(auroc[name].std or 0.0, 4)})" for name, mean in means.items())
    apart = max(means.values()) - min(means.values())
    spread = max(summary.std or 0.0 for summary in auroc.values())
    verdict = (
        "So far as these figures can tell, the prior is worth nothing here: a graph drawn at random does as well."
        if abs(means.get("the prior", 0.0) - means.get("random", 1.0)) < spread
        else "The source of the graph shows."
    )
    return [
        f"AUROC, overall, by where the edges come from: {values}. Between the best and the worst source lie "
        f"{number(apart, 4)}; seeds of one source spread by up to {number(spread, 4)}. {verdict} `complete` with "
        "weighted edges is the correlation graph, by definition."
    ]


def _ranks(published: reading.Rows, strict: reading.Rows, shown: Sequence[str]) -> list[str]:
    changes = reading.rank_changes(published, strict, "overall", shown)
    if changes is None:
        return ["The rows under `strict` are not there yet: `make leaderboards-strict`."]
    table, tau = changes
    return [f"Ranks by AUPRC, overall; Kendall's tau between the two: {number(tau, 3)}.", "", table]


def _contradictions() -> str:
    lines = [
        "## The paper's own inconsistencies",
        "",
        "The same row (DPR-GM, overall) has different values in different tables of the paper:",
        "",
    ]
    for metric, cells in contradictions():
        values = ", ".join(f"{number(mean, 4)} in {_short(table)}" for table, mean in cells)
        lines.append(f"- {metric}: {values}")
    return "\n".join(lines) + "\n"


def _short(table: Table) -> str:
    return "the ablation that is commented out" if table.number is None else f"Table {table.number}"


def _costs(published: reading.Rows) -> str:
    return "\n".join(
        [
            "## What it cost",
            "",
            "Means over seeds; fitting, and scoring 9,405 training and 37,401 test rows, on one thread, two trials at "
            "a time on two cores. Rows that differ in scoring only share one fit, whose cost each of them shows.",
            "",
            reading.costs_table(published, "overall", labels()),
            "",
        ]
    )


def _made(published: reading.Rows) -> str:
    row: Row | None = published.get(("dprgm", "overall"))
    if row is None or not row.records:
        return ""
    manifest = row.records[0].manifest
    versions = manifest.get("versions")
    packages = (
        ", ".join(f"{name} {version}" for name, version in versions.items()) if isinstance(versions, dict) else ""
    )
    return "\n".join(
        [
            "## Made with",
            "",
            f"{packages}; {manifest.get('platform')}, {manifest.get('cpu_count')} cores; data "
            f"{manifest.get('data_hash')}. Every trial's record: `leaderboards/paper/records.jsonl`.",
            "",
        ]
    )
