"""From records to ranked tables, as terminal text, JSON, CSV, Markdown, LaTeX, HTML and data frames."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from tsadbench.errors import StoreError, UsageError
from tsadbench.execution.record import RECORDS, Record, committed_records
from tsadbench.execution.store import Store
from tsadbench.leaderboard.checks import FILE, CheckReport, CheckReports, read_reports, shipped_reports, write_reports
from tsadbench.leaderboard.formatting import csv_text
from tsadbench.leaderboard.frame import COST_COLUMNS, DIAGNOSTIC, ROW, TABLE, records_of, rows, trial_key, trials
from tsadbench.leaderboard.notes import Note, notes_on
from tsadbench.leaderboard.render import SCHEMA, Form, Table, print_tables, render
from tsadbench.leaderboard.table import PAGE, in_sight, lines_of, remarks, short_notes, shown
from tsadbench.utils.files import LEADERBOARDS, write_file
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import JsonValue, nearest, normal_label
from tsadbench.utils.text import name_fault

SESSIONS = "sessions.json"  # beside the tables
_WIDTH = 120  # characters, where nothing says how many a line has
Sessions = Mapping[str, Mapping[str, int]]


class Leaderboard:
    """Ranked rows: best AUPRC first, floors in their places, failures last; a table per data set, protocol and split.

    Trials that were judged by two versions of a protocol stand in two tables.

    Parameters
    ----------
    trials
        As `tsadbench.leaderboard.frame.trials` returns them.
    notes
        What readers of the tables must know about their data or trials.
    frame
        The rows; None: those of the trials.
    sessions
        How many independent sessions a split has, by data set and split, where that is known.
    """

    def __init__(
        self,
        trials: pd.DataFrame,
        notes: Sequence[Note] = (),
        frame: pd.DataFrame | None = None,
        sessions: Sessions | None = None,
    ) -> None:
        self.trials = trials
        self.notes = tuple(notes)
        self.frame = rows(trials) if frame is None else frame
        self.sessions = dict(sessions or {})

    @classmethod
    def from_records(
        cls,
        records: Iterable[Record],
        splits: Sequence[str] = (),
        *,
        stored: Iterable[Record] = (),
        checked_in: Path | None = None,
        reports: Iterable[CheckReport] = (),
        sessions: Sessions | None = None,
    ) -> Leaderboard:
        """Rank records of any data sets and protocols, the newest of each trial.

        Parameters
        ----------
        splits
            The splits to show, in order (default: all); a UsageError if no record has one of these.
        stored
            Records made earlier to show beside them, marked; those of a label that the others have are left out.
        checked_in, reports
            A run store or a folder of tables that holds reports of checks besides those that ship; more of them.
        sessions
            How many independent sessions a split has, by data set and split.
        """
        found = trials(records, splits, stored=stored, reports=CheckReports.beside(checked_in, reports))
        return cls(found, notes_on(records_of(found)), sessions=sessions)

    @classmethod
    def of_store(cls, store: Store, records: Sequence[Record], splits: Sequence[str] = ()) -> Leaderboard:
        """Rank records of a store, beside the shipped rows that they were shown against. A UsageError as above."""
        about, datasets = store.about(), {record.dataset for record in records}
        shipped = [committed_records(LEADERBOARDS, *one) for one in about.against.items() if one[0] in datasets]
        return cls.from_records(
            records, splits, stored=sum(shipped, ()), checked_in=store.path, sessions=about.sessions
        )

    @classmethod
    def joined(cls, boards: Sequence[Leaderboard]) -> Leaderboard:
        """Return the tables of several leaderboards as one; of a row that several have, the last counts."""
        if len(boards) == 1:
            return boards[0]
        every = pd.concat([board.trials.assign(origin=place) for place, board in enumerate(boards)], ignore_index=True)
        newest = every["origin"] == every.groupby(ROW)["origin"].transform("max")
        sessions = {key: n for board in boards for key, n in board.sessions.items()}
        notes = dict.fromkeys(note for board in boards for note in board.notes)
        return cls(every[newest].drop(columns="origin").reset_index(drop=True), tuple(notes), sessions=sessions)

    def chosen(self, detectors: Sequence[str]) -> Leaderboard:
        """Return the leaderboard with the rows of these labels and the best floor of each table; ranks stay."""
        known = dict.fromkeys(self.frame["detector"])
        labels = {normal_label(one) for one in detectors}
        for label in labels:
            if label not in known:
                raise UsageError(f"there is no row {label!r}{nearest(label, known)}")
        floors = self.frame[self.frame["ok"] & self.frame["floor"]]
        best = self.frame.index.isin(floors.drop_duplicates(TABLE).index)
        frame = self.frame[self.frame["detector"].isin(labels) | best].reset_index(drop=True)
        left = self.trials.merge(frame[ROW], on=ROW)
        hidden = {*notes_on(self.records)} - {*notes_on(records_of(left))}
        return Leaderboard(left, [note for note in self.notes if note not in hidden], frame, self.sessions)

    def with_diagnostics(
        self, found: Mapping[tuple[str, str], Mapping[str, float | None]], notes: Sequence[Note] = ()
    ) -> Leaderboard:
        """Return the leaderboard with more numbers of trials, by trial and split; they take no part in the ranking."""
        keys = zip((record.trial for record in self.trials["record"]), self.trials["split"], strict=True)
        numbers = pd.DataFrame([found.get(key, {}) for key in keys], self.trials.index, dtype=float)
        joined = self.trials.join(numbers.add_prefix(DIAGNOSTIC))
        return Leaderboard(joined, [*self.notes, *notes], sessions=self.sessions)

    @property
    def records(self) -> list[Record]:
        """The records of all trials, each once."""
        return records_of(self.trials)

    def frames(self) -> dict[tuple[str, str, str], pd.DataFrame]:
        """Return the rows of each (data set, protocol with its version, split)."""
        by = self.frame.groupby(TABLE, sort=False)
        return {(str(a), str(b), str(c)): table.reset_index(drop=True) for (a, b, c), table in by}

    def alone(self) -> dict[tuple[str, str, str], Leaderboard]:
        """Return each table as a leaderboard of its own, with the notes that concern it."""
        found = {}
        for key, table in self.frames().items():
            notes = [note for note in self.notes if note.concerns(key[0], table["protocol"].iloc[0])]
            found[key] = Leaderboard(self.trials.merge(table[TABLE].head(1), on=TABLE), notes, table, self.sessions)
        return found

    def shown(self, *, wide: bool = False, columns: Sequence[str] = (), own: Collection[str] = ()) -> list[Table]:
        """Return the tables as readers see them; parameters as `tsadbench.leaderboard.table.shown` has them."""
        return [
            shown(table, wide=wide, columns=columns, own=own, sessions=self.sessions.get(dataset, {}).get(split))
            for (dataset, _, split), table in self.frames().items()
        ]

    def print(
        self, console: Console, *, wide: bool = False, columns: Sequence[str] = (), own: Collection[str] = ()
    ) -> None:
        """Print the tables on a console: the best rows and at most three lines below, or everything if ``wide``."""
        if self.frame.empty:
            console.print("no rows")
            return
        tables = self.shown(wide=wide, columns=columns, own=own)
        seen = [table.index if wide else in_sight(table, own).index for table in self.frames().values()]
        n_left_out = len(self.frame) - sum(map(len, seen))
        *notes, page = self._notes()
        notes = [*(notes if wide else short_notes(notes, n_left_out)), page]
        print_tables(console, [table.only([*places]) for table, places in zip(tables, seen, strict=True)], notes)

    def _notes(self) -> list[str]:
        """Return the first reason for each detector that failed, the notes, and where columns are explained."""
        failed = self.frame[~self.frame["ok"]].drop_duplicates(["dataset", "rules", "detector"])
        several = len(self.frame.drop_duplicates(["dataset", "rules"])) > 1
        failures = [
            (f"{row['dataset']}, protocol {row['rules']}: " if several else "")
            + f"{row['detector']}: {next(one.reason for one in row['records'] if one.status != 'ok')}"
            for row in lines_of(failed)
        ]
        return [*failures, *map(str, self.notes), f"Columns and remarks: {PAGE}"]

    def to(self, form: Form, *, columns: Sequence[str] = (), wide: bool = True) -> str:
        """Return the leaderboard in a form: text for a terminal, JSON, CSV, Markdown, LaTeX or HTML."""
        if form in ("json", "csv"):
            return self.to_json() if form == "json" else self.to_csv()
        return render(self.shown(wide=wide, columns=columns), self._notes(), form)

    def to_markdown(self) -> str:
        """Return one Markdown table with all columns per data set, protocol and split, with notes below."""
        return self.to("markdown")

    def to_latex(self) -> str:
        """Return one LaTeX table (booktabs) with the most important columns per data set, protocol and split."""
        return self.to("latex", wide=False)

    def to_html(self) -> str:
        """Return one HTML table with the most important columns per data set, protocol and split."""
        return self.to("html", wide=False)

    _repr_html_ = to_html

    def to_json(self) -> str:
        """Return ``{"schema": 2, "rows": [...]}``, documented in docs/reading-a-table.md."""
        words = [of_row for table in self.frames().values() for of_row in remarks(table)]
        found = [_json_row(row, said) for row, said in zip(lines_of(self.frame), words, strict=True)]
        return json.dumps({"schema": SCHEMA, "rows": found}, indent=1, allow_nan=False) + "\n"

    def to_csv(self) -> str:
        """Return the rows as CSV, full precision, empty where undefined; of several tables, each row names its own."""
        names = _csv_columns(self.frame)
        return csv_text(self.to_frame()[names if len(self.frames()) > 1 else names[3:]])

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with one row per detector and split: the columns of the CSV, and what tables need more.

        That is ``rules``, ``rank``, ``to_floor``, ``far``, ``n_rows``, ``n_anomalous``, ``leaky``, ``remarks``, and the
        booleans ``floor``, ``ok``, ``complete``, ``forgets``, ``calibrated``, ``sound``, ``above_floor``, ``stored``.
        """
        frame = self.frame.assign(
            seeds=self.frame["seeds"].map(len),
            below_floor=[" ".join(names or ()) for names in self.frame["below_floor"]],
            replay=["" if one is None else " ".join(one.marks) or "ok" for one in self.frame["replay"]],
            pretrained_on=self.frame["pretrained_on"].map("; ".join),
            remarks=[", ".join(words) for table in self.frames().values() for words in remarks(table)],
        )
        more = ["rules", "rank", "to_floor", "far", "n_rows", "n_anomalous", "floor", "ok", "complete", "forgets",
                "calibrated", "sound", "above_floor", "stored", "leaky", "remarks"]  # fmt: skip
        return frame[[*_csv_columns(frame), *more]]

    def write(self, folder: Path) -> list[Path]:
        """Write the tables and ``<data set>/<protocol>/records.jsonl``, one trial per line; return the files.

        Trials of ``records.jsonl`` stay if the leaderboard has none of their label and seed. ``sessions.json`` has the
        numbers of sessions. Reports of checks that do not ship with tsadbench are added to ``checks.jsonl``.

        Raises
        ------
        UsageError
            If a file cannot be written, scores were smoothed, or trials are of two versions of a protocol or data set.
        """
        if (self.trials["smoothing"] > 1).any():
            raise UsageError("tables of smoothed scores are not written beside others: they would be taken for these")
        own = {trial_key(record): record for record in self.records}
        tables = dict.fromkeys(key[:2] for key in own)
        every = [*(one for table in tables for one in committed_records(folder, *table)), *own.values()]
        reports = [one for found in self.trials["reports"] for one in found]
        splits = tuple(dict.fromkeys(self.frame["split"]))
        sessions = {**known_sessions(folder), **self.sessions}
        board = Leaderboard.from_records(every, splits, checked_in=folder, reports=reports, sessions=sessions)
        written = board.write_tables(folder) + [
            write_file(inside(folder, *table, RECORDS), "".join(f"{line}\n" for line in lines))
            for table, lines in board.record_lines().items()
        ]
        if sessions:
            written.append(write_file(folder / SESSIONS, json.dumps(sessions, indent=1, sort_keys=True) + "\n"))
        new = [one for one in reports if one not in shipped_reports()]
        return written + ([write_reports([*read_reports(folder / FILE), *new], folder / FILE)] if new else [])

    def write_tables(self, folder: Path) -> list[Path]:
        """Write ``<data set>/<protocol>/<split>.csv`` and ``.md`` below a folder; errors as for `write`."""
        for (dataset, protocol), table in self.trials.groupby(["dataset", "protocol"]):
            for name, what in (("rules", "judged by"), ("dataset_version", "run on versions of the data set:")):
                if table[name].nunique() > 1:
                    found = " and ".join(map(str, sorted(table[name].unique())))
                    raise UsageError(
                        f"{dataset}, {protocol}: the trials were {what} {found}, and a folder holds tables of one; run "
                        "those of the older one again, or remove them (`tsadbench runs`)"
                    )
        return [
            write_file(inside(folder, dataset, board.frame["protocol"].iloc[0], f"{split}.{end}"), text)
            for (dataset, _, split), board in self.alone().items()
            for end, text in (("csv", board.to_csv()), ("md", board.to_markdown()))
        ]

    def record_lines(self) -> dict[tuple[str, str], list[str]]:
        """Return the trials' records of each data set and protocol as lines of JSON, by label and seed."""
        by_trial = sorted(self.records, key=trial_key)
        tables = grouped(by_trial, lambda one: (one.dataset, one.protocol))
        return {table: [one.to_json(indent=None) for one in records] for table, records in tables.items()}

    def __str__(self) -> str:
        """Return the tables as plain text that fits the terminal."""
        width = shutil.get_terminal_size((_WIDTH, 0)).columns
        console = Console(width=width, color_system=None, force_terminal=False, force_jupyter=False)
        with console.capture() as captured:
            self.print(console)
        return "\n".join(line.rstrip() for line in captured.get().splitlines())

    def __repr__(self) -> str:
        tables = [", ".join(key) for key in self.frames()]
        more = f" and {len(tables) - 3} more tables" if len(tables) > 3 else ""
        return f"<{type(self).__name__}: {len(self.frame)} rows of {'; '.join(tables[:3]) or 'no table'}{more}>"


