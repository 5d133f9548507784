"""What a box may read: libraries, and from a folder of the import path only what can be imported."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from tsadbench.sandbox.seal import walls
from tsadbench.sandbox.seal.walls import Walls, plan_walls


def test_only_modules_and_packages_of_a_working_directory_can_be_read(tmp_path):
    (tmp_path / "mine.py").touch()
    (tmp_path / "package").mkdir()
    (tmp_path / "package/__init__.py").touch()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden/__init__.py").touch()
    (tmp_path / "data").mkdir()
    (tmp_path / "data/labels.csv").touch()
    (tmp_path / "labels.csv").touch()
    (tmp_path / "not-a-module.py").touch()
    found = plan_walls([str(tmp_path)])
    expected = {"mine": str(tmp_path / "mine.py"), "package": str(tmp_path / "package")}
    assert found.importable == {str(tmp_path): expected}
    assert {path for path in found.readable if path.startswith(str(tmp_path))} == set(expected.values())


def test_the_package_of_the_detector_needs_no_init_file(tmp_path, monkeypatch):
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments/first.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert str(tmp_path / "experiments") not in plan_walls([str(tmp_path)]).readable
    found = plan_walls([str(tmp_path)], modules=["experiments.first"])
    assert str(tmp_path / "experiments") in found.readable
    assert found.importable[str(tmp_path)] == {"experiments": str(tmp_path / "experiments")}


def test_packages_that_were_installed_from_their_folders_can_be_read(tmp_path, monkeypatch):
    source, site = tmp_path / "source/inner/gauges", tmp_path / "site-packages"
    source.mkdir(parents=True)
    (source / "__init__.py").touch()
    info = site / "gauges-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "direct_url.json").write_text(json.dumps({"dir_info": {"editable": True}, "url": "file:///anywhere"}))
    (info / "top_level.txt").write_text("gauges\n")
    monkeypatch.syspath_prepend(source.parent)  # in place of the finder that such an installation adds
    found = plan_walls([str(site)])
    assert {str(site), str(source)} <= set(found.readable)


def test_the_interpreter_and_its_libraries_can_be_read():
    readable = [Path(path) for path in plan_walls(sys.path).readable]
    for needed in (np.__file__, json.__file__, os.path.realpath(sys.executable), walls.__file__):
        assert any(Path(needed).is_relative_to(path) for path in readable), needed
    for private in ("/home/x", "/etc/shadow", "/usr/bin/x", tempfile.gettempdir()):
        assert not any(Path(private).is_relative_to(path) for path in readable), private


@pytest.mark.parametrize(
    ("hidden", "exposed"),
    [
        ("/work/data", False),
        ("/work", False),
        ("/work/venv/lib/data", True),
        ("/work/venv", True),
        ("/work/ven", False),
    ],
)
def test_a_hidden_folder_must_not_be_in_a_readable_one(hidden, exposed):
    assert Walls(readable=("/work/venv/lib", "/work/venv"), hidden=(hidden,)).exposed() == (hidden if exposed else None)


def test_gpus_are_allowed_by_name_if_requested(tmp_path, monkeypatch):
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-caps/nvidia-cap1", "dri/renderD128", "kfd"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    for other in ("sda", "dri/card0", "mem", "tty"):
        (tmp_path / other).touch()
    monkeypatch.setattr(walls, "GPU_DEVICES", [one.replace("/dev", str(tmp_path)) for one in walls.GPU_DEVICES])
    found = plan_walls([], gpu=True)
    names = {"kfd", "dri/renderD128", "nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-caps/nvidia-cap1"}
    assert {os.path.relpath(path, tmp_path) for path in found.devices} - {"nvidia-caps"} == names
    assert "/sys/devices" in found.readable
    assert plan_walls([]).devices == ()
    assert "/sys/devices" not in plan_walls([]).readable
