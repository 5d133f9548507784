"""How new files beside a card's own are to be read."""

from __future__ import annotations

from tsadbench.base.file_format import RowLayout
from tsadbench.datasets.cards.schema import Card


def layout_of(card: Card) -> RowLayout:
    """Return how rows of the card's data set are written: as its test files are."""
    files = card.reading(card.test or card.single or card.files)
    columns, missing = card.columns, card.missing
    return RowLayout(
        separator=files.separator,
        decimal=files.decimal,
        encoding=files.encoding,
        header_line=files.header_line,
        remove_prefix=files.remove_prefix,
        time=columns.times,
        time_formats=columns.time_formats,
        period=columns.period,
        unused=(columns.label, *columns.ignore),
        fill=missing.policy,
        fill_at_most=missing.at_most,
        missing=tuple(missing.values),
    )
