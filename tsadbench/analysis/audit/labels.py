"""Checks of the labels: the number of events, and how well trivial predictors find them.

A *threshold on one sensor*, from above or below, or on the size of its jumps from row to row, lies beyond all normal
test rows of an entity, so it has no false alarm. It finds an event if it flags a row of the event. It is chosen with
the labels: it measures how obvious events are and is not a detector (Wu and Keogh, "Current Time Series Anomaly
Detection Benchmarks are Flawed and are Creating the Illusion of Progress", TKDE 2021).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import sqrt
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from tsadbench.analysis.audit.findings import Finding, Grade, Part, by_entity, within
from tsadbench.analysis.curves import average_precision
from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.scores import worst_case
from tsadbench.leaderboard.render import Table
from tsadbench.registry import floors, locate
from tsadbench.sandbox import Box, BoxFailure, Construction, describe
from tsadbench.utils.arrays import BoolArray, FloatArray, IntArray, mask_runs
from tsadbench.utils.text import counted

# Predictor -> test recording's id -> scores [n_rows].
OneLiners: TypeAlias = Mapping[str, Mapping[str, FloatArray]]

# Shares of anomalous test rows.
_FEW_ANOMALIES, _MANY_ANOMALIES = 0.01, 0.4
# With fewer events than this, each has a large effect.
_FEW_EVENTS = 5
# Labels are trivial if thresholds find half of the events, and this much more than by chance.
_ABOVE_CHANCE, _TRIVIAL = 0.25, 0.5
# AUROC bounds for a weak and a strong predictor; an uninformative one has .5.
_WEAK, _STRONG = 0.55, 0.75
_DRAWS = 1000  # sets of random stretches of normal rows
# Position and time see no data, so they should not predict labels in either direction. One-liners may.
_BLIND = {
    "position": "A row's place in its recording, without its values,",
    "time": "The time since a row's recording began, without its values,",
}


def event_table(parts: Sequence[Part]) -> pd.DataFrame:
    """Return each entity's events (runs of anomalous rows), and the share that thresholds find.

    "found" is the share of the events that any threshold finds, "finds" the share that the "best alone" finds; the same
    shares of random, equally long stretches of normal rows are "by chance". NaN without events or normal rows.
    """
    return by_entity(parts, _events_of).astype(dict.fromkeys(("shortest", "longest"), "Int64"))


def _events_of(part: Part) -> Mapping[str, object]:
    borders = np.cumsum([0, *(recording.n_rows for recording in part.test)])
    begins = zip(part.labels.values(), borders[:-1].tolist(), strict=True)
    events = [(at + first, at + stop) for labels, at in begins for first, stop in mask_runs(labels)]
    lengths = pd.Series([stop - start for start, stop in events], dtype=np.float64)
    facts: dict[str, object] = {"test rows": len(part.anomalous), "anomalous": int(part.anomalous.sum())}
    facts |= {"events": len(events), "shortest": lengths.min(), "median": lengths.median(), "longest": lengths.max()}
    if not events or part.anomalous.all():
        names = ("found", "by chance", "best alone", "finds", "alone by chance")
        return facts | dict.fromkeys(names, np.nan) | {"best alone": None}
    found, places = _found(part, np.array(events), borders)
    best, n_normal = int(found.mean(axis=0).argmax()), int(np.sum(~part.anomalous))
    kind, sensor = divmod(best, len(part.sensors))
    by_chance, alone = _by_chance(places, n_normal, lengths.to_numpy(int))
    share = float(found[:, best].mean())
    return facts | {
        "found": float(found.any(axis=1).mean()),
        "by chance": by_chance,
        "best alone": f"{part.sensors[sensor]} {('high', 'low', 'jumps')[kind]}" if share else None,
        "finds": share,
        "alone by chance": alone,
    }


def _found(part: Part, events: IntArray, borders: IntArray) -> tuple[BoolArray, IntArray]:
    """Return which threshold (high, low, jumps) finds which event, [n_events, 3 n_sensors].

    Also return the first and last place of the highest values among the normal rows, [2, 3 n_sensors].
    """
    rows = part.test_rows
    jumps = np.abs(np.diff(rows, axis=0, prepend=rows[:1]))
    # A recording's first row has no jump. The jump to the row after an event is the return to normal: ignore it.
    jumps[borders[:-1]] = 0.0
    jumps[np.setdiff1d(events[:, 1], borders)] = -np.inf
    values = np.hstack([rows, -rows, jumps])
    normal = values[~part.anomalous]
    highest = normal.max(axis=0)
    padded = np.vstack([values, np.full(values.shape[1], -np.inf)])  # reduceat needs a row after the last one
    found = np.maximum.reduceat(padded, events.ravel())[::2] > np.where(np.isfinite(highest), highest, np.inf)
    return found, np.stack([normal.argmax(axis=0), len(normal) - 1 - normal[::-1].argmax(axis=0)])


def _by_chance(places: IntArray, n_normal: int, lengths: IntArray) -> tuple[float, float]:
    """Return the share of random stretches that any threshold finds, and the share that the best of them finds.

    A threshold finds a stretch of normal rows, as long as an event, if it contains all of its highest normal rows.
    """
    generator, n_stretches = np.random.default_rng(0), np.maximum(n_normal - lengths + 1, 1)
    shares = []
    for _ in range(_DRAWS):
        begins = generator.integers(n_stretches)[:, None]
        found = (begins <= places[0]) & (places[1] < begins + lengths[:, None])
        shares.append((found.any(axis=1).mean(), found.mean(axis=0).max()))
    of_any, of_best = np.mean(shares, axis=0)
    return float(of_any), float(of_best)


def anomalies(table: pd.DataFrame) -> Finding:
    """Report the share of anomalous test rows."""
    n_rows, shares = int(table["test rows"].sum()), table["anomalous"] / table["test rows"]
    share = table["anomalous"].sum() / n_rows
    if share == 0:
        return Finding("anomalies", "note", "No test row is anomalous: no ranking metric is defined.", "no anomaly")
    f1 = (2 * shares / (1 + shares))[shares > 0].mean()
    of_each = f" ({shares.min():.1%} to {shares.max():.1%} of an entity's)" if len(table) > 1 else ""
    sentence = f"{share:.1%} of the {n_rows:,} test rows are anomalous{of_each}, so flagging every row has F1 {f1:.3f}."
    few, many = bool(share < _FEW_ANOMALIES), bool(share > _MANY_ANOMALIES)
    sentence += " A few rows decide every figure." * few + " Anomalies are not rare here." * many
    grade: Grade = "note" if few else "fault" if many else "good"
    return Finding("anomalies", grade, sentence, f"{share:.1%} of the test rows are anomalous")


def events(table: pd.DataFrame) -> Finding:
    """Summarise the events, and warn if one event dominates the metrics."""
    some, counts = table[table["events"] > 0], table["events"]
    behind = (Table("Events, and how many of them a threshold on one sensor finds", table, {"median": 1}),)
    if some.empty:
        return Finding("events", "note", "There is no event.", "no event", behind)
    of_each = f", {counts.min()} to {counts.max()} per entity" if len(table) > 1 else ""
    number = counted(int(counts.sum()), "event")
    sentence = f"{number} of {some['shortest'].min():,} to {some['longest'].max():,} rows{of_each}."
    one, few = some[some["longest"] > some["anomalous"] / 2], some[some["events"] < _FEW_EVENTS]
    if len(one):
        sentence += f" One event has more than half of the anomalous rows{within(one)}, and dominates row-wise metrics."
    if len(few):
        sentence += f" Fewer than {_FEW_EVENTS} events{within(few)}: each has a large effect on every metric."
    brief = f"one event has most anomalous rows{within(one)}" if len(one) else f"few events{within(few)}"
    return Finding("events", "good" if one.empty and few.empty else "note", sentence, brief, behind)


def trivial(table: pd.DataFrame) -> Finding:
    """Report whether a threshold on one sensor finds the events."""
    known = table.dropna(subset="found")
    if known.empty:
        return Finding("trivial", "note", "No event has normal rows to compare with.")
    found, by_chance, alone, alone_by_chance = known[["found", "by chance", "finds", "alone by chance"]].mean()
    mean = f", mean over {len(known)} entities" if len(table) > 1 else ""
    best = f" ({known['best alone'].iloc[0]})" if len(table) == 1 and alone else ""
    sentence = (
        f"Thresholds on single sensors, or on their jumps, find {found:.0%} of the events without a false alarm "
        f"({by_chance:.0%} by chance); the best alone{best} finds {alone:.0%} ({alone_by_chance:.0%} by chance){mean}."
    )
    any_above, one_above = found >= by_chance + _ABOVE_CHANCE, alone >= alone_by_chance + _ABOVE_CHANCE
    most = max(found * any_above, alone * one_above)
    grade: Grade = "fault" if most >= _TRIVIAL and known["events"].sum() >= _FEW_EVENTS else "note"
    grade = grade if any_above or one_above else "good"
    brief = f"thresholds on single sensors find {found:.0%} of the events (by chance {by_chance:.0%})"
    if grade == "fault" and not any_above:
        brief = f"a threshold on one sensor finds {alone:.0%} of the events (by chance {alone_by_chance:.0%})"
    return Finding("trivial", grade, sentence, brief)


def predictors(data: LabelledDataset, parts: Sequence[Part], one_liners: Sequence[OneLiners]) -> Iterator[Finding]:
    """Report how well position, time and one-liners predict the labels: means over entities with both classes.

    The first finding has the tables.
    """
    values = pd.DataFrame(_rankings(data, parts, one_liners), columns=["entity", "predictor", "AUROC", "AUPRC"])
    means = values.groupby("predictor", sort=False)[["AUROC", "AUPRC"]].mean()
    several = len(parts) > 1
    title = f"What predicts the label{f' (mean over {len(parts)} entities)' if several else ''}"
    behind = [Table(title, means.reset_index())]
    each = values.pivot(index="entity", columns="predictor", values="AUROC")
    each = each.reindex(index=[part.entity for part in parts], columns=means.index)
    if several:
        behind.append(Table("AUROC by entity", each.reset_index()))
    # Summaries only name the strongest one-liner.
    strongest = means["AUROC"].drop(list(_BLIND)).max()
    for name, auroc in zip(map(str, means.index), means["AUROC"], strict=True):
        tables, behind = tuple(behind), []
        if np.isnan(auroc):
            sentence = f"{name}: no AUROC, because the test rows are of one class."
            yield Finding(name, "note", sentence, tables=tables)
            continue
        of_each, over, blind = each[name].dropna(), "", name in _BLIND
        if several:
            deviation = f", deviation {of_each.std():.3f}" if len(of_each) > 1 else ""
            spread = f"{of_each.min():.3f} to {of_each.max():.3f}"
            over = f", mean over {len(of_each)} entities{deviation}, {spread}"
        strength, limit = auroc, _STRONG
        if blind:  # either direction counts, unless the mean over entities may be chance
            by_chance = len(of_each) > 1 and abs(auroc - 0.5) < 2 * of_each.std() / sqrt(len(of_each))
            strength, limit = 0.5 + (0.0 if by_chance else abs(auroc - 0.5)), _WEAK
        tells = "tells anomalous rows from normal ones" if strength > limit else "does not give the labels away"
        grade: Grade = "good" if strength <= limit else "fault" if strength > _STRONG else "note"
        brief = f"{name} alone has AUROC {auroc:.3f}" if blind or auroc == strongest else ""
        sentence = f"{_BLIND.get(name, f'The one-liner {name}')} {tells}: AUROC {auroc:.3f}{over}."
        yield Finding(name, grade, sentence, brief, tables)


def _rankings(
    data: LabelledDataset, parts: Sequence[Part], one_liners: Sequence[OneLiners]
) -> Iterator[tuple[str, str, float, float]]:
    """Yield each predictor's AUROC and AUPRC on each entity's test rows; NaN if these have only one class."""
    truth, sessions = data.labels.rows, data.dataset.session_of
    if len({sessions[name] for name in truth}) < 2:
        sessions = {name: name for name in truth}
    position = dict(zip(truth, position_scores(truth, sessions), strict=True))
    for part, of_part in zip(parts, one_liners, strict=True):
        rows = {one.id: np.arange(float(one.n_rows)) if one.time is None else one.time for one in part.test}
        time = {name: since - since[0] for name, since in rows.items()}
        for name, by_id in {"position": position, "time": time, **of_part}.items():
            scores = np.concatenate([by_id[one.id] for one in part.test])
            auprc, auroc = average_precision(scores, part.anomalous), np.nan
            if auprc is not None:
                auroc = float(roc_auc_score(part.anomalous, worst_case(scores, part.anomalous)))
            yield part.entity, name, auroc, np.nan if auprc is None else auprc


def one_liner_scores(parts: Sequence[Part], folder: Path | None = None) -> tuple[OneLiners, ...]:
    """Return, per part, the test scores of every one-liner among the floors, fitted to that part alone.

    Floors that fail, for instance on short training recordings, are left out.
    """
    traits = {name: describe(name).traits for name in floors()}
    # The other floors are random or flag every row.
    names = [name for name, one in traits.items() if one.fixed_threshold is None and not one.stochastic]
    forbidden = () if folder is None else (folder,)
    found: tuple[dict[str, Mapping[str, FloatArray]], ...] = tuple({} for _ in parts)
    for part, of_part in zip(parts, found, strict=True):
        for name in names if part.train else ():
            with suppress(BoxFailure), Box(Construction(locate(name)), threads=1, forbidden=forbidden) as box:
                box.fit(part.train)
                of_part[name] = {recording.id: box.score(recording) for recording in part.test}
    return found


def position_scores(truth: Mapping[str, BoolArray], sessions: Mapping[str, str]) -> list[FloatArray]:
    """Return, for row i of each recording, the share of recordings of *other sessions* that are anomalous at row i.

    Only recordings with a row i count; 0 if no other session has one. ``truth`` [n_rows] and ``sessions`` are by
    recording id.
    """
    rows = pd.DataFrame({name: pd.Series(one, dtype=np.float64) for name, one in truth.items()})
    session = rows.columns.map(sessions)
    others = {one: rows.loc[:, session != one].mean(axis=1).fillna(0.0).to_numpy() for one in session.unique()}
    return [others[sessions[name]][: len(one)] for name, one in truth.items()]
