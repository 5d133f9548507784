"""Draft a card for a folder of files: a guess at its columns and files, for a person to review."""

from __future__ import annotations

import re
import tempfile
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tsadbench.base.dataset import LabelledDataset
from tsadbench.datasets.card import NAME
from tsadbench.datasets.cards.doubts import doubts
from tsadbench.datasets.cards.draft_columns import columns_of, is_long, resample_of, states_of_looks
from tsadbench.datasets.cards.draft_parts import parts_of, splits_of
from tsadbench.datasets.cards.look import Look
from tsadbench.datasets.cards.sorting import FEWEST_TEST_ROWS, Sorted, sort_files
from tsadbench.datasets.reader import try_card
from tsadbench.datasets.reading.csv import CsvFile
from tsadbench.errors import DataError
from tsadbench.utils.issues import Issue
from tsadbench.utils.toml import toml_value

# What may be done about missing values, in the order in which it is tried.
_POLICIES = ("error", "cut", "forward-fill")
# A file that cannot be read as the card says is left out; one pass finds all such files, unless one hides others.
_MOST_PASSES = 6

_SESSIONS = """
# Recordings of one stretch of operation (a run, a day) resemble each other, and statistics count stretches. Put each
# training and test recording into one; without this table, shared rows and times tell which belong together.
# [sessions]
# monday = ["train/1", "test/*"]"""


@dataclass(frozen=True, slots=True)
class Draft:
    """A drafted card.

    Parameters
    ----------
    text
        The card.
    sorted_files
        A line for each group of files: what they are for, and why.
    decide
        What only a person can decide.
    problems
        What is still wrong with the card's files.
    judged
        Whether detectors can be compared on it: it has test recordings with labels.
    """

    text: str
    sorted_files: tuple[str, ...]
    decide: tuple[str, ...]
    problems: tuple[Issue, ...]
    judged: bool


def draft_card(folder: Path) -> Draft:
    """Return a commented card for the files of tables and arrays in a folder and the folders below it.

    The draft is tried on the files: those that cannot be read as most of them can are left out, and the draft says why.
    A UsageError if there is no such folder, or no such file in it. A DataError if no file is a table of numbers.
    """
    left_out: dict[str, str] = {}
    policy = _POLICIES[0]
    best: Draft | None = None
    draft: Draft | None = None
    parts = dict[str, str]()
    for _ in range(_MOST_PASSES):
        try:
            found = sort_files(folder, left_out)
            found.decide.extend(doubts(found.tables, long=is_long(found.tables)))
        except DataError:
            if best is None:
                raise
            return best
        if draft is not None and any(parts.get(name, part) != part for name, part in found.parts().items()):
            return draft  # without the files left out, test files would train, say
        parts = found.parts()
        if best is None and any(look.missing for look in found.tables):
            policy = "cut"
        text = "\n".join(_card(folder, found, policy)) + "\n"
        loaded, problems = _tried(text, folder)
        judged = loaded is not None and not loaded.missing
        draft = Draft(text, tuple(found.lines()), tuple(found.decide), tuple(problems), judged)
        best = draft if best is None or not problems else best
        missing = [issue for issue in problems if issue.kind is not None and issue.kind.startswith("missing ")]
        names = {look.file.name for look in found.tables}
        faulty = {issue.file.partition(", variable ")[0]: issue for issue in reversed(problems)}
        if not problems:
            return draft
        if missing and policy == "error":
            policy = "cut"
        elif policy == "cut" and names.isdisjoint(faulty):  # nothing is left between the gaps
            policy = "forward-fill"
        elif names.isdisjoint(faulty):
            return best
        else:
            left_out |= {name: _where(issue) for name, issue in faulty.items() if name in names}
    assert best is not None
    return best


def _where(issue: Issue) -> str:
    return f"{'' if issue.line is None else f'line {issue.line}: '}{issue.text}"


def _tried(text: str, folder: Path) -> tuple[LabelledDataset | None, list[Issue]]:
    """Return the data set of a card for a folder's files, and what is wrong with it."""
    with tempfile.TemporaryDirectory() as elsewhere:
        card = Path(elsewhere) / "card.toml"
        card.write_text(text, encoding="utf-8")
        return try_card(card, folder)


def _card(folder: Path, found: Sorted, policy: str) -> Iterable[str]:
    tables = found.tables
    yield "# A card for tsadbench, written by looking at the files. Everything in it is a guess until you have read it."
    yield "# Then:  tsadbench data validate CARD   and   tsadbench fit --dataset CARD --out plant.model"
    yield "#"
    yield "# How the files were sorted, and why:"
    yield from (f"#   {line}" for line in found.lines())
    yield from (f"# DECIDE: {text}" for text in found.decide)
    yield "schema = 1"
    yield f"name = {toml_value(_name(folder))}"
    yield '# citation = ""    licence = ""'
    yield "# The system in words, and its physical couplings (docs/priors.md), as files beside this card:"
    yield '# description = "system.md"'
    yield '# prior = "prior.json"'
    yield ""
    yield from _files(tables)
    yield from parts_of(found)
    yield from columns_of(found)
    if is_long(tables):
        yield from resample_of(tables)
    yield from _missing(tables, policy)
    yield from states_of_looks(tables)
    yield from splits_of(found)
    yield from _SESSIONS.splitlines()


def _files(tables: Sequence[Look]) -> Iterable[str]:
    texts = [look for look in tables if isinstance(look.table, CsvFile)]
    odd = list(dict.fromkeys(text for look in tables for text in look.odd))
    yield "[files]"
    if odd:
        yield f"missing = {toml_value(odd)}  # texts among numbers, taken for missing values"
    if not texts:
        return
    for key in ("separator", "decimal", "encoding", "header_line"):
        values = list(dict.fromkeys(getattr(look.file_format, key) for look in texts))
        yield f"{key} = {toml_value(values[0])}" + (f"  # FILES DIFFER: {values}" if len(values) > 1 else "")
    yield ""


def _missing(tables: Sequence[Look], policy: str) -> Iterable[str]:
    missing = {look.file.name: look.missing for look in tables if look.missing}
    yield ""
    yield "[gaps]"
    if missing:
        count = sum(missing.values())
        some = next(iter(missing))
        yield f"# {count} values are missing in the first rows of {len(missing)} files, {some} among them."
    if policy == "error":
        yield '# Or "forward-fill": a sensor\'s last value is carried forward, and every table says so.'
        yield 'policy = "error"'
    elif policy == "cut":
        yield "# DECIDE: rows with missing values are left out, and recordings are cut there. New files with missing"
        yield "# values cannot be scored then; with 'forward-fill', a sensor's last value is carried forward. Every"
        yield "# table says which."
        yield 'policy = "cut"'
        yield f"at_least = {FEWEST_TEST_ROWS}  # rows of a piece"
    else:
        yield "# DECIDE: each row lacks some value; a sensor's last value is carried forward, and every table says so."
        yield 'policy = "forward-fill"'


def _name(folder: Path) -> str:
    plain = unicodedata.normalize("NFKD", folder.resolve().name).encode("ascii", "ignore").decode()
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", plain).strip("-._")
    return name if re.fullmatch(NAME, name) else "my-plant"
