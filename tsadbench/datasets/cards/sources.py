"""The recordings that a card means: which tables of which files, and what they are for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.cards.files import File, find_files
from tsadbench.datasets.cards.opening import named, open_tables
from tsadbench.datasets.cards.schema import Card
from tsadbench.datasets.cards.sections import BEFORE_FIRST_EVENT, Part, Single, Train
from tsadbench.datasets.reading.header import matching
from tsadbench.datasets.reading.long import open_long
from tsadbench.datasets.reading.table import Table
from tsadbench.datasets.reading.text import MalformedError
from tsadbench.utils.issues import Issue
from tsadbench.utils.progress import progress

Role: TypeAlias = Literal["train", "test", "single", "both"]


@dataclass(frozen=True, slots=True, eq=False)
class TableOfFile:
    """A table in one of the card's files.

    Parameters
    ----------
    name
        What messages call it.
    file
        The file.
    table
        The table, or None if the file cannot be opened.
    issues
        What is wrong with it so far.
    """

    name: str
    file: File
    table: Table | None
    issues: tuple[Issue, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """A recording as the card describes it, before its rows are read.

    Parameters
    ----------
    id
        The recording's id, before rows of it become training and test recordings.
    role
        The part that names it; "both" if training takes the rows before its first event, and the test the others.
    part
        That part of the card; the test part for "both".
    file_format
        How its files are written.
    tables
        The tables that hold its rows, in order; several if files are joined.
    place
        Its place among the recordings of that part.
    """

    id: str
    role: Role
    part: Part
    file_format: FileFormat
    tables: tuple[TableOfFile, ...]
    place: int

    @property
    def trains_before_event(self) -> bool:
        """Whether the rows before its first event train."""
        part = self.part
        rule = part.rows if isinstance(part, Train) else part.train_rows if isinstance(part, Single) else ""
        return self.role == "both" or rule == BEFORE_FIRST_EVENT

    @property
    def needs_labels(self) -> bool:
        """Whether its rows must be labelled."""
        return self.role != "train" or self.trains_before_event


@dataclass(slots=True)
class _Use:
    """A file with the parts that name it, what each calls its recording, and its tables."""

    file: File
    ids: dict[str, str] = field(default_factory=dict)
    arrays: Mapping[str, Table] = field(default_factory=dict)
    issues: list[Issue] = field(default_factory=list)
    tables: dict[str, TableOfFile] = field(default_factory=dict)

    def table(self, variable: str, card: Card) -> TableOfFile:
        """Return one of its tables, the same whenever it is asked for."""
        if variable not in self.tables:
            name = f"{self.file.name}, variable {variable}" if len(self.arrays) > 1 else self.file.name
            issues, found = list(self.issues), None
            try:
                if not issues:
                    found = named(self.arrays[variable], card.columns)
                    if card.long is not None:
                        others = (*card.times, *([] if card.columns.label is None else [card.columns.label]))
                        found = open_long(found, card.long.name, card.long.value, others)
            except MalformedError as error:
                issues.append(Issue(name, error.text, error.line))
            except (OSError, ValueError) as error:
                issues.append(Issue(name, f"cannot be read ({' '.join(str(error).split())[:200]})"))
            self.tables[variable] = TableOfFile(name, self.file, found, tuple(issues))
        return self.tables[variable]


def find_sources(card: Card, folder: Path, name: str) -> tuple[list[Source], list[Issue]]:
    """Return all recordings of a card, training recordings first, and what is wrong with its choice of files."""
    return _Finder(card, folder, name).find()


class _Finder:
    def __init__(self, card: Card, folder: Path, name: str) -> None:
        self._card, self._folder, self._name = card, folder, name
        self._parts: dict[str, Part] = dict(card.parts)
        self._uses: dict[str, _Use] = {}
        self._issues: list[Issue] = []

    def find(self) -> tuple[list[Source], list[Issue]]:
        in_part = {role: self._files(role, part) for role, part in self._parts.items()}
        for done, use in enumerate(self._uses.values()):
            progress(done, 2 * len(self._uses), use.file.name)
            self._open(use)
        # By the tables that a recording is read from: what the parts call it, and its place in each.
        called: dict[tuple[TableOfFile, ...], dict[str, tuple[str, int]]] = {}
        for role, uses in in_part.items():
            for place, (id_, tables) in enumerate(self._recordings(role, uses)):
                called.setdefault(tables, {})[role] = id_, place
        sources = [self._source(tables, roles) for tables, roles in called.items()]
        self._check_names(sources)
        return sources, self._issues

    def _report(self, text: str, file: str | None = None) -> None:
        self._issues.append(Issue(file or self._name, text))

    def _files(self, role: str, part: Part) -> list[_Use]:
        """Return the files of a part."""
        files, issues = find_files(self._folder, part.files, self._name, ids=part.ids)
        self._issues += issues
        uses = [self._uses.setdefault(file.name, _Use(file)) for file in files]
        for use, file in zip(uses, files, strict=True):
            use.ids[role] = file.id
            if len({self._card.file_format(self._parts[other]) for other in use.ids}) > 1:
                self._report(f"{file.name} is in both parts, but they differ in how it is written; make them agree")
        return uses

    def _open(self, use: _Use) -> None:
        card, columns = self._card, self._card.columns
        needed = {*card.times, *([] if columns.label is None or [*use.ids] == ["train"] else [columns.label])}
        if card.long is not None:
            needed |= {card.long.name, card.long.value}
        sensors = columns.sensors if card.long is None else []

        def has_all(names: Sequence[str]) -> bool:
            return needed <= set(names) and all(matching(names, [pattern]) for pattern in sensors)

        part = self._parts[next(iter(use.ids))]
        use.arrays, use.issues = open_tables(use.file, self._card.file_format(part), has_all)

    def _recordings(self, role: str, uses: Sequence[_Use]) -> list[tuple[str, tuple[TableOfFile, ...]]]:
        """Return the recordings of one part with their tables."""
        part = self._parts[role]
        if part.variables is not None:
            return self._picked(role, part.variables, uses)
        found: list[tuple[str, tuple[TableOfFile, ...]]] = []
        groups: dict[str, list[TableOfFile]] = {}
        for use in uses:
            if len(use.arrays) > 1:
                self._report(
                    f"it holds several arrays, {list(use.arrays)[:10]}; pick some by {role}.variables", use.file.name
                )
                continue
            if not use.arrays and not use.issues:
                use.issues.append(Issue(use.file.name, "it holds no array; take it out"))
            table = use.table(next(iter(use.arrays), ""), self._card)
            group = None if part.join is None else re.search(part.join, use.file.name)
            if group is not None and group[1]:
                groups.setdefault(group[1], []).append(table)
                continue
            found.append((use.ids[role], (table,)))
            if part.join is not None:
                self._report(f"{role}.join: {part.join!r} finds no group in {use.file.name!r}; correct either")
        return [*found, *((id_, tuple(tables)) for id_, tables in groups.items())]

    def _picked(
        self, role: str, variables: Sequence[str], uses: Sequence[_Use]
    ) -> list[tuple[str, tuple[TableOfFile, ...]]]:
        """Return the arrays that a part picks; each is a recording."""
        found: list[tuple[str, tuple[TableOfFile, ...]]] = []
        for use in uses:
            if use.issues:  # which arrays it has is not known
                found.append((use.ids[role], (use.table("", self._card),)))
                continue
            picked = matching(use.arrays, variables) if use.file.is_array else []
            if not picked:
                held = f"it holds {list(use.arrays)[:10]}" if use.file.is_array else "it is no file of arrays"
                self._report(
                    f"none of its arrays is called {list(variables)}, as {role}.variables says; {held}", use.file.name
                )
            found += [(variable or use.ids[role], (use.table(variable, self._card),)) for variable in picked]
        names = [variable for use in uses for variable in use.arrays]
        for pattern in variables:
            if names and not any(use.issues for use in uses) and not matching(names, [pattern]):
                self._report(f"{role}.variables: no array is called {pattern!r}; there are {names[:10]}")
        return found

    def _source(self, tables: tuple[TableOfFile, ...], roles: Mapping[str, tuple[str, int]]) -> Source:
        role: Role = "single" if "single" in roles else "test" if "test" in roles else "train"
        train = self._card.train
        if len(roles) > 1:
            if train is not None and train.rows == BEFORE_FIRST_EVENT:
                role = "both"
            else:
                self._report(f"{tables[0].name} is a training file and a test file; take it out of one of them")
        id_, place = roles["test" if role == "both" else role]
        part = self._parts["test" if role == "both" else role]
        return Source(id_, role, part, self._card.file_format(part), tables, place)

    def _check_names(self, sources: Sequence[Source]) -> None:
        """Report recordings of one name, and tables that belong to two recordings."""
        of_id: dict[str, Source] = {}
        of_table: dict[str, Source] = {}
        for source in sources:
            other = of_id.setdefault(source.id, source)
            if other is not source:
                first, second = source.tables[0].name, other.tables[0].name
                self._report(f"{first} and {second} would have the same name as recordings; rename one")
            for table in source.tables:
                other = of_table.setdefault(table.name, source)
                if other is not source:
                    self._report(f"{table.name} belongs to two recordings, {other.id!r} and {source.id!r}")
