"""How tables and figures show stored rows: under which names, which of them, in which order, in which columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from pydantic import RootModel

from tsadbench.errors import UsageError
from tsadbench.utils.issues import listed
from tsadbench.utils.parameters import nearest, normal_label
from tsadbench.utils.text import one_line
from tsadbench.utils.toml import read_toml

Order: TypeAlias = Literal["auprc", "label", "given"]
_TOML = ".toml"
# Title, header, rows.
Table: TypeAlias = tuple[str, list[str], list[list[str]]]
_Shown = TypeVar("_Shown")


@dataclass(frozen=True, slots=True)
class Presentation:
    """What tables and figures show of the rows that they are made from; it changes no number and no mark.

    Parameters
    ----------
    aliases
        Names to show instead of labels, by label.
    columns
        Keys of the columns to show, in order (`column_key`); none: all. Names are always shown.
    detectors
        Labels of the rows to show; none: all.
    order
        "auprc" as tables rank; "label" by the shown name; "given" as ``detectors`` are listed. None: "given" if there
        are any, else "auprc". Floors follow the detectors, and failures come last, in every order.
    from_files
        Labels whose names come from a file, which may serve many tables: they need not be in each.

    Raises
    ------
    UsageError
        If two rows would have one name.
    """

    aliases: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    detectors: tuple[str, ...] = ()
    order: Order | None = None
    from_files: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        taken: dict[str, str] = {}
        for label, name in self.aliases.items():
            if name in taken:
                raise UsageError(f"--alias: {taken[name]} and {label} would both be called {name!r}; choose two names")
            taken[name] = label

    @classmethod
    def from_options(
        cls,
        aliases: Iterable[str] | None = None,
        columns: Iterable[str] | None = None,
        detectors: Iterable[str] | None = None,
        order: Order | None = None,
    ) -> Presentation:
        """Return what options ask for, before any work.

        Parameters
        ----------
        aliases
            ``NAME=TEXT`` each, or the path of a TOML file of such lines, whose name ends in .toml.
        columns
            Names of columns; several in one text are separated by commas.
        detectors, order
            Labels, with the parameters in any order; the order.

        Raises
        ------
        UsageError
            If a text is malformed, a file cannot be read, or the order is "given" and no detectors are.
        """
        if order == "given" and not detectors:
            raise UsageError("--order given is the order of --detector: name the detectors, or choose auprc or label")
        names: dict[str, str] = {}
        of_files: dict[str, str] = {}
        for text in aliases or ():
            is_file = text.endswith(_TOML) and "=" not in text
            found = _of_file(Path(text)) if is_file else dict([_taken_apart(text)])
            (of_files if is_file else names).update(
                {normal_label(one): _name(one, name) for one, name in found.items()}
            )
        keys = (column_key(part) for text in columns or () for part in text.split(",") if part.strip())
        labels = map(normal_label, detectors or ())
        return cls(
            aliases={**of_files, **names},
            columns=tuple(dict.fromkeys(keys)),
            detectors=tuple(dict.fromkeys(labels)),
            order=order,
            from_files=frozenset(of_files.keys() - names.keys()),
        )

    def __bool__(self) -> bool:
        return bool(self.aliases or self.columns or self.detectors or self.order)

    def check(self, labels: Collection[str]) -> None:
        """Raise a UsageError if a label is not among these, or a name is another row's label."""
        known = tuple(dict.fromkeys(labels))
        for label in (*self.detectors, *self.aliases):
            if label not in known and (label in self.detectors or label not in self.from_files):
                raise UsageError(f"there is no row {label!r}{nearest(label, known)}")
        for label, name in self.aliases.items():
            if name in known and name != label:
                raise UsageError(f"--alias: {label} cannot be called {name!r}: another row has this label")

    def alias(self, label: str) -> str:
        """Return the name to show instead of a label; empty if it has none."""
        return self.aliases.get(label, "")

    def name(self, label: str) -> str:
        """Return what a row is called."""
        return self.aliases.get(label, label)

    def arranged(
        self,
        rows: Iterable[_Shown],
        label: Callable[[_Shown], str],
        block: Callable[[_Shown], tuple[bool, ...]] = lambda _: (),
        beside: Collection[str] = (),
    ) -> list[_Shown]:
        """Return the rows to show, in order.

        Parameters
        ----------
        rows
            As they are ranked.
        label, block
            A row's label, and the block it belongs to, which no order leaves: blocks come sorted.
        beside
            Labels of rows that are shown whether or not detectors are chosen.
        """
        place = {name: i for i, name in enumerate(self.detectors)}
        shown = [row for row in rows if not place or label(row) in place or label(row) in beside]
        order = self.order or ("given" if place else "auprc")
        if order == "label":
            return sorted(shown, key=lambda row: (block(row), self.name(label(row)).casefold()))
        if order == "given":
            return sorted(shown, key=lambda row: (block(row), place.get(label(row), len(place))))
        return shown

    def notes(self, labels: Collection[str], n_rows: int) -> list[str]:
        """Return what must be said of a table: what its names stand for, and how many of its rows are shown.

        Parameters
        ----------
        labels
            Of the rows that are shown.
        n_rows
            How many there are.
        """
        pairs = [f"{name} is {label}" for label, name in self.aliases.items() if label in labels]
        said = [f"Names: {'; '.join(pairs)}."] if pairs else []
        if len(labels) < n_rows:
            said.append(f"{len(labels)} of {n_rows} rows are shown.")
        return said


