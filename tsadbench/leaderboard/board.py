"""Ranked tables of records, as terminal text, JSON, CSV, Markdown, LaTeX and data frames."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import TypeAdapter
from rich.console import Console

from tsadbench.errors import StoreError, UsageError
from tsadbench.execution.record import RECORDS, Record, committed_records
from tsadbench.execution.store import Store
from tsadbench.leaderboard import frame as tidy
from tsadbench.leaderboard.checks import read_reports, shipped_reports, write_reports
from tsadbench.leaderboard.frame import COST_COLUMNS, DIAGNOSTIC, ROW, TABLE, metric_names, trial_key
from tsadbench.leaderboard.render import Form, Table, csv_text, json_text, print_tables, render
from tsadbench.leaderboard.table import Note, in_sight, notes_on, shown
from tsadbench.utils.files import LEADERBOARDS, write_file
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import normal_label, require_known
from tsadbench.utils.text import counted, first_of, name_fault

ABOUT = "Detectors report the scores that set thresholds. Columns and remarks: docs/reading-a-table.md"
SESSIONS = "sessions.json"  # in the folder of the tables


class Leaderboard:
    """Ranked rows: best AUPRC first, floors in their places, failures last; a table per data set, protocol and split.

    Trials judged by two versions of a protocol are in two tables. ``trials`` are as
    `tsadbench.leaderboard.frame.trials` returns them, ``more`` are notes in addition to the records' own, and ``frame``
    has the rows (default: those of the trials).
    """

    def __init__(self, trials: pd.DataFrame, more: Iterable[Note] = (), frame: pd.DataFrame | None = None) -> None:
        self.trials, self.more = trials, tuple(more)
        self.frame = tidy.rows(trials) if frame is None else frame

    @classmethod
    def from_records(
        cls,
        records: Iterable[Record],
        splits: Sequence[str] = (),
        *,
        stored: Iterable[Record] = (),
        checked_in: Path | None = None,
        sessions: Mapping[str, Mapping[str, int]] | None = None,
    ) -> Leaderboard:
        """Rank records of any data sets and protocols, the newest of each trial.

        ``splits`` are those to show, in order (default: all); a UsageError if no record has one of them. ``stored``
        records were made earlier: they are marked, and left out if ``records`` have their label. ``checked_in`` is a
        run store or a folder of tables with more check reports, ``sessions`` has numbers of sessions (`frame.trials`).
        """
        reports = [*shipped_reports(), *(read_reports(checked_in) if checked_in else ())]
        return cls(tidy.trials(records, splits, stored=stored, reports=reports, sessions=sessions))

    @classmethod
    def of_store(cls, store: Store, records: Sequence[Record], splits: Sequence[str] = ()) -> Leaderboard:
        """Rank records of a store and the shipped rows that they were compared with. Errors as for `from_records`."""
        about, datasets = store.about(), {record.dataset for record in records}
        shown = [table for table in about.against.items() if table[0] in datasets]
        stored = [one for table in shown for one in committed_records(LEADERBOARDS, *table)]
        return cls.from_records(records, splits, stored=stored, checked_in=store.path, sessions=about.sessions)

    @classmethod
    def joined(cls, boards: Sequence[Leaderboard]) -> Leaderboard:
        """Return the tables of several leaderboards as one; if several have the same row, the last one counts."""
        if len(boards) == 1:
            return boards[0]
        every = pd.concat([board.trials.assign(origin=place) for place, board in enumerate(boards)], ignore_index=True)
        newest = every["origin"] == every.groupby(ROW)["origin"].transform("max")
        more = dict.fromkeys(note for board in boards for note in board.more)
        return cls(every[newest].reset_index(drop=True), more)

    def chosen(self, detectors: Sequence[str]) -> Leaderboard:
        """Return the leaderboard with the rows of these labels and the best floor of each table; ranks stay."""
        labels, known = {normal_label(one) for one in detectors}, {*self.frame["detector"]}
        require_known(sorted(labels), known, "there is no row")
        best = self.frame[self.frame["sound"] & self.frame["floor"]].drop_duplicates(TABLE).index
        frame = self.frame[self.frame["detector"].isin(labels) | self.frame.index.isin(best)].reset_index(drop=True)
        return Leaderboard(self.trials.merge(frame[ROW], on=ROW), self.more, frame)

    @property
    def records(self) -> list[Record]:
        """The records of all trials, each once."""
        return tidy.records_of(self.trials)

    @property
    def notes(self) -> list[Note]:
        """What readers must know about data and trials, failures first."""
        return [*notes_on(self.records), *self.more]

    def frames(self) -> dict[tuple[str, str, str], pd.DataFrame]:
        """Return the rows of each (data set, protocol with its version, split)."""
        by = self.frame.groupby(TABLE, sort=False)
        return {(str(a), str(b), str(c)): table.reset_index(drop=True) for (a, b, c), table in by}

    def alone(self) -> dict[tuple[str, str, str], Leaderboard]:
        """Return each table as a separate leaderboard, with the notes that concern it."""
        found = {}
        for key, table in self.frames().items():
            protocols = ("", table["protocol"].iloc[0])
            more = [note for note in self.more if note.dataset == key[0] and note.protocol in protocols]
            found[key] = Leaderboard(self.trials.merge(table[ROW], on=ROW), more, table)
        return found

    def shown(self, **look: Any) -> list[Table]:
        """Return the tables as readers see them; ``look`` goes to `tsadbench.leaderboard.table.shown`."""
        return [shown(table, **look) for table in self.frames().values()]

    def print(self, console: Console, *, wide: bool = False, own: Collection[str] = (), **look: Any) -> None:
        """Print the tables on a console: the best rows and at most three lines below, or everything if ``wide``."""
        print_tables(console, *self._in_sight(wide=wide, own=own, **look))

    def _in_sight(self, *, wide: bool = False, own: Collection[str] = (), **look: Any) -> tuple[list[Table], list[str]]:
        """Return the tables and lines that a terminal shows."""
        tables, notes, more = self.shown(wide=wide, own=own, **look), [*map(str, self.notes)], ""
        if not wide:
            seen = [in_sight(rows, own) for rows in self.frames().values()]
            tables = [table.only(places) for table, places in zip(tables, seen, strict=True)]
            counts = {"more row": len(self.frame) - sum(map(len, seen)), "more note": len(notes) - 1}
            left, notes = " and ".join(counted(n, what) for what, n in counts.items() if n > 0), notes[:1]
            more = f"{left}: --wide. " if left else ""
        return tables, [*notes, f"{more}{ABOUT}"] if tables else ["no rows"]

    def to(self, form: Form, *, columns: Sequence[str] = (), wide: bool = True) -> str:
        """Return the leaderboard as text for a terminal, JSON, CSV, Markdown or LaTeX."""
        if form in ("json", "csv"):
            return self.to_json() if form == "json" else self.to_csv()
        return render(self.shown(wide=wide, columns=columns), [*map(str, self.notes), ABOUT], form)

    def to_markdown(self) -> str:
        """Return one Markdown table with all columns per data set, protocol and split, with notes below."""
        return self.to("markdown")

    def to_latex(self) -> str:
        """Return one LaTeX table (booktabs) with the most important columns per data set, protocol and split."""
        return self.to("latex", wide=False)

    def _repr_markdown_(self) -> str:
        return self.to("markdown", wide=False)

    def to_json(self) -> str:
        """Return ``{"schema": 2, "rows": [...]}``, documented in docs/reading-a-table.md."""
        entities, names = tidy.over_entities(self.trials), metric_names(self.frame)
        rows: Any = self.frame.to_dict("records")
        return json_text(rows=[_json_row(row, names, entities) for row in rows])

    def to_csv(self) -> str:
        """Return the rows as CSV, full precision, empty where undefined."""
        return csv_text(self.to_frame()[_csv_columns(self.frame)])

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with one row per detector and split: the columns of the CSV, then those of tables.

        Among these are ``to_floor`` (AUPRC less the best floor's), ``far``, and the booleans ``ok``, ``sound`` (it may
        be ranked) and ``above_floor``.
        """
        frame = self.frame.assign(
            seeds=self.frame["seeds"].map(len),
            **{name: self.frame[name].astype("Int64") for name in _WHOLE},
            replay=["" if one is None else " ".join(one.marks) or "ok" for one in self.frame["replay"]],
            **{
                name: [between.join(words or ()) for words in self.frame[name]]
                for name, between in (("below_floor", " "), ("pretrained_on", "; "), ("remarks", ", "))
            },
        )
        return frame[[*dict.fromkeys([*_csv_columns(frame), *frame.columns.drop("records")])]]

    def write(self, folder: Path) -> list[Path]:
        """Write the tables and ``<data set>/<protocol>/records.jsonl``, one trial per line; return the files.

        Trials in ``records.jsonl`` are kept unless the leaderboard has their label and seed. Existing tables of other
        splits are written again, ``sessions.json`` gets numbers of sessions, ``checks.jsonl`` new reports of checks. A
        UsageError if a file cannot be written, or trials have two versions of a protocol or data.
        """
        tables = dict.fromkeys((one.dataset, one.protocol) for one in self.records)
        records = [*(one for table in tables for one in committed_records(folder, *table)), *self.records]
        new = [one for found in self.trials["reports"] for one in found if one not in shipped_reports()]
        written = [write_reports([*read_reports(folder), *new], folder)] if new else []
        sessions = known_sessions(folder)
        for dataset, split, n in self.frame.dropna(subset="sessions")[["dataset", "split", "sessions"]].to_numpy():
            sessions.setdefault(dataset, {})[split] = int(n)
        there = {file.stem for table in tables for file in folder.joinpath(*table).glob("*.csv")}
        splits = [one for one in tidy.splits_of(records) if one in {*self.frame["split"], *there}]
        board = Leaderboard.from_records(records, splits, checked_in=folder, sessions=sessions)
        written += board.write_tables(folder)
        for table, some in grouped(sorted(board.records, key=trial_key), lambda one: trial_key(one)[:2]).items():
            lines = "".join(f"{record.to_json(indent=None)}\n" for record in some)
            written.append(write_file(inside(folder, *table, RECORDS), lines))
        if sessions:
            written.append(write_file(folder / SESSIONS, json.dumps(sessions, indent=1, sort_keys=True) + "\n"))
        return written

    def write_tables(self, folder: Path) -> list[Path]:
        """Write ``<data set>/<protocol>/<split>.csv`` and ``.md`` below a folder; errors as for `write`."""
        kinds = self.trials[["dataset", "protocol", "rules", "dataset_version"]].drop_duplicates()
        if (twice := kinds.duplicated(["dataset", "protocol"], keep=False)).any():
            found = (f"{one.dataset} {one.dataset_version} under {one.rules}" for one in kinds[twice].itertuples())
            raise UsageError(
                f"a folder holds tables of one version of data and protocol, found {', '.join(sorted(found))}: run the "
                "older trials again, or remove them (`tsadbench runs`)"
            )
        return [
            write_file(inside(folder, dataset, board.frame["protocol"].iloc[0], f"{split}.{end}"), text)
            for (dataset, _, split), board in self.alone().items()
            for end, text in (("csv", board.to_csv()), ("md", board.to_markdown()))
        ]

    def __str__(self) -> str:
        """Return the tables as plain text that fits the terminal."""
        return render(*self._in_sight(), width=shutil.get_terminal_size((120, 0)).columns).rstrip("\n")

    def __repr__(self) -> str:
        tables = [", ".join(key) for key in self.frames()]
        return f"<{type(self).__name__}: {len(self.frame)} rows of {first_of(tables, 3) or 'no table'}>"


