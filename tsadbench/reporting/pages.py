"""Pages of the documentation site, as Markdown with figures in it: the first page, tables, detectors.

They are generated from a folder of committed tables and not committed; ``docs/site/hooks.py`` passes them to MkDocs.
Their links refer to the built site.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from tsadbench.datasets.loading import SUITES
from tsadbench.errors import UsageError
from tsadbench.execution.record import RECORDS, read_records
from tsadbench.execution.request import DEFAULT_PROTOCOL
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.render import Table, number, plain
from tsadbench.reporting import figures
from tsadbench.reporting.figures.style import panel
from tsadbench.reporting.tables import LOST, NONE, WON, html_table
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import parse_label
from tsadbench.utils.text import counted

FOLDER = "tables"
_SUITE = "all"
_BEATS = "_beats_floors"


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """Committed tables by data set, protocol and split, and the complete rows of the ranking over all data sets."""

    boards: Mapping[tuple[str, str, str], Leaderboard]
    ranking: pd.DataFrame

    @property
    def main(self) -> pd.DataFrame:
        """The rows of the first split of each data set and protocol."""
        return pd.concat(self.boards[keys[0]].frame for keys in grouped(self.boards, lambda key: key[:2]).values())


def read_tables(folder: Path) -> Tables:
    """Read ``<data set>/<protocol>/records.jsonl`` and the ranking of the suite ``all`` below a folder.

    Raises a UsageError if it holds no table.
    """
    order = {name: place for place, name in enumerate(SUITES[_SUITE].datasets)}
    files = sorted(
        folder.glob(f"*/*/{RECORDS}"),
        key=lambda file: (order.get(file.parts[-3], len(order)), file.parts[-2] != DEFAULT_PROTOCOL, file),
    )
    if not files:
        raise UsageError(f"{folder}: expected tables, <data set>/<protocol>/{RECORDS}; found none")
    boards = {
        key: board
        for file in files
        for key, board in Leaderboard.from_records(read_records(file), checked_in=folder).alone().items()
    }
    ranking = pd.read_csv(folder / "suites" / _SUITE / "rank.csv")
    return Tables(boards, ranking[ranking["complete"]].reset_index(drop=True))


def pages(tables: Tables) -> dict[str, str]:
    """Return the text of every page by its path below docs/, except the first page (`first_page`)."""
    made = {f"{FOLDER}/index.md": _list_page(tables)}
    for dataset, keys in grouped(tables.boards, lambda key: key[0]).items():
        boards = {key: tables.boards[key] for key in keys}
        made[f"{FOLDER}/{dataset}.md"] = "\n\n".join(_dataset_page(dataset, boards)) + "\n"
    main = tables.main
    for name, rows in main.groupby(main["detector"].map(lambda label: parse_label(label).target)):
        made[f"{FOLDER}/{_address(str(name), 'md')}"] = _detector_page(str(name), rows)
    return made


def headline(ranking: pd.DataFrame) -> str:
    """Summarise a ranking over data sets in one sentence."""
    first = ranking[~ranking["floor"]].iloc[0]
    wins = first[[f"{name}{_BEATS}" for name in _datasets(ranking)]]
    overlaps = (ranking["rank_low"] <= first["rank_high"]) & (ranking["rank_high"] >= first["rank_low"])
    close = int(overlaps.sum()) - 1
    return (
        f"{first['detector']} leads over {len(wins)} data sets, beats the best one-liner on {wins.sum():.0f} of them, "
        f"and does not differ clearly from {counted(close, 'other row')}"
    )


def _datasets(ranking: pd.DataFrame) -> list[str]:
    return [name.removesuffix(_BEATS) for name in map(str, ranking) if name.endswith(_BEATS)]


def first_page(tables: Tables) -> str:
    """Return the results for the site's first page: the headline, mean ranks, and a dot per data set."""
    ranking = tables.ranking
    names = _datasets(ranking)
    won = ranking[[f"{name}{_BEATS}" for name in names]].set_axis(names, axis=1)
    floor, n_won = ranking["floor"], won.sum(axis=1)
    often = int((n_won[~floor] > len(names) / 2).sum())
    families = tables.main.drop_duplicates("detector").set_index("detector")["family"]
    links = {label: f"{FOLDER}/{_address(parse_label(label).target)}" for label in ranking["detector"]}
    about = {"#": range(1, len(ranking) + 1), "detector": ranking["detector"], "mean rank": ranking["rank"]}
    last = {
        "beats floors on": n_won.map(lambda n: f"{n:.0f} of {len(names)}").where(~floor, "-"),
        "kind": ranking["detector"].map(families).fillna("").where(~floor, "floor"),
    }
    table = Table(
        "Mean ranks, and the data sets on which a row beats the best floor",
        pd.DataFrame(about | {name: won[name].map({1.0: WON, 0.0: LOST}).fillna(NONE) for name in names} | last),
        decimals={"mean rank": 1},
        numeric=["beats floors on"],
        row_styles=["dim" if one else "" for one in floor],
    )
    with panel("ranks", 5.4, 1.0 + 0.17 * len(ranking)) as (ax, svg):
        figures.mean_ranks(ranking, ax, links)
    return f"""## {plain(headline(ranking))}

{often} of {(~floor).sum()} detectors beat the best one-liner on more than half of the data sets. The best one-liner,
{plain(ranking[floor]["detector"].iloc[0])}, is number {floor.to_list().index(True) + 1} of {len(ranking)}.

<figure class="tsb-figure">
{svg[0]}
<figcaption>Mean rank by AUPRC over {len(names)} data sets under protocol strict, with its 90 % interval. Squares are
one-liners; the band spans their mean ranks. Source: the committed tables.</figcaption>
</figure>

{html_table(table, links)}

<details><summary>How to read this</summary>
<p>{WON} the row is above the best one-liner of that data set in AUPRC, {LOST} it is not. Ranks count the {len(ranking)}
rows that ran on every data set. Intervals are 5 % to 95 % over draws of the data sets; two rows differ clearly if
theirs do not overlap. Training and thresholds see normal rows only; metrics are point-wise, not point-adjusted.</p>
</details>
"""


