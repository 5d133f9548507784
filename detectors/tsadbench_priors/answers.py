"""Reads a language model's answer: only edges between known sensors count, whatever else it says."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from tsadbench.base import Edge

_KEYS = ("source", "target", "source_quantity", "target_quantity", "mechanism")
_LONGEST = 500
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")
# What a list of objects, or an empty list, begins with.
_START = re.compile(r"\[\s*[{\]]")


class Answer(NamedTuple):
    """Edges between known sensors, each once (None: no vote), and the number of things left out, by reason."""

    edges: tuple[Edge, ...] | None
    left_out: Counter[str]


def read_answer(text: str, stop_reason: str, sensors: Sequence[str]) -> Answer:
    """Return the content of an answer, given why the model stopped and which sensors edges may connect."""
    if stop_reason == "refusal":
        return Answer(None, Counter(["a refusal"]))
    if stop_reason == "max_tokens":
        return Answer(None, Counter(["an answer that was cut off; raise --max-tokens"]))
    left_out: Counter[str] = Counter()
    elements = _parsed(text)
    if elements is None and (start := _START.search(text)):  # in prose, or in a fence of Markdown
        elements = _parsed(text[start.start() : text.rfind("]") + 1])
        left_out["text around the JSON"] += 1
    if elements is None:
        return Answer(None, Counter(["an answer without a JSON list"]))
    edges: dict[tuple[str, str], Edge] = {}
    for element in elements:
        source, target, measured, driven, mechanism = (_clean(element.get(key)) for key in _KEYS)
        if not {source, target} <= set(sensors):
            left_out["an unknown sensor"] += 1
        elif source == target:
            left_out["a sensor that drives itself"] += 1
        elif (source, target) in edges:
            left_out["an edge that occurs twice"] += 1
        else:
            edges[source, target] = Edge(source, target, measured, driven, mechanism)
    return Answer(tuple(edges.values()), left_out)


def _parsed(text: str) -> list[dict[str, object]] | None:
    """Return the list of edges that a JSON text holds, or None."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(content, dict):
        content = content.get("edges")
    return content if isinstance(content, list) and all(isinstance(one, dict) for one in content) else None


def _clean(text: object) -> str:
    """Return text that is safe to print: one line, no control characters, limited length."""
    return _CONTROL.sub(" ", text).strip()[:_LONGEST] if isinstance(text, str) else ""
