"""``tsadbench doctor`` on a sound machine, on broken ones, and what it must not show."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, requires, version

import pytest
from packaging.requirements import Requirement

from tests.helpers.packages import write_package
from tsadbench.cli.actions.doctor import packages
from tsadbench.cli.actions.doctor.data import cache, cluster, datasets, store
from tsadbench.cli.actions.doctor.findings import Finding, redacted
from tsadbench.cli.actions.doctor.machine import devices, seal, tools
from tsadbench.execution.run_store import Store
from tsadbench.sandbox import SealStatus, seal_status

KEY = "sk-ant-0123456789abcdef"
SECRET = "hunter22-hunter22"
# Import-time faults of every kind; what is printed comes between no answers.
PLUGINS = {
    "broken.py": f"raise RuntimeError('no licence for {SECRET}')",
    "crashes.py": 'import os, signal; print(\'["ok", "noise"]\', flush=True); os.kill(os.getpid(), signal.SIGKILL)',
    "leaves.py": "raise SystemExit(3)",
    "deep.py": "from tsadbench.base import extra\nwith extra('a-deep', 'deep'): import torch",
    "loud.py": 'print(\'["broken", "noise"]\')\nfrom tsadbench import Detector\nclass Loud(Detector): pass',
}
ENTRY_POINTS = """[tsadbench.detectors]
a-broken = broken:Broken
a-crash = crashes:Crashes
a-leaver = leaves:Leaves
a-deep = deep:Deep
a-loud = loud:Loud
a-sound = tests.helpers.tiny:Distance
"""


def doctor(*arguments: str, **variables: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "tsadbench", "doctor", *arguments]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def findings(text: str) -> dict[tuple[str, str], dict[str, str]]:
    content = json.loads(text)
    assert content["schema"] == 1
    assert content["ok"] == all(one["state"] != "broken" for one in content["findings"])
    return {(one["section"], one["name"]): one for one in content["findings"]}


@pytest.mark.processes
def test_a_sound_machine(tmp_path):
    Store.create(tmp_path / "runs")
    (tmp_path / "data").mkdir()
    code, out, err = doctor(
        "--format", "json", "--runs", str(tmp_path / "runs"), "--data", str(tmp_path / "data"), ANTHROPIC_API_KEY=KEY
    )  # fmt: skip
    assert code == 0, err
    assert KEY not in out + err
    found = findings(out)
    assert found["packages", "numpy"]["text"] == version("numpy")
    assert found["run store", str(tmp_path / "runs")]["text"].startswith("0 trials (none)")
    assert found["data sets", "pumploop"]["state"] == "ok"
    assert found["data sets", "skab"]["state"] == "missing"
    assert f"tsadbench data fetch skab --data {tmp_path}/data" in found["data sets", "skab"]["text"]
    assert "iTrust" in found["data sets", "swat"]["text"]
    # What ships with tsadbench is sound.
    assert found["plugins", "detector t2"]["text"] == "statistics"
    assert found["plugins", "protocol strict"]["state"] == "ok"
    assert found["plugins", "family sklearn"]["text"] == "5 of its 5 classes can be run"
    assert found["machine", "cores"]["text"].split()[0].isdigit()
    status = seal_status()
    assert found["machine", "seal"]["state"] == {"sealed": "ok", "guarded": "missing"}[status.seal]
    assert found["machine", "seal"]["text"].startswith(f"{status.seal}{': ' if status.reason else ''}{status.reason}")
    assert ("devices", "cpu") in found


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (SealStatus("sealed", "", ()), ("ok", "sealed")),
        (
            SealStatus("sealed", "without namespaces", ("Landlock 7",)),
            ("ok", "sealed: without namespaces (Landlock 7)"),
        ),
        (
            SealStatus("guarded", "no Landlock", ("Linux 5.4", "x86")),
            ("missing", "guarded: no Landlock (Linux 5.4; x86)"),
        ),
    ],
)
def test_the_seal_is_told_with_its_reason(monkeypatch, status, expected):
    monkeypatch.setattr("tsadbench.cli.actions.doctor.machine.seal_status", lambda: status)
    (found,) = seal()
    assert (found.state, found.text) == expected
    assert ("--require-seal" in found.advice) == (status.seal == "guarded")


@pytest.mark.processes
def test_broken_plugins_and_a_broken_torch_are_told_and_the_rest_goes_on(tmp_path):
    for name, text in PLUGINS.items():
        write_package(tmp_path, name.removesuffix(".py"), "", text)
    write_package(tmp_path, "manykinds", ENTRY_POINTS, "")
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("raise ImportError('libtorch.so is not there')")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    code, out, err = doctor(PYTHONPATH=path, MY_TOKEN=SECRET, TSADBENCH_DATA=str(tmp_path / "gone"))
    assert code == 1
    assert "Traceback" not in out + err
    assert SECRET not in out + err
    lines = {tuple(line.split()[1:3]): line.strip() for line in out.splitlines() if line.startswith("  ")}
    assert "no licence for <MY_TOKEN>" in lines["detector", "a-broken"]
    assert "was ended by SIGKILL" in lines["detector", "a-crash"]
    assert "SystemExit: 3" in lines["detector", "a-leaver"]
    for name in ("a-broken", "a-crash", "a-leaver"):
        assert lines["detector", name].startswith("broken"), lines["detector", name]
    assert lines["detector", "a-loud"].startswith("ok ")
    assert lines["detector", "a-sound"].startswith("ok ")
    assert lines["data", "set"].startswith("ok ")
    torch = next(line for line in out.splitlines() if line.split()[1:2] == ["torch"])
    assert torch.split()[0] == "broken"
    assert "exit code 1: ImportError: libtorch.so is not there" in torch
    assert "libtorch.so is not there" in lines["detector", "a-deep"]
    data = next(line for line in out.splitlines() if line.split()[1:2] == ["TSADBENCH_DATA"])
    assert data.split()[0] == "broken"
    assert out.splitlines()[-1].endswith(" broken")


class TestPackages:
    def test_what_tsadbench_asks_for_is_what_is_told(self):
        wanted = {one.name for one in map(Requirement, requires("tsadbench") or []) if one.marker is None}
        found = {one.name: one for one in packages.packages()}
        assert found.keys() == {*wanted, "python", "tsadbench"}
        assert {one.state for one in found.values()} == {"ok"}

    def test_a_missing_and_an_old_package(self, monkeypatch):
        def changed(name: str) -> str:
            if name in ("pyod", "scipy"):
                raise PackageNotFoundError(name)
            return {"numpy": "1.21", "pypdf": "0.1"}.get(name) or version(name)

        monkeypatch.setattr(packages, "version", changed)
        needed = {one.name: one for one in packages.packages()}
        assert (needed["scipy"].state, needed["scipy"].text) == ("broken", "is not installed")
        assert (needed["numpy"].state, needed["numpy"].text) == ("broken", "is 1.21, expected >=1.26")
        assert needed["numpy"].advice == "pip install 'numpy>=1.26'"
        extras = {one.name: one for one in packages.extras()}
        assert not {"dev", "all"} & extras.keys()
        assert (extras["pyod"].state, extras["pyod"].advice) == ("missing", "pip install 'tsadbench[pyod]'")
        assert extras["prior"].text == "pypdf is 0.1, expected >=5"
        assert extras["cluster"].text.startswith(f"dask {version('dask')}")


def test_a_data_set_that_is_not_whole_is_broken(skab_directory, tmp_path):
    shutil.copytree(skab_directory / "skab", tmp_path / "skab")
    (tmp_path / "skab/valve1/0.csv").unlink()
    found = {one.name: one for one in datasets(tmp_path)}
    assert (found["skab"].state, found["skab"].text) == ("broken", f"1 of 35 files are missing in {tmp_path}/skab")
    assert found["skab"].advice == f"tsadbench data fetch skab --data {tmp_path}"
    assert {one.name: one.state for one in datasets(skab_directory)}["skab"] == "ok"


def test_a_store_with_a_broken_record_and_a_path_that_is_none(tmp_path):
    Store.create(tmp_path / "runs")
    (tmp_path / "runs/abc").mkdir()
    (tmp_path / "runs/abc/record.json").write_text("{")
    whole, broken = store(tmp_path / "runs")
    assert (whole.state, broken.state) == ("ok", "broken")
    assert broken.advice == f"tsadbench runs rm {tmp_path}/runs --broken"
    (none,) = store(tmp_path)
    assert (none.state, "is not a run store" in none.text) == ("broken", True)


def test_a_cluster_that_is_none():
    (found,) = cluster("nonsense")
    assert (found.state, "expected tcp://host:port" in found.text) == ("broken", True)


def test_the_caches_folder_and_size(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (empty,) = cache()
    (tmp_path / "tsadbench").mkdir()
    (tmp_path / "tsadbench/file").write_bytes(bytes(3 * 2**20))
    (full,) = cache()
    assert empty.text == f"{tmp_path}/tsadbench, nothing in it yet"
    assert full.text == f"{tmp_path}/tsadbench, 3.0 MiB"


def test_a_torch_that_crashes_does_not_take_the_doctor_with_it(tmp_path, monkeypatch):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = {one.name: one for one in devices()}
    assert (found["cpu"].state, found["torch"].state) == ("ok", "broken")
    assert "killed by signal 11" in found["torch"].text


def test_gpus_that_torch_names_are_told(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text(
        "from types import SimpleNamespace as N\n__version__ = '9'\n"
        "cuda = N(is_available=lambda: True, device_count=lambda: 1, get_device_name=lambda i: 'H200',\n"
        "         get_device_properties=lambda i: N(total_memory=141 * 2**30))\n"
        "backends = N(mps=N(is_available=lambda: True))\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = {one.name: one.text for one in devices()}
    assert (found["torch"], found["cuda:0"], found["mps"]) == ("9", "H200, 141 GiB", "Apple's GPU")


def test_tools_that_are_not_here_are_missing_and_say_what_they_are_for(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [(one.name, one.state) for one in tools()] == [("chromium", "missing")]
    assert all(one.advice.startswith("only ") for one in tools())


def test_keys_tokens_and_passwords_in_addresses_are_left_out(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("DB_PASSWORD", SECRET)
    text = f"asked {KEY} at https://me:{SECRET}@host/x, then http://user:other@host"
    found = redacted(Finding("s", "n", "broken", text, f"set {SECRET}"))
    assert found.text == "asked <ANTHROPIC_API_KEY> at https://<user>@host/x, then http://<user>@host"
    assert found.advice == "set <DB_PASSWORD>"


def test_wrong_usage(tsadbench):
    done = tsadbench("doctor", "--format", "xml")
    assert (done.code, "xml" in done.err) == (2, True)
