"""`tsadbench.rank`: the place of each row of a table, and how firm it is over resampled sessions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import stats

from tsadbench.analysis.significance.caveats import PRIMARY
from tsadbench.analysis.significance.pairs import LEAST_FOR_TESTS
from tsadbench.analysis.significance.ranks import Place, Ranking, Ranks
from tsadbench.analysis.significance.resampling import draw, resampled
from tsadbench.analysis.significance.suite_draws import TAILS
from tsadbench.analysis.significance.suite_rank import rank_over_all
from tsadbench.analysis.significance.suite_rows import Drawn, Standings
from tsadbench.analysis.significance.tables import Table, metric_of, read_tables
from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.protocol import Metric
from tsadbench.datasets.sessions import sessions_of
from tsadbench.datasets.suites import suite_named
from tsadbench.errors import UsageError
from tsadbench.execution.request import DEFAULT_PROTOCOL
from tsadbench.execution.store import Store
from tsadbench.leaderboard.cells import about_entities
from tsadbench.leaderboard.notes import older_rules
from tsadbench.leaderboard.ranking import Row, ranked_rows, splits_of
from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import nearest
from tsadbench.utils.progress import progress

RESAMPLES = 1000
# More splits than this are shown only if they are named: TEP has one a fault.
_MOST_SPLITS = 8


def rank(
    runs: str | Path | Sequence[str | Path | Store],
    *,
    metric: str = PRIMARY,
    stability: bool = False,
    resamples: int = RESAMPLES,
    seed: int = 0,
    dataset: str | LabelledDataset | None = None,
    protocol: str | None = None,
    splits: Sequence[str] = (),
    data: str | Path | None = None,
    suites: Sequence[str] = (),
) -> Ranks:
    """Rank the rows of run stores on each data set and split, and over all data sets that they hold.

    ``stability`` says how firm the places are, by a hierarchical bootstrap: sessions are drawn with replacement, and
    recordings within each drawn session; every row's metric is computed on each resample from stored scores, no
    detector runs. Over several data sets these are drawn with replacement too, with or without ``stability``.

    Parameters
    ----------
    runs
        A run store, or several; a folder of committed leaderboards counts as one without scores.
    metric
        The one that ranks.
    stability
        Whether to resample sessions; needs stored scores, the data, and splits of two sessions or more.
    resamples, seed
        How many, and the seed that draws them.
    dataset
        Name of the data set, the path of its card, or the data themselves (default: every data set of the stores).
    protocol
        As tables show it (default: every one; of a suite ``strict``).
    splits
        Those to rank on (default: all, or the first of more than eight). Over several data sets each has one: the first
        of these that it has, else ``overall``.
    data
        Folder with the data sets' files; None searches as the documentation says.
    suites
        Names of suites to rank over, each on its data sets alone (default: over all data sets that there are).

    Raises
    ------
    UsageError
        If a name is wrong, there are fewer than two rows with scores, no split has two sessions, or no two detectors
        ran on all data sets of a suite.
    DataError, StoreError
        If the data are not those of the trials, or a trial cannot be read.

    Examples
    --------
    >>> tsadbench.rank("runs", stability=True).to_frame()  # doctest: +SKIP
    """
    if resamples < 1:
        raise UsageError(f"expected one resample or more, found {resamples}")
    if suites and dataset is not None:
        raise UsageError("a suite says which data sets are ranked: give either --suite or --dataset")
    asked = [suite_named(name) for name in dict.fromkeys(suites)]
    tables = read_tables(
        [runs] if isinstance(runs, str | Path) else runs,
        dataset=dataset,
        datasets=tuple(dict.fromkeys(name for suite in asked for name in suite.datasets)),
        protocol=DEFAULT_PROTOCOL if asked and protocol is None else protocol,
        data=data,
    )
    if stability and not any(table.scored.rows for table in tables):
        raise UsageError("--stability needs stored scores, and committed leaderboards hold none: name run stores")
    rankings: list[Ranking] = []
    standings: list[Standings] = []
    for table, shown in zip(tables, _shown(tables, splits, one_each=bool(asked)), strict=True):
        ranked_by = metric_of(metric, table)
        drawn: dict[str, Drawn] = {}
        if stability:
            rankings += _resampled(table, shown, ranked_by, resamples, seed, drawn)
        else:
            rankings += [_ranking(table, split, ranked_by) for split in shown]
        split = _of_all(shown, splits)
        standings.append(Standings.of(table, split, ranked_by, drawn.get(split, {})))
    if stability and all(ranking.n_resamples is None for ranking in rankings):
        found = ", ".join(f"{ranking.dataset}, {ranking.split}: {ranking.n_sessions}" for ranking in rankings)
        raise UsageError(f"expected a split of two sessions or more, to resample them; found {found}")
    over_all = rank_over_all(standings, asked, resamples, seed)
    return Ranks(tuple(rankings), resamples if stability else None, tuple(over_all))


def _shown(tables: Sequence[Table], asked: Sequence[str], *, one_each: bool) -> list[tuple[str, ...]]:
    """Return the splits of each table that are ranked; ``one_each`` for one of each."""
    available = [splits_of([record for row in table.rows for record in row.records]) for table in tables]
    everywhere = tuple(dict.fromkeys(split for splits in available for split in splits))
    names = dict.fromkeys(table.first.dataset for table in tables)
    for split in asked:
        if split not in everywhere:
            has = "has" if len(names) == 1 else "have"
            raise UsageError(f"{', '.join(names)} {has} no split {split!r}{nearest(split, everywhere)}")
    shown = []
    for splits in available:
        own = tuple(split for split in dict.fromkeys(asked) if split in splits)
        if not own:
            own = splits if len(splits) <= _MOST_SPLITS and not asked else splits[:1]
        shown.append((_of_all(own, asked),) if one_each else own)
    return shown


def _of_all(shown: Sequence[str], asked: Sequence[str]) -> str:
    """Return the split by which a data set counts among several."""
    return shown[0] if asked or "overall" not in shown else "overall"


def _ranking(table: Table, split: str, metric: Metric) -> Ranking:
    """Return the places by what records hold."""
    records = [record for row in table.rows for record in row.records]
    means = [(row, row.metrics[metric.name].mean) for row in ranked_rows(records, split) if row.ok]
    undefined = [row.label for row, mean in means if mean is None]
    values = [(row, mean) for row, mean in means if mean is not None]
    ranks = _ranks(np.array([mean for _, mean in values]), metric).tolist()
    over = about_entities(values[0][0]).removeprefix(", ") if values else ""
    return Ranking(
        dataset=table.first.dataset,
        protocol=table.first.protocol,
        protocol_version=table.first.protocol_version,
        split=split,
        metric=metric,
        places=_sorted(_place(row, value, rank_) for (row, value), rank_ in zip(values, ranks, strict=True)),
        notes=(
            *([f"Values: {over}."] if over else []),
            *([f"{metric.title} is undefined for {', '.join(undefined)}."] if undefined else []),
            *(f"Without a rank: {reason}." for reason in table.left_out),
            *(str(note) for note in older_rules(records)),
        ),
    )


def _resampled(
    table: Table, splits: Sequence[str], metric: Metric, resamples: int, seed: int, drawn: dict[str, Drawn]
) -> Iterator[Ranking]:
    """Yield the places of each split over resamples; of a split of one session only a note.

    The metrics of the rows on each split and its resamples are added to ``drawn``.
    """
    if not table.scored.rows:
        note = "Not resampled: committed leaderboards hold no scores."
        yield from (replace(_ranking(table, split, metric), places=(), notes=(note,)) for split in splits)
        return
    data = table.load()
    table = table.scored.without_broken(data)
    if len(table.rows) < 2:
        reasons = "; ".join((f"found {len(table.rows)}", *table.left_out))
        raise UsageError(f"{table.stores}: expected two rows or more with stored scores, {reasons}")
    scored = set(table.results(table.rows[0], data, one_each=True)[0].recordings)
    session_of = sessions_of(data.dataset)
    sizes, draws = {}, {}
    for split in splits:
        names = [name for name in data.dataset.splits.get(split, ()) if name in scored]
        place = {name: i for i, name in enumerate(names)}
        sessions = [[place[name] for name in some] for some in grouped(names, session_of.__getitem__).values()]
        sizes[split] = (len(sessions), len(names))
        if len(sessions) > 1:
            draws[split] = (names, draw(sessions, resamples, seed))
    found = _values(table, data, metric, draws) if draws else {}
    for split, (n_sessions, n_recordings) in sizes.items():
        plain = replace(_ranking(table, split, metric), n_sessions=n_sessions, n_recordings=n_recordings)
        if split in found:
            drawn[split] = dict(zip((row.label for row in table.rows), found[split], strict=True))
            yield _stable(plain, table.rows, found[split])
        else:
            note = "Not resampled: one session says nothing about how ranks vary between sessions."
            yield replace(plain, places=(), notes=(note,))


def _values(
    table: Table,
    data: LabelledDataset,
    metric: Metric,
    draws: Mapping[str, tuple[Sequence[str], FloatArray]],
) -> dict[str, FloatArray]:
    """Return each row's metric on each split and its resamples, [n_rows, 1 + n_resamples], the mean over seeds."""
    values: dict[str, list[FloatArray]] = {split: [] for split in draws}
    for done, row in enumerate(table.rows):
        progress(done, len(table.rows), f"{row.dataset}: {row.label}")
        results = table.results(row, data)
        for split, (names, drawn) in draws.items():
            of_seeds = [resampled(result, metric.name, names, drawn) for result in results]
            values[split].append(np.mean(of_seeds, axis=0))
    progress(len(table.rows), len(table.rows))
    return {split: np.stack(of_rows) for split, of_rows in values.items()}


