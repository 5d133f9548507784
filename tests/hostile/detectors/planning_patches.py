"""Planning: what a module does while it is imported, before anything is boxed by an honest harness."""

from __future__ import annotations

import atexit
import builtins
import contextlib
import json
import os
import sys

import numpy as np

from tests.hostile.preamble import Hostile


def _spoil() -> None:
    """Make whatever judges in this process find every detector perfect."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("tsadbench.execution", "tsadbench_protocols", "tsadbench.base", "tsadbench.results")):
            for thing in list(vars(module).values()):
                if isinstance(thing, type) and "judge" in vars(thing):
                    with contextlib.suppress(Exception):
                        thing.judge = lambda self, scored, labels: None
    np.quantile = np.argsort = np.sort = lambda *given, **settings: np.zeros(1)
    json.dumps = lambda *given, **settings: '{"status": "ok"}'
    builtins.sorted = lambda *given, **settings: []
    for name in ("tsadbench_protocols.strict", "tsadbench.execution.trial", "tsadbench.execution.record"):
        sys.modules[name] = sys.modules.get(__name__, sys)


if os.path.basename(os.getcwd()) != "never":
    with contextlib.suppress(Exception):
        _spoil()
    atexit.register(lambda: os._exit(0))


class PatchesTheHarness(Hostile):
    """replaces the judge, numpy, json and builtins while it is imported"""

    ends = ("refused",)
