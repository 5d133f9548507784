"""Packages are found as another process would find them."""

from __future__ import annotations

import subprocess
import sys
import types

from tsadbench.utils.distributions import find_package


def test_what_is_loaded_does_not_count(monkeypatch):
    monkeypatch.setitem(sys.modules, "only_here", types.ModuleType("only_here"))
    assert find_package("only_here") is None
    assert find_package("numpy") is not None
    assert find_package("no_such_package") is None


def test_a_package_installed_for_editing_is_found_and_not_imported():
    code = """
import sys
from tsadbench.utils.distributions import find_package
class Old: pass  # a finder of the old kind
sys.meta_path.insert(0, Old())
print(find_package("tsadbench_detectors") is not None, "tsadbench_detectors" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]
