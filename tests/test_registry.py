from __future__ import annotations

import re
import tomllib
from functools import partial
from importlib import metadata
from pathlib import Path

import pytest

from tests.helpers.detectors import load_detector
from tests.helpers.packages import write_package
from tsadbench import PluginError, UsageError, registry
from tsadbench.registry import defaults, entries, floors, load_protocol, registered_name
from tsadbench.utils.parameters import format_value, parse_label

DETECTOR = """
import numpy as np
from tsadbench import Detector

class Mine(Detector):
    def _fit(self, recordings): pass
    def _score(self, recording): return np.zeros(recording.n_rows)
"""


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """Puts packages with entry points on the path, as pip would."""
    monkeypatch.syspath_prepend(tmp_path)
    return partial(write_package, tmp_path)


@pytest.mark.parametrize(
    ("text", "target", "arguments"),
    [
        ("distance", "distance", {}),
        ("distance[power=5]", "distance", {"power": "5"}),
        ("pyod:KNN[n=1, scales=[1,2],m=x]", "pyod:KNN", {"n": "1", "scales": "[1,2]", "m": "x"}),
        ("some/file.py:Mine[a=b=c]", "some/file.py:Mine", {"a": "b=c"}),
        ("distance[]", "distance", {}),
    ],
)
def test_requests_are_taken_apart(text, target, arguments):
    request = parse_label(text)
    assert (request.target, request.arguments) == (target, arguments)


def test_a_key_counts_once_and_a_tuple_is_written_like_a_list():
    with pytest.raises(UsageError, match=r"'power=6'"):
        parse_label("distance[power=5,power=6]")
    assert parse_label(f"x[sizes={format_value((1, 2))}]").arguments == {"sizes": "[1,2]"}


def test_what_is_installed_is_what_pyproject_registers():
    """Fails if the entry points changed since the last ``pip install -e .``."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    for group, points in project["entry-points"].items():
        installed = {point.name: point.value for point in metadata.entry_points(group=group)}
        assert installed.items() >= points.items(), f"{group}: run pip install --no-deps -e . again"


def test_all_that_ships_loads_under_its_name_and_floors_say_so():
    for entry in entries("detectors"):
        loaded = load_detector(entry.name)
        assert registered_name(loaded) == entry.name
        assert loaded.traits.floor == (entry.name in {*floors(), "untrained"})
    for entry in entries("protocols"):
        load_protocol(entry.name)


def test_the_detectors_that_a_command_takes_by_default(plugin, monkeypatch):
    assert (defaults("run"), defaults("fit")) == (("dprgm", "t2-q", "isolation-forest"), ("multiview",))
    plugin("more", "[tsadbench.defaults]\nrun = more:RUN\n", "RUN = ('t2-q', 'mine')")
    assert set(defaults("run")) == {"dprgm", "t2-q", "isolation-forest", "mine"}
    monkeypatch.setattr(registry, "_DEFAULTS", "tsadbench.none")
    with pytest.raises(PluginError, match="fit"):
        defaults("fit")


def test_unknown_names_offer_the_nearest(tiny_plugin):
    with pytest.raises(UsageError, match="'distanc'.*'distance'"):
        load_detector("distanc")
    with pytest.raises(UsageError, match="'publshed'.*'published'"):
        load_protocol("publshed")


def test_broken_plugins_are_named_and_do_not_affect_others(plugin, tiny_plugin):
    plugin("broken", "[tsadbench.detectors]\nbroken = broken:Mine\n", "raise RuntimeError('no licence server')")
    for package in ("one", "two"):
        plugin(package, f"[tsadbench.detectors]\nmine = {package}:Mine\n", DETECTOR)
    plugin("wrong", "[tsadbench.detectors]\nwrong = wrong:value\n", "value = 3")
    plugin("nolib", "[tsadbench.families]\nnone = nolib:value\n", "value = 3")
    for name, match in (
        ("broken", "'broken'.*no licence server"),
        ("mine", "one and two"),
        ("wrong", "'wrong'"),
        ("none:Near", "'none'.*3"),
    ):
        with pytest.raises((PluginError, UsageError), match=match):
            load_detector(name)
    code = "from tsadbench.base import Protocol\nclass Mine(Protocol):\n    metrics = ()\n"
    plugin("silent", "[tsadbench.protocols]\nsilent = silent:Mine\n", code)
    with pytest.raises(PluginError, match="'silent'.*summary"):
        load_protocol("silent")
    load_detector("distance")


FAMILY = """
import sys
import numpy as np
from tsadbench.base import Detector, DetectorLibrary, LibraryDetector

class Adapted(Detector):
    def _fit(self, recordings): pass
    def _score(self, recording): return np.zeros(recording.n_rows)

class Mine(DetectorLibrary):
    description = "Somebody's."

    def members(self):
        refused = LibraryDetector("Far", refusal="it is too far")
        return (LibraryDetector("Near"), LibraryDetector("Odd", note="odd"), refused, LibraryDetector("Broken"))

    def load(self, name):
        return getattr(sys.modules[__name__], name)

family = Mine()

def __getattr__(name):
    if name not in ("Near", "Odd"):
        raise AttributeError(name)
    globals()[name] = type(Adapted)(name, (Adapted,), {"__module__": __name__})
    return globals()[name]
"""


def test_a_strangers_family(plugin, tsadbench):
    plugin("mylib", "[tsadbench.families]\nmine = mylib:family\n", FAMILY)
    near = load_detector("mine:Near")
    assert load_detector("mylib:Near") is near
    assert registered_name(near) == "mine:Near"
    with pytest.raises(UsageError, match="mine:Far.*too far"):
        load_detector("mine:Far")
    with pytest.raises(UsageError, match="'Neer'.*'Near'"):
        load_detector("mine:Neer")
    told, _, title, *detectors, _, title_of_others, other = tsadbench("info", "mine").out.splitlines()
    assert told == "Somebody's."
    assert ("(3)" in title, "(1)" in title_of_others) == (True, True)
    assert [line.split() for line in detectors] == [["mine:Near"], ["mine:Odd", "odd"], ["mine:Broken"]]
    assert re.match("  mine:Far .*too far", other)
    assert "  mine " in tsadbench("list").out


def test_a_class_in_a_file_and_in_a_module(tmp_path, tiny_plugin):
    file = tmp_path / "idea.py"
    file.write_text(DETECTOR)
    cls = load_detector(f"{file}:Mine")
    assert cls.__name__ == "Mine"
    assert load_detector(f"{file}:Mine") is cls
    assert load_detector("tests.helpers.tiny:Distance") is load_detector("distance")


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("none.py:Mine", "none.py"),
        ("tests.helpers.tiny:Distanc", "'Distance'"),
        ("no_such_module:Distance", "no_such_module"),
        ("tsadbench.errors:DataError", "DataError"),
        ("BAD:Mine", "ZeroDivisionError"),
    ],
)
def test_wrong_references_are_refused(target, name, tmp_path):
    (tmp_path / "bad.py").write_text("1 / 0")
    with pytest.raises((UsageError, PluginError), match=name):
        load_detector(target.replace("BAD", f"{tmp_path}/bad.py"))
