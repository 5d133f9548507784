"""Names of a site's files: safe whatever labels and data sets are called."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_OTHERS = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 80


def file_names(names: Iterable[str]) -> Mapping[str, str]:
    """Return a name of a file, without its ending, for each name; no two differ in case alone.

    Examples
    --------
    >>> dict(file_names(["t2", "pyod:LOF", "../../t2", "T2"]))
    {'t2': 't2', 'pyod:LOF': 'pyod-LOF', '../../t2': 't2-2', 'T2': 'T2-3'}
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in dict.fromkeys(names):
        first = _OTHERS.sub("-", name).strip("-.")[:_LONGEST].strip("-.") or "unnamed"
        made, number = first, 1
        while made.casefold() in taken or made.casefold() == "index":
            number += 1
            made = f"{first}-{number}"
        taken.add(made.casefold())
        found[name] = made
    return found