def _stable(plain: Ranking, rows: Sequence[Row], values: FloatArray) -> Ranking:
    """Return a ranking with what a metric on its split and on resamples of it tells, [n_rows, 1 + n_resamples]."""
    metric, n_sessions = plain.metric, plain.n_sessions or 0
    defined: BoolArray = np.asarray(~np.isnan(values).any(axis=0))
    if not defined[0] or not defined[1:].any():
        return replace(plain, notes=(f"{metric.title} is undefined on it.", *plain.notes))
    whole, drawn = values[:, 0], values[:, 1:][:, defined[1:]]
    ranks = _ranks(drawn, metric)
    floors = np.array([row.floor for row in rows])
    gains = drawn if metric.better == "higher" else -drawn
    beaten = (gains > gains[floors].max(axis=0, initial=-np.inf)).mean(axis=1)
    low, high = np.quantile(drawn, TAILS, axis=1)
    rank_low, rank_high = np.quantile(ranks, TAILS, axis=1, method="inverted_cdf")
    notes = []
    if n_sessions < LEAST_FOR_TESTS:
        notes.append(
            f"{n_sessions} sessions are few: resamples repeat these and contain no other, so another session may "
            "change the ranks by more than the intervals say."
        )
    if not defined.all():
        notes.append(f"{np.count_nonzero(~defined):,} resamples on which {metric.title} is undefined are left out.")
    return replace(
        plain,
        places=_sorted(
            replace(
                _place(row, float(whole[i]), rank_),
                low=float(low[i]),
                high=float(high[i]),
                rank_low=float(rank_low[i]),
                rank_high=float(rank_high[i]),
                beats_floors=None if row.floor or not floors.any() else float(beaten[i]),
            )
            for i, (row, rank_) in enumerate(zip(rows, _ranks(whole, metric).tolist(), strict=True))
        ),
        n_resamples=int(np.count_nonzero(defined[1:])),
        notes=(*notes, *plain.notes),
    )


def _place(row: Row, value: float, rank_: float) -> Place:
    return Place(
        label=row.label,
        seeds=len(row.seeds),
        floor=row.floor,
        value=value,
        rank=rank_,
        coverage=1.0 if row.coverage is None else row.coverage,
    )


def _sorted(places: Iterable[Place]) -> tuple[Place, ...]:
    return tuple(sorted(places, key=lambda place: (place.rank, place.label)))


def _ranks(values: FloatArray, metric: Metric) -> FloatArray:
    """Return ranks along the first axis, 1 for the best."""
    ranks: FloatArray = stats.rankdata(-values if metric.better == "higher" else values, axis=0)
    return ranks
