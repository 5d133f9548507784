"""One thing that was looked at, and how it was found."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

# missing: something that one can do without, or get; broken: something fails that a command relies on.
State: TypeAlias = Literal["ok", "missing", "broken"]

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_SHORTEST_SECRET = 6


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Parameters
    ----------
    section, name
        What it is.
    state
        How it was found.
    text
        What was found.
    advice
        What to do about it; empty where nothing is to be done.
    """

    section: str
    name: str
    state: State
    text: str
    advice: str = ""


def redacted(finding: Finding) -> Finding:
    """Return a finding without the keys, tokens and passwords of the environment, and without those in addresses."""
    text, advice = _without_secrets(finding.text), _without_secrets(finding.advice)
    return replace(finding, text=text, advice=advice)


def _without_secrets(text: str) -> str:
    for name, value in os.environ.items():
        if _SECRET.search(name) and len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, f"<{name}>")
    return re.sub(r"(?<=://)[^/@\s]+@", "<user>@", text)
