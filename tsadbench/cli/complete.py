"""Shell completion of names, from packages' metadata: nothing is imported for it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from pathlib import Path

import typer

from tsadbench.datasets.loading import CARD_ENDING, SUITES
from tsadbench.registry import Kind, entries, package_of
from tsadbench.utils.files import LEADERBOARDS

_CARDS = Path(__file__).parents[1] / "datasets" / "cards"

_Offers = list[tuple[str, str]]


def detectors(incomplete: str) -> _Offers:
    """Return the registered detectors that complete a word, each with its origin."""
    return _registered("detectors", incomplete)


def datasets(incomplete: str) -> _Offers:
    """Return the registered data sets that complete a word; none for a path, which the shell itself completes."""
    return _registered("datasets", incomplete)


def suites(incomplete: str) -> _Offers:
    """Return the suites that complete a word, each with its data sets."""
    return [(name, ", ".join(suite.datasets)) for name, suite in SUITES.items() if name.startswith(incomplete)]


def data_sets_and_suites(incomplete: str) -> _Offers:
    """Return the registered data sets and the suites that complete a word."""
    return [*datasets(incomplete), *suites(incomplete)]


def protocols(incomplete: str) -> _Offers:
    """Return the registered protocols that complete a word."""
    return _registered("protocols", incomplete)


def names(incomplete: str) -> _Offers:
    """Return every registered name that completes a word."""
    return [*detectors(incomplete), *protocols(incomplete), *datasets(incomplete)]


def splits(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the splits that complete a word, of the data sets named earlier on the line."""
    named = ctx.params.get("dataset") or ["skab"]
    offered = (split for name in named for split in ("overall", *_splits(str(name))))
    return [split for split in dict.fromkeys(offered) if split.startswith(incomplete)]


def _registered(kind: Kind, incomplete: str) -> _Offers:
    offers = [(entry.name, f"{entry.value} ({package_of(entry)})") for entry in entries(kind)]
    return [offer for offer in offers if offer[0].startswith(incomplete)]


def _splits(dataset: str) -> Iterable[str]:
    """Return a data set's splits: from its card, or from the leaderboards over it that ship with the package."""
    card = Path(dataset) if dataset.endswith(CARD_ENDING) else _CARDS / f"{dataset}{CARD_ENDING}"
    try:
        return tuple(tomllib.loads(card.read_text(encoding="utf-8")).get("splits", {}))
    except (OSError, ValueError):
        lines = (file.open(encoding="utf-8").readline() for file in (LEADERBOARDS / dataset).glob("*/records.jsonl"))
        return sorted({split for line in lines for split in json.loads(line)["splits"]})
