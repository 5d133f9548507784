"""Tests whether detectors differ: paired tests over sessions, effect sizes, intervals, and required numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from tsadbench.leaderboard.render import Form, Table, csv_text, render

# Pre-registered for all data sets and protocols: testing every metric would always find some difference.
PRIMARY = "auprc"
# Differences of at most this much are a tie: the region of practical equivalence.
ROPE = 0.01
_ENVIRONMENT = Environment(loader=FileSystemLoader(Path(__file__).parent), trim_blocks=True, undefined=StrictUndefined)


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """Tables for readers, frames with all columns at full precision, and sentences about both."""

    tables: Sequence[Table]
    frames: Sequence[Table]
    sentences: Sequence[str]

    def text(self, form: Form, width: int | None = None) -> str:
        """Return the tables and sentences in a format; JSON has all frames, CSV the main frame."""
        if form == "csv":
            return csv_text(self.to_frame())
        return render(self.frames if form == "json" else self.tables, self.sentences, form, width=width)

    def to_frame(self) -> pd.DataFrame:
        """Return the main data frame."""
        return self.frames[0].frame

    def to_csv(self) -> str:
        """Return the main data frame as CSV, empty where undefined."""
        return self.text("csv")

    def to_json(self) -> str:
        """Return all data frames and sentences as one JSON object, null where undefined."""
        return self.text("json")

    def to_markdown(self) -> str:
        """Return the tables and sentences as Markdown."""
        return self.text("markdown")

    def to_latex(self) -> str:
        """Return the tables and sentences as LaTeX (booktabs)."""
        return self.text("latex")

    def __str__(self) -> str:
        return self.text("table")

    _repr_markdown_ = to_markdown


def interval(low: pd.Series, high: pd.Series, form: str) -> list[str]:
    """Return intervals as texts, ``25% to 50%``, a dash where undefined."""
    return ["-" if pd.isna(one) else f"{one:{form}} to {other:{form}}" for one, other in zip(low, high, strict=True)]


def sentences(about: str, **values: Any) -> list[str]:
    """Render the sentences about a result from ``sentences.jinja``."""
    text = _ENVIRONMENT.get_template("sentences.jinja").render(values, about=about)
    return [*filter(None, text.split("\n"))]
