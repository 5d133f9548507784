"""Planning: hooks that a module leaves behind while it is imported."""

from __future__ import annotations

import gc
import importlib.abc
import os
import sys
import threading

from tests.hostile.preamble import Hostile


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.startswith("tsadbench.") and "judg" in name:
            raise ImportError("not today")
        return


def _audit(event, arguments):
    if event.startswith(("open", "json")) and arguments and "records/" in str(arguments[0]):
        os._exit(0)


sys.meta_path.insert(0, _Finder())
sys.addaudithook(_audit)
sys.settrace(lambda *_: None)
sys.excepthook = sys.unraisablehook = threading.excepthook = lambda *_: os._exit(0)
gc.callbacks.append(lambda phase, details: None)


class LeavesHooks(Hostile):
    """leaves import hooks, audit hooks and trace functions in the process that imports it"""

    ends = ("ok", "error", "killed", "invalid")
