"""Checks of sensors and recordings: shift since training, constants, scaling, gaps in time, repeated rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from tsadbench.analysis.audit.findings import Finding, Grade, Part, within
from tsadbench.base.dataset import LabelledDataset
from tsadbench.leaderboard.render import Table
from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench.utils.text import counted, first_of

# Distances from the training mean, in standard deviations.
_SHIFTED, _FAR = 3.0, 10.0
# Shares of normal test rows outside the training range of some sensor.
_OFTEN_OUTSIDE, _ALWAYS_OUTSIDE = 0.5, 0.9
# Share of the normal test rows in which a sensor that is constant in training has another value.
_OFF_CONSTANT = 0.1
# Share of the sensors that span exactly two bounds, and the tolerance for values stored as float32.
_SCALED, _EXACT = 0.8, 1e-6
_BOUNDS = ((0.0, 1.0), (-1.0, 1.0))
# A time step longer than this many usual steps is a gap.
_GAP = 3.0


def shift(parts: Sequence[Part]) -> Finding:
    """Report whether normal test rows match the training rows, by split or, with several entities, by entity."""
    columns = ["where", "sensor", "training median", "test median", "z", "outside the training range"]
    table = pd.DataFrame([row for part in parts for row in _shifts(part)], columns=columns)
    # Distances are infinite for sensors that are constant in training.
    order = table["z"].abs().fillna(1e9 * table["outside the training range"]).to_numpy(dtype=np.float64)
    formats = {"training median": None, "test median": None, "z": 1}
    behind = Table("Normal test rows against training rows", table.iloc[np.argsort(-order, kind="stable")], formats)
    known = table.dropna(subset="z")
    own = known[known["where"] != "overall"]
    far = (own if len(own) else known).query(f"abs(z) > {_SHIFTED}")
    if far.empty:
        sentence = "Normal test rows match the training rows in every sensor and split."
        return Finding("shift", "good", sentence, tables=(behind,) * bool(len(table)))
    worst = far.iloc[int(far["z"].abs().argmax())]
    distance = abs(worst["z"])
    sentence = (
        f"Normal test rows have shifted away from the training rows ({first_of(list(far['where'].unique()), 12)}); "
        f"furthest is {worst['sensor']} in {worst['where']}: median {worst['test median']:.4g} against "
        f"{worst['training median']:.4g} in training, {distance:.0f} standard deviations off."
    )
    brief = f"the median of normal test rows is up to {distance:.0f} standard deviations from that in training"
    return Finding("shift", "fault" if distance > _FAR else "note", sentence, brief, (behind,))


def _shifts(part: Part) -> Iterator[tuple[object, ...]]:
    """Yield statistics of every sensor in each split's normal rows; with several entities, in all of an entity's."""
    train, values = part.train_rows, {recording.id: recording.values for recording in part.test}
    for split, members in {part.entity: tuple(values)}.items() if part.entity else part.splits.items():
        normal = np.concatenate([values[member][~part.labels[member]] for member in members])
        if len(train) and len(normal):
            low, high, before, now = (
                train.min(axis=0),
                train.max(axis=0),
                np.median(train, axis=0),
                np.median(normal, 0),
            )
            z = (now - before) / np.where(low < high, train.std(axis=0), np.nan)
            outside = ((normal < low) | (normal > high)).mean(axis=0)
            yield from zip([split] * len(z), part.sensors, before, now, z, outside, strict=True)


def of_sensors(part: Part) -> Mapping[str, object]:
    """Return statistics of an entity's sensors in training and test.

    "out of range" is the share of normal test rows with at least one sensor outside its training range, and "off a
    training constant" the share with another value of a sensor that is constant in training. Of the sensors
    that move and take more than two values, "scaled by" counts those that run exactly from 0 to 1, or -1 to 1, or have
    mean 0 and deviation 1: over training and test rows together but not over the training rows ("both"), the other way
    round ("training"), over the training rows and over both ("either"), over the training and over the test rows
    ("each").
    """
    train, test = part.train_rows, part.test_rows
    normal, both = test[~part.anomalous], np.concatenate([train, test])
    still, still_train, still_test, still_normal = (
        np.ptp(rows, axis=0) == 0.0 if len(rows) else np.zeros(both.shape[1], dtype=np.bool_)
        for rows in (both, train, test, np.concatenate([train, normal]))
    )
    outside = off = np.nan
    if len(train) and len(normal):
        beyond = (normal < train.min(axis=0)) | (normal > train.max(axis=0))
        outside, off = beyond.any(axis=1).mean(), beyond[:, still_train].any(axis=1).mean()
    names = np.array(part.sensors, dtype=np.object_)
    # Sensors with two values are states, which are 0 and 1 without scaling.
    moving = ~((both == both.min(axis=0)) | (both == both.max(axis=0))).all(axis=0)
    by_both, by_train, by_test = (_scaled(rows) & moving for rows in (both, train, test))
    lists = {
        "never move": still,
        "move in training only": still_test & ~still,
        "move in the test only": still_train & ~still,
        "move in anomalies only": still_normal & ~still & bool(len(normal)),
    }
    counts = {
        "move": moving,
        "scaled by both": by_both & ~by_train,
        "scaled by training": by_train & ~by_both,
        "scaled by either": by_train & by_both,
        "scaled by each": by_train & by_test,
    }
    return {
        **{"out of range": outside, **{name: list(names[mask]) for name, mask in lists.items()}},
        **{"off a training constant": off, **{name: mask.sum() for name, mask in counts.items()}},
    }


def _scaled(rows: FloatArray) -> BoolArray:
    """Return [n_sensors], whether a sensor seems to have been scaled by these rows."""
    if not len(rows):
        return np.zeros(rows.shape[1], dtype=np.bool_)
    low, high = rows.min(axis=0), rows.max(axis=0)
    # Tolerances for float32 over many rows. Both conditions together cannot be chance.
    scaled: BoolArray = (np.abs(rows.mean(axis=0)) < 1e-4) & (np.abs(rows.std(axis=0) - 1.0) < 1e-4)
    for least, most in _BOUNDS:
        scaled |= (np.abs(low - least) <= _EXACT) & (np.abs(high - most) <= _EXACT)
    return scaled


def out_of_range(table: pd.DataFrame) -> Finding:
    """Report how often normal test rows leave the training range."""
    lists = [name for name in table if str(name).startswith(("never move", "move in"))]
    texts = {str(name): table[name].str.join(", ").replace("", None) for name in lists}
    behind = (Table("Sensors in training and test", table.assign(**texts)),)
    shares = table["out of range"].dropna()
    if shares.empty:
        return Finding("range", "note", "No normal test row to compare with training rows.", tables=behind)
    share = shares.mean()
    spread = f" (mean over {len(shares)} entities, {shares.min():.1%} to {shares.max():.1%})" if len(shares) > 1 else ""
    sentence = f"{share:.1%} of the normal test rows lie outside the training range of at least one sensor{spread}."
    grade: Grade = "good" if share < _OFTEN_OUTSIDE else "note" if share < _ALWAYS_OUTSIDE else "fault"
    brief = f"{share:.0%} of the normal test rows lie outside the training range"
    return Finding("range", grade, sentence, brief, behind)


def of_table(table: pd.DataFrame) -> Iterator[Finding]:
    """Report sensors that are constant in training but not in the test, and scaling by the test's statistics."""
    names = [
        f"{name}{within(row)}" for _, row in table.groupby(table.index) for name in row["move in the test only"].iloc[0]
    ]
    off, alone = table["off a training constant"].mean(), table["move in anomalies only"].str.len().sum()
    brief = f"{len(names)} sensors are constant in training and move in the test"
    sentence = (
        f"{brief}: {first_of(names)}; {alone} of them only in anomalous rows. "
        f"{0.0 if np.isnan(off) else off:.1%} of the normal test rows are off a training constant."
    )
    grade: Grade = "good" if not names else "fault" if off >= _OFF_CONSTANT else "note"
    if not names:
        sentence = "No sensor is constant in training and moves in the test."
    yield Finding("constant-in-training", grade, sentence, brief)
    moving, both, each = (table[name] for name in ("move", "scaled by both", "scaled by each"))
    of_test = table[(both > table["scaled by training"]) & (both + table["scaled by either"] >= _SCALED * moving)]
    of_itself = table[(moving > 0) & (each >= _SCALED * moving)]
    bounds = f"of {moving.sum()} sensors run exactly from 0 to 1 or -1 to 1, or have mean 0 and deviation 1, over"
    together = f"{both.sum()} {bounds} training and test rows together and not over the training rows:"
    grade = "fault"
    if len(of_test):
        sentence = f"{together} they were scaled by the test's statistics{within(of_test)}."
        brief = "sensors were scaled by the test's statistics"
    elif len(of_itself):
        sentence = (
            f"{each.sum()} {bounds} the training rows and over the test rows: each was scaled by its own statistics, "
            f"or the test was cut off at the training's bounds{within(of_itself)}."
        )
        brief = "training and test were scaled by their own statistics"
    elif both.sum():
        grade, sentence = "note", f"{together} too few to say that they were scaled by the test's statistics."
        brief = f"{both.sum()} of {moving.sum()} sensors may be scaled by the test's statistics"
    else:
        grade, sentence = "good", f"None of {moving.sum()} sensors seems to be scaled by the test's statistics."
    yield Finding("scaling", grade, sentence, brief)