def column_key(text: str) -> str:
    """Return a column's name as it is looked up.

    Examples
    --------
    >>> column_key(" AUROC"), column_key("look-ahead"), column_key("BF-F1*"), column_key("90 % interval")
    ('auroc', 'look_ahead', 'bf_f1', '90_interval')
    """
    letters = "".join(letter if letter.isalnum() else " " for letter in text.lower())
    return "_".join(letters.split())


def places_of_columns(chosen: Sequence[str], tables: Sequence[Sequence[str]]) -> list[list[int]]:
    """Return which columns of each table are shown, in order.

    Parameters
    ----------
    chosen
        Keys; none: all columns. A table that has none of them is shown whole.
    tables
        The keys of each table's columns. Several columns may have one key; an empty key stands for a column that is
        always shown, in its place before the others.

    Raises
    ------
    UsageError
        If no table has a column.

    Examples
    --------
    >>> places_of_columns(["mcc", "auroc"], [["", "auroc", "auprc", "mcc"], ["", "p"]])
    [[0, 3, 1], [0, 1]]
    """
    known = tuple(dict.fromkeys(key for keys in tables for key in keys if key))
    for key in chosen:
        if key not in known:
            raise UsageError(f"there is no column {key!r}{nearest(key, known)}")
    places = []
    for keys in tables:
        found = [i for one in chosen for i, key in enumerate(keys) if key == one]
        always = [i for i, key in enumerate(keys) if not key]
        places.append([*always, *found] if found else [*range(len(keys))])
    return places


def in_columns(
    title: str, header: list[str], rows: list[list[str]], keys: Sequence[str], columns: Sequence[str]
) -> Table:
    """Return a table with its chosen columns; with all if none is chosen, or it has none of them.

    Parameters
    ----------
    title, header, rows
        The table.
    keys
        Of its columns, empty for names.
    columns
        The chosen keys, in order.
    """
    if not set(columns) & set(keys):
        return title, header, rows
    (places,) = places_of_columns([column for column in columns if column in keys], [keys])
    return title, [header[i] for i in places], [[row[i] for i in places] for row in rows]


def without_empty(content: dict[str, object]) -> dict[str, object]:
    """Return what a row's JSON object holds without an alias that it does not have, and ``stored`` if it is not."""
    return {name: value for name, value in content.items() if value or name not in ("alias", "stored")}


class _Names(RootModel[dict[str, str]]):
    """A file of aliases: ``"NAME" = "TEXT"`` a line."""


def _of_file(file: Path) -> dict[str, str]:
    names, _, issues = read_toml(file, _Names, "the names", 'it has lines such as "max-z[mean=10]" = "Max z, smoothed"')
    if names is None or issues:
        raise UsageError(listed(f"--alias {file}", issues))
    return names.root


def _taken_apart(text: str) -> tuple[str, str]:
    """Return label and name of ``NAME=TEXT``; a label's parameters have their own equals signs, in brackets."""
    depth = 0
    for place, character in enumerate(text):
        depth += {"[": 1, "]": -1}.get(character, 0)
        if character == "=" and depth == 0:
            return text[:place], text[place + 1 :]
    raise UsageError(f"--alias: expected NAME=TEXT or the path of a {_TOML} file, found {text!r}")


def _name(label: str, text: str) -> str:
    name = one_line(text.strip(), 80)
    if not name:
        raise UsageError(f"--alias {label}=: expected a name, found none")
    return name
