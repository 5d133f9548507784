"""Whether every registered detector, protocol and data set can be loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import get_args

from tsadbench.cli.doctor.finding import Finding, State
from tsadbench.registry import Kind, entries, singular

_SECONDS = 180.0
_ADVICE = "repair or uninstall its package (tsadbench list names it)"


def plugins() -> Iterator[Finding]:
    """Give every plugin, loaded by another process: where one crashes or hangs that is told, and the rest goes on."""
    names = [(kind, name) for kind in get_args(Kind) for name in dict.fromkeys(one.name for one in entries(kind))]
    while names:
        told, end = _probed(names)
        for (kind, name), (state, text) in zip(names, told, strict=False):
            yield Finding("plugins", f"{singular(kind)} {name}", state, text, _ADVICE if state == "broken" else "")
        names = names[len(told) :]
        if names:
            kind, name = names.pop(0)
            yield Finding("plugins", f"{singular(kind)} {name}", "broken", end or "gave no answer", _ADVICE)


def _probed(names: list[tuple[Kind, str]]) -> tuple[list[tuple[State, str]], str | None]:
    """Return the answers of a process that loads plugins in order, and how it ended where that was not well."""
    command = [sys.executable, "-m", "tsadbench.cli.doctor.probe"]
    asked = json.dumps(names)
    try:
        done = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        output = error.stdout or b""
        return _answers(output.decode() if isinstance(output, bytes) else output), f"no end after {_SECONDS:.0f} s"
    return _answers(done.stdout), ended(done)


def ended(done: subprocess.CompletedProcess[str]) -> str | None:
    """Return how a process went wrong, with the last that it said; None where it did not."""
    if done.returncode == 0:
        return None
    said = done.stderr.strip().splitlines()
    how = f"killed by signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
    return f"its process ended: {how}" + (f": {said[-1][:200]}" if said else "")


def _answers(text: str) -> list[tuple[State, str]]:
    return [tuple(json.loads(line)) for line in text.splitlines(keepends=True) if line.endswith("\n")]