def recordings(data: LabelledDataset) -> Iterator[Finding]:
    """Report gaps in time, repeated rows, and sensors that never move in a recording."""
    train, labels = data.dataset.train, data.labels.rows
    every = [*train, *data.dataset.test]
    anomalous = [np.flatnonzero(labels[one.id]) if one.id in labels else None for one in every]
    steps = {one.id: np.empty(0) if one.time is None else np.diff(one.time) for one in every}
    still = [list(np.array(one.sensors)[np.ptp(one.values, axis=0) == 0.0]) for one in every]
    table = pd.DataFrame(
        {
            "recording": [one.id for one in every],
            "role": ["train"] * len(train) + ["test"] * len(data.dataset.test),
            "rows": [one.n_rows for one in every],
            "anomalous": pd.array([None if rows is None else len(rows) for rows in anomalous], "Int64"),
            "from row": pd.array([rows[0] if rows is not None and len(rows) else None for rows in anomalous], "Int64"),
            "step, s": [np.median(one) if len(one) else np.nan for one in steps.values()],
            "repeated rows": [int((one.values[1:] == one.values[:-1]).all(axis=1).sum()) for one in every],
            "never move": [", ".join(names) or None for names in still],
        }
    )
    jumps = [
        (name, int(place) + 1, float(of[place]))
        for name, of in steps.items()
        if len(of)
        for place in np.flatnonzero(of > _GAP * np.median(of))
    ]
    gaps = pd.DataFrame(jumps, columns=["recording", "before row", "s"])
    gaps = gaps.sort_values(["s", "recording", "before row"], ascending=False)
    longest = "; ".join(f"{s:g} s before row {row} of {name}" for name, row, s in gaps.head(6).to_numpy().tolist())
    if jumps:
        brief, tables = f"{counted(len(gaps), 'gap')} in time", (Table("Gaps in time", gaps, {"s": None}),)
        yield Finding("gaps", "note", f"{brief}; the longest: {longest}.", brief, tables)
    else:
        yield Finding("gaps", "good", "There are no gaps in time, or no times.")
    behind = (Table("Recordings", table, {"step, s": None}),)
    sentence, share = "No row repeats the one before it.", 0.0
    if repeated := int(table["repeated rows"].sum()):
        share = repeated / table["rows"].sum()
        sentence = f"{repeated:,} rows repeat the row before them in every sensor ({share:.1%})."
    brief = f"{share:.1%} of the rows repeat the one before"
    yield Finding("duplicates", "note" if repeated else "good", sentence, brief, behind)
    sentence = f"Each of the {len(every[0].sensors)} sensors moves in every recording."
    if names := [f"{name} in {one.id}" for one, names in zip(every, still, strict=True) for name in names]:
        sentence = f"In {counted(len(names), 'case')}, a sensor never moves in a recording: {first_of(names)}."
    yield Finding("constant", "note" if names else "good", sentence, "sensors that never move in a recording")
