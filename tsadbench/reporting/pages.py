"""Pages of the documentation site, as Markdown with figures in it: the first page, tables, detectors.

They are made from a folder of committed tables and never committed themselves; ``docs/site/hooks.py`` hands them to
MkDocs. Their links are those of the built site.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from tsadbench.datasets.suites import SUITES
from tsadbench.errors import UsageError
from tsadbench.execution.record import RECORDS, Record, read_records
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.formatting import number, plain
from tsadbench.reporting import figures
from tsadbench.reporting.figures.style import inline_svg, style
from tsadbench.reporting.tables import cell, finding, frame_of, html_table, ranked, table_html
from tsadbench.utils.parameters import parse_label

FOLDER = "tables"
_SUITE = "all"


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """Committed tables: their rows, the trials behind each data set and protocol, and the ranking over all of them."""

    rows: pd.DataFrame
    records: Mapping[tuple[str, str], Sequence[Record]]
    ranking: pd.DataFrame

    @property
    def main(self) -> pd.DataFrame:
        """The rows of the first split of each data set and protocol, with margin and place."""
        parts = []
        for _, rows in self.rows.groupby(["dataset", "rules"], sort=False):
            shown = ranked(rows[rows["split"] == rows["split"].iloc[0]])
            parts.append(shown.assign(place=range(1, len(shown) + 1), n_placed=len(shown)))
        return pd.concat(parts)


def read_tables(folder: Path) -> Tables:
    """Read ``<data set>/<protocol>/records.jsonl`` and the ranking of the suite ``all`` below a folder.

    A UsageError if it holds no table.
    """
    order = {name: place for place, name in enumerate(SUITES[_SUITE].datasets)}
    files = sorted(folder.glob(f"*/*/{RECORDS}"), key=lambda file: order.get(file.parent.parent.name, len(order)))
    if not files:
        raise UsageError(f"{folder}: expected tables, <data set>/<protocol>/{RECORDS}; found none")
    records = {(every[0].dataset, every[0].rules): every for every in map(read_records, files)}
    boards = [frame_of(Leaderboard.from_records(every, checked_in=folder)) for every in records.values()]
    return Tables(pd.concat(boards, ignore_index=True), records, _ranking(folder / "suites" / _SUITE / "rank.csv"))


def _ranking(file: Path) -> pd.DataFrame:
    """Return the rows that have a mean rank: detector, floor, rank with bounds, and for each data set whether it wins.

    This is all that is known here of the columns of a ranking.
    """
    frame = pd.read_csv(file)
    datasets = [str(name).removesuffix("_value") for name in frame if str(name).endswith("_value")]
    floors = frame[frame["floor"]]
    wins = {name: frame[f"{name}_value"].gt(floors[f"{name}_value"].max()).where(~frame["floor"]) for name in datasets}
    kept = frame[["detector", "floor", "complete", "rank", "rank_low", "rank_high"]]
    kept = pd.concat([kept, pd.DataFrame(wins)], axis=1)
    return kept[kept["complete"] & kept["rank"].notna()].sort_values("rank").reset_index(drop=True)


def pages(tables: Tables) -> dict[str, str]:
    """Return the text of every page by its path below docs/, but for the first page (`first_page`)."""
    made = {f"{FOLDER}/index.md": _list_page(tables)}
    for dataset in tables.rows["dataset"].unique():
        made[f"{FOLDER}/{dataset}.md"] = "\n\n".join(_dataset_page(tables, dataset)) + "\n"
    main = tables.main
    for name, rows in main.groupby(main["detector"].map(_target)):
        made[f"{FOLDER}/{_address(str(name), 'md')}"] = _detector_page(str(name), rows)
    return made


def headline(ranking: pd.DataFrame) -> str:
    """Return what a ranking over data sets found, in a sentence."""
    names = list(ranking.columns[6:])
    first = ranking[~ranking["floor"]].iloc[0]
    close = int((ranking["rank_low"] <= first["rank_high"]).sum()) - 1
    wins = int(first[names].sum())
    return (
        f"{first['detector']} leads over {len(names)} data sets, beats the best one-liner on {wins} of them, and "
        f"cannot be told from {close} other rows"
    )


def first_page(tables: Tables) -> str:
    """Return the results as the site's first page shows them: the headline, mean ranks, a dot for each data set."""
    ranking = tables.ranking
    names = list(ranking.columns[6:])
    detectors, floors = ranking[~ranking["floor"]], ranking[ranking["floor"]]
    often = int((detectors[names].sum(axis=1) > len(names) / 2).sum())
    best_floor = floors.iloc[0]
    families = tables.rows.drop_duplicates("detector").set_index("detector")["family"]
    head = ["#", "detector", "mean rank", *names, "beats", "kind"]
    body = []
    for place, row in enumerate(ranking.to_dict("records"), start=1):
        label, wins = str(row["detector"]), [row[name] for name in names]
        beaten = "" if row["floor"] else sum(wins)
        dots = [
            cell("·", None, "dot") if row["floor"] else cell("●" if won else "○", int(won), "dot won" if won else "dot")
            for won in wins
        ]
        cells = [
            cell(str(place), place, "rank"),
            cell(label, label.lower(), "name", f"{FOLDER}/{_address(_target(label))}"),
            cell(f"{row['rank']:.1f}", row["rank"], "number"),
            *dots,
            cell(f"{beaten} of {len(names)}" if beaten != "" else "", beaten or 0, "number"),
            cell(str(families.get(label, "")), str(families.get(label, "")), "remarks"),
        ]
        body.append({"floor": row["floor"], "causal": True, "cells": cells})
    links = {label: f"{FOLDER}/{_address(_target(label))}" for label in ranking["detector"]}
    with style():
        figure = Figure(figsize=(5.4, 1.0 + 0.17 * len(ranking)), layout="constrained")
        figures.mean_ranks(ranking, figure.add_subplot(), links)
        svg = inline_svg(figure, "ranks")
    table = table_html(head, body, "Mean ranks, and the data sets on which a row beats the best floor")
    return f"""## {plain(headline(ranking))}

Of {len(detectors)} detectors {often} beat the best one-liner on more than half of the data sets. The best one-liner,
{plain(best_floor["detector"])}, is number {floors.index[0] + 1} of {len(ranking)}.

<figure class="tsb-figure">
{svg}
<figcaption>Mean rank by AUPRC over {len(names)} data sets under protocol strict, with its 90 % interval. Squares are
one-liners; the band spans theirs. Source: the committed tables.</figcaption>
</figure>

{table}

<details><summary>How to read this</summary>
<p>● the row is above the best one-liner of that data set in AUPRC, ○ it is not. Ranks count the {len(ranking)} rows
that ran on every data set. Intervals are 5 % to 95 % over draws of the data sets; two rows are told apart if theirs do
not overlap. Thresholds and training see normal rows only; metrics are point-wise, without point adjustment.</p>
</details>
"""


