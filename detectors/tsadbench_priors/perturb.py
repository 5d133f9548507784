"""Priors made worse on purpose, to see what a correct one is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

import numpy as np

from tsadbench import Prior, UsageError
from tsadbench.base import Edge


def perturbed(
    prior: Prior, sensors: Sequence[str], *, drop: float = 0.0, add: float = 0.0, reverse: float = 0.0, seed: int = 0
) -> Prior:
    """Return a prior with some edges dropped, some invented between ``sensors``, some reversed, in this order.

    ``drop``, ``add`` and ``reverse`` are shares of the prior's edges, rounded to whole edges. A UsageError if a share
    is out of range or no edge would be left.
    """
    prior.check(tuple(sensors))
    n, taken = len(prior.edges), pairs(prior)
    free = [pair for pair in permutations(sensors, 2) if pair not in taken]
    for name, share, most in (("drop", drop, 1.0), ("add", add, len(free) / n), ("reverse", reverse, 1.0)):
        if not 0 <= share <= most:
            raise UsageError(f"--{name} must be a share from 0 to {most:g}, found {share}")
    n_dropped, n_added, n_reversed = round(drop * n), round(add * n), round(reverse * n)
    rng = np.random.default_rng(seed)
    dropped = set(rng.choice(n, n_dropped, replace=False).tolist())
    kept = [edge for i, edge in enumerate(prior.edges) if i not in dropped]
    chosen = (free[i] for i in rng.choice(len(free), n_added, replace=False).tolist())
    invented = [Edge(source, target, mechanism="invented") for source, target in chosen]
    edges = _reversed([*kept, *invented], n_reversed, rng)
    if not edges:
        raise UsageError(f"--drop {drop}: no edge would be left; use graph=none for that")
    how = f"drop {drop:g}, add {add:g}, reverse {reverse:g}, seed {seed}"
    provenance = {**prior.provenance, "perturbed": how}
    return replace(prior, edges=tuple(edges), origin=f"{prior.origin}: {how}", provenance=provenance)


def pairs(prior: Prior) -> set[tuple[str, str]]:
    """Return a prior's edges as pairs of names."""
    return {(edge.source, edge.target) for edge in prior.edges}


def jaccard(first: set[tuple[str, str]], second: set[tuple[str, str]]) -> float:
    """Return the share of the edges of either that both have; 1 if neither has any."""
    return len(first & second) / len(first | second) if first | second else 1.0


def _reversed(edges: list[Edge], count: int, rng: np.random.Generator) -> list[Edge]:
    """Return the edges with ``count`` of them reversed; edges that run both ways are left alone."""
    taken = {(edge.source, edge.target) for edge in edges}
    one_way = [i for i, edge in enumerate(edges) if (edge.target, edge.source) not in taken]
    turned = set(rng.choice(one_way, min(count, len(one_way)), replace=False).tolist()) if one_way else set()
    return [_turned(edge) if i in turned else edge for i, edge in enumerate(edges)]


def _turned(edge: Edge) -> Edge:
    return Edge(edge.target, edge.source, edge.target_quantity, edge.source_quantity, edge.mechanism, edge.votes)
