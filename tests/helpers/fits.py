"""Counts fits from outside the box, because a detector in a sealed box cannot report them."""

from __future__ import annotations

from pathlib import Path

from tsadbench.sandbox import Box


class NotingBox(Box):
    """Notes every fit of a detector that has a parameter ``diary`` in the file of that name.

    Patch it over `tsadbench.execution.trial.Box` or `tsadbench.tuning.objective.Box`.
    """

    def __init__(self, construction, **settings) -> None:
        super().__init__(construction, **settings)
        self.diary = construction.given.get("diary")

    def fit(self, recordings):
        if self.diary:
            with Path(self.diary).open("a") as diary:
                diary.write("fit\n")
        return super().fit(recordings)


def fits(diary: Path) -> int:
    """Return how many fits were noted."""
    return len(diary.read_text().splitlines()) if diary.exists() else 0
