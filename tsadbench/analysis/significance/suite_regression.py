"""Compares committed rankings over suites with what the committed records say today, some of them run again."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ValidationError

from tsadbench.analysis.significance.suite_rank import rank_over_all
from tsadbench.analysis.significance.suite_rows import Standings, matched
from tsadbench.analysis.significance.tables import Committed, metric_of, read_tables
from tsadbench.datasets.suites import Suite, suite_named
from tsadbench.errors import UsageError
from tsadbench.execution.record import Record
from tsadbench.leaderboard.ranking import Row
from tsadbench.leaderboard.regression import Cell, allowed

# Below a folder of committed leaderboards: <suite>/rank.json, as `tsadbench rank --write` writes it.
SUITES_FOLDER, RANKING = "suites", "rank.json"
# Ranks and counts are sums of halves over data sets: what they differ by below this is rounding.
_ROUNDING = 1e-9


# Numbers that records alone do not give, or that have cells of their own.
_NOT_COMPARED = {"n_resamples", "n_draws", "low", "high", "core_minutes", "mean_rank", "beats_floors", "wins"}
_NUMBERS = ("mean rank", "floors beaten", "wins")
_NOTHING = (None, None, None)


class _Estimate(BaseModel):
    value: float | None


class _Standing(BaseModel):
    label: str
    mean_rank: _Estimate
    beats_floors: _Estimate
    wins: float


class _Part(BaseModel):
    dataset: str
    split: str


class _Ranking(BaseModel):
    """What a committed ranking must hold to be compared."""

    suite: str
    protocol: str
    protocol_version: int
    metric: str
    parts: list[_Part]
    standings: list[_Standing]


def suite_cells(folder: Path, fresh: Sequence[Record] = ()) -> list[Cell]:
    """Return mean rank, share of floors beaten and wins of each row of the rankings over suites, then and now.

    A row that was run again may move as far as its own tolerance lets it pass others; the others' cells follow. All
    other numbers that the committed records give (ranks on each data set, win rates, best floors) have a cell if they
    contradict what is committed.

    Parameters
    ----------
    folder
        Committed leaderboards.
    fresh
        Records of rows that were run again; they take the place of the committed ones.

    Returns
    -------
    list
        Empty if no ranking over a suite is committed.

    Raises
    ------
    UsageError
        If a committed ranking cannot be read, or is of another version of its suite or protocol than is installed.
    """
    return [
        cell for file in sorted(folder.glob(f"{SUITES_FOLDER}/*/{RANKING}")) for cell in _cells(folder, file, fresh)
    ]


def _cells(folder: Path, file: Path, fresh: Sequence[Record]) -> Iterator[Cell]:
    try:
        committed = _Ranking.model_validate_json(file.read_bytes())
    except ValidationError as error:
        fault = error.errors()[0]["msg"]
        raise UsageError(f"{file}: expected a ranking as `tsadbench rank --write` writes it, found: {fault}") from error
    suite = suite_named(committed.suite.partition(" ")[0])
    before, after = (_standings(Committed(folder, rows), suite, committed) for rows in ((), fresh))
    rules = before[0].table.first.rules
    if (committed.suite, f"{committed.protocol} {committed.protocol_version}") != (str(suite), rules):
        raise UsageError(
            f"{file}: it is of suite {committed.suite} by {committed.protocol} {committed.protocol_version}, and the "
            f"tables beside it give suite {suite} by {rules}: make it anew (`tsadbench rank --write`)"
        )
    (ranking,) = rank_over_all(after, [suite], 1, 0)
    then = {row.label: (row.mean_rank.value, row.beats_floors.value, row.wins) for row in committed.standings}
    now = {row.label: (row.mean_rank.value, row.beats_floors.value, row.wins) for row in ranking.standings}
    table = (f"suite {suite.name}", committed.protocol, "over all")
    n_then, n_now = len(committed.parts), len(ranking.parts)
    yield Cell(*table, "(all)", "data sets", n_then, n_now, 0.0)
    tolerances = _tolerances(before, fresh)
    for label in dict.fromkeys([*then, *now]):
        found = zip(_NUMBERS, then.get(label, _NOTHING), now.get(label, _NOTHING), tolerances[label], strict=True)
        yield from (Cell(*table, label, *numbers[:3], numbers[3] + _ROUNDING) for numbers in found)
    (unchanged,) = rank_over_all(before, [suite], 1, 0)
    written, given = (dict(_numbers(json.loads(text))) for text in (file.read_bytes(), unchanged.to_json()))
    others = (
        Cell(*table, where, "as committed", written.get(where), given.get(where), _ROUNDING)
        for where in dict.fromkeys([*written, *given])
    )
    yield from (cell for cell in others if not cell.holds)


def _numbers(content: object, where: str = "") -> Iterator[tuple[str, float | None]]:
    """Yield all numbers of a ranking's JSON object, each with the names that lead to it."""
    if isinstance(content, dict):
        for key, value in content.items():
            if key not in _NOT_COMPARED:
                yield from _numbers(value, f"{where} {key}".strip())
    elif isinstance(content, list):
        for place, one in enumerate(content):
            named = [
                one[key] for key in ("dataset", "label", "first", "second") if isinstance(one, dict) and key in one
            ]
            yield from _numbers(one, " ".join([where, *map(str, named or [place])]))
    elif content is None or isinstance(content, int | float):
        yield where, content


