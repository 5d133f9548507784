"""The leaderboard as readers see it: its columns, one computed sentence above, and notes below."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import pandas as pd

from tsadbench.base.protocol import Metric, Protocol
from tsadbench.base.training_facts import CONDITION_NUMBER, LEVELLED, STILL_FALLING, share_note
from tsadbench.errors import PluginError, UsageError
from tsadbench.execution.identity import code_of
from tsadbench.execution.record import Record
from tsadbench.leaderboard.frame import DIAGNOSTIC, metric_names, places
from tsadbench.leaderboard.render import Table, number
from tsadbench.registry import load_protocol
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import require_known
from tsadbench.utils.text import counted, first_of

LEAST_FOR_TESTS = 6  # with fewer units, no p-value is below .05: 2 / 2^5 = .0625
# Rows that a terminal shows: the best of a table, and those above and below the user's own row among stored ones.
ROWS, _NEIGHBOURS = 50, 2
_MOST_NAMES = 30  # in one note
_MAIN = ("rank", "detector", "auprc", "to_floor", "auroc", "mcc", "prac_f1", "far", "fit_seconds")
# A narrow terminal leaves these out, the first one first.
_EXPENDABLE = ("fit_seconds", "prac_f1", "far", "to_floor")
# The titles of diagnostics, by group. A diagnostic without a title has no column.
DIAGNOSTICS = {
    "operational": {
        "found": "Found", "already_on": "Already on", "delay_seconds": "Delay, s", "delay_rows": "Delay, rows",
        "false_alarms_per_hour": "False alarms/h", "false_alarms_per_1000_rows": "False alarms/1000 rows",
        "false_alarm_share": "In false alarm",
    },
    "vus": {"vus_pr": "VUS-PR"},
    "affiliation": {"affiliation_precision": "Aff-P", "affiliation_recall": "Aff-R", "affiliation_f1": "Aff-F1"},
    "root-cause": {f"hit_at_{k}": f"Hit@{k} (chance {{}})" for k in (1, 3, 5)}
    | {f"chance_at_{k}": "" for k in (1, 3, 5)},
}  # fmt: skip
_WITHOUT_TIMES = {"delay_rows": "delay_seconds", "false_alarms_per_1000_rows": "false_alarms_per_hour"}


def compact(value: float) -> str:
    """Return a number with two significant digits and its thousands as a letter.

    >>> compact(1_234_567), compact(43_210), compact(999.7), compact(870), compact(4.23), compact(0)
    ('1.2M', '43k', '1k', '870', '4.2', '0')
    """
    rounded = float(f"{value:.2g}")
    size, letter = next(one for one in ((1e9, "G"), (1e6, "M"), (1e3, "k"), (0.0, "")) if rounded >= one[0])
    return f"{rounded / (size or 1):g}{letter}"


# The wide table's columns after the metrics: their titles, and how to format a value.
_COLUMNS: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "far": ("false alarms", lambda value: f"{100 * value:.{int(0 < value < 0.0995)}f} %"),
    "auprc_entity_std": ("entities", lambda value: f"± {number(value, 2)}"),
    "look_ahead": ("look-ahead", str),
    "coverage": ("coverage", "{:.1%}".format),
    "seeds": ("seeds", lambda seeds: str(len(seeds))),
    "fit_seconds": ("fit, s", lambda value: f"{value:,.{int(value < 9.95)}f}" if value >= 0.05 else "<0.1"),
    "rows_per_second": ("rows/s", compact),
    "peak_memory_mib": ("MiB", "{:,.0f}".format),
}


def shown(table: pd.DataFrame, *, wide: bool = False, columns: Sequence[str] = (), own: Collection[str] = ()) -> Table:
    """Return rows of `tsadbench.leaderboard.frame.rows`, of one data set, protocol and split, as a table for readers.

    It has the most important columns, all if ``wide``, or the detectors and ``columns``. Rows of the labels in ``own``
    are marked.
    """
    metrics = metrics_of(table)
    cells = _cells(table, metrics, own)
    titles = {name: header for name, (header, _) in cells.items()}
    main = [*_MAIN, *(name for name in cells if name.startswith(DIAGNOSTIC)), "remarks"]
    chosen = _keys(columns, titles) or [name for name in (cells if wide else main) if name in cells]
    whole = table["rank"].count() == table["n_ranked"].iloc[0]  # chosen rows say nothing of those left out
    return Table(
        title=title(table),
        frame=pd.DataFrame(dict(cells[name] for name in chosen), dtype=object),
        lead=sentence(table) if whole else "",
        numeric=[titles[name] for name in chosen if name not in ("detector", "remarks")],
        cell_styles={
            (row, titles[metric.name]): ("", "bold", "underline")[place]
            for metric in metrics
            for row, place in enumerate(places(table, metric.name, metric.better))
            if place and whole
        },
        row_styles=[*table["floor"].map({True: "dim", False: ""}).where(table["ok"], "red")],
        expendable=[] if wide or columns else [titles[name] for name in _EXPENDABLE if name in chosen],
    )


def _keys(columns: Sequence[str], titles: Mapping[str, str]) -> list[str]:
    """Return the keys of the requested columns, named by header or key, after "detector"; [] if none is requested."""
    known = {_plain(text): name for name in titles for text in (name, name.removeprefix(DIAGNOSTIC), titles[name])}
    names = [_plain(part) for text in columns for part in text.split(",") if part.strip()]
    require_known(names, known, "there is no column")
    return ["detector", *dict.fromkeys(known[name] for name in names)] if names else []


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def _cells(table: pd.DataFrame, metrics: Sequence[Metric], own: Collection[str]) -> dict[str, tuple[str, list[str]]]:
    """Return title and texts of each column that the table can show, in the order of the wide table."""
    marked = zip(table["rank"], table["detector"].isin([*own]), strict=True)
    ranks = [f"{'▶ ' * own_row}{number(rank, 0)}" for rank, own_row in marked]
    cells = {"rank": ("#", ranks), "detector": ("detector", [*table["detector"]])}
    titles = {one.name: f"{one.title}{' (oracle)' * one.oracle}" for one in metrics}
    titles |= {name: header for name, (header, _) in _COLUMNS.items()}
    titles |= {"prac_f1": "Prac-F1" if "f1" in titles else "F1"}  # next to a protocol's own F1
    for name in sorted((one.name for one in metrics), key=[*_MAIN, *titles].index):
        cells[name] = titles[name], _spreads(table, name)
        if name == "auprc" and table["to_floor"].notna().any():
            n = _decimals(table["auprc_std"])
            cells["to_floor"] = "vs floor", [number(value, n, signed=True) for value in table["to_floor"]]
    for name, (_, form) in _COLUMNS.items():
        if name not in cells and name in table and table[name].notna().any():
            cells[name] = titles[name], ["-" if value != value else form(value) for value in table[name]]
    headers = {name: header for group in DIAGNOSTICS.values() for name, header in group.items()}
    means = {name: table[key].max() for name in headers if (key := f"{DIAGNOSTIC}{name}_mean") in table}
    levels = {name: number(mean, 2) for name, mean in means.items() if not math.isnan(mean)}
    for name in levels:
        if headers[name] and _WITHOUT_TIMES.get(name) not in levels:
            header = headers[name].format(levels.get(name.replace("hit", "chance")))
            cells[f"{DIAGNOSTIC}{name}"] = header, _spreads(table, f"{DIAGNOSTIC}{name}")
    remarks = [*table["remarks"].map(", ".join)]
    return cells | ({"remarks": ("remarks", remarks)} if any(remarks) else {})


def _decimals(spreads: pd.Series) -> int:
    """Return two decimals, or three if a spread over seeds is so small that two would not show it."""
    return 3 if ((spreads > 0) & (spreads < 0.005)).any() else 2


def _spreads(table: pd.DataFrame, name: str) -> list[str]:
    """Return ``.74 ± .01``, padded to one width so that numbers without a spread align with the others."""
    means, spreads = table[f"{name}_mean"], table[f"{name}_std"]
    n = _decimals(spreads)
    tails = ["" if math.isnan(one) else f" ± {number(one, n)}" for one in spreads]
    width = max(map(len, tails), default=0)
    return [f"{number(mean, n)}{tail:<{width}}" for mean, tail in zip(means, tails, strict=True)]


def sentence(table: pd.DataFrame) -> str:
    """Return the user's rank, the best detector, how many beat the floors, and whether tests are possible."""
    scored = table[table["auprc_mean"].notna()]
    detectors, floors = (scored[scored["sound"] & (scored["floor"] == one)] for one in (False, True))
    if detectors.empty:
        return "No detector has a rank; the ranked rows are floors." if 0 < len(floors) < len(table) else ""
    best, n, decimals = detectors.iloc[0]["detector"], len(detectors), _decimals(table["auprc_std"])
    auprc = scored.set_index("detector")["auprc_mean"].map(lambda value: number(value, decimals))
    found = f"{best} has the best AUPRC of {auprc[best]}, of {counted(n, 'detector')}"
    if 0 < len(mine := detectors[~detectors["stored"]]) < n:
        own, n_ranked = mine.iloc[0], table["n_ranked"].iloc[0]
        found = f"{own['detector']} has rank {own['rank']:.0f} of {n_ranked}, AUPRC {auprc[own['detector']]}. {found}"
    if not floors.empty:
        floor = f"{floors.iloc[0]['detector']} ({auprc[floors.iloc[0]['detector']]})"
        n_above = int((detectors["to_floor"] > 0).sum())
        said = {0: "No detector beats", 1: f"1 of {n} beats", n: "It beats" if n == 1 else "All beat"}
        found += f". {said.get(n_above, f'{n_above} of {n} beat')} the best floor, {floor}, in AUPRC"
    if (sessions := table["sessions"].max()) > 0 and n + len(floors) > 1:
        few = f"{'is' if sessions == 1 else 'are'} too few to test differences (at least {LEAST_FOR_TESTS})"
        enough = "suffice to test differences (tsadbench compare)"
        found += f". {counted(int(sessions), 'session')} {few if sessions < LEAST_FOR_TESTS else enough}"
    return f"{found}."


