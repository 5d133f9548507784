"""The hash of a class's code changes with every file that may change what it computes, and with no other."""

from __future__ import annotations

import importlib
import shutil
import sys
from modulefinder import ModuleFinder
from pathlib import Path

import pytest

from tsadbench.registry import entries, load_detector, load_protocol
from tsadbench.utils.code_fingerprint import code_hash, source_files

ROOT = Path(__file__).parent.parent.parent
DETECTOR = """
from tsadbench.base.detector import Detector


class Mine(Detector): ...
"""
PACKAGE = {
    "__init__.py": "",
    "detector.py": """
import numpy

from tsadbench.base.detector import Detector

from . import layers


class Mine(layers.Base, Detector):
    def fit(self):
        from idea.deep.network import Network

        return Network
""",
    "layers.py": "class Base: ...\n",
    "deep/__init__.py": "",
    "deep/network.py": "from ..deep import units as u\nfrom .. import detector\n\n\nclass Network: ...\n",
    "deep/units.py": "import idea.deep.constants, json\n",
    "deep/constants.py": "ONE = 1\n",
    "other.py": "from idea import detector\n",
    "unused/__init__.py": "",
}
SEEN = set(PACKAGE) - {"other.py", "unused/__init__.py"}


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def idea(tmp_path, monkeypatch):
    """A package ``idea`` of several modules, of which few are imported at once."""
    write(tmp_path / "idea", PACKAGE)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "idea"
    forget()


def mine() -> type:
    return importlib.import_module("idea.detector").Mine


def forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "idea"]:
        del sys.modules[name]
    importlib.invalidate_caches()


class TestSourceFiles:
    def test_all_that_is_imported_at_any_depth_of_the_own_package(self, idea):
        assert {str(file.relative_to(idea)) for file in source_files(mine()) if file.is_relative_to(idea)} == SEEN
        assert "idea.deep.network" not in sys.modules

    def test_a_broken_or_compiled_module_counts_by_its_bytes(self, idea):
        (idea / "layers.py").write_text("from . import broken\n\n\nclass Base: ...\n")
        (idea / "broken.py").write_text("")
        cls = mine()
        (idea / "broken.py").write_bytes(b"\x00 def (")
        assert idea / "broken.py" in source_files(cls)

    def test_a_file_in_no_package_and_its_neighbours(self, tmp_path, monkeypatch):
        write(tmp_path, {"alone.py": "import near, numpy\n\n\nclass Mine: ...\n", "near.py": "", "far.py": ""})
        monkeypatch.syspath_prepend(tmp_path)
        cls = importlib.import_module("alone").Mine
        assert [file.name for file in source_files(cls)] == ["alone.py", "near.py"]

    def test_a_module_by_itself_among_the_installed_has_no_neighbours(self, tmp_path, monkeypatch):
        folder = write(tmp_path / "site-packages", {"lonely.py": "import close\n\n\nclass Mine: ...\n", "close.py": ""})
        monkeypatch.syspath_prepend(folder)
        assert [file.name for file in source_files(importlib.import_module("lonely").Mine)] == ["lonely.py"]

    def test_bases_whose_versions_are_kept_are_left_out(self):
        from sklearn.ensemble import IsolationForest

        class Mine(IsolationForest): ...

        assert source_files(IsolationForest) == ()
        assert source_files(Mine)[0] == Path(__file__)
        assert source_files(dict) == ()

    @pytest.mark.parametrize("name", [entry.name for entry in entries("detectors")])
    def test_of_shipped_detectors_as_pythons_own_finder_has_it(self, name):
        cls = load_detector(name)
        finder = ModuleFinder(path=[str(ROOT / "detectors")])
        for base in cls.__mro__:
            if base.__module__.startswith("tsadbench_detectors."):
                finder.import_hook(base.__module__)
        expected = {Path(module.__file__) for module in finder.modules.values() if module.__file__}
        found = {file for file in source_files(cls) if "tsadbench_detectors" in file.parts}
        assert found == expected
        assert {file.name for file in source_files(cls)} - {file.name for file in found} == {"detector.py"}

    @pytest.mark.parametrize("name", [entry.name for entry in entries("protocols")])
    def test_of_shipped_protocols(self, name):
        assert {"pot.py", "metrics.py", "protocol.py"} < {file.name for file in source_files(load_protocol(name))}


class TestCodeHash:
    @pytest.mark.parametrize("changed", sorted(PACKAGE))
    def test_it_changes_with_what_is_run_and_with_nothing_else(self, idea, changed):
        before = code_hash(mine())
        forget()
        (idea / changed).write_text(PACKAGE[changed] + "\nTWO = 2\n")
        assert (code_hash(mine()) != before) == (changed in SEEN)

    def test_it_does_not_hang_on_the_folder(self, idea, tmp_path, monkeypatch):
        before = code_hash(mine())
        forget()
        shutil.copytree(idea, tmp_path / "elsewhere" / "idea")
        monkeypatch.syspath_prepend(tmp_path / "elsewhere")
        assert source_files(mine())[0].is_relative_to(tmp_path / "elsewhere")
        assert code_hash(mine()) == before

    def test_of_a_file_it_does_not_hang_on_the_path(self, tmp_path):
        found = []
        for folder, text in (("here", DETECTOR), ("there", DETECTOR), ("else", DETECTOR + "\nTWO = 2\n")):
            write(tmp_path / folder, {"own.py": text})
            found.append(code_hash(load_detector(f"{tmp_path}/{folder}/own.py:Mine")))
        assert found[0] == found[1] != found[2]
