"""Write docs/detectors.md: ``python docs/detectors_page.py`` (``make pages``).

The page is made of the detectors' docstrings (their section Notes has the terms Equations, Differences and Defaults)
and of the committed leaderboards. What neither holds, for instance why a row is as it is, goes into detectors/NAME.md,
as paragraphs without a heading; the detector's section ends with it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tables import ROOT, rows
from tables import text as mean_text

from tsadbench.api import number, table_lines
from tsadbench.base import Traits
from tsadbench.leaderboard.formatting import plain
from tsadbench.leaderboard.presentation import KINDS
from tsadbench.registry import entries, locate, package_of
from tsadbench.sandbox import Construction, Description, asking, describe
from tsadbench.utils.docstrings import method_notes, sections, year_of
from tsadbench.utils.parameters import parse_label

FOLDER = ROOT / "docs/detectors"
TABLES = ("skab/strict/overall", "skab/published/overall", "tep/strict/detectable", "pumploop/strict/overall")
# Its seconds are in the table of all detectors.
TIMED = TABLES[0]
NAMES = {"auroc": "AUROC", "auprc": "AUPRC", "mcc": "MCC"}
ALL_BELOW = "⇊"
BELOW = "↓"
INTRODUCTION = f"""# Detectors

<!-- Written by `make pages` from docstrings and committed tables. Change these, not this page. -->

Every detector that ships: what it does, what differs from its paper and from the reference code, how each default was
chosen, and its rows in the committed tables. No default was chosen by test labels. `tsadbench info NAME` tells the same
on a terminal, with all parameters; [adding-a-detector.md](adding-a-detector.md) says how to add one.

*Window* is how many rows it sees at once
or, without a parameter of that name, how many rows a score depends on; *look-ahead*, how many rows after its own.
*Fit* and *score* are wall-clock seconds on [SKAB under `strict`](../leaderboards/{TIMED}.md), means over seeds, with
one thread.
"""
LEGEND = (
    f"{BELOW} not above the best floor of that table; {ALL_BELOW} in none of AUROC, AUPRC and MCC. Mean(standard "
    "deviation) over seeds."
)


class Detector(NamedTuple):
    """What the page tells of one detector, besides its rows.

    Parameters
    ----------
    name
        As it is registered.
    told, traits
        What its class says of itself; what it promises with its defaults.
    """

    name: str
    told: Description
    traits: Traits

    @property
    def year(self) -> str:
        """The year of its publication, or an empty text."""
        return year_of(self.traits.paper)


def detectors() -> list[Detector]:
    """Return all detectors that ship, by kind, the oldest first."""
    found = []
    with asking():
        for entry in entries("detectors"):
            if package_of(entry) == "tsadbench":
                told = describe(Construction(locate(entry.name)))
                found.append(Detector(entry.name, told, told.declared))
    kinds = list(KINDS)
    return sorted(found, key=lambda one: (kinds.index(one.traits.family), one.year or "9999", one.name))


def seconds(name: str, column: str) -> str:
    """Return the seconds of a detector's row with default parameters, or a dash."""
    value = getattr(rows(TIMED).get(name), column, math.nan)
    if math.isnan(value):
        return "-"
    return number(value, 1) if value >= 0.05 else "<.1"


def window(one: Detector) -> str:
    """Return how many rows a detector sees at once."""
    given = one.told.defaults.get("window")
    if isinstance(given, int):
        return str(given)
    return "all before" if one.traits.memory is None else str(one.traits.memory + 1)


def overview(all_of_them: Iterable[Detector]) -> list[str]:
    """Return the table of all detectors."""
    header = ["kind", "detector", "paper", "year", "window", "look-ahead", "fit, s", "score, s"]
    lines = (
        [
            short(one.traits.family),
            f"[`{one.name}`](#{one.name})",
            plain(one.traits.paper) or "-",
            one.year or "-",
            window(one),
            str(one.traits.look_ahead),
            seconds(one.name, "fit_seconds"),
            seconds(one.name, "score_seconds"),
        ]
        for one in all_of_them
    )
    return table_lines(header, lines)


def short(kind: str) -> str:
    """Return the heading of a kind without what explains it."""
    return KINDS[kind].partition(":")[0]


def cell(row: Any, metric: str) -> str:
    """Return a cell as mean(std), marked if it is not above the best floor."""
    return mean_text(row, metric) + f" {BELOW}" * (metric in (row.below_floor or ()))


def own_rows(name: str) -> list[str]:
    """Return the table of a detector's committed rows, with all of its variants."""
    lines = []
    for table in TABLES:
        for row in rows(table).values():
            if parse_label(row.detector).target == name:
                mark = f"{ALL_BELOW} " if set(row.below_floor or ()) == set(NAMES) else ""
                cells = [cell(row, metric) for metric in NAMES] if row.ok else [row.status, "-", "-"]
                lines.append([f"[{table}](../leaderboards/{table}.md)", f"{mark}`{row.detector}`", *cells])
    if not lines:
        return ["No row is committed yet."]
    return table_lines(["table", "row", *NAMES.values()], lines)


def flowing(text: str) -> str:
    """Return paragraphs as one line each; bases and parameters that the page does not show are left out."""
    paragraphs = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text))
    return "\n\n".join(part for part in paragraphs if not part.startswith("Parameters"))


def section(one: Detector) -> Iterator[str]:
    """Yield the paragraphs of a detector's section."""
    yield f"### {one.name}"
    yield flowing(sections(one.told.doc)[""])
    for term, text in method_notes(one.told.doc).items():
        yield f"**{term}.** {flowing(text)}"
    if references := sections(one.told.doc).get("References"):
        yield f"**References.** {flowing(references)}"
    yield "\n".join(own_rows(one.name))
    note = FOLDER / f"{one.name}.md"
    if note.is_file():
        yield note.read_text(encoding="utf-8").strip()


def page() -> str:
    """Return the page's text."""
    known = detectors()
    parts = [INTRODUCTION.strip(), "\n".join(overview(known)), LEGEND]
    kind = ""
    for one in known:
        if one.traits.family != kind:
            kind = one.traits.family
            parts.append(f"## {KINDS[kind]}")
        parts.extend(section(one))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    FOLDER.with_suffix(".md").write_text(page(), encoding="utf-8")
