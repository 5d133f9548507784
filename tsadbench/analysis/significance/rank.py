"""`tsadbench.rank`: ranks rows on each data set and over several, with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from tsadbench.analysis.significance import PRIMARY, Result
from tsadbench.analysis.significance.ranking import Part, rank_parts, rank_split
from tsadbench.analysis.significance.resampling import draw, resampled
from tsadbench.analysis.stored import Stored, common_name, metric_named, read_stored
from tsadbench.base.dataset import LabelledDataset
from tsadbench.datasets.loading import Suite, suite_named
from tsadbench.errors import UsageError
from tsadbench.execution.record import Record
from tsadbench.execution.request import DEFAULT_PROTOCOL
from tsadbench.execution.store import Store
from tsadbench.leaderboard.render import Table
from tsadbench.results.trial_result import protocol_named
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import normal_label, require_known
from tsadbench.utils.progress import progress

RESAMPLES = 1000
# More splits than this are only shown if named: TEP has one per fault.
_MOST_SPLITS = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class Ranks(Result):
    """Rankings on each data set, protocol and split, and over several data sets (per suite or protocol).

    The first frame of a ranking has a line per row. ``rank`` is among all rows and ``detector_rank`` among detectors:
    1 is the best, ties share a rank; over several data sets, they are means. ``beats_floors`` is the share of resamples
    (or data sets) on which a row is better than the best floor. ``_low`` and ``_high`` bound 90 % intervals.

    Rows that are missing on a data set come last, without a mean rank. A row wins ``wins`` of ``pairs`` comparisons
    with complete rows over all data sets; ``rate`` is the share of data sets on which ``first`` beats ``second``.
    """

    rankings: Sequence[Result]
    over_all: Sequence[Result]


def joined(rankings: Sequence[Result], over_all: Sequence[Result]) -> Ranks:
    """Join tables and sentences; rankings over several data sets come first."""
    every = (*over_all, *rankings)
    single = pd.concat([one.to_frame() for one in rankings], ignore_index=True)
    return Ranks(
        rankings=rankings,
        over_all=over_all,
        tables=[table for one in every for table in one.tables],
        frames=[Table("ranks", single), *(frame for one in over_all for frame in one.frames)],
        sentences=list(dict.fromkeys(text for one in every for text in one.sentences)),
    )


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
    detectors: Sequence[str] = (),
) -> Ranks:
    """Rank the rows of run stores on each data set and split, and over all data sets that they hold.

    Intervals over several data sets come from drawing data sets with replacement. ``stability`` also draws sessions
    with replacement, and recordings within each drawn session, and computes every row's metric on each resample.

    Parameters
    ----------
    runs
        A run store, or several; a folder of committed leaderboards counts as a store without scores.
    metric
        The metric to rank by.
    stability
        Whether to resample sessions, which needs stored scores, the data, and splits of two or more sessions.
    resamples, seed
        The number of resamples, and their seed.
    dataset
        A data set's name, the path of its card, or the data (default: every data set of the stores).
    protocol
        A label as in tables (default: all; for a suite, ``strict``).
    splits
        Splits to rank on (default: all, or the first of more than eight). Over several data sets, each counts with one
        split: the first of these that it has, else the suite's, else ``overall``.
    data
        Folder with the data sets' files; None searches as the documentation says.
    suites
        Suites to rank over, each on its own data sets (default: over all data sets of the stores).
    detectors
        Labels of the rows to show (default: all); ranks remain those among all rows.

    Raises
    ------
    UsageError
        If a name is wrong, nothing can be resampled, or no two detectors ran on all data sets of a suite.
    DataError, StoreError
        If the data differ from the trials', or a trial cannot be read.
    """
    if resamples < 1:
        raise UsageError(f"expected at least one resample, found {resamples}")
    if suites and dataset is not None:
        raise UsageError("a suite says which data sets are ranked: leave the data set out", field="suites")
    asked = [suite_named(name) for name in dict.fromkeys(suites)]
    tables = read_stored(
        [runs] if isinstance(runs, str | Path) else runs,
        dataset=dataset,
        datasets=tuple(dict.fromkeys(name for suite in asked for name in suite.datasets)),
        protocol=DEFAULT_PROTOCOL if asked and protocol is None else protocol,
        data=data,
    )
    labels = {name for stored in tables for label in stored.stores for name in (label, common_name(label))}
    only = [normal_label(one, labels) for one in detectors]
    every_split = {split for stored in tables for split in stored.splits}
    for what, names, known in (("split", splits, every_split), ("row", only, labels)):
        require_known(names, known, f"there is no {what}")
    only = [label for label in labels if label in only or common_name(label) in only]
    n_resamples = resamples if stability else 0
    parts = [_parts(stored, _splits(stored, splits, asked), metric, n_resamples, seed) for stored in tables]
    every = [part for some in parts for part in some.values()]
    rankings = [rank_split(part, stability=stability, only=only) for part in every]
    if stability and not any(part.drawn for part in every):
        found = ", ".join(f"{part.dataset}, {part.split}: {part.n_sessions}" for part in every)
        raise UsageError(f"it needs stored scores and two sessions or more; found {found}", field="stability")
    over = partial(rank_parts, n_draws=resamples, seed=seed, only=only)
    over_all = [over(_of_suite(parts, suite, splits), suite) for suite in asked]
    for alike in grouped(parts, lambda some: _first(some).rules).values() if not asked else ():
        if len(alike) > 1:
            with suppress(UsageError):  # no two rows ran on all data sets
                over_all.append(over([some[_one(some, splits)] for some in alike], None))
    return joined(rankings, over_all)


def _splits(stored: Stored, asked: Sequence[str], suites: Sequence[Suite]) -> list[str]:
    """Return the splits to rank on: the requested ones, else all, or only the first of many; one each for suites."""
    if suites:
        usual = [suite.splits.get(stored.first.dataset, "overall") for suite in suites]
        return list(dict.fromkeys(_one(stored.splits, asked, one) for one in usual))
    own = [split for split in dict.fromkeys(asked) if split in stored.splits]
    return own or (stored.splits if len(stored.splits) <= _MOST_SPLITS and not asked else stored.splits[:1])


def _one(splits: Iterable[str], asked: Sequence[str], usual: str = "overall") -> str:
    """Return a data set's split for rankings over several data sets."""
    known = [*splits]
    return next((split for split in (*asked, usual, "overall") if split in known), known[0])


