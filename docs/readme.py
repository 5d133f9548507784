"""Fill the numbers and tables of pages from what is committed: ``python docs/readme.py`` (``make pages``).

The pages are `PAGES`. They mark what is generated, in comments that a rendered page does not show:

- a block, on lines of its own: ``<!-- generated: NAME -->`` to ``<!-- end -->``; NAME is a key of `BLOCKS`;
- a value in a sentence: ``<!--= FACT -->VALUE<!--/-->``. FACT is a cell of a table, ``skab/strict/overall dprgm auprc``
  (also ``n_rows``), a function of `COMPUTED` with its arguments, or a key of `results.facts`. No line may begin with
  one: Markdown would take the line for HTML.

docs/results.py has the statements about all tables together.

Sentences say what a value is, never how large it is, so that they hold whatever a table says.
"""

from __future__ import annotations

import json
import math
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from itertools import groupby

import results
from tables import ROOT, rows, text
from typer.main import get_command

from tsadbench.api import table_lines
from tsadbench.cli.app import app
from tsadbench.leaderboard.render import BLOCK

# The data sets in a few words; each has a page.
WORDS = {
    "skab": "a water pump on a testbed",
    "tep": "a chemical plant, simulated",
    "pumploop": "a water-pump loop, simulated",
    "cranfield": "a three-phase flow rig",
    "gecco2018": "drinking water in a supply network",
    "causrca": "a lathe, and its digital twin with faults",
    "asd": "application servers",
    "smd": "server machines",
}
PAGES = (
    "README.md", "leaderboards/README.md", "docs/index.md", "docs/reference/commands/README.md", "docs/results.md",
    "docs/systems/README.md",
    *(f"docs/systems/{name}.md" for name in WORDS),
)  # fmt: skip
TABLES = (
    "skab/published/overall",
    "skab/strict/overall",
    "skab/skab/overall",
    "pyod/skab/strict/overall",
    "tep/strict/detectable",
    "pumploop/strict/overall",
    *(f"{name}/strict/overall" for name in ("cranfield", "gecco2018", "causrca", "asd", "smd")),
)
# Links in blocks are relative to the repository's root, and lead to pages in docs/ and leaderboards/.
_ROOTED = re.compile(r"\]\(((?:docs|leaderboards)/[^)#]+)")
_VALUE = re.compile(r"(<!--= (.+?) -->).*?(<!--/-->)", re.S)


def cell(table: str, label: str, column: str) -> str:
    """Return one cell of a committed leaderboard, or how many rows were evaluated."""
    row = rows(table)[label]
    return f"{row.n_rows:,.0f}" if column == "n_rows" else text(row, column)


def means(table: str, metric: str, *, floor: bool) -> dict[str, float]:
    """Return the means of a table's ranked floors, or of its other ranked rows; undefined ones are left out."""
    ranked = {label: row for label, row in rows(table).items() if row.sound and row.floor == floor}
    found = {label: getattr(row, f"{metric}_mean") for label, row in ranked.items()}
    return {label: value for label, value in found.items() if not math.isnan(value)}


def best(table: str, kind: str) -> str:
    """Return the label and AUPRC of the best row of a kind, "floor" or "detector"."""
    found = means(table, "auprc", floor=kind == "floor")
    label = max(found, key=lambda name: found[name])
    return f"`{label}` ({cell(table, label, 'auprc')})"


def floors_table() -> list[str]:
    """Return a table that compares the best detector of every committed leaderboard with its best floor."""
    lines = []
    for table in TABLES:
        floors, others = (means(table, "auprc", floor=floor) for floor in (True, False))
        above = sum(mean > max(floors.values()) for mean in others.values())
        link = f"[{table}](leaderboards/{table}.md)"
        lines.append([link, best(table, "floor"), best(table, "detector"), f"{above} of {len(others)}"])
    return table_lines(["table", "best floor", "best detector", "above every floor"], lines)


def seeds_table() -> list[str]:
    """Return a table of the seeds behind each committed leaderboard's rows."""
    lines = []
    for table in TABLES:
        counted = sorted((len(row.seeds), row.detector) for row in rows(table).values() if row.ok)
        cells = [
            f"{count} seed{'s' * (count > 1)}: {len(labels := list(group))} row{'s' * (len(labels) > 1)}"
            for count, group in groupby(counted, key=lambda pair: pair[0])
        ]
        first = {row.seeds[0] for row in rows(table).values() if row.seeds}
        lines.append(
            [f"[{table}](leaderboards/{table}.md)", ", ".join(reversed(cells)), ", ".join(map(str, sorted(first)))]
        )
    return table_lines(["table", "rows by their number of seeds", "first seed"], lines)


