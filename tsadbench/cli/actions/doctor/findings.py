"""One thing that was examined, and its state."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

# missing: something optional, or something that can be obtained; broken: something fails that a command relies on.
State: TypeAlias = Literal["ok", "missing", "broken"]

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_SHORTEST_SECRET = 6


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was examined.

    Parameters
    ----------
    section, name
        What it is.
    state
        Its state.
    text
        What was found.
    advice
        What to do about it; empty if nothing is to be done.
    """

    section: str
    name: str
    state: State
    text: str
    advice: str = ""


def redacted(finding: Finding) -> Finding:
    """Return a finding without the environment's keys, tokens and passwords, and without those in addresses."""
    text, advice = _without_secrets(finding.text), _without_secrets(finding.advice)
    return replace(finding, text=text, advice=advice)


def _without_secrets(text: str) -> str:
    for name, value in os.environ.items():
        if _SECRET.search(name) and len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, f"<{name}>")
    return re.sub(r"(?<=://)[^/@\s]+@", "<user>@", text)
