"""Draft a card for a folder of files: a guess from their names and contents, in one pass, for a person to correct."""

from __future__ import annotations

import glob
import re
import tempfile
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tsadbench.base.recording import Recording
from tsadbench.datasets.boxed import ARRAYS
from tsadbench.datasets.card import NAME
from tsadbench.datasets.look import Look
from tsadbench.datasets.reader import try_card
from tsadbench.datasets.sorting import FEWEST_TEST_ROWS, TEXTS, WRITTEN_AS, Sorted, sort_files
from tsadbench.datasets.times import iso_time
from tsadbench.utils.issues import Issue
from tsadbench.utils.text import first_of
from tsadbench.utils.toml import toml_value

_MOST_NAMED, _LEAST_REPEATED, _MOST_STATES, _SHOWN_ROWS, _SHOWN_SENSORS = 100, 5, 10, 3, 8
DECIDE = "# Decide: "

_HEAD = """\
# A card for tsadbench, written by looking at the files. Everything in it is a guess until you have read it.
# Then:  tsadbench data validate CARD   and   tsadbench fit --dataset CARD --out plant.model
#
# How the files were sorted, and why:
{told}
schema = 1
name = {name}
# citation = ""    licence = ""
# The system in words, and its physical couplings (docs/priors.md), as files beside this card:
# description = "system.md"
# prior = "prior.json"
"""
_SESSIONS = """
# Recordings of one stretch of operation (a run, a day) resemble each other, and statistics count stretches. Put each
# training and test recording into one; without this table, shared rows and times tell which belong together.
# [sessions]
# monday = ["train/1", "test/*"]
# Groups of test recordings that tables show apart:
# [splits]
# valve = ["valve/*"]"""


@dataclass(frozen=True, slots=True)
class Draft:
    """A drafted card."""

    text: str
    told: list[str]  # which files are for what, and why
    decide: list[str]  # what only a person can decide
    problems: list[Issue]  # what is wrong with the card's files
    rows: list[str]  # the first rows, as the card's reader reads them
    judged: bool  # whether detectors can be compared on it: it has test recordings with labels


def draft_card(folder: Path) -> Draft:
    """Return a commented card for the files of tables and arrays in a folder and the folders below it.

    A UsageError if there is no such folder, or no such file in it. A DataError if no file is a table of numbers.
    """
    found = sort_files(folder)
    looks = found.looks
    lines = [*_parts(found), *_columns(found), *_gaps(looks), *_states(looks)]
    _doubt(found)
    plain = unicodedata.normalize("NFKD", folder.resolve().name).encode("ascii", "ignore").decode()
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", plain).strip("-._")
    told = "\n".join([*(f"#   {line}" for line in found.told), *(DECIDE + text for text in found.decide)])
    head = _HEAD.format(told=told, name=toml_value(name if re.fullmatch(NAME, name) else "my-plant"))
    text = "\n".join([head, *_files(looks), *lines, _SESSIONS, ""])
    with tempfile.TemporaryDirectory() as elsewhere:
        card = Path(elsewhere) / "card.toml"
        card.write_text(text, encoding="utf-8")
        loaded, problems = try_card(card, folder)
    judged = loaded is not None and not loaded.missing
    rows = [] if loaded is None else _first_rows(loaded.dataset.train[0])
    return Draft(text, found.told, found.decide, problems, rows, judged)


def _first_rows(first: Recording) -> list[str]:
    """Return the names and the first rows of a recording."""
    rows = [f"{first.id}: {'' if first.time is None else 'time, '}{first_of(first.sensors, _SHOWN_SENSORS)}"]
    for row in range(min(_SHOWN_ROWS, first.n_rows)):
        time = [] if first.time is None else [iso_time(float(first.time[row]))]
        rows.append("  ".join([*time, *(f"{value:g}" for value in first.values[row, :_SHOWN_SENSORS])]))
    return rows


