"""Which columns of a table are shown, and the names of kinds of detectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tsadbench.errors import UsageError
from tsadbench.utils.parameters import nearest


def column_key(text: str) -> str:
    """Return a column's name as it is looked up.

    Examples
    --------
    >>> column_key(" AUROC"), column_key("look-ahead"), column_key("BF-F1*")
    ('auroc', 'look_ahead', 'bf_f1')
    """
    letters = "".join(letter if letter.isalnum() else " " for letter in text.lower())
    return "_".join(letters.split())


def places_of_columns(chosen: Sequence[str], tables: Sequence[Sequence[str]]) -> list[list[int]]:
    """Return which columns of each table are shown, in order.

    Parameters
    ----------
    chosen
        Keys. A table that has none of them is shown whole.
    tables
        The keys of each table's columns; a column with an empty key is always shown, before the others.

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


# In the order in which kinds are listed; floors stand last.
KINDS: Mapping[str, str] = {
    "statistics": "Statistics and process monitoring: linear models and limits",
    "density": "Density: how sparse a row's surroundings are",
    "one-class": "One class: how far a row is outside of the region of normal rows",
    "trees": "Trees: how soon random cuts isolate a row",
    "forecast": "Forecasts: how far a row is from what the rows before it lead to",
    "reconstruction": "Reconstructions: how far a row is from its image through a narrow network",
    "graph": "Graphs: how far sensors are from what the sensors beside them lead to",
    "floor": "Floors: what can be had without learning, for comparison",
}


def kind_place(kind: str) -> tuple[int, str]:
    """Return where a kind stands: known ones in their order, then others by name, floors at the end."""
    known = list(KINDS)
    return (known.index(kind), kind) if kind in known[:-1] else (len(known) + (kind == known[-1]), kind)