def _csv_columns(frame: pd.DataFrame) -> list[str]:
    """Return the columns of the CSV in their order."""
    names = [str(name) for name in frame]
    spreads = [name for name in names if name.endswith("_entity_std")]
    diagnostics = [name for name in names if name.startswith(DIAGNOSTIC)]
    pairs = [name[:-4] for name in names if name.endswith("_std") and name not in (*spreads, *diagnostics)]
    middle = [f"{name}_{what}" for name in pairs for what in ("mean", "std")]
    first = ["dataset", "protocol", "split", "detector", "family", "seeds", "status", "coverage", "look_ahead"]
    smoothing = ["smoothing"] if (frame["smoothing"] > 1).any() else []
    last = ["checked", "pretrained_on", *COST_COLUMNS, *diagnostics]
    return [*first, *smoothing, "below_floor", *middle, "protocol_version", "seal", "replay", *spreads, *last]


_JSON = (
    "family", "floor", "dataset", "dataset_version", "protocol", "protocol_version", "split", "status", "look_ahead",
    "seal", "checked", "leaky", "smoothing", "stored", "seeds", "threads", "seal_reasons", "failed_checks",
    "pretrained_on", "coverage", "rows_per_second", "peak_memory_mib", "below_floor",
)  # fmt: skip


def _json_row(row: Mapping[str, Any], words: list[str]) -> dict[str, JsonValue]:
    records: Sequence[Record] = row["records"]
    spreads = {name.removesuffix("_entity_std"): value for name, value in row.items() if name.endswith("_entity_std")}
    names = [name[:-4] for name in row if name.endswith("_std") and not name.endswith("_entity_std") and row["ok"]]
    numbers = {name: {what: row[f"{name}_{what}"] for what in ("mean", "std")} for name in names}
    entities = [record.splits[row["split"]].entities for record in records] if row["ok"] and row["n_entities"] else []
    found = {
        "detector": row["name"],
        "label": row["detector"],
        "parameters": dict(records[0].parameters),
        **{name: row[name] for name in _JSON},
        **{name: int(row[name]) if row[name] == row[name] else None for name in ("rank", "n_rows", "n_anomalous")},
        "failed": [{"seed": x.seed, "status": x.status, "reason": x.reason} for x in records if x.status != "ok"],
        "metrics": {name: one for name, one in numbers.items() if not name.startswith(DIAGNOSTIC)},
        "diagnostics": {n.removeprefix(DIAGNOSTIC): one for n, one in numbers.items() if n.startswith(DIAGNOSTIC)},
        "threshold": [
            {"seed": x.seed, "episode": fit.episode, **asdict(fit.threshold)} for x in records for fit in x.thresholds
        ],
        "training": [{"seed": x.seed, "episode": fit.episode, **fit.facts} for x in records for fit in x.training],
        "seconds": {"fit": row["fit_seconds"], "score": row["score_seconds"]},
        "replay": None if row["replay"] is None else {**asdict(row["replay"]), "marks": row["replay"].marks},
        "remarks": words,
        **({"entities": _json_entities(entities), "metrics_spread": spreads} if entities else {}),
    }
    return {name: _defined(value) for name, value in found.items()}