def title(table: pd.DataFrame) -> str:
    """Return a table's title: data, split, protocol, how many of its rows are anomalous, and how it is sorted."""
    ran = table[table["ok"]]
    row = (table if ran.empty else ran).iloc[0]
    protocol = _protocol(row["protocol"])
    found = f"{row['dataset']}, split {row['split']}, protocol {row['rules']}"
    found += "" if protocol is None else f" ({protocol.summary.partition(':')[0]})"
    if row["n_rows"] > 0:
        found += f": {row['n_rows']:,.0f} rows, {row['n_anomalous'] / row['n_rows']:.1%} anomalous"
    if (n := row["n_entities"]) > 0:
        found += f", mean over {n:.0f} entities, one model each" if n > 1 else ", one entity"
    return f"{found}; best AUPRC first" if ran["auprc_mean"].notna().any() else found


def metrics_of(table: pd.DataFrame) -> list[Metric]:
    """Return the metrics that at least half of the rows have; without the protocol's plugin, only their names."""
    protocol = _protocol(table["protocol"].iloc[0])
    known = {} if protocol is None else {metric.name: metric for metric in protocol.metrics}
    ran = table[table["ok"]]  # older records lack newer metrics
    defined = [name for name in metric_names(table) if ran[f"{name}_mean"].notna().mean() >= 0.5]
    return [known.get(name, Metric(name, name, better=None)) for name in defined if not name.startswith(DIAGNOSTIC)]


