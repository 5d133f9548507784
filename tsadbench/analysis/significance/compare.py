"""`tsadbench.compare`: whether stored detectors differ, over sessions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from tsadbench.analysis.significance import PRIMARY, ROPE, Result, inference, interval, sentences
from tsadbench.analysis.significance.inference import p_value
from tsadbench.analysis.stored import Stored, metric_named, stored_trials
from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.protocol import Metric
from tsadbench.errors import UsageError
from tsadbench.execution.store import Store
from tsadbench.leaderboard.render import Table, number
from tsadbench.leaderboard.table import LEAST_FOR_TESTS
from tsadbench.results.trial_result import protocol_named
from tsadbench.utils.parameters import require_known
from tsadbench.utils.text import counted

# Values within rounding are ties.
_DECIMALS = 12


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison(Result):
    """Detectors of a run store, compared by one metric over the sessions of a split; other metrics are descriptive.

    ``units`` are [n_sessions, n_detectors]; ``pairs`` and ``conclusions`` are the results of
    `tsadbench.analysis.significance.inference`. ``detectors`` has a line per detector, including failed ones, with its
    mean rank (1 is the best) and the mean over sessions of each metric (NaN if undefined on any). ``recordings`` has a
    line per recording of the split: its ``session``, the reason if it is ``left_out``, and the compared metric of each
    detector.
    """

    subject: str
    metric: Metric
    rope: float
    units: pd.DataFrame
    pairs: pd.DataFrame
    detectors: pd.DataFrame
    recordings: pd.DataFrame
    conclusions: Sequence[str]


def compare(
    runs: str | Path | Store,
    detectors: Sequence[str],
    *,
    metric: str = PRIMARY,
    dataset: str | LabelledDataset | None = None,
    protocol: str | None = None,
    split: str | None = None,
    rope: float = ROPE,
    independent: bool = False,
    data: str | Path | None = None,
) -> Comparison:
    """Compare stored detectors over sessions: differences and, from six sessions on, tests and intervals.

    The session, one stretch of operation, is the unit of inference (`Dataset.session_of`): the protocol judges all rows
    of a session together, like a split, and values are averaged over seeds.

    Parameters
    ----------
    runs
        A run store, or its folder.
    detectors
        Labels of two or more detectors, as in tables.
    metric
        The metric to compare; "auprc" is the primary metric for all data sets.
    dataset, protocol
        Required if the store holds several. A data set's name, the path of its card, or the data.
    split
        Its recordings count (default: all).
    rope
        Region of practical equivalence: differences of at most this much are ties.
    independent
        Treat every recording as a session, whatever the data set declares.
    data
        Folder with the data sets' files; None searches as the documentation says.

    Raises
    ------
    UsageError
        If a name is wrong or missing, fewer than two detectors can be compared, or the metric is defined nowhere.
    DataError, StoreError, MissingExtraError
        If the data differ from the trials', a trial cannot be read, or tests of several pairs need statsmodels.
    """
    if not 0.0 <= rope < 1.0:
        raise UsageError(f"the region of practical equivalence must be at least 0 and below 1, found {rope!r}")
    expected = "expected at least two labels to compare, found"
    if len(detectors) < 2:
        raise UsageError(f"{expected} {', '.join(map(str, detectors)) or 'none'}")
    stored = stored_trials(runs, detectors=detectors, dataset=dataset, protocol=protocol, data=data)
    if len(stored.stores) < 2:
        raise UsageError(f"{expected} only {', '.join(stored.stores)}")
    loaded, first = stored.load(), stored.first
    rules = protocol_named(first.protocol)
    tested = metric_named(metric, first.protocol, rules.metrics)
    better = tested.better or "higher"
    data_set = loaded.dataset
    require_known([] if split is None else [split], data_set.splits, f"data set {data_set.name!r} has no split")
    names = [one.id for one in data_set.test if split is None or one.id in data_set.splits[split]]
    session_of = dict(zip(names, names, strict=True)) if independent else data_set.session_of
    recordings = pd.DataFrame({"recording": names, "session": [session_of[name] for name in names]})
    sessions = recordings.groupby("session", sort=False)["recording"].agg(tuple)
    groups = [*sessions, *((name,) for name in recordings["recording"])]
    means, sizes = _judged(stored, loaded, groups)
    of_sessions = means.reindex(range(len(sessions))).set_axis(sessions.index)
    of_recordings = means.reindex(range(len(sessions), len(groups))).set_axis(recordings["recording"])
    labels = [label for label in stored.stores if label in means.columns.unique("label")]
    if len(labels) < 2:
        without = ", ".join(label for label in stored.stores if label not in labels)
        raise UsageError(f"fewer than two detectors can be compared, without {without}. {' '.join(stored.remarks())}")
    units: Any = of_sessions[tested.name][labels].dropna()
    evaluated = sizes.reindex(range(len(sessions))).set_axis(sessions.index).dropna().astype(int)
    why = {unit: f"{k} of {n} evaluated rows are anomalous" for unit, n, k in evaluated.itertuples()}
    why |= dict.fromkeys(units.index, "")
    recordings["left_out"] = recordings["session"].map(why).fillna("no row is evaluated")
    recordings = recordings.join(of_recordings[tested.name][labels], on="recording")
    if units.empty:
        reason = f"{recordings['recording'].iloc[0]}: {recordings['left_out'].iloc[0]}"
        raise UsageError(f"{tested.name} is undefined in every session of split {split or 'overall'!r} ({reason})")
    pairs = inference.compare_pairs(units, better=better, rope=rope)
    test = inference.friedman(units) if len(units) >= LEAST_FOR_TESTS else None
    found = [*inference.conclusions(pairs, test, better)]
    described = stored.rows.drop_duplicates("detector").set_index("detector").reindex([*stored.stores])
    described = described.loc[described.index.isin(labels) | ~described["ok"], ["seeds", "status"]]
    described = described.assign(seeds=described["seeds"].map(len)).rename_axis("label").reset_index()
    mean_ranks = units.rank(axis=1, ascending=better == "lower").mean()
    of_metrics = of_sessions.loc[units.index].mean(skipna=False).unstack(0)
    for more in (units.median().rename("median"), mean_ranks.rename("mean_rank"), of_metrics):
        described = described.join(more, on="label")
    subject = f"{tested.title} on {first.dataset}, split {split or 'overall'}, protocol {first.rules}"
    frames = {f"{subject}: pairs": pairs, "detectors": described, "sessions": units.reset_index(names="session")}
    frames |= {"recordings": recordings, **({"friedman": pd.DataFrame([test])} if test else {})}
    n_rows, episodes = {recording.id: recording.n_rows for recording in data_set.test}, [*rules.episodes(data_set)]
    kept = recordings[recordings["left_out"] == ""]
    about = sentences(
        "compare",
        **{"metric": tested, "rope": number(rope, 2), "n_sessions": len(units), "least_for_tests": LEAST_FOR_TESTS},
        **{"least_for_bca": inference.LEAST_FOR_BCA, "remarks": [*stored.remarks()], "primary": PRIMARY},
        left_out=recordings[recordings["left_out"] != ""].groupby("left_out")["recording"].agg(", ".join),
        alone=len(names) > 1 and len(sessions) == len(names),
        joined=any(place.start for episode in episodes for place in rules.places(episode, n_rows)),
        by_entity=len(episodes) > 1 and {episode.id for episode in episodes} == data_set.by_entity.keys(),
        one_fit=len(episodes) == 1 and len(n_rows) > 1,
    )
    counts = kept["session"].value_counts()
    n = f"{counted(counts.sum(), 'recording')}, {counted(len(counts), 'session')}"
    return Comparison(
        subject=subject,
        metric=tested,
        rope=rope,
        units=units,
        pairs=pairs,
        detectors=described,
        recordings=recordings,
        conclusions=found,
        tables=[
            _described(f"{subject}: {n}", rules.metrics, tested, described),
            *_differences(tested, units, pairs, counts),
        ],
        frames=[Table(title, frame) for title, frame in frames.items()],
        sentences=[*found, *about],
    )


def _judged(
    stored: Stored, data: LabelledDataset, groups: Sequence[Sequence[str]]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Judge the rows that did not fail on groups of recordings, like splits.

    Return the mean over seeds by group, metric and label (undefined if any seed is), and the numbers of evaluated and
    anomalous rows.
    """
    units = {str(place): group for place, group in enumerate(groups)}
    ok = set(stored.rows.loc[stored.rows["ok"], "detector"])
    lines = [
        {"unit": int(unit), "label": label, "n_rows": one.n_rows, "n_anomalous": one.n_anomalous, **one.metrics}
        for label, results in stored.by_row(data, [label for label in stored.stores if label in ok])
        for result in results
        for unit, one in result.judge(units).items()
    ]
    sizes = ["n_rows", "n_anomalous"]
    frame = pd.DataFrame(lines, columns=None if lines else ["unit", "label", *sizes]).set_index(["unit", "label"])
    by = frame.drop(columns=sizes).astype(float).groupby(level=["unit", "label"], sort=False)
    means: Any = by.mean().where(by.count().eq(by.size(), axis=0)).round(_DECIMALS).unstack("label")
    return means, frame[sizes].groupby(level="unit").first()