def _first(parts: Mapping[str, Part]) -> Record:
    return next(iter(parts.values())).stored.first


def _of_suite(parts: Sequence[Mapping[str, Part]], suite: Suite, asked: Sequence[str]) -> list[Part]:
    """Return a suite's data sets with rows under the newest version of the protocol, in the suite's order."""
    found = [some for name in suite.datasets for some in parts if _first(some).dataset == name]
    newest = max((_first(some).protocol_version for some in found), default=0)
    found = [some for some in found if _first(some).protocol_version == newest]
    if len(found) < 2:
        names = ", ".join(_first(some).dataset for some in found) or "none"
        raise UsageError(
            f"suite {suite.name}: expected rows on at least two data sets under one version of a protocol, found "
            f"{names}; run them with `tsadbench run --suite {suite.name}`"
        )
    return [some[_one(some, asked, suite.splits.get(_first(some).dataset, "overall"))] for some in found]


def _parts(stored: Stored, splits: Sequence[str], metric: str, n_resamples: int, seed: int) -> dict[str, Part]:
    """Return the splits of a data set, with each row's metric on resamples of its sessions if requested."""
    rules = protocol_named(stored.first.protocol)
    by, labels = metric_named(metric, stored.first.protocol, rules.metrics), stored.scored(ranked=True)
    if not n_resamples or not labels:
        return {split: Part(stored, split, by) for split in splits}
    data = stored.load()
    session_of = data.dataset.session_of
    n_rows = {recording.id: recording.n_rows for recording in data.dataset.test}
    scored = {place.recording for episode in rules.episodes(data.dataset) for place in rules.places(episode, n_rows)}
    parts, draws = dict[str, Part](), []
    for split in splits:
        names = [name for name in data.dataset.splits.get(split, ()) if name in scored]
        sessions = grouped(range(len(names)), [session_of[name] for name in names].__getitem__).values()
        parts[split] = Part(stored, split, by, len(sessions), len(names))
        if len(sessions) > 1:
            draws.append((parts[split], names, draw(list(sessions), n_resamples, seed)))
    for done, (label, results) in enumerate(stored.by_row(data, labels) if draws else ()):
        progress(done, len(labels), f"{stored.first.dataset}: {label}")
        for part, names, drawn in draws:
            part.drawn[label] = np.mean([resampled(result, metric, names, drawn) for result in results], axis=0)
    progress(len(labels), len(labels))
    return parts
