"""The leaderboard as readers see it: which columns, in which words, and one computed sentence above."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pandas as pd

from tsadbench.base.protocol import Metric, Protocol
from tsadbench.errors import PluginError, UsageError
from tsadbench.leaderboard.columns import DIAGNOSTICS
from tsadbench.leaderboard.formatting import number
from tsadbench.leaderboard.frame import COST_COLUMNS, DIAGNOSTIC, places
from tsadbench.leaderboard.render import Table
from tsadbench.registry import load_protocol
from tsadbench.utils.parameters import nearest
from tsadbench.utils.text import counted

PAGE = "docs/reading-a-table.md"
LEAST_FOR_TESTS = 6  # with fewer sessions no test over them can reach the 5 % level
# How many rows a terminal shows of a table, the best first; above and below a row of one's own among stored ones.
ROWS, _NEIGHBOURS = 50, 2
_MAIN = ("rank", "detector", "auprc", "to_floor", "auroc", "mcc", "prac_f1", "far", "fit_seconds")
# A narrow terminal leaves these out, the first one first.
_EXPENDABLE = ("fit_seconds", "prac_f1", "far", "to_floor")


def compact(value: float) -> str:
    """Return a number with two significant digits and its thousands as a letter.

    >>> compact(1_234_567), compact(43_210), compact(999.7), compact(870), compact(4.23), compact(0)
    ('1.2M', '43k', '1k', '870', '4.2', '0')
    """
    rounded = float(f"{value:.2g}")
    size, letter = next(one for one in ((1e9, "G"), (1e6, "M"), (1e3, "k"), (0.0, "")) if rounded >= one[0])
    return f"{rounded / (size or 1):g}{letter}"


# The wide table's columns behind the metrics: their titles, and a value as text.
_COLUMNS: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "far": ("false alarms", lambda value: f"{100 * value:.{int(0 < value < 0.0995)}f} %"),
    "auprc_entity_std": ("entities", lambda value: f"± {number(value, 2)}"),
    "look_ahead": ("look-ahead", str),
    "coverage": ("coverage", "{:.1%}".format),
    "seeds": ("seeds", str),
    "fit_seconds": ("fit, s", lambda value: f"{value:,.{int(value < 9.95)}f}" if value >= 0.05 else "<0.1"),
    "rows_per_second": ("rows/s", compact),
    "peak_memory_mib": ("MiB", "{:,.0f}".format),
}


def shown(
    table: pd.DataFrame,
    *,
    wide: bool = False,
    columns: Sequence[str] = (),
    own: Collection[str] = (),
    sessions: int | None = None,
) -> Table:
    """Return the rows of one data set, protocol and split, as `tsadbench.leaderboard.frame.rows` has them, as a table.

    It has the most important columns, all if ``wide``, or the detectors and ``columns``. Rows of the labels in ``own``
    are marked. ``sessions`` is how many independent sessions the split has, if that is known.
    """
    metrics = metrics_of(table)
    titles, cells = _cells(table, metrics, own)
    main = [*_MAIN, *(name for name in cells if name.startswith(DIAGNOSTIC)), "remarks"]
    chosen = _keys(columns, titles) or [name for name in (cells if wide else main) if name in cells]
    return Table(
        title=title(table),
        frame=pd.DataFrame({titles[name]: cells[name] for name in chosen}, dtype=object),
        lead=sentence(table, sessions),
        numeric=[titles[name] for name in chosen if name not in ("detector", "remarks")],
        cell_styles={
            (row, titles[metric.name]): ("", "bold", "underline")[place]
            for metric in metrics
            for row, place in enumerate(places(table, metric.name, metric.better))
            if place
        },
        row_styles=[*table["floor"].map({True: "dim", False: ""}).where(table["ok"], "red")],
        expendable=[titles[name] for name in _EXPENDABLE if name in chosen],
    )


def _keys(columns: Sequence[str], titles: Mapping[str, str]) -> list[str]:
    """Return the columns that names ask for, as headers or as keys; the detector's first."""
    known = {_plain(text): name for name in titles for text in (name, name.removeprefix(DIAGNOSTIC), titles[name])}
    names = [_plain(part) for text in columns for part in text.split(",") if part.strip()]
    for name in names:
        if name not in known:
            raise UsageError(f"there is no column {name!r}{nearest(name, known)}")
    return ["detector", *dict.fromkeys(known[name] for name in names)] if names else []


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def _cells(
    table: pd.DataFrame, metrics: Sequence[Metric], own: Collection[str]
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return titles and texts of the columns that the table can show, in the order of the wide one."""
    titles = {metric.name: f"{metric.title}{' (oracle)' * metric.oracle}" for metric in metrics}
    titles |= {name: header for name, (header, _) in _COLUMNS.items()}
    # The protocol's own F1 may stand beside the usual one.
    titles |= {"rank": "#", "detector": "detector", "to_floor": "vs floor", "remarks": "remarks",
               "prac_f1": "Prac-F1" if "f1" in titles else "F1"}  # fmt: skip
    ranks = zip(table["rank"], table["detector"], strict=True)
    cells = {
        "rank": [f"{'▶ ' * (label in own)}{'-' if math.isnan(rank) else f'{rank:.0f}'}" for rank, label in ranks],
        "detector": list(table["detector"]),
    }
    for name in sorted((metric.name for metric in metrics), key=[*_MAIN, *titles].index):
        cells[name] = _spreads(table[f"{name}_mean"], table[f"{name}_std"])
        if name == "auprc" and table["to_floor"].notna().any():
            n = _decimals(table["auprc_std"])
            cells["to_floor"] = [number(value, n, signed=True) for value in table["to_floor"]]
    of_rows = table.assign(seeds=table["seeds"].map(len))
    of_rows.loc[~table["ok"], [*COST_COLUMNS]] = math.nan
    for name, (_, form) in _COLUMNS.items():
        if name not in cells and name in of_rows and of_rows[name].notna().any():
            cells[name] = ["-" if pd.isna(value) else form(value) for value in of_rows[name]]
    levels = {one.name: table.get(f"{DIAGNOSTIC}{one.name}_mean", pd.Series(dtype=float)).max() for one in DIAGNOSTICS}
    for one in DIAGNOSTICS:
        if one.title and not math.isnan(levels[one.name]) and math.isnan(levels.get(one.instead_of, math.nan)):
            key, level = f"{DIAGNOSTIC}{one.name}", levels.get(one.chance, math.nan)
            titles[key] = one.title + ("" if math.isnan(level) else f" (chance {number(level, 2)})")
            cells[key] = _spreads(table[f"{key}_mean"], table[f"{key}_std"], one.decimals)
    cells["remarks"] = list(table["remarks"].map(", ".join))
    if not any(cells["remarks"]):
        del cells["remarks"]
    return {name: titles[name] for name in cells}, cells


def _decimals(spreads: pd.Series) -> int:
    """Return two decimals, or three if a spread over seeds is so small that two would not show it."""
    return 3 if ((spreads > 0) & (spreads < 0.005)).any() else 2


def _spreads(means: pd.Series, spreads: pd.Series, decimals: int | None = None) -> list[str]:
    """Return ``.74 ± .01``, as wide as the widest, so that numbers without a spread stand below the others."""
    n = _decimals(spreads) if decimals is None else decimals
    tails = ["" if math.isnan(one) else f" ± {number(one, n)}" for one in spreads]
    width = max(map(len, tails), default=0)
    return [f"{number(mean, n)}{tail:<{width}}" for mean, tail in zip(means, tails, strict=True)]


def sentence(table: pd.DataFrame, sessions: int | None = None) -> str:
    """Say which detector is the best, whether it beats the floors, and whether differences can be tested."""
    scored = table[table["auprc_mean"].notna()]
    detectors, floors = scored[scored["sound"] & ~scored["floor"]], scored[scored["ok"] & scored["floor"]]
    if detectors.empty:
        return "No detector has a rank; the rows are floors." if 0 < len(floors) < len(table) else ""
    best, n, decimals = detectors.iloc[0], len(detectors), _decimals(table["auprc_std"])
    found = (
        f"{best['detector']} has the best AUPRC of {number(best['auprc_mean'], decimals)}, of {counted(n, 'detector')}"
    )
    if not floors.empty:
        floor = f"{floors.iloc[0]['detector']} ({number(floors.iloc[0]['auprc_mean'], decimals)})"
        n_above = int((detectors["to_floor"] > 0).sum())
        said = "It beats" if n_above == n == 1 else "All beat" if n_above == n else f"{n_above} of {n} beat"
        found += f". {said if n_above else 'No detector beats'} the best floor, {floor}, in AUPRC"
    if sessions is not None and n + len(floors) > 1:
        few = f"are too few to test differences (at least {LEAST_FOR_TESTS})"
        enough = "suffice to test differences (tsadbench compare)"
        found += f". {counted(sessions, 'session')} {few if sessions < LEAST_FOR_TESTS else enough}"
    return f"{found}."


def title(table: pd.DataFrame) -> str:
    """Return a table's title: data, split, protocol, how many of its rows are anomalous, and how it is sorted."""
    ran = table[table["ok"]]
    row = table.iloc[0] if ran.empty else ran.iloc[0]
    protocol = _protocol(row["protocol"])
    found = f"{row['dataset']}, split {row['split']}, protocol {row['rules']}"
    found += "" if protocol is None else f" ({protocol.summary.partition(':')[0]})"
    found += f", smoothed over {row['smoothing']} rows" if row["smoothing"] > 1 else ""
    if row["n_rows"] > 0:
        found += f": {row['n_rows']:,.0f} rows, {row['n_anomalous'] / row['n_rows']:.1%} anomalous"
    if n := row["n_entities"]:
        found += f", mean over {n} entities, one model each" if n > 1 else ", one entity"
    return f"{found}; best AUPRC first" if ran["auprc_mean"].notna().any() else found


def metrics_of(table: pd.DataFrame) -> list[Metric]:
    """Return the protocol's metrics that are defined, or whatever the rows hold if its plugin is gone."""
    names = [name[:-5] for name in map(str, table) if name.endswith("_mean") and not name.startswith(DIAGNOSTIC)]
    protocol = _protocol(table["protocol"].iloc[0])
    known = {} if protocol is None else {metric.name: metric for metric in protocol.metrics}
    defined = [name for name in names if f"{name}_std" in table and table[f"{name}_mean"].notna().any()]
    return [known.get(name, Metric(name, name, better=None)) for name in defined]


def _protocol(label: str) -> type[Protocol] | None:
    try:
        return load_protocol(label.partition("[")[0])
    except (PluginError, UsageError):
        return None


def in_sight(table: pd.DataFrame, own: Collection[str]) -> list[int]:
    """Return the places of the rows that a terminal shows: the best, or one's own, their neighbours and the floors."""
    mine = [place for place, label in enumerate(table["detector"]) if label in own]
    seen = {*range(ROWS), *mine}
    if mine and table["stored"].any():
        near = range(-_NEIGHBOURS, _NEIGHBOURS + 1)
        seen = {*table.index[table["floor"]], *(place + step for place in mine for step in near)}
    return sorted(seen & {*range(len(table))})


def short_notes(notes: Sequence[str], n_left_out: int) -> list[str]:
    """Return at most two lines to stand below tables, the weightiest note first, and how much is left out."""
    left = [f"{n_left_out} more rows"] if n_left_out else []
    if len(notes) + len(left) > 2:
        notes, left = notes[:1], [*left, f"{len(notes) - 1} more notes"] if len(notes) > 1 else left
    return [*notes, *([f"{' and '.join(left)}: --wide"] if left else [])]
