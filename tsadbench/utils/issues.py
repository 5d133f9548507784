"""Issues in hand-written and data files, so that one message reports all of them with file and line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tsadbench.errors import DataError
from tsadbench.utils.grouping import grouped
from tsadbench.utils.text import counted

# How many issues are listed per kind and file, and in total. The others are only counted.
SHOWN, _LISTED = 3, 1000


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that is wrong with a file: what was expected, what was found, what to do."""

    file: str
    text: str
    line: int | None = None  # counted from 1
    kind: str | None = None  # by default the text; issues of one kind in one file are condensed
    count: int = 1  # number of issues that it represents

    def __str__(self) -> str:
        more = f" (and {self.count - 1} more such)" if self.count > 1 else ""
        return f"{self.file}{'' if self.line is None else f', line {self.line}'}: {self.text}{more}"


def condensed(issues: Iterable[Issue]) -> list[Issue]:
    """Return the first three issues of each kind in each file; the third represents all later ones."""
    shown: list[Issue] = []
    for alike in grouped(issues, lambda issue: (issue.file, issue.kind or issue.text)).values():
        first, more = alike[: SHOWN - 1], alike[SHOWN - 1 :]
        shown += [*first, *(replace(one, count=sum(issue.count for issue in more)) for one in more[:1])]
    return shown


def listed(what: str, issues: Iterable[Issue]) -> str:
    """Return a message that lists issues, one per line."""
    shown = condensed(issues)
    lines = [f"{what}: {counted(sum(one.count for one in shown), 'problem')}", *(f"  {one}" for one in shown[:_LISTED])]
    more = sum(issue.count for issue in shown[_LISTED:])
    return "\n".join([*lines, *([f"  and {more:,} more"] if more else [])])


def raise_if_any(what: str, issues: Iterable[Issue]) -> None:
    """Raise a DataError that lists the issues, if there are any."""
    if issues := list(issues):
        raise DataError(listed(what, issues))
