"""Where a detector wins and where it loses: against the floors, against the others, recording by recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tsadbench.analysis.significance.ranking import Ranking
from tsadbench.leaderboard.cells import metrics_of, ranked_means
from tsadbench.leaderboard.ranking import Row
from tsadbench.reporting.site.source import Table, by_recording, recordings

_METRIC = "auprc"
# Recordings that a page names at each end.
_RECORDINGS = 3
# Other detectors that a page names at each end.
_OTHERS = 5


@dataclass(frozen=True, slots=True)
class Standing:
    """How a row stands on the first split of a data set and protocol.

    Parameters
    ----------
    label
        The detector with its parameters.
    table
        Data set and protocol.
    value
        Its mean AUPRC; None if it failed or has none.
    place, n_placed
        Its place among the detectors that are compared, and how many these are; no place for a floor, and for a row
        that is left out of the ranking.
    best, best_value
        The detector in the first place, and its value.
    floor, floor_value
        The best floor, and its value.
    strong, weak
        The recordings on which it has its best and its worst places: id, place, how many are compared, value.
    """

    label: str
    table: str
    value: float | None
    place: int | None
    n_placed: int
    best: str
    best_value: float | None
    floor: str
    floor_value: float | None
    strong: tuple[tuple[str, int, int, float], ...]
    weak: tuple[tuple[str, int, int, float], ...]

    @property
    def against_floor(self) -> float | None:
        """How far it is above the best floor."""
        return None if self.value is None or self.floor_value is None else self.value - self.floor_value

    @property
    def won(self) -> bool:
        """Whether it beats the best floor."""
        return (self.against_floor or 0) > 0


def standings(tables: Sequence[Table]) -> list[Standing]:
    """Return how each row of each table stands on the first split, by table."""
    return [one for table in tables for one in _of_table(table)]


def _of_table(table: Table) -> list[Standing]:
    rows = table.main
    metric = next((one for one in metrics_of(rows) if one.name == _METRIC), None)
    means = {} if metric is None else ranked_means(rows, metric)
    order = sorted(means, key=lambda label: -means[label])
    floors = {row.label: value for row in rows if row.ok and row.floor and (value := _value(row)) is not None}
    floor = max(floors, key=floors.__getitem__, default="")
    places = _places_by_recording(table, set(means))
    return [
        Standing(
            label=row.label,
            table=table.name,
            value=_value(row) if row.ok else None,
            place=order.index(row.label) + 1 if row.label in means else None,
            n_placed=len(order),
            best=order[0] if order else "",
            best_value=means[order[0]] if order else None,
            floor=floor,
            floor_value=floors.get(floor),
            strong=tuple(places.get(row.label, [])[:_RECORDINGS]),
            weak=tuple(reversed(places.get(row.label, [])[_RECORDINGS:][-_RECORDINGS:])),
        )
        for row in rows
    ]


def _value(row: Row) -> float | None:
    return row.metrics[_METRIC].mean if _METRIC in row.metrics else None


def _places_by_recording(table: Table, labels: set[str]) -> dict[str, list[tuple[str, int, int, float]]]:
    """Return the recordings of each label, those of its best places first."""
    found: dict[str, list[tuple[str, int, int, float]]] = {label: [] for label in labels}
    if table.values is None:
        return found
    values = {label: one[_METRIC] for label, one in by_recording(table).items() if label in labels and _METRIC in one}
    for k, name in enumerate(recordings(table.values)):
        here = {label: value for label in values if (value := values[label][k]) is not None}
        for label, value in here.items():
            found[label].append((name, 1 + sum(other > value for other in here.values()), len(here), value))
    for of_label in found.values():
        of_label.sort(key=lambda one: (one[1] / one[2], -one[3]))
    return found


@dataclass(frozen=True, slots=True)
class Duel:
    """Two detectors over the data sets of a suite.

    Parameters
    ----------
    other
        The label of the other one.
    rate, low, high
        On which share of the data sets the first is better, and the interval of that.
    n_datasets
        How many data sets both ran on.
    """

    other: str
    rate: float
    low: float
    high: float
    n_datasets: int


def duels(ranking: Ranking, label: str) -> tuple[list[Duel], list[Duel]]:
    """Return the detectors that a detector beats on most data sets of a suite, and those that beat it there.

    Both are ordered by their own mean rank. Floors and rows that did not run on all data sets are left out.
    """
    rows = ranking.frame
    ranked = rows.loc[rows["complete"] & ~rows["floor"], "detector"].tolist()
    found = []
    columns = ["first", "second", "rate", "rate_low", "rate_high", "datasets"]
    for first, second, rate, low, high, n_datasets in ranking.win_rates[columns].to_numpy().tolist():
        if first == label:
            found.append(Duel(second, rate, low, high, n_datasets))
        elif second == label:
            found.append(Duel(first, 1 - rate, 1 - high, 1 - low, n_datasets))
    found = [duel for duel in found if duel.other in ranked]
    found.sort(key=lambda duel: ranked.index(duel.other))
    wins = [duel for duel in found if duel.rate > 0.5][:_OTHERS]
    losses = [duel for duel in found if duel.rate < 0.5][:_OTHERS]
    return wins, losses
