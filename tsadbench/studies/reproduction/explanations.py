"""Why rows of ours are off: written by hand, each with the script that shows it and the output that it printed."""

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
        Labels of our rows.
    text
        The reason.
    script
        Path in the repository; the script's output lies beside it, as ``.txt``.
    printed
        The lines of that output that show the reason.
    """

    labels: tuple[str, ...]
    text: str
    script: str
    printed: str


@cache
def explanations() -> tuple[Explanation, ...]:
    """Return all explanations."""
    content = tomllib.loads((files(__package__) / "explanations.toml").read_text(encoding="utf-8"))
    return tuple(
        Explanation(tuple(entry["labels"]), entry["text"].strip(), entry["script"], entry["printed"].strip("\n"))
        for entry in content["explanation"]
    )


def explanation_of(label: str) -> Explanation | None:
    """Return why a row is off; None if that is not known yet."""
    return next((explanation for explanation in explanations() if label in explanation.labels), None)
