"""What recordings belong to: splits, sessions, entities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tsadbench.datasets.cards.parts import Piece
from tsadbench.datasets.reading.header import matches
from tsadbench.utils.issues import Issue
from tsadbench.utils.toml import line_of


class Membership:
    """Finds the recordings that a card's patterns name, by their own ids or by those of what they are taken from.

    Parameters
    ----------
    pieces
        The training and test recordings.
    file, text
        The card's file name, for messages, and its text.
    unread
        Recordings that cannot be read, by id: patterns may mean them, or pieces of them. None if their ids are unknown.
    """

    def __init__(self, pieces: Sequence[Piece], file: str, text: str, *, unread: Sequence[str] | None) -> None:
        self.issues: list[Issue] = []
        self._pieces = pieces
        self._unread = unread
        self._file = file
        self._text = text

    def splits(self, declared: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
        """Return the test recordings of each split, by id."""
        test = [piece for piece in self._pieces if not piece.is_train]
        ids = [piece.id for piece in test]
        splits = {"overall": tuple(ids)}
        for split, patterns in declared.items():
            splits[split] = tuple(piece.id for piece in test if _is_named(piece, patterns))
            if not splits[split] and ids and not self._may_mean_unread(patterns):
                self._report(f"splits.{split}: no test recording is called {patterns}; there are {ids[:10]}")
        return splits

    def belonging(self, table: str, groups: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """Return the group of a card's table that each recording belongs to; empty if the table is."""
        found: dict[str, str] = {}
        ids = [piece.id for piece in self._pieces]
        for group, patterns in groups.items():
            line = line_of(self._text, (table, group))
            for pattern in patterns:
                members = [piece.id for piece in self._pieces if _is_named(piece, [pattern])]
                if not members and ids and not self._may_mean_unread([pattern]):
                    self._report(f"{table}.{group}: no recording is called {pattern!r}; there are {ids[:10]}", line)
                for id_ in members:
                    other = found.setdefault(id_, group)
                    if other != group:
                        text = f"{table}.{group}: recording {id_!r} belongs to {table}.{other} too; take it out of one"
                        self._report(text, line, f"{table} twice")
        missing = [id_ for id_ in ids if groups and id_ not in found]
        if missing:
            text = f"{table}: recording {missing[0]!r} belongs to none of them; add it, or leave [{table}] out"
            self._report(text, line_of(self._text, (table,)), count=len(missing))
        return found

    def require_training(self, entities: Mapping[str, str]) -> None:
        """Report entities that have no training recording, of all recordings with their entities."""
        trained = {entities.get(piece.id) for piece in self._pieces if piece.is_train}
        for entity in dict.fromkeys(entities.values()):
            if entity not in trained:
                text = f"entities.{entity}: it has no training row; give it a training recording, or leave it out"
                self._report(text, line_of(self._text, ("entities", entity)))

    def _may_mean_unread(self, patterns: Sequence[str]) -> bool:
        if self._unread is None:
            return True
        pieces = tuple(f"{id_}/" for id_ in self._unread)
        return any(pattern.startswith(pieces) for pattern in patterns) or any(
            matches(id_, patterns) for id_ in self._unread
        )

    def _report(self, text: str, line: int | None = None, kind: str | None = None, count: int = 1) -> None:
        self.issues.append(Issue(self._file, text, line, kind, count))


def _is_named(piece: Piece, patterns: Sequence[str]) -> bool:
    above = piece.id.rpartition("/")[0]  # of run/test/1: run/test
    names = [piece.id, piece.base, *([above] if len(above) > len(piece.base) else [])]
    return any(matches(name, patterns) for name in names)
