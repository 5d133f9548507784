"""Former import paths fail with a line that names the new one."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from tests.helpers.packages import write_package
from tsadbench import PluginError
from tsadbench.registry import load_detector

# Every module and package that lay directly below tsadbench before the move and does not now.
FORMER = """
arrays audit box cards checks cluster config dataset detector diagnostics doctor engine explain family files
graphs importing latex manifest models new parameters plan plans plot prior problems progress prose protocol
record recording regress render report reproduction row_layout rows scores segments selection significance
sources space store stored threads toml_file trial verify
"""


@pytest.mark.parametrize("module", FORMER.split())
def test_a_former_module_names_the_new_one_which_can_be_imported(module):
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module(f"tsadbench.{module}")
    first, _, advice = str(caught.value).partition("; ")
    old, new = first.split(" has moved to ")
    assert (old, advice) == (f"tsadbench.{module}", "plugins import from tsadbench and tsadbench.base")
    assert importlib.import_module(new).__name__ == new


@pytest.mark.parametrize(
    "statement",
    [
        "import tsadbench.detector",
        "from tsadbench.detector import Detector",
        "from tsadbench import detector",
        "import tsadbench.detector.more",
    ],
)
def test_every_form_of_import_says_so(statement):
    done = subprocess.run([sys.executable, "-c", statement], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: tsadbench.detector has moved to tsadbench.base.detector; "
        "plugins import from tsadbench and tsadbench.base"
    )


def test_it_reaches_the_user_of_a_plugin(tmp_path, monkeypatch):
    write_package(tmp_path, "old", "[tsadbench.detectors]\nold = old:Mine\n", "from tsadbench.detector import Detector")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        PluginError,
        match=r"detector 'old' \(old:Mine\) cannot be loaded: ModuleNotFoundError: .* tsadbench.base.detector",
    ):
        load_detector("old")


def test_a_module_that_never_was_fails_as_ever():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'tsadbench.nonsense'"):
        importlib.import_module("tsadbench.nonsense")
