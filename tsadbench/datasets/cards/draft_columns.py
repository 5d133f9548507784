"""The columns of a drafted card: sensors, times, labels, states."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from tsadbench.datasets.cards.look import Look, label_of
from tsadbench.datasets.cards.sorting import Sorted
from tsadbench.datasets.reader import LABEL
from tsadbench.datasets.reading.table import NamedTable
from tsadbench.datasets.times import time_in_seconds
from tsadbench.utils.toml import toml_value

_MOST_NAMED = 100
# In a long table each name of a sensor occurs many times.
_LEAST_REPEATED = 5


def columns_of(found: Sorted) -> Iterable[str]:
    """Yield the lines of ``[columns]``, and of ``[labels]`` if files of their own have them."""
    tables = found.tables
    first, long = tables[0], is_long(tables)
    label = next((name for look in tables if (name := label_of(look)) is not None), None)
    label = None if found.ignores_labels or found.label_lines else label
    roles = {name: role for look in tables for name, role in look.roles.items()}
    ignored = [name for name, role in roles.items() if name and role != "time" and name != label]
    common = set(first.table.header).intersection(*(look.table.header for look in tables)).difference(ignored)
    sensors = [name for name in first.sensors if name in common]
    yield "[columns]"
    if any(isinstance(look.table, NamedTable) for look in tables):
        yield 'names = "x{number}"  # arrays have no names; better: a list of them'
    if long:
        ignored = []
    elif len(sensors) <= _MOST_NAMED:
        yield f"sensors = {toml_value(sensors)}"
    else:
        named = [name for name in sensors if LABEL.search(name)] if label is None and not found.label_lines else []
        yield f"sensors = {toml_value(['*', *named])}  # all {len(sensors)} that have no other use"
    if ignored:
        reasons = {"label": "another label", "counter": "counts rows", "text": "text", "empty": "empty"}
        why = "; ".join(f"{name}: {reasons[roles[name]]}" for name in ignored[:10])
        yield f"ignore = {toml_value(ignored)}  # {' '.join(why.split())}"
    if first.time_name is not None:
        forms = list(dict.fromkeys(look.time_format for look in tables))
        yield f"time = {toml_value(first.time_name)}"
        yield f"time_format = {toml_value(forms[0] if len(forms) == 1 else forms)}"
    else:
        yield "# time = ...    No column seems to hold times. With a fixed rate, give the seconds from row to row:"
        yield "# period = 1"
    yield from _labels(found, label)


def _labels(found: Sorted, label: str | None) -> Iterable[str]:
    if label is None and (found.ignores_labels or not found.label_lines):
        yield "# Without labels, detectors can be fitted and can score files (tsadbench fit, tsadbench score)."
        yield "# NOT FOUND: name the column that tells anomalous rows"
        yield "# [labels]"
        yield '# kind = "column"'
        yield '# column = "label"'
        return
    values = dict.fromkeys(value for look in found.tables for value in look.labels)
    anomalous = [value for value in values if value != found.normal]
    yield ""
    if not found.label_lines:
        yield "[labels]"
        yield 'kind = "column"'
        yield f"column = {toml_value(label)}"
    else:
        yield "# No column tells anomalous rows, but files of their own seem to."
        yield from found.label_lines
    if any(line.startswith('kind = "intervals"') for line in found.label_lines):
        return
    yield f"anomalous = {toml_value(anomalous or ['1'])}" + ("" if anomalous else "  # no such row was found")
    yield f"normal = {toml_value([found.normal or '0'])}"


def states_of_looks(tables: Sequence[Look]) -> Iterable[str]:
    """Yield the lines of ``[states]``."""
    states: dict[str, dict[str, int]] = {}
    for look in tables:
        for name, texts in look.states.items():
            states.setdefault(name, {}).update(texts)
    for name, texts in states.items():
        yield ""
        yield f"[states.{toml_value(name)}]"
        for text, number in texts.items():
            yield f"{toml_value(text)} = {number}"


def is_long(tables: Sequence[Look]) -> bool:
    """Whether each file seems to hold one value a row: a time, the name of a sensor, a value."""
    return all(_names_of(look) is not None for look in tables)


def _names_of(look: Look) -> pd.Series | None:
    """Return the first rows of the column with sensors' names; None if the file is no long table."""
    names = look.of_role("text")
    if len(look.table.header) != 3 or len(names) != 1 or look.time_name is None or look.n_sensors != 1:
        return None
    place = look.table.header.index(names[0])
    cells: pd.Series = next(iter(look.table.chunks([place])))[place]
    return cells if cells.nunique() * _LEAST_REPEATED <= len(cells) and not cells.isna().any() else None


def resample_of(tables: Sequence[Look]) -> Iterable[str]:
    """Yield the lines of ``[long]`` and ``[resample]``; the grid is as fine as the sensor with the shortest steps."""
    look = tables[0]
    names = _names_of(look)
    header = look.table.header
    if names is None or look.time_name is None:
        return
    place = header.index(look.time_name)
    time = time_in_seconds(next(iter(look.table.chunks([place])))[place], look.time_format)
    steps = [float(np.median(np.diff(time[rows]))) for rows in names.groupby(names).indices.values() if len(rows) > 1]
    every = min((step for step in steps if step > 0), default=1.0)
    yield ""
    yield "# One value a row: a time, the name of a sensor, its value. DECIDE how far apart the rows are to lie."
    yield "[long]"
    yield f"name = {toml_value(look.of_role('text')[0])}"
    yield f"value = {toml_value(look.sensors[0])}"
    yield ""
    yield "[resample]"
    yield f"every = {every:g}"
    yield 'by = "last"  # the last value holds until the next'
