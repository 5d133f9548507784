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
from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.base.protocol import Metric
from tsadbench.base.sessions import sessions_of
from tsadbench.datasets.loading import CARD_ENDING, load_dataset
from tsadbench.errors import UsageError
from tsadbench.execution.run_store import Store
from tsadbench.leaderboard.notes import older_rules
from tsadbench.leaderboard.ranking import Row, ranked_rows, splits_of
from tsadbench.leaderboard.selection import Selection, all_records, select
from tsadbench.results.trial_result import protocol_of
from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import nearest
from tsadbench.utils.progress import progress

RESAMPLES = 1000
# More splits than this are shown only if they are named: TEP has one a fault.
_MOST_SPLITS = 8
_TAILS = (0.05, 0.95)


def rank(
    runs: str | Path,
    *,
    metric: str = PRIMARY,
    stability: bool = False,
    resamples: int = RESAMPLES,
    seed: int = 0,
    dataset: str | LabelledDataset | None = None,
    protocol: str | None = None,
    splits: Sequence[str] = (),
    data: str | Path | None = None,
) -> Ranks:
    """Rank the rows of a run store on each split; ``stability`` says how firm the places are.

    A hierarchical bootstrap: sessions are drawn with replacement, and recordings within each drawn session; every
    row's metric is computed on each resample from stored scores, no detector runs.

    Parameters
    ----------
    runs
        A run store.
    metric
        The one that ranks.
    stability
        Whether to resample; needs stored scores, the data, and splits of two sessions or more.
    resamples, seed
        How many, and the seed that draws them.
    dataset
        Name of the data set, the path of its card, or the data themselves (default: every data set of the store).
    protocol
        As tables show it (default: every one).
    splits
        Those to rank on (default: all, or the first of more than eight).
    data
        Folder with the data sets' files; None searches as the documentation says.

    Raises
    ------
    UsageError
        If a name is wrong, there are fewer than two rows with scores, or no split has two sessions.
    DataError, StoreError
        If the data are not those of the trials, or a trial cannot be read.

    Examples
    --------
    >>> tsadbench.rank("runs", stability=True).to_frame()  # doctest: +SKIP
    """
    if resamples < 1:
        raise UsageError(f"expected one resample or more, found {resamples}")
    rankings: list[Ranking] = []
    for selection in _selections(runs, dataset, protocol, data):
        shown = _splits(selection, splits)
        ranked_by = _metric(metric, selection)
        if stability:
            rankings += _resampled(selection, shown, ranked_by, resamples, seed)
        else:
            rankings += [_ranking(selection, split, ranked_by) for split in shown]
    if stability and all(ranking.n_resamples is None for ranking in rankings):
        found = ", ".join(f"{ranking.dataset}, {ranking.split}: {ranking.n_sessions}" for ranking in rankings)
        raise UsageError(f"expected a split of two sessions or more, to resample them; found {found}")
    return Ranks(tuple(rankings), resamples if stability else None)


def _selections(
    runs: str | Path, dataset: str | LabelledDataset | None, protocol: str | None, data: str | Path | None
) -> list[Selection]:
    """Return the rows of each data set and protocol that were asked for; leaky and unforgetting ones take no part."""
    if isinstance(dataset, str) and dataset.endswith(CARD_ENDING):
        dataset = load_dataset(dataset)(DataOptions(allow_changed=True))
    asked = dataset.dataset.name if isinstance(dataset, LabelledDataset) else dataset
    records = all_records(Store.open(Path(runs)))
    found = [
        select(runs, dataset=dataset if asked == name else name, protocol=rules, data=data, everything=True)
        for name, rules in dict.fromkeys((one.dataset, one.protocol) for one in records if one.status == "ok")
        if asked in (None, name) and protocol in (None, rules)
    ]
    if not found:
        select(runs, dataset=dataset, protocol=protocol)
        raise UsageError(f"{runs} holds no trial of the data set {asked!r} under the protocol {protocol!r}")
    return [_without_unfit(selection) for selection in found]


def _without_unfit(selection: Selection) -> Selection:
    unfit = {row.label: "it is leaky" for row in selection.rows if row.leaky}
    unfit |= {row.label: "it does not forget" for row in selection.rows if not (row.floor or row.forgets)}
    return replace(
        selection,
        rows=tuple(row for row in selection.rows if row.label not in unfit),
        left_out=(*selection.left_out, *(f"{label}: {reason}" for label, reason in unfit.items())),
    )


