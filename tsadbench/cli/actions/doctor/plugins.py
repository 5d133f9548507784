"""Whether every registered detector, protocol and data set can be loaded.

A broken plugin may crash or hang the process that imports it, so another process does: ``python -m`` of this module
reads a JSON list of [kind, name] from standard input and answers each with a line of JSON, [state, text], in order.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import get_args

from tsadbench.cli.actions.doctor.findings import Finding, State
from tsadbench.datasets.loading import load_dataset
from tsadbench.errors import MissingExtraError, TsadbenchError
from tsadbench.registry import Kind, entries, load_detector, load_library, load_protocol, singular

_SECONDS = 180.0
_ADVICE = "repair or uninstall its package (tsadbench list names it)"


def plugins() -> Iterator[Finding]:
    """Yield every plugin; one that crashes or hangs its process is reported, and the next process does the rest."""
    names = [(kind, name) for kind in get_args(Kind) for name in dict.fromkeys(entry.name for entry in entries(kind))]
    while names:
        answers, end = _probed(names)
        for (kind, name), (state, text) in zip(names, answers, strict=False):
            yield Finding("plugins", f"{singular(kind)} {name}", state, text, _ADVICE if state == "broken" else "")
        names = names[len(answers) :]
        if names:
            kind, name = names.pop(0)
            yield Finding("plugins", f"{singular(kind)} {name}", "broken", end or "gave no answer", _ADVICE)


def _probed(names: list[tuple[Kind, str]]) -> tuple[list[tuple[State, str]], str | None]:
    """Return the answers of a process that loads plugins in order, and how it ended if it failed."""
    command = [sys.executable, "-m", __name__]
    request = json.dumps(names)
    try:
        done = subprocess.run(command, input=request, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        output = error.stdout or b""
        return _answers(output.decode() if isinstance(output, bytes) else output), f"no end after {_SECONDS:.0f} s"
    return _answers(done.stdout), failure_of(done)


def failure_of(done: subprocess.CompletedProcess[str]) -> str | None:
    """Return how a process failed, with the last line of its standard error; None if it did not."""
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines()
    end = f"killed by signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
    return f"its process ended: {end}" + (f": {lines[-1][:200]}" if lines else "")


def _answers(text: str) -> list[tuple[State, str]]:
    # A process that dies in the middle of a line has not answered.
    return [tuple(json.loads(line)) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def _answer_all() -> None:
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
            return "ok", f"{sum(not member.refusal for member in members)} of its {len(members)} classes can be run"
        _ = load_protocol(name) if kind == "protocols" else load_dataset(name)
    except MissingExtraError as error:
        return "missing", str(error)
    except (TsadbenchError, AttributeError) as error:
        return "broken", " ".join(str(error).split())
    return "ok", "loads"


if __name__ == "__main__":
    _answer_all()
