"""`tsadbench.compare`: what ``tsadbench compare`` does on the command line, from Python."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from numbers import Real
from pathlib import Path

from tsadbench.analysis.significance import caveats
from tsadbench.analysis.significance.against import beside_shipped
from tsadbench.analysis.significance.comparison import Comparison
from tsadbench.analysis.significance.inference import infer
from tsadbench.analysis.significance.pairs import ROPE
from tsadbench.analysis.significance.per_recording import judge_each
from tsadbench.base.dataset import Dataset, LabelledDataset
from tsadbench.base.protocol import Metric
from tsadbench.datasets.sessions import sessions_of
from tsadbench.errors import UsageError
from tsadbench.execution.store import Store
from tsadbench.leaderboard.selection import select
from tsadbench.leaderboard.shipped import stored_values
from tsadbench.results.trial_result import protocol_of
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import nearest, normal_label

# What a split of all test recordings is called.
OVERALL = "overall"


def compare(
    runs: str | Path | Store,
    detectors: Sequence[str],
    *,
    metric: str = caveats.PRIMARY,
    dataset: str | LabelledDataset | None = None,
    protocol: str | None = None,
    split: str | None = None,
    rope: float = ROPE,
    independent: bool = False,
    against: str | None = None,
    data: str | Path | None = None,
) -> Comparison:
    """Compare stored detectors over sessions: differences, and from six on tests and intervals; no detector runs.

    The session, one stretch of operation, is the unit of inference (`tsadbench.datasets.sessions.sessions_of`): the
    protocol judges all rows of a session together, as it judges a split, and values are averaged over seeds.

    Parameters
    ----------
    runs
        A run store, or its folder.
    detectors
        Labels of two or more, as tables show them.
    metric
        The one to compare; the primary one is "auprc", for all data sets.
    dataset
        Name of the data set, the path of its card, or the data themselves; needed if the store holds several, or
        one that is not registered.
    protocol
        As tables show it; needed if the store holds several.
    split
        Whose recordings count (default: all).
    rope
        Region of practical equivalence: differences of at most this much are ties.
    independent
        Take every recording for a session of its own, whatever the data set declares and whatever rows it shares.
    against
        A protocol, used instead of ``protocol``: detectors that the store does not have are rows of its leaderboard
        that ships with the package.
    data
        Folder with the data sets' files; None searches as the documentation says.

    Returns
    -------
    Comparison
        With ``to_frame``, ``to_json``, ``to_csv``, ``to_markdown``; a notebook shows it as tables.

    Raises
    ------
    UsageError
        If a name is wrong or missing, fewer than two detectors can be compared, or the metric is defined nowhere.
    DataError, StoreError
        If the data are not those of the trials, or a trial cannot be read.
    MissingExtraError
        If there are more than two detectors and statsmodels is not installed.

    Examples
    --------
    >>> compared = tsadbench.compare("runs", ["dprgm", "t2-q"])  # doctest: +SKIP
    >>> compared.inference.conclusions  # doctest: +SKIP
    """
    if not isinstance(rope, Real) or not 0.0 <= rope < 1.0:
        raise UsageError(f"the region of practical equivalence must be at least 0 and below 1, found {rope!r}")
    for detector in detectors:
        if not isinstance(detector, str):
            raise UsageError(f"expected the labels of detectors, as tables show them, found {detector!r}")
    if len(detectors) < 2:
        raise UsageError(f"expected two detectors or more to compare, found {', '.join(detectors) or 'none'}")
    if against is not None and protocol not in (None, against):
        raise UsageError(f"--against {against} compares rows of that protocol: leave --protocol {protocol} out")
    selection = (
        select(runs, dataset=dataset, protocol=protocol, detectors=detectors, data=data, with_failed=True)
        if against is None
        else beside_shipped(runs, against, dataset=dataset, detectors=detectors, data=data)
    )
    _check_distinct(detectors, [row.label for row in selection.rows])
    loaded = selection.load()
    shipped = None if against is None else stored_values(loaded, against)
    selection = selection.without_broken(loaded)
    if len(selection.rows) < 2:
        raise UsageError(f"fewer than two detectors can be compared. Left out: {'; '.join(selection.left_out)}")
    first = selection.rows[0].first
    rules = protocol_of(first)
    metrics = {metric.name: metric for metric in rules.metrics}
    tested = _tested(metric, metrics, first.protocol)
    members = _members(loaded.dataset, split)
    alone = {name: (name,) for name in members}
    session_of = sessions_of(loaded.dataset)
    sessions = alone if independent else grouped(members, session_of.__getitem__)
    by_session, by_recording = judge_each(selection.rows, selection.store, loaded, sessions, alone, shipped=shipped)
    defined = by_session.values(tested.name, list(sessions)).dropna()
    kept = {name: sessions[name] for name in defined.index}
    left_out = {
        member: by_session.why_undefined(name)
        for name, of_session in sessions.items()
        if name not in kept
        for member in of_session
    }
    if not kept:
        raise UsageError(
            f"{tested.name} is undefined on every recording of split {split or OVERALL!r} "
            f"({members[0]}: {left_out[members[0]]})"
        )
    inference = infer(defined, better=tested.better or "higher", rope=rope)
    return Comparison(
        dataset=first.dataset,
        protocol=first.protocol,
        protocol_version=rules.version,
        split=split or OVERALL,
        metric=tested,
        rope=rope,
        recordings=by_recording.values(tested.name, [name for name in members if name not in left_out]),
        sessions=kept,
        left_out=left_out,
        contenders=tuple(by_session.contender(row, list(metrics), list(kept)) for row in selection.rows),
        inference=inference,
        titles={name: f"{metric.title}{'*' if metric.oracle else ''}" for name, metric in metrics.items()},
        notes=(
            *caveats.on_detectors(selection.rows),
            *caveats.on_stored(selection.rows),
            *caveats.on_metric(tested),
            *caveats.on_left_out(left_out),
            *caveats.on_sessions(loaded.dataset, kept, independent=independent),
            *caveats.on_fits(loaded.dataset, rules, first.protocol),
            *caveats.on_units(inference),
            *caveats.on_trials(selection.rows),
        ),
    )


def _check_distinct(detectors: Sequence[str], found: Collection[str]) -> None:
    labels = [normal_label(one, found) for one in detectors]
    twice = [label for label in labels if labels.count(label) > 1]
    if twice:
        raise UsageError(f"expected different detectors, found {twice[0]!r} twice")


def _tested(name: str, metrics: Mapping[str, Metric], protocol: str) -> Metric:
    if name not in metrics:
        raise UsageError(f"protocol {protocol} has no metric {name!r}{nearest(name, metrics)}")
    if metrics[name].better is None:
        ordered = ", ".join(metric.name for metric in metrics.values() if metric.better is not None)
        raise UsageError(f"{name!r} is neither better high nor low, there is nothing to test; choose of: {ordered}")
    return metrics[name]


def _members(dataset: Dataset, split: str | None) -> tuple[str, ...]:
    """Return the ids of a split's recordings in the data set's order; None: of all test recordings."""
    if split is not None and split not in dataset.splits:
        raise UsageError(f"data set {dataset.name!r} has no split {split!r}{nearest(split, dataset.splits)}")
    ids = tuple(recording.id for recording in dataset.test)
    return ids if split is None else tuple(name for name in ids if name in dataset.splits[split])
