"""Do detectors differ, how firm are ranks, and who leads over several data sets: tables of text for a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from tsadbench.analysis.significance.compare import compare
from tsadbench.analysis.significance.rank import rank
from tsadbench.base.dataset import LabelledDataset
from tsadbench.datasets.suites import SUITES
from tsadbench.errors import TsadbenchError
from tsadbench.execution.store import Store
from tsadbench.leaderboard.ranking import Row
from tsadbench.leaderboard.render import Table
from tsadbench.leaderboard.selection import SHOWN
from tsadbench.utils.files import LEADERBOARDS
from tsadbench.utils.parameters import JsonValue

# More named detectors than this are not compared with each other: of 66 pairs some differ by chance.
_MOST = 12
# Of more detectors than this each two are too many to compare over data sets: time and memory grow with the square.
_MOST_RANKED = 100


def significance(store: Store, data: LabelledDataset, rows: Sequence[Row], named: Sequence[str]) -> JsonValue:
    """Return the result of ``tsadbench compare`` for some detectors, with sessions as units."""
    ok = [row for row in rows if row.ok]
    fit = [row for row in ok if not row.floor and row.comparable]
    asked = [row for row in ok if row.label in named]
    chosen = asked[:_MOST] if asked else [*fit[:SHOWN], *islice((row for row in ok if row.floor), 1)]
    labels = [row.label for row in chosen]
    if len(labels) < 2:
        return {"missing": f"Two detectors or more can be compared, found {len(labels)}."}
    first = chosen[0].first
    try:
        found = compare(
            store,
            labels,
            dataset=data,
            protocol=first.protocol,
            split=first_split(data, chosen[0]),
        )
    except TsadbenchError as error:
        return {"missing": str(error)}
    how = (
        "These are the detectors that --detector names."
        if asked
        else "These detectors were chosen because they rank first on this test, which flatters them. For a question "
        "that you had before the test, name the detectors: tsadbench compare RUNS A B."
    )
    return {
        "title": found.tables[0].title,
        "tested": found.inference.tested,
        "tables": [_table(one) for one in found.tables],
        "conclusions": list(found.inference.conclusions),
        "notes": [how, *found.sentences[len(found.inference.conclusions) + 1 :]],
        "legend": found.sentences[len(found.inference.conclusions)],
    }


def first_split(data: LabelledDataset, row: Row) -> str | None:
    """Return the split of a row as `compare` takes it: None if the data set does not know it."""
    return row.split if row.split in data.dataset.splits else None


def stability(store: Store, data: LabelledDataset, row: Row) -> JsonValue:
    """Return what ``tsadbench rank --stability`` says of a data set, protocol and split, those of a row."""
    try:
        found = rank([store], stability=True, dataset=data, protocol=row.protocol, splits=(row.split,))
    except TsadbenchError as error:
        return {"missing": str(error)}
    return {
        "tables": [_table(table) for table in found.tables],
        "notes": list(found.sentences[1:]),
        "legend": found.sentences[0],
    }


def over_datasets(store: Store, rows: Iterable[Row]) -> list[JsonValue]:
    """Return the ranks over the data sets of a store; of a single one over each suite that holds it.

    The rows of the suite's other data sets are those of the leaderboards that ship.
    """
    rows = list(rows)
    datasets = {row.dataset for row in rows}
    if (n_labels := len({row.label for row in rows})) > _MOST_RANKED:
        return [
            {
                "missing": f"{n_labels:,} detectors are too many for a page to rank over data sets (it takes "
                f"{_MOST_RANKED}). `tsadbench rank RUNS` ranks more, in time that grows with the square of that."
            }
        ]
    if len(datasets) > 1:
        return _ranked(store, (), "the data sets of this store")
    suites = [suite.name for suite in SUITES.values() if datasets & {*suite.datasets}]
    return [
        one
        for suite in suites
        for one in _ranked(store, (suite,), f"suite {suite}: this store's rows, and the committed ones of the others")
    ]


def _ranked(store: Store, suites: Sequence[str], about: str) -> list[JsonValue]:
    try:
        found = rank([store, LEADERBOARDS] if suites else [store], suites=suites)
    except TsadbenchError:  # nothing ran on two data sets
        return []
    return [
        {"about": about, **_table(one.tables[0]), "notes": list(one.sentences[1:]), "legend": one.sentences[0]}
        for one in found.over_all
    ]


def _table(table: Table) -> dict[str, JsonValue]:
    return {"title": table.title, "header": list[JsonValue](table.header), "rows": [[*row] for row in table.cells()]}