def _described(title: str, metrics: Sequence[Metric], tested: Metric, detectors: pd.DataFrame) -> Table:
    columns = {"label": "detector", "seeds": "seeds", "status": "status", tested.name: f"{tested.title} mean"}
    columns |= {"median": "median", "mean_rank": "mean rank"}
    columns |= {one.name: f"{one.title}{'*' if one.oracle else ''}" for one in metrics if one.name != tested.name}
    if (detectors["status"] == "ok").all():
        del columns["status"]
    return Table(title, detectors[[*columns]].rename(columns=columns), {"mean rank": 2})


def _differences(tested: Metric, units: pd.DataFrame, pairs: pd.DataFrame, counts: pd.Series[int]) -> Iterator[Table]:
    """Yield tables of the sessions, if there are few, and of the differences of each pair."""
    shown: dict[str, Any] = {"first": pairs["first"], "second": pairs["second"]}
    shown["mean difference"] = pairs["mean_difference"]
    shown["win/tie/loss"] = pairs[["wins", "ties", "losses"]].astype(str).agg("/".join, axis=1)
    if len(units) >= LEAST_FOR_TESTS:
        shown |= {"95 % interval": interval(pairs["low"], pairs["high"], ".4f"), "median": pairs["median_difference"]}
        shown |= {"rank-biserial": pairs["rank_biserial"], "p": pairs["p"].map(p_value)}
        shown |= {"p (Holm)": pairs["p_holm"].map(p_value)} if len(pairs) > 1 else {}
        shown |= {"smallest p": pairs["smallest_p"].map(p_value), "test": pairs["wilcoxon"]}
    else:
        sessions = units.reset_index(names="session")
        sessions.insert(1, "recordings", sessions["session"].map(counts))
        yield Table(f"{tested.title} by session", sessions)
        by_session = units[[*pairs["first"]]].to_numpy() - units[[*pairs["second"]]].to_numpy()
        shown |= dict(zip(units.index, by_session, strict=True))
    shown[f"sessions for {number(inference.EFFECT, 2)}"] = pairs["sessions_needed"]
    yield Table("Differences, first - second", pd.DataFrame(shown), {"rank-biserial": 2})
