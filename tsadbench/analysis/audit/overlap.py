"""Checks of rows that occur twice: in two recordings, in training and test, and stretches that are copies of others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from pandas.util import hash_pandas_object
from scipy.sparse import csr_array

from tsadbench.analysis.audit.findings import Finding, Grade
from tsadbench.analysis.audit.parts import Part, by_entity
from tsadbench.base.dataset import Dataset, LabelledDataset
from tsadbench.base.recording import Recording
from tsadbench.base.shared_rows import row_digests, shared_rows
from tsadbench.leaderboard.render import Table
from tsadbench.utils.arrays import BoolArray, IntArray
from tsadbench.utils.text import first_of

# A stretch is a copy from so many different states in succession on: a system at rest repeats fewer by itself.
STATES = 10
# Shares of test rows that recur in training; how much more often than rows recur within training.
_SOME_RECUR, _MANY_RECUR, _MORE_OFTEN = 0.01, 0.5, 1.5
# Share of the test rows in copied stretches.
_COPIED = 0.005
_Digests: TypeAlias = NDArray[np.uint64]


def overlap(parts: Sequence[Part]) -> Finding:
    """Say which shares of the rows recur, by their values alone, whatever their time."""
    table = by_entity(parts, _recurring)
    shares = table[[name for name in table if name != "entity"]]
    test, anomalous, train, within = shares.mean()
    behind = (Table("Rows that recur, by values alone", table),) if shares.iloc[:, [0, 2]].any(axis=None) else ()
    if np.isnan(test):
        return Finding("overlap", "note", "Too few training rows to compare.")
    of_anomalous = "" if np.isnan(anomalous) else f" ({anomalous:.1%} of the anomalous ones)"
    sentence = (
        f"By values alone, {test:.1%} of the test rows{of_anomalous} equal a training row, {train:.1%} of the training "
        f"rows a test row, and {within:.1%} of the second half of training a row of the first."
        f"{f' Means over {len(parts)} entities.' if len(parts) > 1 else ''}"
    )
    if test < _SOME_RECUR:
        return Finding("overlap", "good", sentence, tables=behind)
    copied = test >= _MANY_RECUR and test >= _MORE_OFTEN * within
    return Finding(
        "overlap", "fault" if copied else "note", sentence, f"{test:.0%} of the test rows equal a training row", behind
    )


def _recurring(part: Part) -> Mapping[str, object]:
    test = anomalous = train = within = np.nan
    if (half := len(part.train_rows) // 2) >= 1:
        whole = Recording("train", part.train_rows, part.sensors)
        within = _share(shared_rows([whole.rows(0, half), whole.rows(half, whole.n_rows)], untimed="by value")[1])
        if part.test:
            tested = Recording("test", part.test_rows, part.sensors)
            of_train, of_test = shared_rows([whole, tested], untimed="by value")
            test, anomalous, train = _share(of_test), _share(of_test[part.anomalous]), _share(of_train)
    return {
        "test rows in training": test,
        "anomalous ones": anomalous,
        "training rows in the test": train,
        "second half of training in the first": within,
    }


def _share(numbers: IntArray) -> float:
    return float((numbers >= 0).mean()) if len(numbers) else np.nan


class SharedRows(NamedTuple):
    """Two recordings, "train and test", "test and test" or "train and train", and how many different rows they share.

    ``n_contradicting`` of them are anomalous in one and normal in the other; None if one of the two has no labels.
    """

    first: str
    second: str
    roles: str
    n_rows: int
    n_contradicting: int | None


def recordings_sharing_rows(
    train: Sequence[Recording], test: Sequence[Recording], labels: Mapping[str, BoolArray]
) -> list[SharedRows]:
    """Return all pairs of recordings that share rows: the same values and, if all have times, the same time.

    Without times, a system at rest may repeat itself without being copied, so such findings need a second look.
    """
    recordings = [*train, *test]
    if not recordings:
        return []
    roles = ["train"] * len(train) + ["test"] * len(test)
    number = np.concatenate(shared_rows(recordings, untimed="by value"))
    place = np.repeat(np.arange(len(recordings)), [recording.n_rows for recording in recordings])
    anomalous = np.concatenate([labels.get(one.id, np.zeros(one.n_rows, dtype=np.bool_)) for one in recordings])
    # A row counts once a recording, with the label of its first occurrence.
    rows = pd.DataFrame({"place": place, "number": number, "anomalous": anomalous})[number >= 0]
    rows = rows.drop_duplicates(["place", "number"])
    shape = (len(recordings), int(number.max()) + 1)
    faulty, normal = (
        csr_array((np.ones(len(some), dtype=np.int64), (some["place"], some["number"])), shape=shape)
        for some in (rows[rows["anomalous"]], rows[~rows["anomalous"]])
    )
    counts = ((faulty + normal) @ (faulty + normal).T).toarray()
    contradicting = (faulty @ normal.T + normal @ faulty.T).toarray()
    return [
        SharedRows(
            recordings[i].id,
            recordings[j].id,
            f"{roles[i]} and {roles[j]}",
            int(counts[i, j]),
            int(contradicting[i, j]) if recordings[i].id in labels else None,
        )
        for i, j in np.argwhere(np.triu(counts, 1)).tolist()
    ]


def shared(pairs: Sequence[SharedRows], copied: pd.DataFrame, data: LabelledDataset) -> Iterator[Finding]:
    """Say which rows stand in several recordings, and if there are labels which of these have two."""
    header = ["first", "second", "roles", "rows", "with two labels"]
    table = pd.DataFrame(pairs, columns=header).astype({"with two labels": "Int64"})
    table = table.sort_values("rows", ascending=False, kind="stable")
    behind = (Table("Rows that recordings share", table),) if pairs else ()
    compared, by_clock = _compared(data.dataset)
    certain = False
    for roles, what, brief in (
        (
            "train and test",
            "training rows stand in test recordings too: a detector is tested on what it has learned",
            "training rows stand in the test too",
        ),
        ("test and test", "rows stand in two test recordings: they count twice", "test rows count twice"),
    ):
        about, rows = "shared-" + roles.replace(" and ", "-"), table.loc[table["roles"] == roles, "rows"]
        # Unless clocks tell, rows are mostly alike by chance, if they are no part of copied stretches.
        certain = by_clock or bool(copied.loc[copied["roles"] == roles, "rows"].sum() >= rows.sum() / 2)
        if rows.empty:
            yield Finding(about, "good", f"No row stands in both, {roles} ({compared}).", tables=behind)
        else:
            sentence = f"{rows.sum():,} {what} (pairs of recordings: {len(rows)}; {compared})."
            if not certain:
                sentence += " Most are in no copied stretch: a system that repeats its states has such rows."
            yield Finding(about, "fault" if certain else "note", sentence, f"{rows.sum():,} {brief}", behind)
        behind = ()
    contradicting = table["with two labels"].sum()
    if contradicting:
        sentence = (
            f"{contradicting:,} of the rows that test recordings share are anomalous in one, normal in the other."
        )
        grade: Grade = "fault" if certain else "note"
        yield Finding("contradicting-labels", grade, sentence, f"{contradicting:,} test rows have two labels")
    elif data.labels.rows:
        yield Finding("contradicting-labels", "good", "No shared row has two labels.")


def _compared(dataset: Dataset) -> tuple[str, bool]:
    """Return by what `recordings_sharing_rows` compares, and whether by a clock: not by times that begin alike."""
    begins = [None if one.time is None else one.time[0] for one in (*dataset.train, *dataset.test)]
    if None in begins:
        return "by values alone, without time", False
    if len(set(begins)) < len(begins):
        return "same time since their beginning, and values", False
    return "same time and values", True


def copies_of(data: LabelledDataset) -> pd.DataFrame:
    """Return the stretches whose rows occur in the same order, for as long, earlier or in another recording; by length.

    A state is a run of equal rows, compared by values and length, not by time. A stretch of `STATES` different states
    that occurs twice is a copy of its first occurrence; training recordings come before test recordings. Rows of a
    state at its ends are not counted if the state lasts longer there. Two labels are known of labelled recordings.
    """
    train, labels = data.dataset.train, data.labels.rows
    recordings = [*train, *data.dataset.test]
    states = [_states(recording) for recording in recordings]
    borders = np.cumsum([0, *(len(digests) for digests, _ in states)])
    owner = np.repeat(np.arange(len(recordings)), np.diff(borders))
    source = _first_occurrences(np.concatenate([digests for digests, _ in states]), owner)
    copied = source >= 0
    # A stretch ends where its source jumps, or a recording ends.
    goes_on = (np.diff(source) == 1) & (np.diff(owner) == 0) & (np.diff(owner[source]) == 0)
    begins = np.flatnonzero(copied & ~np.concatenate([[False], copied[:-1] & goes_on]))
    ends = np.flatnonzero(copied & ~np.concatenate([copied[1:] & goes_on, [False]]))
    copies = []
    for first, last in zip(begins.tolist(), ends.tolist(), strict=True):
        here, there = int(owner[first]), int(owner[source[first]])
        start, stop = states[here][1][[first - borders[here], last + STATES - borders[here]]].tolist()
        origin = int(states[there][1][source[first] - borders[there]])
        copy, original = recordings[here].id, recordings[there].id
        two = None
        if copy in labels and original in labels:
            two = int(np.sum(labels[original][origin : origin + stop - start] != labels[copy][start:stop]))
        roles = " and ".join("train" if one < len(train) else "test" for one in (there, here))
        copies.append((copy, start, stop - start, original, origin, roles, two))
    header = ["copy", "from row", "rows", "source", "from its row", "roles", "with two labels"]
    table = pd.DataFrame(copies, columns=header).astype({"with two labels": "Int64"})
    return table.sort_values("rows", ascending=False, kind="stable", ignore_index=True)


def copies(table: pd.DataFrame, pairs: Sequence[SharedRows], n_test: int) -> Finding:
    """Say which stretches occur twice, and how many of the ``n_test`` test rows lie in them."""
    if table.empty:
        return Finding("copies", "good", f"No stretch of {STATES} different states occurs twice.")
    of_train, of_test, in_train = (
        int(table.loc[table["roles"] == roles, "rows"].sum())
        for roles in ("train and test", "test and test", "train and train")
    )
    longest, two = table.iloc[0], int(table["with two labels"].sum())
    occur = "1 stretch occurs" if len(table) == 1 else f"{len(table):,} stretches occur"
    sentence = (
        f"{occur} twice, whatever the time: {of_train:,} test rows copy training rows, {of_test:,} other test rows, "
        f"{in_train:,} training rows others; the longest is {longest['copy']} from row {longest['from row']:,} on, "
        f"{longest['rows']:,} rows as in {longest['source']} from row {longest['from its row']:,} on."
    )
    if two:
        sentence += f" {two:,} {'row has' if two == 1 else 'rows have'} another label there."
    behind = (Table("Stretches that occur twice", table),)
    share = (of_train + of_test) / n_test if n_test else 0.0
    if share < _COPIED:
        return Finding("copies", "note", sentence, f"{occur.removesuffix('s').removesuffix(' occur')} twice", behind)
    # `shared` has told of rows that are shared at the same time.
    told = sum(pair.n_rows for pair in pairs if pair.roles != "train and train") == of_train + of_test
    return Finding(
        "copies", "fault", sentence, "" if told else f"{share:.1%} of the test rows are copies of others", behind
    )


def sessions(table: pd.DataFrame, declared: Mapping[str, str]) -> Iterator[Finding]:
    """Say which test recordings are copies across declared sessions; nothing if none is."""
    in_test = table[table["roles"] == "test and test"]
    across = in_test[in_test["source"].map(declared.get) != in_test["copy"].map(declared.get)]
    pairs = list(
        dict.fromkeys(f"{source} and {copy}" for source, copy in zip(across["source"], across["copy"], strict=True))
    )
    if pairs:
        sentence = (
            f"Declared as different sessions, though one holds a copy of the other: {first_of(pairs)}. Statistics take "
            "them for independent, which flatters."
        )
        yield Finding("sessions", "note", sentence, "sessions that are copies of others count as independent")


def _states(recording: Recording) -> tuple[_Digests, IntArray]:
    """Return a digest of each run of equal rows, values and length; and the first row of each, and the end."""
    rows = row_digests(recording, by_time=False)
    starts = np.flatnonzero(np.concatenate([[True], rows[1:] != rows[:-1], [True]]))
    return _digests(pd.DataFrame({"row": rows[starts[:-1]], "length": np.diff(starts)})), starts


def _first_occurrences(digests: _Digests, owner: IntArray) -> IntArray:
    """Return for each window of `STATES` different states, by its first one, where it occurs before; -1 if nowhere."""
    source = np.full(len(digests), -1)
    if len(digests) < STATES:
        return source
    windows = sliding_window_view(digests, STATES)
    different = (np.diff(np.sort(windows, axis=1), axis=1) != 0).all(axis=1)
    eligible = np.flatnonzero(different & (owner[: len(windows)] == owner[STATES - 1 :]))
    keys = _digests(pd.DataFrame(windows[eligible]))
    first = pd.Series(eligible).groupby(keys).transform("min").to_numpy()
    source[eligible] = np.where(first < eligible, first, -1)
    return source


def _digests(rows: pd.DataFrame) -> _Digests:
    """Return 64 bits for each row of a frame."""
    return np.asarray(hash_pandas_object(rows, index=False), dtype=np.uint64)
