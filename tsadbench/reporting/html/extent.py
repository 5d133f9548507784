"""What of a store a page holds: everything of a small one, the best of a large one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.cells import best_floors, metrics_of, ranked_means
from tsadbench.leaderboard.ranking import Row

# How many detectors of each metric have figures, if there are too many trials for all of them.
BEST = 2
# Up to so many trials a page holds everything.
_EVERYTHING = 300
# Tables (data set and protocol) that have figures, seeds whose curves are drawn.
_TABLES = 8
SEEDS = 10
# Rows of all splits' tables together, and of each at least; values of single seeds in them.
_ROWS = 4000
_FEWEST_ROWS = 20
_VALUES = 200_000

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Extent:
    """What of a store a page holds.

    Parameters
    ----------
    figures
        The detectors with curves, series and manifests, by data set and protocol.
    n_tables
        How many data sets with protocols there are.
    n_rows
        How many detectors, and how many failures, each split's table shows beside those and the floors.
    n_seeds
        Of how many seeds the tables hold single values.
    rule
        How the detectors with figures were chosen, in words; empty if all have some.
    """

    figures: Mapping[Key, frozenset[str]]
    n_tables: int
    n_rows: int
    n_seeds: int
    rule: str

    @classmethod
    def of(cls, board: Leaderboard, labels: Sequence[str], best: int | None) -> Extent:
        """Choose what a page holds."""
        first_splits: dict[Key, tuple[Row, ...]] = {}
        for (dataset, rules, _), rows in board.tables().items():
            first_splits.setdefault((dataset, rules), rows)
        n_trials = sum(len(row.records) for rows in first_splits.values() for row in rows)
        some_tables = dict(islice(first_splits.items(), _TABLES))
        if labels:
            chosen = dict.fromkeys(some_tables, frozenset(labels))
            rule = f"those of --detector {', '.join(labels)}"
        elif best == 0 or (best is None and n_trials <= _EVERYTHING):
            chosen = {key: frozenset(row.label for row in rows) for key, rows in first_splits.items()}
            rule = ""
        else:
            n_best = BEST if best is None else best
            chosen = {key: _best(rows, n_best) for key, rows in some_tables.items()}
            rule = f"the best {n_best} detectors and the best floor in each metric on the first split"
        n_metrics = max((len(row.metrics) for row in board.rows), default=0)
        n_rows = max(_FEWEST_ROWS, _ROWS // len(board.tables()))
        n_shown = min(len(board.rows), n_rows * len(board.tables()))
        return cls(
            figures=chosen,
            n_tables=len(first_splits),
            n_rows=n_rows,
            n_seeds=max(SEEDS, _VALUES // max(1, n_shown * n_metrics)),
            rule=rule,
        )

    def labels(self, key: Key) -> frozenset[str]:
        """Return the detectors of a data set and protocol, with its version, that have figures."""
        return self.figures.get(key, frozenset())

    def in_words(self, board: Leaderboard) -> str:
        """Return how much a page shows of how much."""
        trials = {
            one.trial: row.label in self.labels((row.dataset, row.rules)) for row in board.rows for one in row.records
        }
        n_figures = sum(trials.values())
        some = f"those of {n_figures:,}" if self.rule else "all"
        return (
            f"{len(trials):,} trials in {self.n_tables:,} tables; curves and series of {some}, about a tenth of a "
            f"second each{f' ({self.rule})' if self.rule else ''}"
        )

    def shown(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows of one split's table that the page holds, in their order."""
        chosen = self.labels((rows[0].dataset, rows[0].rules))
        detectors = [row for row in rows if row.ok and not row.floor][: self.n_rows]
        failures = [row for row in rows if not row.ok][: self.n_rows]
        kept = {row.label for row in (*detectors, *failures)} | chosen
        return [row for row in rows if row.label in kept or (row.ok and row.floor)]

    def notes(self, board: Leaderboard) -> list[str]:
        """Return what a page leaves out of the rows of one data set and protocol; nothing if it holds all."""
        first = board.rows[0]
        rows = next(iter(board.tables().values()))
        n_records = sum(len(row.records) for row in rows)
        labels = self.labels((first.dataset, first.rules))
        found = []
        if n_left := len(rows) - len(self.shown(rows)):
            found.append(
                f"The tables leave out {n_left:,} of {len(rows):,} detectors: they hold the first {self.n_rows} by "
                f"AUPRC, those with figures and all floors; the lines against speed join the best of these. "
                "`tsadbench leaderboard --format csv` has all."
            )
        if self.rule and not labels:
            found.append(
                f"No curves, recordings and manifests: the page has those of the first {len(self.figures)} of "
                f"{self.n_tables} data sets and protocols."
            )
        elif self.rule:
            found.append(
                f"Curves, recordings, numbers in operation and manifests are those of {len(labels)} of {len(rows):,} "
                f"detectors: {self.rule}. `tsadbench report --best N` or `--detector LABEL` chooses others."
            )
        if any(len(row.records) > SEEDS for row in rows):
            found.append(f"Curves are drawn for the first {SEEDS} seeds; dots for the first {self.n_seeds}.")
        return [f"{note} ({n_records:,} trials)" if i == 0 else note for i, note in enumerate(found)]


def _best(rows: Sequence[Row], n_best: int) -> frozenset[str]:
    chosen = best_floors(rows, metrics_of(rows))
    for metric in metrics_of(rows):
        if metric.better is not None:
            ranked = sorted(
                ((mean, label) for label, mean in ranked_means(rows, metric).items()), reverse=metric.better == "higher"
            )
            chosen.update(label for _, label in ranked[:n_best])
    return frozenset(chosen)
