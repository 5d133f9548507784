"""Reads a language model's answer: only edges between known sensors are taken, whatever else it says."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tsadbench.base import Edge

_LONGEST = 500
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")
# What a list of objects, or an empty list, begins with.
_START = re.compile(r"\[\s*[{\]]")


@dataclass(slots=True)
class Answer:
    """The content of an answer: edges between known sensors, each once. An empty list counts as a vote."""

    edges: tuple[Edge, ...] = ()
    spoilt: str | None = None  # why the answer does not count as a vote
    rejected: Counter[str] = field(default_factory=Counter)  # number of things left out of it, by reason


def read_answer(text: str, stop_reason: str, sensors: Sequence[str]) -> Answer:
    """Return the content of an answer, given why the model stopped and which sensors edges may connect."""
    if stop_reason == "refusal":
        return Answer(spoilt="the model refused")
    if stop_reason == "max_tokens":
        return Answer(spoilt="the answer was cut off; raise --max-tokens")
    elements, around = _parsed(text), False
    if elements is None and (start := _START.search(text)):  # in prose, or in a fence of Markdown
        elements, around = _parsed(text[start.start() : text.rfind("]") + 1]), True
    if elements is None:
        return Answer(spoilt="no JSON list in the answer" if text.strip() else "an empty answer")
    rejected = Counter({"text around the JSON": 1} if around else {})
    edges: dict[tuple[str, str], Edge] = {}
    for element in elements:
        edge = _edge(element, set(sensors), rejected)
        if edge is not None and (edge.source, edge.target) in edges:
            rejected["an edge that occurs twice"] += 1
        elif edge is not None:
            edges[edge.source, edge.target] = edge
    return Answer(edges=tuple(edges.values()), rejected=rejected)


def _parsed(text: str) -> list[dict[str, object]] | None:
    """Return the list of edges that a JSON text holds, or None."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(content, dict):
        content = content.get("edges")
    return content if isinstance(content, list) and all(isinstance(one, dict) for one in content) else None


def _edge(element: dict[str, object], sensors: set[str], rejected: Counter[str]) -> Edge | None:
    source, target = element.get("source"), element.get("target")
    if not isinstance(source, str) or not isinstance(target, str):
        rejected["an element that is not an edge"] += 1
        return None
    source, target = source.strip(), target.strip()
    if not {source, target} <= sensors:
        rejected["an unknown sensor"] += 1
        return None
    if source == target:
        rejected["a sensor that drives itself"] += 1
        return None
    measured, driven, why = (_clean(element.get(key)) for key in ("source_quantity", "target_quantity", "mechanism"))
    return Edge(source, target, measured, driven, why)


def _clean(text: object) -> str:
    """Return text that is safe to print: one line, no control characters, limited length."""
    return _CONTROL.sub(" ", text).strip()[:_LONGEST] if isinstance(text, str) else ""
