"""Checks of duplicate rows: in two recordings, in training and test, and in copied stretches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view
from pandas.util import hash_pandas_object
from scipy.sparse import csr_array

from tsadbench.analysis.audit.findings import Finding, Grade, Part, by_entity
from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.recording import Recording
from tsadbench.base.shared_rows import row_digests, shared_rows
from tsadbench.leaderboard.render import Table
from tsadbench.utils.arrays import BoolArray, IntArray
from tsadbench.utils.text import counted, first_of

# A copy has at least this many different states in succession; a system at rest repeats fewer by itself.
_STATES = 10
# Bounds for the share of test rows that recur in training, and for its ratio to the share within training.
_SOME_RECUR, _MANY_RECUR, _MORE_OFTEN = 0.01, 0.5, 1.5
# Share of the test rows in copied stretches.
_COPIED = 0.005
_ROLES = ("train and test", "test and test", "train and train")


def overlap(parts: Sequence[Part]) -> Finding:
    """Report the shares of rows that recur by value, regardless of time."""
    table = by_entity(parts, _recurring)
    test, anomalous, train, within = table.drop(columns="entity", errors="ignore").mean()
    if np.isnan(test):
        return Finding("overlap", "note", "Too few training rows to compare.")
    of_anomalous = "" if np.isnan(anomalous) else f" ({anomalous:.1%} of anomalous ones)"
    sentence = (
        f"By values alone, {test:.1%} of the test rows{of_anomalous} also occur in training, {train:.1%} of the "
        f"training rows in the test, and within training {within:.1%} of the second half in the first half."
    )
    sentence += f" Means over {len(parts)} entities." if len(parts) > 1 else ""
    behind = (Table("Rows that recur, by values alone", table),)
    copied = test >= max(_MANY_RECUR, _MORE_OFTEN * within)
    grade: Grade = "good" if test < _SOME_RECUR else "fault" if copied else "note"
    return Finding("overlap", grade, sentence, f"{test:.0%} of the test rows equal a training row", behind)


def _recurring(part: Part) -> Mapping[str, object]:
    train, test = (Recording("rows", rows, part.sensors) for rows in (part.train_rows, part.test_rows))
    within = of_train = of_test = np.empty(0, dtype=np.int64)
    if half := train.n_rows // 2:
        within = shared_rows([train.rows(0, half), train.rows(half, train.n_rows)], untimed="by value")[1]
        if part.test:
            of_train, of_test = shared_rows([train, test], untimed="by value")
    shares = {
        "test rows in training": of_test,
        "anomalous ones": of_test[part.anomalous[: len(of_test)]],
        "training rows in the test": of_train,
        "second half of training in the first": within,
    }
    return {name: (rows >= 0).mean() if len(rows) else np.nan for name, rows in shares.items()}


def recordings_sharing_rows(
    train: Sequence[Recording], test: Sequence[Recording], labels: Mapping[str, BoolArray]
) -> pd.DataFrame:
    """Return all pairs of recordings that share rows: the same values and, if all have times, the same time.

    "rows" counts distinct rows; rows "with two labels" are anomalous in one recording and normal in the other. Without
    times, a system at rest may repeat itself without being copied, so check such findings.
    """
    recordings, pairs = [*train, *test], []
    if recordings:
        anomalous = [labels.get(one.id, np.zeros(one.n_rows, dtype=np.bool_)) for one in recordings]
        place = np.repeat(np.arange(len(recordings)), [one.n_rows for one in recordings])
        numbers = np.concatenate(shared_rows(recordings, untimed="by value"))
        rows = pd.DataFrame({"place": place, "number": numbers, "anomalous": np.concatenate(anomalous)})
        # A row counts once per recording, with the label of its first occurrence.
        rows = rows[rows["number"] >= 0].drop_duplicates(["place", "number"])
        every = (np.ones(len(rows), dtype=np.int64), (rows["place"], rows["number"]))
        of_all = csr_array(every, shape=(len(recordings), len(place)))
        faulty = csr_array((rows["anomalous"].astype(np.int64), every[1]), shape=of_all.shape)
        counts, one_way = (of_all @ of_all.T).toarray(), (faulty @ (of_all - faulty).T).toarray()
        for i, j in np.argwhere(np.triu(counts, 1)).tolist():
            roles = " and ".join("train" if place < len(train) else "test" for place in (i, j))
            two = one_way[i, j] + one_way[j, i] if recordings[i].id in labels else None
            pairs.append((recordings[i].id, recordings[j].id, roles, counts[i, j], two))
    table = pd.DataFrame(pairs, columns=["first", "second", "roles", "rows", "with two labels"])
    table = table.astype({"rows": np.int64, "with two labels": "Int64"})
    return table.sort_values("rows", ascending=False, kind="stable")


def shared(table: pd.DataFrame, copied: pd.DataFrame, data: LabelledDataset) -> Iterator[Finding]:
    """Report rows that occur in several recordings and, with labels, those that have two labels."""
    behind = (Table("Rows that recordings share", table),) if len(table) else ()
    begins = [None if one.time is None else one.time[0] for one in (*data.dataset.train, *data.dataset.test)]
    # Equal start times mean that times do not come from a clock.
    by_clock, certain = None not in begins and len(set(begins)) == len(begins), False
    since = "same time and values" if by_clock else "same time since their beginning, and values"
    compared = "by values alone, without time" if None in begins else since
    for roles, what, brief in (
        (
            _ROLES[0],
            "training rows also occur in test recordings: a detector is tested on what it has learned",
            "training rows also occur in the test",
        ),
        (_ROLES[1], "rows occur in two test recordings and count twice", "test rows count twice"),
    ):
        about, rows = "shared-" + roles.replace(" and ", "-"), table.loc[table["roles"] == roles, "rows"]
        # Without clocks, equal rows outside copied stretches are mostly chance.
        certain = by_clock or _n_rows(copied[copied["roles"] == roles]) >= rows.sum() / 2
        sentence = f"{rows.sum():,} {what} (sum over {counted(len(rows), 'pair')} of recordings; {compared})."
        if rows.empty:
            sentence = f"No row occurs twice ({roles}; {compared})."
        elif not certain:
            sentence += " Most are in no copied stretch: a system that repeats its states has such rows."
        grade: Grade = "good" if rows.empty else "fault" if certain else "note"
        yield Finding(about, grade, sentence, f"{rows.sum():,} {brief}", behind)
        behind = ()
    if two := table["with two labels"].sum():
        sentence = f"{two:,} of the rows that test recordings share are anomalous in one, normal in the other."
        grade = "fault" if certain else "note"
        yield Finding("contradicting-labels", grade, sentence, f"{two:,} test rows have two labels")
    elif data.labels.rows:
        yield Finding("contradicting-labels", "good", "No shared row has two labels.")


def copies_of(data: LabelledDataset) -> pd.DataFrame:
    """Return copied stretches: rows that occur in the same order earlier or in another recording; longest first.

    A state is a run of equal rows, compared by values and length, not by time. A repeated stretch of ten different
    states is a copy of its first occurrence; training recordings come before test recordings. A state at its
    ends is not counted if it lasts longer in one place. Only labelled recordings can have two labels.
    """
    train, labels = data.dataset.train, data.labels.rows
    recordings = [*train, *data.dataset.test]
    of_each = []
    for place, recording in enumerate(recordings):  # runs of equal rows, with a digest of their values and length
        rows = row_digests(recording, by_time=False)
        borders = np.flatnonzero(np.concatenate([[True], rows[1:] != rows[:-1], [True]]))
        frame = pd.DataFrame({"owner": place, "start": borders[:-1], "stop": borders[1:]})
        digests = pd.DataFrame({"row": rows[borders[:-1]], "length": np.diff(borders)})
        of_each.append(frame.assign(digest=hash_pandas_object(digests, index=False)))
    states = pd.concat(of_each, ignore_index=True)
    source, owner = _first_occurrences(states), states["owner"].to_numpy()
    # A stretch ends where its source jumps, or a recording ends.
    goes_on = (np.diff(source) == 1) & (np.diff(owner) == 0) & (np.diff(owner[source]) == 0) & (source[:-1] >= 0)
    copied = np.flatnonzero(source >= 0)
    begins = copied[~np.append(False, goes_on)[copied]]
    ends = copied[~np.append(goes_on, False)[copied]] + _STATES - 1
    copies = []
    for first, last, origin in zip(begins.tolist(), ends.tolist(), source[begins].tolist(), strict=True):
        here, there = owner[first], owner[origin]
        start, stop, other = states["start"][first], states["stop"][last], states["start"][origin]
        copy, original, two = recordings[here].id, recordings[there].id, None
        if copy in labels and original in labels:
            two = int(np.sum(labels[original][other : other + stop - start] != labels[copy][start:stop]))
        roles = " and ".join("train" if place < len(train) else "test" for place in (there, here))
        copies.append((copy, start, stop - start, original, other, roles, two))
    header = ["copy", "from row", "rows", "source", "from its row", "roles", "with two labels"]
    table = pd.DataFrame(copies, columns=header).astype({"with two labels": "Int64"})
    return table.sort_values("rows", ascending=False, kind="stable", ignore_index=True)


def _first_occurrences(states: pd.DataFrame) -> IntArray:
    """Return, per window of different states, where it occurs earlier, or -1."""
    source = np.full(len(states), -1)
    if len(states) < _STATES:
        return source
    windows, owner = sliding_window_view(states["digest"].to_numpy(), _STATES), states["owner"].to_numpy()
    different = (np.diff(np.sort(windows, axis=1), axis=1) != 0).all(axis=1)
    eligible = np.flatnonzero(different & (owner[: len(windows)] == owner[_STATES - 1 :]))
    keys = hash_pandas_object(pd.DataFrame(windows[eligible]), index=False).to_numpy()
    first = pd.Series(eligible).groupby(keys).transform("min").to_numpy()
    source[eligible] = np.where(first < eligible, first, -1)
    return source


def _n_rows(table: pd.DataFrame) -> int:
    """Return the number of rows in stretches, which may overlap by nine states."""
    rows = (
        (copy, row)
        for copy, start, n_rows in table[["copy", "from row", "rows"]].itertuples(index=False)
        for row in range(start, start + n_rows)
    )
    return len({*rows})


def copies(table: pd.DataFrame, pairs: pd.DataFrame, n_test: int) -> Finding:
    """Report stretches that occur twice, and how many of the ``n_test`` test rows they contain."""
    if table.empty:
        return Finding("copies", "good", f"No stretch of {_STATES} different states occurs twice.")
    of_train, of_test, in_train = (_n_rows(table[table["roles"] == roles]) for roles in _ROLES)
    longest, two = table.iloc[0], int(table["with two labels"].sum())
    count, occur = ("1 stretch", "occurs") if len(table) == 1 else (f"{len(table):,} stretches", "occur")
    sentence = (
        f"{count} {occur} twice, regardless of time: {of_train:,} test rows copy training rows, {of_test:,} copy other "
        f"test rows, and {in_train:,} training rows copy other training rows; the longest is {longest['copy']} from "
        f"row {longest['from row']:,} on, {longest['rows']:,} rows as in {longest['source']} from row "
        f"{longest['from its row']:,} on."
    )
    if two:
        sentence += f" {two:,} {'row has' if two == 1 else 'rows have'} another label there."
    behind = (Table("Stretches that occur twice", table),)
    share = _n_rows(table[table["roles"] != _ROLES[2]]) / n_test if n_test else 0.0
    if share < _COPIED:
        return Finding("copies", "note", sentence, f"{count} twice", behind)
    # `shared` reports rows with equal times.
    told = pairs.loc[pairs["roles"] != _ROLES[2], "rows"].sum() == of_train + of_test
    brief = f"{share:.1%} of the test rows are copies of others" * (not told)
    return Finding("copies", "fault", sentence, brief, behind)


def sessions(table: pd.DataFrame, declared: Mapping[str, str]) -> Iterator[Finding]:
    """Report test recordings that are copies across declared sessions, if any."""
    tested = table[table["roles"] == _ROLES[1]]
    names = zip(tested["source"], tested["copy"], strict=True)
    if pairs := dict.fromkeys(f"{one} and {other}" for one, other in names if declared.get(one) != declared.get(other)):
        sentence = (
            f"Declared as different sessions, although one contains a copy of the other: {first_of(list(pairs))}. "
            "Statistics treat them as independent, so intervals are too narrow."
        )
        yield Finding("sessions", "note", sentence, "sessions that are copies of others count as independent")