def _protocol(label: str) -> type[Protocol] | None:
    try:
        return load_protocol(label.partition("[")[0])
    except (PluginError, UsageError):
        return None


def in_sight(table: pd.DataFrame, own: Collection[str]) -> list[int]:
    """Return the places of rows to show: the best and ``own``; among stored rows, ``own``, neighbours and floors."""
    mine = [place for place, label in enumerate(table["detector"]) if label in own]
    seen = {*range(ROWS), *mine}
    if mine and table["stored"].any():
        near = range(-_NEIGHBOURS, _NEIGHBOURS + 1)
        seen = {*table.index[table["floor"]], *(place + step for place in mine for step in near)}
    return sorted(seen & {*range(len(table))})


class Note(NamedTuple):
    """A note on the tables of a data set, under one protocol or all; as text it begins with their names."""

    dataset: str
    text: str
    protocol: str = ""

    def __str__(self) -> str:
        return f"{self.dataset}{f', protocol {self.protocol}' if self.protocol else ''}: {self.text}"


def notes_on(records: Sequence[Record]) -> tuple[Note, ...]:
    """Return notes: why rows failed, what records note on data, protocol and trial, and what limits comparisons."""
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
    """Yield notes on fits with unseen windows, a falling loss or nearly collinear sensors; equal rows share a note."""
    said = []
    for (*table, label), of_row in grouped(records, lambda one: (one.dataset, one.protocol, one.label)).items():
        facts = [fit.facts for record in of_row for fit in record.training]
        said.append((*table, share_note(facts), label))
        if n_falling := sum(one.get(LEVELLED) is False for one in facts):
            share = "" if n_falling == len(facts) else f" ({n_falling} of {len(facts)} fits)"
            said.append((*table, STILL_FALLING, label + share))
        if max((one.get(CONDITION_NUMBER) or 0.0 for one in facts), default=0.0) > 1e6:
            said.append((*table, "sensors are nearly collinear, so scores are sensitive to rounding", label))
    for (dataset, protocol, text), alike in grouped(said, lambda one: one[:3]).items():
        if text:
            yield Note(dataset, f"{first_of(sorted(label for *_, label in alike), _MOST_NAMES)}: {text}", protocol)


def older_rules(records: Iterable[Record]) -> Iterator[Note]:
    """Yield a note for rows that were judged by a version of their protocol that is not installed."""
    judged = ((one.dataset, one.protocol, one.protocol_version) for one in records if one.status == "ok")
    for dataset, protocol, version in dict.fromkeys(judged):
        with suppress(PluginError, UsageError):
            if version != (installed := load_protocol(protocol.partition("[")[0]).version):
                text = f"rows of version {version} are shown as they were judged; version {installed} is installed"
                yield Note(dataset, f"{text}: judge their scores again, or run them again", protocol)


def _mixtures(records: Sequence[Record]) -> Iterator[str]:
    """Yield differences in code, packages, data or threads between the compared records of a data set."""
    codes = {(record.label, code_of(record.manifest)) for record in records}
    if len(codes) > len({label for label, _ in codes}):
        yield "seeds of one row were made with different versions of its detector's code"
    found = [one if isinstance(one := record.manifest.get("versions"), dict) else {} for record in records]
    versions = {(name, str(version)) for one in found for name, version in one.items()}
    same = {
        "package versions": len(versions) == len(dict(versions)),
        "data": len({str(record.manifest.get("data_hash")) for record in records}) == 1,
        "version of the data set": len({record.dataset_version for record in records}) == 1,
        "number of threads": len({record.threads for record in records}) == 1,
    }
    yield from (f"these rows were not all made with the same {what}" for what, alike in same.items() if not alike)