def _standings(store: Committed, suite: Suite, committed: _Ranking) -> list[Standings]:
    splits = {part.dataset: part.split for part in committed.parts}
    tables = read_tables([store], datasets=suite.datasets, protocol=committed.protocol)
    return [
        Standings.of(table, splits.get(table.first.dataset, "overall"), metric_of(committed.metric, table), {})
        for table in tables
    ]


def _tolerances(before: Sequence[Standings], fresh: Sequence[Record]) -> dict[str, tuple[float, float, float]]:
    """Return how far each row's numbers may move if values of fresh rows move within what tables allow.

    Two rows whose values may change places are a rank and a win apart; a floor that may pass a row, one data set.
    """
    standings = matched(before)
    names = tuple(dict.fromkeys(name for one in standings for name in one.rows))
    n_found = Counter((record.dataset, record.label) for record in fresh)
    ranks, above = np.zeros((len(standings), len(names))), np.zeros((len(standings), len(names)))
    present = np.zeros((len(standings), len(names)), dtype=np.bool_)
    for place, one in enumerate(standings):
        values = one.gains(names)[:, 0]
        present[place] = ~np.isnan(values)
        slack = np.array([_slack(one.rows.get(name), one.metric.name, n_found) for name in names])
        both = slack[:, None] + slack[None, :]
        with np.errstate(invalid="ignore"):  # two that failed
            close = (both > 0) & (np.abs(values[:, None] - values[None, :]) <= both)
        np.fill_diagonal(close, val=False)
        floors = np.array([name in one.rows and one.rows[name].floor for name in names])
        ranks[place], above[place] = close.sum(axis=1), close[:, floors].any(axis=1)
    n_present = np.maximum(present.sum(axis=0), 1)
    numbers = (ranks.sum(axis=0) / n_present, above.sum(axis=0) / n_present, ranks.sum(axis=0))
    of_each = zip(*map(np.ndarray.tolist, numbers), strict=True)
    return defaultdict(lambda: (0.0, 0.0, 0.0), zip(names, of_each, strict=True))


def _slack(row: Row | None, metric: str, n_found: Mapping[tuple[str, str], int]) -> float:
    """Return how far a row's value may move; 0 for one that was not run again."""
    n = n_found.get((row.dataset, row.label), 0) if row is not None and row.ok else 0
    return allowed(row.metrics[metric], len(row.seeds), n) if row is not None and n else 0.0
