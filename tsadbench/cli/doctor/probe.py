"""Loads plugins in a process of its own, which a broken one may take down: ``python -m tsadbench.cli.doctor.probe``.

Reads a JSON list of [kind, name] from standard input, and answers each with a line of JSON, [state, text], in order.
"""

from __future__ import annotations

import json
import os
import sys

from tsadbench.cli.doctor.finding import State
from tsadbench.datasets.loading import load_dataset
from tsadbench.errors import MissingExtraError, TsadbenchError
from tsadbench.registry import Kind, load_detector, load_library, load_protocol


def main() -> None:
    """Load what standard input names."""
    # What a plugin prints while it is imported must not come between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for kind, name in json.load(sys.stdin):
        answers.write(json.dumps(_loaded(kind, name)) + "\n")
        answers.flush()


def _loaded(kind: Kind, name: str) -> tuple[State, str]:
    try:
        if kind == "detectors":
            return "ok", f"{load_detector(name).traits.family}"
        if kind == "families":
            members = load_library(name).members()
            return "ok", f"{sum(not one.refusal for one in members)} of its {len(members)} classes can be run"
        _ = load_protocol(name) if kind == "protocols" else load_dataset(name)
    except MissingExtraError as error:
        return "missing", str(error)
    except (TsadbenchError, AttributeError) as error:
        return "broken", " ".join(str(error).split())
    return "ok", "loads"


if __name__ == "__main__":
    main()