def _splits(selection: Selection, asked: Sequence[str]) -> tuple[str, ...]:
    available = splits_of([record for row in selection.rows for record in row.records])
    for split in asked:
        if split not in available:
            raise UsageError(f"{selection.rows[0].dataset} has no split {split!r}{nearest(split, available)}")
    if asked:
        return tuple(dict.fromkeys(asked))
    return available if len(available) <= _MOST_SPLITS else available[:1]


def _metric(name: str, selection: Selection) -> Metric:
    first = selection.rows[0].first
    metrics = {metric.name: metric for metric in protocol_of(first).metrics if metric.better is not None}
    if name not in metrics:
        raise UsageError(
            f"protocol {first.protocol} has no metric {name!r} that is better high or low{nearest(name, metrics)}"
        )
    return metrics[name]


def _ranking(selection: Selection, split: str, metric: Metric) -> Ranking:
    """Return the places by what records hold."""
    records = [record for row in selection.rows for record in row.records]
    means = [(row, row.metrics[metric.name].mean) for row in ranked_rows(records, split) if row.ok]
    undefined = [row.label for row, mean in means if mean is None]
    values = [(row, mean) for row, mean in means if mean is not None]
    ranks = _ranks(np.array([mean for _, mean in values]), metric).tolist()
    return Ranking(
        dataset=selection.rows[0].dataset,
        protocol=selection.rows[0].protocol,
        protocol_version=selection.rows[0].first.protocol_version,
        split=split,
        metric=metric,
        places=_sorted(_place(row, value, rank_) for (row, value), rank_ in zip(values, ranks, strict=True)),
        notes=(
            *([f"{metric.title} is undefined for {', '.join(undefined)}."] if undefined else []),
            *(f"Without a rank: {reason}." for reason in selection.left_out),
            *(str(note) for note in older_rules(records)),
        ),
    )


def _resampled(
    selection: Selection, splits: Sequence[str], metric: Metric, resamples: int, seed: int
) -> Iterator[Ranking]:
    """Yield the places of each split over resamples; of a split of one session only a note."""
    data, store = selection.load(), selection.store
    selection = selection.without_broken(data)
    if len(selection.rows) < 2:
        reasons = "; ".join((f"found {len(selection.rows)}", *selection.left_out))
        raise UsageError(f"{store.path}: expected two rows or more with stored scores, {reasons}")
    scored = set(selection.only(selection.rows[0]).results(data, one_each=True)[0].recordings)
    session_of = sessions_of(data.dataset)
    sizes, draws = {}, {}
    for split in splits:
        names = [name for name in data.dataset.splits.get(split, ()) if name in scored]
        place = {name: i for i, name in enumerate(names)}
        sessions = [[place[name] for name in some] for some in grouped(names, session_of.__getitem__).values()]
        sizes[split] = (len(sessions), len(names))
        if len(sessions) > 1:
            draws[split] = (names, draw(sessions, resamples, seed))
    values = _values(selection, data, metric, draws) if draws else {}
    for split, (n_sessions, n_recordings) in sizes.items():
        plain = replace(_ranking(selection, split, metric), n_sessions=n_sessions, n_recordings=n_recordings)
        if split in values:
            yield _stable(plain, selection.rows, values[split])
        else:
            note = "Not resampled: one session says nothing about how ranks vary between sessions."
            yield replace(plain, places=(), notes=(note,))


def _values(
    selection: Selection,
    data: LabelledDataset,
    metric: Metric,
    draws: Mapping[str, tuple[Sequence[str], FloatArray]],
) -> dict[str, FloatArray]:
    """Return each row's metric on each split and its resamples, [n_rows, 1 + n_resamples], the mean over seeds."""
    values: dict[str, list[FloatArray]] = {split: [] for split in draws}
    for done, row in enumerate(selection.rows):
        progress(done, len(selection.rows), row.label)
        results = selection.only(row).results(data)
        for split, (names, drawn) in draws.items():
            of_seeds = [resampled(result, metric.name, names, drawn) for result in results]
            values[split].append(np.mean(of_seeds, axis=0))
    progress(len(selection.rows), len(selection.rows))
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
    low, high = np.quantile(drawn, _TAILS, axis=1)
    rank_low, rank_high = np.quantile(ranks, _TAILS, axis=1, method="inverted_cdf")
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
