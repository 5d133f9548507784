"""What readers of a table must know: remarks on its rows, and notes on its data and trials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import pandas as pd

from tsadbench.base.training_facts import LEVELLED, STILL_FALLING, share_note
from tsadbench.errors import PluginError, UsageError
from tsadbench.execution.identity import code_of
from tsadbench.execution.record import Record
from tsadbench.leaderboard.frame import FLOOR_METRICS, TABLE
from tsadbench.registry import load_protocol
from tsadbench.utils.grouping import grouped
from tsadbench.utils.text import first_of

_MOST_NAMES = 30  # in one note


class Note(NamedTuple):
    """A note on the tables of a data set, under one protocol or all; as text it begins with these."""

    dataset: str
    text: str
    protocol: str = ""

    def __str__(self) -> str:
        return f"{self.dataset}{f', protocol {self.protocol}' if self.protocol else ''}: {self.text}"


def remarks(rows: pd.DataFrame) -> list[list[str]]:
    """Return in words what a reader must know of each row; of properties, only where rows of one table differ."""
    found = []
    for _, table in rows.groupby(TABLE, sort=False):
        ran = table[table["ok"]]
        best_floor = ran.loc[ran["floor"] & (ran["to_floor"] == 0), "detector"].tolist()[:1]
        differs = {name: ran[name].nunique() > 1 for name in ("seal", "look_ahead", "threads")}
        some_checked, some_own = (ran["checked"] != "no").any(), not table["stored"].all()
        row: Any  # a named tuple of all columns
        for row in table.itertuples(index=False):
            ok, below = row.ok, row.below_floor or ()
            why = {"leaky": row.leaky, "rows without a score": not row.complete}
            why["depends on the recording's start"] = not row.forgets
            beats = ", ".join(name.upper() for name in FLOOR_METRICS if name not in below)
            words = {
                f"{row.n_failed} of {len(row.seeds)} seeds failed: {row.status}": not ok,
                "best floor" if row.detector in best_floor else "floor": row.floor,
                f"unranked: {', '.join(text for text, applies in why.items() if applies)}": any(why.values()),
                f"beats the floors in {beats}": ok and 0 < len(below) < len(FLOOR_METRICS),
                "uncalibrated": not row.calibrated,
                "guarded": ok and differs["seal"] and row.seal == "guarded",
                f"fails checks: {', '.join(row.failed_checks)}": ok and row.checked == "fail",
                "not checked": ok and some_checked and row.checked == "no",
                "pretrained": bool(row.pretrained_on),
                f"look-ahead {row.look_ahead}": ok and differs["look_ahead"] and row.look_ahead > 0,
                f"{'/'.join(map(str, row.threads))} threads": ok and differs["threads"] and row.threads != (1,),
                "stored": some_own and row.stored,
            }
            found.append([text for text, applies in words.items() if applies])
    return found


def notes_on(records: Sequence[Record]) -> tuple[Note, ...]:
    """Return why rows failed, what records say of data, protocol and trial, and in what they are not comparable."""
    failed = grouped((one for one in records if one.status != "ok"), lambda one: (one.dataset, one.protocol, one.label))
    notes = [Note(key[0], f"{key[2]}: {first.reason}", key[1]) for key, (first, *_) in failed.items()]
    notes += [Note(record.dataset, text) for record in records for text in record.notes]
    notes += [Note(record.dataset, text, record.protocol) for record in records for text in record.protocol_notes]
    notes += [Note(record.dataset, f"{record.label}: {record.note}") for record in records if record.note]
    notes += [*_unfinished_trainings(records), *older_rules(records)]
    for dataset, some in grouped(records, lambda record: record.dataset).items():
        notes += [Note(dataset, text) for text in _mixtures(some)]
    return tuple(dict.fromkeys(notes))


def _unfinished_trainings(records: Sequence[Record]) -> Iterator[Note]:
    """Yield which rows' fits did not see all windows, or ended while the loss was falling; equal rows in one note."""
    said = []
    for (*table, label), of_row in grouped(records, lambda one: (one.dataset, one.protocol, one.label)).items():
        facts = [fit.facts for record in of_row for fit in record.training]
        said.append((*table, share_note(facts), label))
        if n_falling := sum(one.get(LEVELLED) is False for one in facts):
            share = "" if n_falling == len(facts) else f" ({n_falling} of {len(facts)} fits)"
            said.append((*table, STILL_FALLING, label + share))
    for (dataset, protocol, text), alike in grouped(said, lambda one: one[:3]).items():
        if text:
            yield Note(dataset, f"{first_of(sorted(label for *_, label in alike), _MOST_NAMES)}: {text}", protocol)


def older_rules(records: Iterable[Record]) -> Iterator[Note]:
    """Yield which rows another version of their protocol has judged than the installed one."""
    judged = ((one.dataset, one.protocol, one.protocol_version) for one in records if one.status == "ok")
    for dataset, protocol, version in dict.fromkeys(judged):
        with suppress(PluginError, UsageError):
            if version != (installed := load_protocol(protocol.partition("[")[0]).version):
                text = (
                    f"rows of version {version} are shown as they were judged; version {installed} is installed, and "
                    "judges them again if their scores and their data are here; otherwise run them again"
                )
                yield Note(dataset, text, protocol)


def _mixtures(records: Sequence[Record]) -> Iterator[str]:
    """Yield in what the records of one data set differ although their rows are compared."""
    codes = {(record.label, code_of(record.manifest)) for record in records}
    if len(codes) > len({label for label, _ in codes}):
        yield "seeds of one row were made with different versions of its detector's code"
    if older := sum("sources" not in record.manifest for record in records):
        yield f"older code made {'these rows' if older == len(records) else 'some of these rows'}"
    found = [one if isinstance(one := record.manifest.get("versions"), dict) else {} for record in records]
    versions = {(name, str(version)) for one in found for name, version in one.items()}
    same = {
        "package versions": len(versions) == len(dict(versions)),
        "data": len({str(record.manifest.get("data_hash")) for record in records}) == 1,
        "version of the data set": len({record.dataset_version for record in records}) == 1,
        "number of threads": len({record.threads for record in records}) == 1,
    }
    yield from (f"these rows were not all made with the same {what}" for what, alike in same.items() if not alike)
