"""Why a row of ours is off: written by hand, each with the script that shows it and the figure that it printed."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why rows are off.

    Parameters
    ----------
    labels
        Our rows.
    text
        The reason.
    script
        In the repository; its output lies beside it, as ``.txt``.
    printed
        The lines of that output that show it.
    """

    labels: tuple[str, ...]
    text: str
    script: str
    printed: str


@cache
def explanations() -> tuple[Explanation, ...]:
    """Return all of them."""
    content = tomllib.loads((files(__package__) / "explanations.toml").read_text(encoding="utf-8"))
    return tuple(
        Explanation(tuple(one["labels"]), one["text"].strip(), one["script"], one["printed"].strip("\n"))
        for one in content.get("explanation", [])
    )


def explanation_of(label: str) -> Explanation | None:
    """Return why a row is off; None where nobody has found out yet."""
    return next((one for one in explanations() if label in one.labels), None)
