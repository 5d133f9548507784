"""The names of kinds of detectors, and their order."""

from __future__ import annotations

from collections.abc import Mapping

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
    """Return where a kind stands: others than these by name, before the floors."""
    known = list(KINDS)
    return (known.index(kind) if kind in known[:-1] else len(known) + (kind == known[-1])), kind