def _list_page(tables: Tables) -> str:
    """Return the list of all tables, each with its finding, and of all detectors."""
    lines = ["# All tables", "", "| data set | protocol | rows | finding |", "| --- | --- | --- | --- |"]
    for (dataset, rules), rows in tables.rows.groupby(["dataset", "rules"], sort=False):
        main = rows[rows["split"] == rows["split"].iloc[0]]
        lines.append(f"| [{dataset}]({dataset}.md#{_anchor(rules)}) | {rules} | {len(main)} | {plain(finding(main))} |")
    names = sorted({_target(label) for label in tables.main["detector"]})
    links = ", ".join(f"[{plain(name)}]({_address(name, 'md')})" for name in names)
    return "\n".join([*lines, "", "## Detectors", "", links, ""])


def _dataset_page(tables: Tables, dataset: str) -> Iterator[str]:
    """Yield the blocks of a data set's page: each protocol's tables and figures."""
    yield f"# Tables of {plain(dataset)}"
    if dataset in SUITES[_SUITE].datasets:
        yield f"[The system and its recordings](../systems/{dataset}.md) · [audit of the data](../audits/{dataset}.md)"
    of_dataset = tables.rows[tables.rows["dataset"] == dataset]
    for rules, rows in of_dataset.groupby("rules", sort=False):
        links = {label: _address(_target(label)) for label in rows["detector"]}
        yield f"## Protocol {rules} {{ #{_anchor(rules)} }}"
        for place, (split, lines) in enumerate(rows.groupby("split", sort=False)):
            table, said = html_table(lines, f"{dataset}, {split}", links), finding(lines)
            if place == 0:
                yield f"**{plain(said)}**"
                yield str(table)
                yield _figures(tables.records[dataset, str(rules)], str(split), lines, f"{dataset}-{_anchor(rules)}")
            else:
                summary = html.escape(f"Split {split}: {said}")
                yield f"<details><summary>{summary}</summary>\n{table}\n</details>"
    yield (
        "Best AUPRC first. *vs. floor* is the distance to the best one-liner; ± is the deviation over seeds; *F1* is at "
        "the threshold from training. [What the columns mean](../reading-a-table.md)."
    )


