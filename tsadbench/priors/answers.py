"""Reads a language model's answer: only edges between known sensors are taken, whatever else it says."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tsadbench.base.prior import Edge

_LONGEST = 500
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")
# Ten times what models write at most.
_LONGEST_ANSWER = 2_000_000
# What a list of objects, or an object, begins with; nothing else is tried.
_START = re.compile(r"\[\s*[{\]]|\{\s*[\"}]")
# How often, and over how many times its own length, an answer is searched.
_MOST_STARTS, _MOST_PASSES = 1000, 10


@dataclass(slots=True)
class Answer:
    """The content of an answer.

    Parameters
    ----------
    edges
        Edges between known sensors, each once.
    spoilt
        Why the answer does not count as a vote; None if it does. An empty list counts.
    rejected
        Number of things left out of it, by reason.
    """

    edges: tuple[Edge, ...] = ()
    spoilt: str | None = None
    rejected: Counter[str] = field(default_factory=Counter)


def read_answer(text: str, stop_reason: str, sensors: Sequence[str]) -> Answer:
    """Return the content of an answer.

    Parameters
    ----------
    text
        The answer.
    stop_reason
        Why the model stopped, as the Messages API names it.
    sensors
        Names of the sensors that edges may connect.
    """
    if stop_reason == "refusal":
        return Answer(spoilt="the model refused")
    if stop_reason == "max_tokens":
        return Answer(spoilt="the answer was cut off; raise --max-tokens")
    if len(text) > _LONGEST_ANSWER:
        return Answer(spoilt=f"the answer is longer than {_LONGEST_ANSWER:,} characters")
    first_list, rejected = _json_list(text), Counter[str]()
    if first_list is None:
        return Answer(spoilt="no JSON list in the answer" if text.strip() else "an empty answer")
    elements, around = first_list
    if around:
        rejected["text around the JSON"] += 1
    edges: dict[tuple[str, str], Edge] = {}
    for element in elements:
        edge = _edge(element, set(sensors), rejected)
        if edge is not None and (edge.source, edge.target) in edges:
            rejected["an edge that occurs twice"] += 1
        elif edge is not None:
            edges[edge.source, edge.target] = edge
    return Answer(edges=tuple(edges.values()), rejected=rejected)


def _json_list(text: str) -> tuple[list[object], bool] | None:
    """Return the first list of edges in a text, and whether there is text around it.

    The search takes time in proportion to the text: one that is made of beginnings alone is given up.
    """
    decoder, left = json.JSONDecoder(), _MOST_PASSES * len(text)
    for bracket in itertools.islice(_START.finditer(text), _MOST_STARTS):
        try:
            content, end = decoder.raw_decode(text, bracket.start())
        except json.JSONDecodeError as error:
            left -= error.pos - bracket.start()
            if left < 0:
                return None
            continue
        except (ValueError, RecursionError):
            return None  # no list of edges holds an integer so long, or is nested so deep
        if isinstance(content, dict):
            content = content.get("edges")
        if isinstance(content, list) and all(isinstance(element, dict) for element in content):
            return content, bool((text[: bracket.start()] + text[end:]).strip())
    return None


def _edge(element: object, sensors: set[str], rejected: Counter[str]) -> Edge | None:
    if not isinstance(element, dict) or not all(isinstance(element.get(end), str) for end in ("source", "target")):
        rejected["an element that is not an edge"] += 1
        return None
    source, target = element["source"].strip(), element["target"].strip()
    if not {source, target} <= sensors:
        rejected["an unknown sensor"] += 1
        return None
    if source == target:
        rejected["a sensor that drives itself"] += 1
        return None
    return Edge(
        source=source,
        target=target,
        source_quantity=_clean(element.get("source_quantity")),
        target_quantity=_clean(element.get("target_quantity")),
        mechanism=_clean(element.get("mechanism")),
    )


def _clean(text: object) -> str:
    """Return text that is safe to print: one line, no control characters, limited length."""
    return _CONTROL.sub(" ", text).strip()[:_LONGEST] if isinstance(text, str) else ""
