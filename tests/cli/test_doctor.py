"""``tsadbench doctor`` on a sound machine and on broken ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version

import pytest

from tests.helpers.packages import write_package
from tsadbench.cli import doctor
from tsadbench.sandbox import seal_status

# Import-time faults of every kind; printed text must not mix with answers.
PLUGINS = {
    "broken.py": "raise RuntimeError('no licence')",
    "crashes.py": 'import os, signal; print(\'["ok", "noise"]\', flush=True); os.kill(os.getpid(), signal.SIGKILL)',
    "deep.py": "from tsadbench.base import extra\nwith extra('a-deep', 'deep'): import no_such_package",
}
ENTRY_POINTS = """[tsadbench.detectors]
a-broken = broken:Broken
a-crash = crashes:Crashes
a-deep = deep:Deep
a-sound = tests.helpers.tiny:Distance
"""


@pytest.mark.processes  # loads every plugin, which takes some seconds
def test_what_is_sound_missing_and_broken(tmp_path):
    for name, text in PLUGINS.items():
        write_package(tmp_path, name.removesuffix(".py"), "", text)
    write_package(tmp_path, "manykinds", ENTRY_POINTS, "")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "TSADBENCH_DATA": str(tmp_path / "gone")}
    command = [sys.executable, "-m", "tsadbench", "doctor", "--format", "json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    content = json.loads(done.stdout)
    assert (content["schema"], content["ok"]) == (1, False)
    found = {(one["section"], one["name"]): one for one in content["findings"]}
    states = {
        ("packages", "numpy"): "ok",
        ("plugins", "a-broken (detectors)"): "broken",
        ("plugins", "a-crash (detectors)"): "broken",
        ("plugins", "a-deep (detectors)"): "missing",
        ("plugins", "a-sound (detectors)"): "ok",
        ("plugins", "t2 (detectors)"): "ok",
        ("plugins", "strict (protocols)"): "ok",
        ("plugins", "sklearn (families)"): "ok",
        ("machine", "seal"): {"sealed": "ok", "guarded": "missing"}[seal_status().seal],
        ("data sets", "TSADBENCH_DATA"): "broken",
        ("data sets", "skab"): "missing",
        ("data sets", "pumploop"): "ok",
    }
    assert {key: found[key]["state"] for key in states} == states
    assert "no licence" in found["plugins", "a-broken (detectors)"]["text"]
    assert "SIGKILL" in found["plugins", "a-crash (detectors)"]["text"]


def test_a_missing_and_an_old_package(monkeypatch):
    def changed(name: str) -> str:
        if name in ("pyod", "scipy"):
            raise PackageNotFoundError(name)
        return {"numpy": "1.21"}.get(name) or version(name)

    monkeypatch.setattr(doctor, "version", changed)
    needed = {one.name: one for one in doctor.packages()}
    assert (needed["scipy"].state, needed["numpy"].state, needed["rich"].state) == ("broken", "broken", "ok")
    assert needed["numpy"].advice == "pip install 'numpy>=1.26'"
    extras = {one.name: one for one in doctor.packages() if one.section == "extras"}
    assert not {"dev", "all"} & extras.keys()
    assert (extras["pyod"].state, extras["pyod"].advice) == ("missing", "pip install 'tsadbench[pyod]'")


def test_wrong_usage(tsadbench):
    done = tsadbench("doctor", "--format", "xml")
    assert (done.code, "xml" in done.err) == (2, True)
