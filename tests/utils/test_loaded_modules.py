"""What was loaded since one last looked, beside the whole of `sys.modules`."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from tsadbench.utils.loaded_modules import LoadedModules


def load(monkeypatch, *names: str) -> None:
    for name in names:
        monkeypatch.setitem(sys.modules, name, ModuleType(name))


def test_only_what_is_new_is_told_in_order(monkeypatch):
    load(monkeypatch, "here_before")
    modules = LoadedModules()
    assert modules.newer() == list(sys.modules)
    assert modules.newer() == []
    load(monkeypatch, "one", "two.three")
    assert modules.newer() == ["one", "two.three"]
    assert modules.newer() == []


@pytest.mark.parametrize("removed", [["first"], ["first", "second"], ["last"], ["first", "last"]], ids="+".join)
def test_nothing_new_is_missed_where_others_were_removed(monkeypatch, removed):
    load(monkeypatch, "first", "second", "last")
    modules = LoadedModules()
    modules.newer()
    for name in removed:
        monkeypatch.delitem(sys.modules, name)
    load(monkeypatch, "new")
    assert modules.newer() == ["new"]
    load(monkeypatch, *removed)  # loaded anew
    assert sorted(modules.newer()) == sorted(removed)


def test_a_known_module_that_is_put_at_the_end_is_not_new(monkeypatch):
    load(monkeypatch, "moved")
    modules = LoadedModules()
    modules.newer()
    load(monkeypatch, "new")
    monkeypatch.setitem(sys.modules, "moved", sys.modules.pop("moved"))  # as its own import does at its end
    assert modules.newer() == ["new"]