def _figures(records: Sequence[Record], split: str, rows: pd.DataFrame, name: str) -> str:
    """Return seeds and speed of a table, side by side, folded."""
    place = {label: i for i, label in enumerate(ranked(rows)["detector"])}
    trials = figures.trial_frame(sorted(records, key=lambda record: place.get(record.label, 0)), split)
    drawn = []
    with style():
        for kind, height in (("seeds", 0.9 + 0.17 * trials["detector"].nunique()), ("speed", 3.4)):
            figure = Figure(figsize=(4.8, height), layout="constrained")
            getattr(figures, kind)(trials, figure.add_subplot())
            drawn.append(f'<figure class="tsb-figure">\n{inline_svg(figure, f"{name}-{kind}")}\n</figure>')
    return "\n".join(["<details><summary>Seed by seed, and what quality costs</summary>", *drawn, "</details>"])


def _detector_page(name: str, rows: pd.DataFrame) -> str:
    """Return a detector's page: where each of its rows stands, against the best floor and among all rows."""
    head = ["data set", "protocol", "row", "AUPRC", "vs. floor", "place"]
    body = []
    for row in rows.sort_values("margin", ascending=False, kind="stable").to_dict("records"):
        ok, margin = row["status"] == "ok", float(row["margin"])
        sign = "" if pd.isna(margin) else "up" if margin > 0 else "down"
        cells = [
            cell(row["dataset"], row["dataset"], "name", f"../{row['dataset']}.html"),
            cell(row["rules"], row["rules"], "remarks"),
            cell(row["detector"], row["detector"], "remarks"),
            cell(number(row["lead"], 2) if ok else f"failed: {row['status']}", row["lead"], "number"),
            cell("-" if pd.isna(margin) else number(margin, 2, signed=True), margin, sign),
            cell(f"{row['place']} of {row['n_placed']}" if ok else "-", row["place"], "number"),
        ]
        body.append({"floor": row["floor"], "causal": True, "cells": cells})
    won = rows[rows["margin"] > 0]["dataset"].nunique()
    n = rows["dataset"].nunique()
    floor = bool(rows["floor"].all())
    said = "A one-liner, with which detectors are compared." if floor else (
        f"It beats the best one-liner on {won} of {n} data set{'s' * (n > 1)}, by AUPRC on the first split."
    )  # fmt: skip
    about = (
        f"Kind: {plain(str(rows['family'].iloc[0]))}. [What it does, its paper and its parameters](../../detectors.md)."
    )
    return f"# {plain(name)}\n\n{said} {about}\n\n{table_html(head, body, f'Rows of {name}')}\n"


def _target(label: str) -> str:
    """Return the detector's name in a label, or the label itself if it cannot be parsed."""
    try:
        return parse_label(label).target
    except UsageError:
        return label


def _address(name: str, ending: str = "html") -> str:
    return f"detectors/{_anchor(name)}.{ending}"


def _anchor(text: object) -> str:
    return re.sub(r"[^a-z0-9]+", "-", str(text).lower()).strip("-")