def _files(looks: Sequence[Look]) -> Iterable[str]:
    texts = [look for look in looks if look.path.suffix.lower() in TEXTS]
    odd = list({text: None for look in looks for text in look.odd})
    yield "[files]"
    for key in WRITTEN_AS:
        values = list(dict.fromkeys(getattr(look.form, key) for look in texts))
        if values and (key != "units_line" or any(values)):
            differ = f"  # files differ: {values}; each part may have its own" if len(values) > 1 else ""
            yield f"{key} = {toml_value(values[0])}{differ}"
    if odd:
        yield f"missing = {toml_value(odd)}  # texts among numbers, taken for missing values"
    yield ""


def _parts(found: Sorted) -> Iterable[str]:
    looks = [*found.train, *found.test]
    if found.before_event and all(re.search(r"_tr_\d+", look.name) for look in looks):
        yield from ("[single]", f"files = {toml_value(_patterns(found.test))}", "train_rows = '_tr_(\\d+)'", "")
        return
    for role, members in (("train", found.train), ("test", found.test)):
        if members or role == "train":
            yield f"[{role}]"
            yield f"files = {toml_value(_patterns(members))}"
            if variables := list(dict.fromkeys(name for look in members for name in look.variables)):
                yield f"variables = {toml_value(variables)}  # the widest arrays"
            if role == "train" and found.before_event:
                yield 'rows = "before first event"'
            if found.ids and (role == "test" or found.before_event):
                yield found.ids
            yield ""


def _patterns(looks: Sequence[Look]) -> list[str]:
    """Return patterns that match these files and no others, or the files themselves if a folder holds both kinds."""
    chosen = {look.path for look in looks}
    patterns: dict[str, None] = {}
    for look in looks:
        alike = [path for path in look.path.parent.iterdir() if path.suffix == look.path.suffix]
        above, stem = look.name.rpartition("/")[:2], f"*{look.path.suffix}"
        alone = len(alike) > 1 and chosen.issuperset(alike)
        patterns[glob.escape("".join(above)) + stem if alone else glob.escape(look.name)] = None
    return list(patterns)


def _columns(found: Sorted) -> Iterable[str]:
    """Yield the lines of ``[columns]``, ``[labels]``, ``[long]`` and ``[resample]``."""
    looks = found.looks
    first, names = looks[0], [_names_of(look) for look in looks]
    long = [name for name in names if name] if all(names) else []
    label = None if found.labels else next((look.label for look in looks if look.label), None)
    roles = {name: role for look in looks for name, role in look.roles.items()}
    ignored = [name for name, role in roles.items() if name and role != "time" and name != label]
    sensors = [name for name in first.sensors if all(name in look.frame and name not in ignored for look in looks)]
    yield "[columns]"
    if first.path.suffix.lower() in ARRAYS and first.frame.columns[0] == "x1":
        yield 'names = "x{number}"  # arrays have no names; better: a list of them'
    if not long:
        yield f"sensors = {toml_value(sensors if len(sensors) <= _MOST_NAMED else ['*'])}"
        if ignored:
            why = "; ".join(f"{name}: {roles[name]}" for name in ignored[:10])
            yield f"ignore = {toml_value(ignored)}  # {' '.join(why.split())}"
    if first.time is None:
        yield "# time = ...    No column seems to hold times. With a fixed rate, give the seconds from row to row:"
        yield "# period = 1"
    else:
        forms = list(dict.fromkeys(look.time_format for look in looks))
        yield f"time = {toml_value(first.time)}"
        yield f"time_format = {toml_value(forms[0] if len(forms) == 1 else forms)}"
    yield ""
    lines = found.labels or ([f'kind = "column"\ncolumn = {toml_value(label)}'] if label else [])
    if lines:
        yield from ("[labels]", *lines)
        values = dict.fromkeys(value for look in looks for value in look.labels)
        anomalous = [value for value in values if value != found.normal]
        if anomalous and 'kind = "intervals"' not in lines:
            yield f"anomalous = {toml_value(anomalous)}"
            yield f"normal = {toml_value([found.normal])}"
    else:
        yield "# No labels were found: detectors can be fitted and can score files. A column or a file may hold them:"
        yield '# [labels]\n# kind = "column"\n# column = "label"'
    if long and first.time is not None:
        sets = first.frame[long[0]].groupby(first.frame[long[0]]).indices.values()
        steps = [float(np.median(np.diff(first.seconds[rows]))) for rows in sets if len(rows) > 1]
        every = min((step for step in steps if step > 0), default=1.0)
        found.decide.append(f"Each row holds one value of one sensor: are rows {every:g} s apart right ([resample])?")
        yield f"\n[long]\nname = {toml_value(long[0])}\nvalue = {toml_value(first.sensors[0])}"
        yield f'\n[resample]\nevery = {every:g}\nby = "last"  # the last value holds until the next'


