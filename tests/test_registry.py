from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from tsadbench import PluginError, UsageError
from tsadbench.registry import entries, floors, load_detector, load_protocol, registered_name
from tsadbench.utils.parameters import parse_label

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

    def install(package: str, entry_points: str, module: str = "") -> None:
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(entry_points)
        (tmp_path / f"{package}.py").write_text(module)

    monkeypatch.syspath_prepend(tmp_path)
    return install


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


@pytest.mark.parametrize("text", ["", "[a=1]", "distance[a=1", "distance[a]", "distance[=1]"])
def test_malformed_requests_are_refused(text):
    with pytest.raises(UsageError, match="expected"):
        parse_label(text)


def test_what_is_installed_is_what_pyproject_registers():
    """Fails if the entry points changed since the last ``pip install -e .``."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    for group, points in project["entry-points"].items():
        installed = {point.name: point.value for point in metadata.entry_points(group=group)}
        assert installed.items() >= points.items(), f"{group}: run pip install --no-deps -e . again"


def test_floors_are_detectors_whose_traits_say_so():
    assert floors() == (
        "all-positive", "l1-z", "l2-z", "max-z", "nearest-neighbour", "random", "ridge", "sensor-range",
    )  # fmt: skip
    for entry in entries("detectors"):
        assert load_detector(entry.name).traits.floor == (entry.name in {*floors(), "untrained"})


def test_all_that_ships_loads():
    assert {entry.name for entry in entries("detectors")} > set(floors())
    for entry in entries("detectors"):
        assert registered_name(load_detector(entry.name)) == entry.name
    for entry in entries("protocols"):
        load_protocol(entry.name)


def test_unknown_names_offer_the_nearest(tiny_plugin):
    with pytest.raises(UsageError, match=r"no detector 'distanc'; did you mean 'distance'"):
        load_detector("distanc")
    with pytest.raises(UsageError, match="no protocol 'publshed'; did you mean 'published'"):
        load_protocol("publshed")
    with pytest.raises(UsageError, match=r"there are: .*distance"):
        load_detector("qqqqqqqqqqqq")


def test_a_broken_plugin_is_named_with_its_cause_and_hurts_nobody_else(plugin, tiny_plugin):
    plugin("broken", "[tsadbench.detectors]\nbroken = broken:Mine\n", "raise RuntimeError('no licence server')")
    with pytest.raises(
        PluginError, match=r"'broken' \(broken:Mine\) cannot be loaded: RuntimeError: no licence server"
    ):
        load_detector("broken")
    load_detector("distance")


def test_two_packages_with_one_name_are_an_error_when_it_is_used(plugin):
    for package in ("one", "two"):
        plugin(package, f"[tsadbench.detectors]\nmine = {package}:Mine\n", DETECTOR)
    assert [entry.package for entry in entries("detectors") if entry.name == "mine"] == ["one", "two"]
    with pytest.raises(PluginError, match="registered by one and two"):
        load_detector("mine")


def test_a_plugin_that_is_no_detector_is_refused(plugin):
    plugin("wrong", "[tsadbench.detectors]\nwrong = wrong:value\n", "value = 3")
    with pytest.raises(UsageError, match="not a detector"):
        load_detector("wrong")


FAMILY = """
import sys
import numpy as np
from tsadbench.base.detector_library import AdaptedDetector, DetectorLibrary, LibraryDetector

class Adapted(AdaptedDetector):
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
    with pytest.raises(UsageError, match="mine:Far cannot be run: it is too far"):
        load_detector("mine:Far")
    with pytest.raises(UsageError, match="family 'mine' has no detector 'Neer'; did you mean 'Near'"):
        load_detector("mine:Neer")
    assert tsadbench("list", "--family", "mine").out.splitlines() == [
        "detectors (3):",
        "  mine:Near",
        "  mine:Odd    odd",
        "  mine:Broken",
        "cannot be run (1):",
        "  mine:Far    it is too far",
    ]
    assert "Somebody's." in tsadbench("info", "mine").out
    assert "  mine " in tsadbench("list").out


def test_a_family_that_is_none(plugin):
    plugin("nolib", "[tsadbench.families]\nnone = nolib:value\n", "value = 3")
    with pytest.raises(PluginError, match=r"family 'none': expected a DetectorLibrary .*, found 3"):
        load_detector("none:Near")


def test_a_class_in_a_file_and_in_a_module(tmp_path, tiny_plugin):
    file = tmp_path / "idea.py"
    file.write_text(DETECTOR)
    cls = load_detector(f"{file}:Mine")
    assert cls.__name__ == "Mine"
    assert load_detector(f"{file}:Mine") is cls
    assert load_detector("tests.helpers.tiny:Distance") is load_detector("distance")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("none.py:Mine", "there is no file"),
        ("tests.helpers.tiny:Distanc", "has no class 'Distanc'; did you mean 'Distance'"),
        ("no_such_module:Distance", "ModuleNotFoundError"),
        ("tsadbench.errors:DataError", "not a detector"),
    ],
)
def test_wrong_references_are_refused(target, message):
    with pytest.raises((UsageError, PluginError), match=message):
        load_detector(target)


def test_a_file_with_an_error_is_a_plugin_error(tmp_path):
    file = tmp_path / "bad.py"
    file.write_text("1 / 0")
    for _ in range(2):
        with pytest.raises(PluginError, match="ZeroDivisionError"):
            load_detector(f"{file}:Mine")


def test_with_nothing_installed_it_says_so(tmp_path):
    code = "from tsadbench.registry import load_detector; load_detector('distance')"
    root = "import sys, importlib.metadata as m; m.entry_points = lambda **k: (); "
    done = subprocess.run([sys.executable, "-c", root + code], capture_output=True, text=True, check=False)
    assert "install tsadbench first" in done.stderr
