"""Whether every registered detector, protocol and data set can be loaded: each is tried in a box."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from tsadbench.cli.actions.doctor.findings import Finding
from tsadbench.errors import MissingExtraError, TsadbenchError
from tsadbench.registry import Kind, entries, locate_entry, singular
from tsadbench.sandbox import Interview
from tsadbench.sandbox.description import plugin_text
from tsadbench.utils.text import one_line

_SECONDS = 180.0
_ADVICE = "repair or uninstall its package (tsadbench list names it)"


def plugins() -> Iterator[Finding]:
    """Yield every plugin; one that crashes or hangs its box is reported, and another box does the rest."""
    with Interview() as interview:
        for kind in get_args(Kind):
            for name in dict.fromkeys(entry.name for entry in entries(kind)):
                yield _examined(kind, name, interview)


def _examined(kind: Kind, name: str, interview: Interview) -> Finding:
    title = f"{singular(kind)} {name}"
    try:
        source = locate_entry(kind, name)
        text = interview.ask(source, plugin_text, str, kind, source, seconds=_SECONDS)
    except MissingExtraError as error:
        return Finding("plugins", title, "missing", str(error))
    except TsadbenchError as error:
        return Finding("plugins", title, "broken", one_line(str(error)), _ADVICE)
    return Finding("plugins", title, "ok", one_line(text))