@cache
def counted() -> Mapping[str, dict]:
    """Return what each data set contains, as docs/systems/contents.py has counted it."""
    return json.loads((ROOT / "docs/systems/contents.json").read_text(encoding="utf-8"))


def count(dataset: str, *path: str) -> str:
    """Return a number of `counted`."""
    found = counted()[dataset]
    for key in path:
        found = found[key]
    return f"{found:,}"


def share(dataset: str) -> str:
    """Return the share of anomalous test rows of a data set."""
    test = counted()[dataset]["test"]
    return f"{test['anomalous'] / test['rows']:.1%}"


def contents_table(dataset: str) -> list[str]:
    """Return a table of a data set's parts; if there are many splits, only the large ones."""
    data = counted()[dataset]
    columns = ("recordings", "sessions", "rows", "anomalous", "events")
    few = len(data["splits"]) < 9
    splits = [one for one in data["splits"] if few or 2 * one["recordings"] > data["test"]["recordings"]]
    parts = {"training": data["train"], "test": data["test"], **{f"split {one['name']}": one for one in splits}}
    cells = ([name, *(f"{part[column]:,}" for column in columns)] for name, part in parts.items())
    return table_lines(["part", *columns], cells)


def data_sets_table() -> list[str]:
    """Return a table of all data sets that have been counted."""
    lines = []
    for name, data in counted().items():
        test = data["test"]
        lines.append(
            [
                f"[{name}](docs/systems/{name}.md)",
                WORDS[name],
                str(data["sensors"]),
                f"{data['train']['rows']:,}",
                f"{test['rows']:,}",
                f"{test['anomalous'] / test['rows']:.1%}",
                f"{test['events']:,}",
                str(data["models"]),
                data["licence"],
            ]
        )
    header = ["data set", "system", "sensors", "training rows", "test rows", "anomalous", "events", "models", "licence"]
    return table_lines(header, lines)


def command_table() -> list[str]:
    """Return the lines of a table of every command with the first paragraph of its help."""
    top, lines = get_command(app), []
    context = top.make_context("tsadbench", [], resilient_parsing=True)
    for name in top.list_commands(context):
        _, command, _ = top.resolve_command(context, [name])
        help_text = " ".join((command.help or "").partition("\n\n")[0].split())
        members = ", ".join(getattr(command, "commands", {}))
        lines.append([f"`{name}`", help_text + (f" (`{members}`)" if members else "")])
    return table_lines(["command", "what it does"], lines)


COMPUTED: Mapping[str, Callable[..., str]] = {"count": count, "share": share}


BLOCKS: Mapping[str, Callable[[], Sequence[str]]] = {
    "commands": command_table,
    "finding": results.finding,
    "floors": floors_table,
    "ranking": results.ranking_list,
    "seeds": seeds_table,
    "data sets": data_sets_table,
    **{f"contents {name}": partial(contents_table, name) for name in WORDS},
}


def value(name: str) -> str:
    """Return a value by the name of its fact.

    Raises
    ------
    KeyError
        If there is no such fact.
    """
    word, *arguments = name.split()
    if word in COMPUTED:
        return COMPUTED[word](*arguments)
    facts = results.facts()
    return facts[name] if name in facts else cell(word, *arguments)


def seen_from(page: str, line: str) -> str:
    """Return a line of a block with its links made relative to a page."""
    folder = posixpath.dirname(page) or "."
    return _ROOTED.sub(lambda link: f"]({posixpath.relpath(link[1], folder)}", line)


def generated(text: str, page: str) -> str:
    """Return a page's text with every block and value brought up to date.

    Parameters
    ----------
    text
        The text.
    page
        The page's path from the repository's root; links become relative to it.

    Raises
    ------
    KeyError
        If a marker names a block or a fact that does not exist.
    """
    return _VALUE.sub(
        lambda found: found[1] + value(found[2]) + found[3],
        BLOCK.sub(lambda found: "\n".join([found[1], *(seen_from(page, one) for one in BLOCKS[found[2]]()), ""]), text),
    )


def main() -> None:
    """Draw the figures and rewrite the pages."""
    results.draw()
    for name in PAGES:
        page = ROOT / name
        page.write_text(generated(page.read_text(encoding="utf-8"), name), encoding="utf-8")


if __name__ == "__main__":
    main()