def _csv_columns(frame: pd.DataFrame) -> list[str]:
    """Return the columns of the CSV in their order."""
    pairs = [f"{name}_{what}" for name in metric_names(frame) for what in ("mean", "std")]
    return [
        *("dataset", "protocol", "split", "rank", "detector", "family", "floor", "remarks", "n_rows", "n_anomalous"),
        *("seeds", "status", "coverage", "look_ahead", "below_floor"),
        *(name for name in pairs if not name.startswith(DIAGNOSTIC)),
        *("protocol_version", "seal", "replay", *(name for name in map(str, frame) if name.endswith("_entity_std"))),
        *("checked", "pretrained_on", *COST_COLUMNS, *(name for name in pairs if name.startswith(DIAGNOSTIC))),
    ]


_NOT_IN_JSON = ("detector", "name", "records", "fit_seconds", "score_seconds")  # JSON has them in another form
_WHOLE = ("rank", "n_entities", "n_rows", "n_anomalous", "sessions")


def _json_row(row: Mapping[str, Any], names: Sequence[str], entities: pd.DataFrame) -> dict[str, Any]:
    """Return a row for JSON: plain columns, metrics and costs as objects, and lists with an entry per trial or fit."""
    records: Sequence[Record] = row["records"]
    numbers = {name: {what: row[f"{name}_{what}"] for what in ("mean", "std")} for name in names if row["ok"]}
    hidden = {*_NOT_IN_JSON, *(f"{name}_{what}" for name in names for what in ("mean", "std"))}
    found = {
        **{"detector": row["name"], "label": row["detector"], "parameters": records[0].parameters},
        **{name: value for name, value in row.items() if name not in hidden},
        **{name: int(row[name]) if row[name] == row[name] else None for name in _WHOLE},
        "failed": [{"seed": x.seed, "status": x.status, "reason": x.reason} for x in records if x.status != "ok"],
        "metrics": {name: one for name, one in numbers.items() if not name.startswith(DIAGNOSTIC)},
        "diagnostics": {n.removeprefix(DIAGNOSTIC): one for n, one in numbers.items() if n.startswith(DIAGNOSTIC)},
        "threshold": [
            {"seed": x.seed, "episode": fit.episode, **asdict(fit.threshold)} for x in records for fit in x.thresholds
        ],
        "training": [{"seed": x.seed, "episode": fit.episode, **fit.facts} for x in records for fit in x.training],
        "seconds": {"fit": row["fit_seconds"], "score": row["score_seconds"]},
        "replay": None if row["replay"] is None else {**asdict(row["replay"]), "marks": row["replay"].marks},
    }
    if row["n_entities"] > 0:
        found["entities"] = entities.loc[tuple(row[key] for key in ROW)].to_dict("index")
    return found


def known_sessions(folder: Path) -> dict[str, dict[str, int]]:
    """Return the numbers of sessions, by data set and split, that `Leaderboard.write` wrote into a folder, if any."""
    file = folder / SESSIONS
    try:
        return TypeAdapter(dict[str, dict[str, int]]).validate_json(file.read_bytes()) if file.is_file() else {}
    except ValueError as error:
        raise StoreError(
            f"{file}: expected numbers of sessions by data set and split; choose another folder"
        ) from error


def inside(folder: Path, *names: str) -> Path:
    """Return a path inside a folder; a StoreError if a name or a link would lead elsewhere."""
    path = folder.joinpath(*names)
    if any(map(name_fault, names)) or not path.resolve().is_relative_to(folder.resolve()):
        raise StoreError(f"{str(path)[:300]!r} cannot be written: a name in it is not valid, or a link leads elsewhere")
    return path