def _json_entities(seeds: Sequence[Mapping[str, Mapping[str, float | None]]]) -> dict[str, JsonValue]:
    """Return each entity's metrics over seeds; one that is undefined for a seed is undefined."""
    found: dict[str, JsonValue] = {}
    for entity, metrics in seeds[0].items():
        frame = pd.DataFrame([one.get(entity, {}) for one in seeds], columns=[*metrics], dtype=float)
        mean, std = frame.mean(skipna=False), frame.std(skipna=False)
        found[entity] = {name: {"mean": float(mean[name]), "std": float(std[name])} for name in metrics}
    return found


def _defined(value: Any) -> JsonValue:
    """Return a value with None for numbers that JSON does not have, and lists for tuples."""
    if isinstance(value, Mapping):
        return {str(name): _defined(one) for name, one in value.items()}
    if isinstance(value, tuple | list):
        return [_defined(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def known_sessions(folder: Path) -> dict[str, Mapping[str, int]]:
    """Return how many sessions each split of a data set has, as `Leaderboard.write` wrote it into a folder."""
    file = folder / SESSIONS
    found: dict[str, Mapping[str, int]] = json.loads(file.read_bytes()) if file.is_file() else {}
    return found


def inside(folder: Path, *names: str) -> Path:
    """Return a path inside a folder, which every path made of a record's fields is.

    Raises a StoreError if a name is not valid (`name_fault`), or a link leads out of the folder.
    """
    path = folder
    for name in names:
        if fault := name_fault(name):
            raise StoreError(f"{name[:200]!r} cannot be the name of a file in {folder}: {fault}")
        path = path / name
        if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
            raise StoreError(f"{path}: it is a link that leads out of {folder}; remove the link")
    return path