def _names_of(look: Look) -> str:
    """Return the column with sensors' names if each row holds one value of one sensor."""
    texts = [name for name, role in look.roles.items() if role == "text"]
    long = look.frame.shape[1] == 3 and len(texts) == len(look.sensors) == 1 and look.time is not None
    return texts[0] if long and look.frame[texts[0]].nunique() * _LEAST_REPEATED <= len(look.frame) else ""


def _gaps(looks: Sequence[Look]) -> Iterable[str]:
    count = sum(look.missing for look in looks)
    yield "\n[gaps]"
    if not count:
        yield 'policy = "error"  # or "forward-fill": a sensor\'s last value is carried forward, and tables say so'
    elif all(2 * look.missing < len(look.frame) for look in looks):
        yield f'# {count} rows lack a value: "cut" leaves them out, "forward-fill" carries the last one forward.'
        yield f'policy = "cut"\nat_least = {FEWEST_TEST_ROWS}  # rows of a piece'
    else:
        yield f"# {count} rows lack a value, most rows of some file: a sensor's last value is carried forward."
        yield 'policy = "forward-fill"'


def _states(looks: Sequence[Look]) -> Iterable[str]:
    """Yield the lines of ``[states]``; columns of a few other texts may be sensors as well."""
    states, others = dict[str, dict[str, int]](), dict[str, dict[str, int]]()
    for look in looks:
        for name, codes in look.states.items():
            states.setdefault(name, {}).update(codes)
        for name, texts in look.texts.items():
            numbered = others.setdefault(name, {})
            for text in texts:
                numbered.setdefault(text, len(numbered))
    few = {name: codes for name, codes in others.items() if 1 < len(codes) <= _MOST_STATES}
    if states or few:
        yield "\n# The numbers that stand for texts.\n[states]"
    for name, codes in (states | few).items():
        line = ", ".join(f"{toml_value(text)} = {code}" for text, code in codes.items())
        unsure = name in few
        yield f"{'# ' * unsure}{toml_value(name)} = {{ {line} }}{'  # if it is a sensor, not to be ignored' * unsure}"


def _doubt(found: Sorted) -> None:
    """Add what a person must decide about columns."""
    looks, decide = found.looks, found.decide
    if not all(map(_names_of, looks)):
        advice = "a state needs numbers in [states]; numbers must have neither units nor thousands separators"
        for name, text in {name: texts[0] for look in looks for name, texts in look.texts.items()}.items():
            decide.append(f"Column {name!r} holds texts such as {text[:40]!r} and is left out: {advice}.")
    if empty := dict.fromkeys(name for look in looks for name, role in look.roles.items() if role == "empty" and name):
        decide.append(f"Columns without a value in a file are left out: {', '.join(empty)}.")
    shared = set.intersection(*(set(look.frame.columns) for look in looks))
    if some := dict.fromkeys(name for look in looks for name in look.sensors if name not in shared):
        decide.append(f"Columns that some files lack are left out: {', '.join(some)}.")
    timed = [look for look in looks if look.time]
    if timed and all(look.swapped for look in timed):
        form = f"the card says {timed[0].time_format}, {timed[0].swapped} fits as well"
        decide.append(f"The dates in {timed[0].name} can be read with the day or with the month first: {form}.")