def _list_page(tables: Tables) -> str:
    """Return the list of all tables with their findings, and of all detectors."""
    lines = ["# All tables", "", "| data set | protocol | rows | finding |", "| --- | --- | --- | --- |"]
    for (dataset, rules), keys in grouped(tables.boards, lambda key: key[:2]).items():
        board = tables.boards[keys[0]]
        found = plain(board.shown()[0].lead)
        lines.append(f"| [{dataset}]({dataset}.md#{_anchor(rules)}) | {rules} | {len(board.frame)} | {found} |")
    names = sorted({parse_label(label).target for label in tables.main["detector"]})
    links = ", ".join(f"[{plain(name)}]({_address(name, 'md')})" for name in names)
    return "\n".join([*lines, "", "## Detectors", "", links, ""])


def _dataset_page(dataset: str, boards: Mapping[tuple[str, str, str], Leaderboard]) -> Iterator[str]:
    """Yield the blocks of a data set's page: each protocol's tables, figures and notes."""
    yield f"# Tables of {plain(dataset)}"
    if dataset in SUITES[_SUITE].datasets:
        yield f"[The system and its recordings](../systems/{dataset}.md) · [audit of the data](../audits/{dataset}.md)"
    for rules, keys in grouped(boards, lambda key: key[1]).items():
        yield f"## Protocol {rules} {{ #{_anchor(rules)} }}"
        for place, key in enumerate(keys):
            (table,) = boards[key].shown()
            links = {label: _address(parse_label(label).target) for label in boards[key].frame["detector"]}
            if place == 0:
                yield f"**{plain(table.lead)}**\n\n{plain(table.title)}."
                yield str(html_table(table, links))
                yield _figures(boards[key], f"{dataset}-{_anchor(rules)}")
            else:
                summary = html.escape(f"Split {key[2]}: {table.lead}")
                yield f"<details><summary>{summary}</summary>\n{html_table(table, links)}\n</details>"
        if notes := dict.fromkeys(html.escape(str(note)) for key in keys for note in boards[key].notes):
            yield f"<details><summary>Notes</summary>{''.join(f'<p>{note}</p>' for note in notes)}</details>"
    yield "[What columns and remarks mean](../reading-a-table.md)."


def _figures(board: Leaderboard, name: str) -> str:
    """Return the figures of a table's seeds and speed, folded."""
    trials, drawn = figures.trial_frame(board), []
    for draw, height in ((figures.seeds, 0.9 + 0.17 * trials["detector"].nunique()), (figures.speed, 3.4)):
        with panel(f"{name}-{draw.__name__}", 4.8, height) as (ax, svg):
            draw(trials, ax)
        drawn.append(f'<figure class="tsb-figure">\n{svg[0]}\n</figure>')
    return "\n".join(["<details><summary>Seeds and costs</summary>", *drawn, "</details>"])


def _detector_page(name: str, rows: pd.DataFrame) -> str:
    """Return a detector's page: each of its rows with its rank and its distance to the best floor."""
    rows = rows.sort_values("to_floor", ascending=False, kind="stable")
    places = zip(rows["rank"], rows["n_ranked"], rows["status"], strict=True)
    frame = pd.DataFrame(
        {
            "data set": rows["dataset"],
            "protocol": rows["rules"],
            "row": rows["detector"],
            "AUPRC": rows["auprc_mean"],
            "vs floor": [number(one, 2, signed=True) for one in rows["to_floor"]],
            "place": [f"{number(rank, 0)} of {of}" if status == "ok" else status for rank, of, status in places],
        }
    )
    table = Table(f"Rows of {name}", frame, decimals={"AUPRC": 2}, numeric=["vs floor", "place"])
    links = {dataset: f"../{dataset}.html" for dataset in rows["dataset"]}
    won = rows[rows["sound"] & (rows["to_floor"] > 0)]["dataset"].nunique()
    said = "A one-liner to compare detectors with." if rows["floor"].all() else (
        f"It beats the best one-liner on {won} of {counted(rows['dataset'].nunique(), 'data set')}, by AUPRC on the "
        "first split."
    )  # fmt: skip
    return f"# {plain(name)}\n\n{said} Kind: {plain(str(rows['family'].iloc[0]))}.\n\n{html_table(table, links)}\n"


def _address(name: str, ending: str = "html") -> str:
    return f"detectors/{_anchor(name)}.{ending}"


def _anchor(text: object) -> str:
    return re.sub(r"[^a-z0-9]+", "-", str(text).lower()).strip("-")
