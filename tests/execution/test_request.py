"""A request is validated once, whoever makes it: Python, the command line, or a configuration file."""

from __future__ import annotations

import inspect
import json
import os
import re
from types import SimpleNamespace

import psutil
import pytest
import typer

import tsadbench as package
from tests.helpers.data import make_data
from tsadbench import UsageError
from tsadbench.cli.app import app
from tsadbench.execution.request import RunRequest

pytestmark = pytest.mark.usefixtures("tiny_plugin")


def test_a_value_out_of_range_is_one_line_that_names_the_setting_as_each_interface_does(tsadbench, tmp_path):
    with pytest.raises(UsageError, match=r"^memory: .* 0\.0$"):
        RunRequest(memory=0.0)
    with pytest.raises(UsageError, match=r"^memory: .* 0\.0$"):
        package.run("distance", make_data(), memory_mib=0.0)
    done = tsadbench("run", "-d", "distance", "--dataset", "pumploop", "--memory", 0.0, "--out", tmp_path / "runs")
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert "memory" in done.err
    (tmp_path / "run.toml").write_text("detectors = ['distance']\nmemory = 0.0\n")
    done = tsadbench("run", "--config", tmp_path / "run.toml")
    assert (done.code, done.out) == (2, "")
    assert "run.toml, line 2: memory" in done.err
    assert not (tmp_path / "runs").exists()


def test_python_and_the_command_line_have_the_requests_defaults():
    request = RunRequest()
    for name, parameter in inspect.signature(package.run).parameters.items():
        if name in ("dataset", "protocol"):
            assert [parameter.default] == getattr(request, f"{name}s")
        elif name in ("seeds", "threads", "floors", "timeout", "data", "against", "cluster"):
            assert parameter.default == getattr(request, name)
    command = typer.main.get_command(app).commands["run"]
    shown = {option.name: option.show_default for option in command.params}
    for name in ("seeds", "threads", "out"):
        assert shown[name] == str(getattr(request, name))
    assert [shown["dataset"], shown["protocol"]] == [*request.datasets, *request.protocols]


def test_as_many_trials_run_at_a_time_as_there_are_cores_with_memory_for_each(monkeypatch):
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    for available, expected in ((2**50, cores), (2**32 + 1, min(2, cores)), (2**31 + 1, 1), (0, 1)):
        monkeypatch.setattr(psutil, "virtual_memory", lambda available=available: SimpleNamespace(available=available))
        assert RunRequest().jobs == expected
    assert RunRequest(jobs=7).jobs == 7


def test_seeds_are_a_number_or_a_list_for_python_command_line_and_file(tsadbench, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = make_data()
    board = package.run(["noisy", "distance"], data, seeds=[3, 0], splits="overall", floors=False, out="python")
    # A seed gives the same results in every run, to the bit; a deterministic detector runs once.
    more = package.run("noisy", data, seeds=4, splits="overall", floors=False)
    of_list, of_number = (
        {record.seed: record.splits for record in one.records if record.label == "noisy"} for one in (board, more)
    )
    assert board.frame.set_index("detector")["seeds"].to_dict() == {"noisy": (0, 3), "distance": (0,)}
    assert of_list == {seed: of_number[seed] for seed in (0, 3)}

    arguments = ("run", "-d", "noisy", "--no-floors", "--dataset", "pumploop", "--format", "json")
    done = tsadbench(*arguments, "--seeds", "3,", "--out", "command")
    assert (done.code, json.loads(done.out)["rows"][0]["seeds"]) == (0, [3])
    (tmp_path / "run.toml").write_text("detectors = ['noisy']\ndatasets = ['pumploop']\nseeds = [3]\nfloors = false\n")
    done = tsadbench("run", "--config", "run.toml", "--out", "command", "--format", "json")
    assert re.search(r"^1 trial .* command, 1 ", done.err, re.M)
    done = tsadbench(*arguments, "--seeds", "two")
    assert (done.code, done.out, "'two'" in done.err) == (2, "", True)
