"""Issues of hand-written files and of data files, so that one message reports them all with file and line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tsadbench.errors import DataError

# Issues of one kind in one file that are listed; the others are counted.
SHOWN = 3
_LISTED = 1000


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that is wrong with a file: what was expected, what was found, what to do.

    The line counts from 1. Issues of one file with the same ``kind`` (by default the text) are condensed; ``count`` is
    how many this one stands for.
    """

    file: str
    text: str
    line: int | None = None
    kind: str | None = None
    count: int = 1

    def __str__(self) -> str:
        more = f" (and {self.count - 1} more such)" if self.count > 1 else ""
        return f"{self.file}{'' if self.line is None else f', line {self.line}'}: {self.text}{more}"


def condensed(issues: Iterable[Issue]) -> list[Issue]:
    """Return the first three issues of each kind in each file; the third stands for all that follow it."""
    shown: dict[tuple[str, str], list[Issue]] = {}
    for issue in issues:
        alike = shown.setdefault((issue.file, issue.kind or issue.text), [])
        if len(alike) < SHOWN:
            alike.append(issue)
        else:
            alike[-1] = replace(alike[-1], count=alike[-1].count + issue.count)
    return [issue for alike in shown.values() for issue in alike]


def listed(what: str, issues: Iterable[Issue]) -> str:
    """Return a message that lists issues, one a line."""
    shown = condensed(issues)
    count = sum(issue.count for issue in shown)
    lines = [f"{what}: {count} {'problem' if count == 1 else 'problems'}", *(f"  {issue}" for issue in shown[:_LISTED])]
    if len(shown) > _LISTED:
        lines.append(f"  and {sum(issue.count for issue in shown[_LISTED:])} more")
    return "\n".join(lines)


def raise_if_any(what: str, issues: Iterable[Issue]) -> None:
    """Raise a DataError that lists the issues, if there are any."""
    if issues := list(issues):
        raise DataError(listed(what, issues))
