"""What a language model answered: only edges between known sensors are taken from it, whatever else it says."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tsadbench.base.prior import Edge

_LONGEST = 500
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


@dataclass(slots=True)
class Answer:
    """What an answer holds.

    Parameters
    ----------
    edges
        Between known sensors, each once.
    spoilt
        Why the answer does not count as a vote; None where it does. An empty list counts.
    rejected
        What was left out of it, by reason.
    """

    edges: tuple[Edge, ...] = ()
    spoilt: str | None = None
    rejected: Counter[str] = field(default_factory=Counter)


def read_answer(text: str, stop_reason: str, sensors: Sequence[str]) -> Answer:
    """Return what an answer holds.

    Parameters
    ----------
    text
        The answer.
    stop_reason
        Why the model stopped, as the Messages API names it.
    sensors
        The names that count.
    """
    if stop_reason == "refusal":
        return Answer(spoilt="the model refused")
    if stop_reason == "max_tokens":
        return Answer(spoilt="the answer was cut off; raise --max-tokens")
    found, rejected = _json_list(text), Counter[str]()
    if found is None:
        return Answer(spoilt="no JSON list in the answer" if text.strip() else "an empty answer")
    content, around = found
    if around:
        rejected["text around the JSON"] += 1
    edges: dict[tuple[str, str], Edge] = {}
    for one in content:
        edge = _edge(one, set(sensors), rejected)
        if edge is not None and (edge.source, edge.target) in edges:
            rejected["an edge that occurs twice"] += 1
        elif edge is not None:
            edges[edge.source, edge.target] = edge
    return Answer(edges=tuple(edges.values()), rejected=rejected)


def _json_list(text: str) -> tuple[list[object], bool] | None:
    """Return the first list of edges in a text, and whether there is text around it."""
    decoder = json.JSONDecoder()
    for found in re.finditer(r"[\[{]", text):
        try:
            content, end = decoder.raw_decode(text, found.start())
        except ValueError:
            continue
        except RecursionError:
            return None  # nobody nests a list of edges so deep
        if isinstance(content, dict):
            content = content.get("edges")
        if isinstance(content, list) and all(isinstance(one, dict) for one in content):
            return content, bool((text[: found.start()] + text[end:]).strip())
    return None


def _edge(one: object, sensors: set[str], rejected: Counter[str]) -> Edge | None:
    if not isinstance(one, dict) or not all(isinstance(one.get(end), str) for end in ("source", "target")):
        rejected["an element that is no edge"] += 1
        return None
    source, target = one["source"].strip(), one["target"].strip()
    if not {source, target} <= sensors:
        rejected["an unknown sensor"] += 1
        return None
    if source == target:
        rejected["a sensor that drives itself"] += 1
        return None
    return Edge(
        source=source,
        target=target,
        source_quantity=_clean(one.get("source_quantity")),
        target_quantity=_clean(one.get("target_quantity")),
        mechanism=_clean(one.get("mechanism")),
    )


def _clean(text: object) -> str:
    """Return a text that may be printed: one line, no control characters, not endless."""
    return _CONTROL.sub(" ", text).strip()[:_LONGEST] if isinstance(text, str) else ""
