"""What is wrong with a card and its files, all of it, so that nobody has to run a command once for each fault."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tsadbench.errors import DataError

# Of one kind in one file; the rest is counted.
SHOWN = 3


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    Parameters
    ----------
    file
        The file, as the card's folder sees it; the card's own name for what is wrong in the card.
    text
        What was expected, what was found, what to do.
    line
        Line of a text file, counted from 1; None where it is the whole file.
    """

    file: str
    text: str
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.file}{'' if self.line is None else f', line {self.line}'}: {self.text}"


class Issues:
    """Issues as they are found, in order; many of one kind in one file are shown as a few and a count."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], list[Problem]] = {}
        self._counts: dict[tuple[str, str], int] = {}

    def add(self, file: str, text: str, line: int | None = None, kind: str | None = None, count: int = 1) -> None:
        """Note a problem; those of the same ``kind`` in the same file are shown together.

        Parameters
        ----------
        file, text, line
            As `Problem`'s.
        kind
            What makes issues alike; by default the text.
        count
            How many such there are from here on, this one included.
        """
        key = (file, text if kind is None else kind)
        of_kind = self._found.setdefault(key, [])
        if len(of_kind) < SHOWN:
            of_kind.append(Problem(file, text, line))
        self._counts[key] = self._counts.get(key, 0) + count

    def __iter__(self) -> Iterator[Problem]:
        """Give all that are shown; the last of a kind says how many more there are."""
        for key, of_kind in self._found.items():
            more = self._counts[key] - len(of_kind)
            yield from of_kind[:-1]
            last = of_kind[-1]
            yield last if more == 0 else Problem(last.file, f"{last.text} (and {more} more such)", last.line)

    def __len__(self) -> int:
        return sum(self._counts.values())

    def raise_if_any(self, what: str) -> None:
        """Raise a DataError that lists every problem."""
        if len(self):
            raise DataError(listed(what, self, len(self)))


def listed(what: str, issues: Iterable[Problem], count: int) -> str:
    """Return a message with one problem a line."""
    lines = "\n".join(f"  {problem}" for problem in issues)
    return f"{what}: {count} {'problem' if count == 1 else 'problems'}\n{lines}"
