"""A request is validated once, whoever makes it: Python, the command line, or a configuration file."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import numpy as np
import pytest
import typer

import tsadbench as package
from tests.helpers.data import make_data
from tsadbench import UsageError
from tsadbench.cli import app
from tsadbench.execution.plan import make_plan
from tsadbench.execution.request import RunRequest

pytestmark = pytest.mark.usefixtures("tiny_plugin")

WRONG = [
    ("jobs", 0, "jobs: expected a number greater than or equal to 1, found 0"),
    ("threads", 0, "threads: expected a number greater than or equal to 1, found 0"),
    ("seeds", 0, "seeds: expected a number greater than or equal to 1, found 0"),
    ("timeout", -1.0, "timeout: expected a number greater than 0, found -1.0"),
    ("memory", 0.0, "memory: expected a number greater than 0, found 0.0"),
]


@pytest.mark.parametrize(("setting", "value", "message"), WRONG)
def test_a_value_out_of_range_is_one_line_that_names_the_setting(tsadbench, tmp_path, setting, value, message):
    with pytest.raises(UsageError) as caught:
        RunRequest(**{setting: value})
    assert str(caught.value) == message
    in_python = {"memory": "memory_mib"}.get(setting, setting)
    with pytest.raises(UsageError) as caught:
        package.run("distance", make_data(), **{in_python: value})
    assert str(caught.value) == message.replace(setting, in_python)
    done = tsadbench(
        "run", "-d", "distance", "--dataset", "pumploop", f"--{setting}", value, "--out", tmp_path / "runs"
    )
    assert (done.code, done.out, done.err) == (2, "", f"tsadbench: {message}\n")
    (tmp_path / "run.toml").write_text(f"detectors = ['distance']\n{setting} = {value}\n")
    done = tsadbench("run", "--config", tmp_path / "run.toml")
    assert (done.code, done.out) == (2, "")
    assert f"run.toml, line 2: {message}" in done.err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        # Of the committed tables, so a detector that ships.
        ("regress", "--baseline", Path(__file__).parents[2] / "leaderboards", "--detector", "t2"),
        ("reproduce",),
        ("prior", "sensitivity", "--write", "page.md", "--dataset", "pumploop"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_no_jobs_is_one_line_in_every_command_that_runs_trials(tsadbench, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    done = tsadbench(*arguments, "--jobs", 0)
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith("tsadbench: jobs: expected a number greater than or equal to 1, found 0\n")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"detectors": [3]},
            "detectors: expected .*, a detector or an estimator object, or a list of these, found 3",
        ),
        ({"datasets": [3]}, "datasets: expected a name, the path of a card, or what .* returns, found 3"),
        ({"datasets": []}, r"datasets: expected at least 1 item, found \[\]"),
        ({"seeds": 2.5}, "seeds: expected an integer, or a list of integers, found 2.5"),
        ({"seeds": []}, r"seeds: expected a list of at least one integer, found \[\]"),
        ({"seeds": [0, "1"]}, "seeds: expected a list of at least one integer, found"),
        ({"seeds": [0, -1]}, r"seeds: expected a list of integers of at least 0, found \[0, -1\]"),
        ({"seeds": [3, 3]}, r"seeds: expected a list of different seeds, found \[3, 3\]"),
        ({"jobs": 0, "threads": True}, "threads: expected an integer, found True; jobs: expected a number"),
        ({"sedes": 2}, "sedes: extra inputs are not permitted"),
    ],
)
def test_wrong_types_are_refused(settings, message):
    with pytest.raises(UsageError, match=message):
        RunRequest(**settings)


def test_tuples_and_objects_pass_through_unchanged():
    data = make_data()
    request = RunRequest(detectors=("distance",), datasets=(data,), splits=("f", "g"), out="here")
    assert (request.detectors, request.splits, request.out) == (["distance"], ["f", "g"], Path("here"))
    assert request.datasets[0] is data
    assert np.shares_memory(request.datasets[0].dataset.test[0].values, data.dataset.test[0].values)


def test_python_and_the_command_line_have_the_requests_defaults():
    request = RunRequest()
    for name, parameter in inspect.signature(package.run).parameters.items():
        if name in ("dataset", "protocol"):
            assert [parameter.default] == getattr(request, f"{name}s")
        elif name in ("seeds", "threads", "jobs", "floors", "timeout", "data", "against", "cluster"):
            assert parameter.default == getattr(request, name)
    command = typer.main.get_command(app).commands["run"]
    shown = {option.name: option.show_default for option in command.params}
    for name in ("seeds", "threads", "jobs", "out"):
        assert shown[name] == str(getattr(request, name))
    assert [shown["dataset"], shown["protocol"]] == [*request.datasets, *request.protocols]


def test_seeds_are_a_number_or_a_list_for_python_command_line_and_file(tsadbench, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = make_data()
    board = package.run(["noisy", "distance"], data, seeds=[3, 0], splits="overall", floors=False, out="python")
    # The rows of a list are those of its seeds in any other run, to the bit; a deterministic detector runs once.
    more = package.run("noisy", data, seeds=4, splits="overall", floors=False)
    of_list, of_number = (
        {record.seed: record.splits for row in one.rows if row.label == "noisy" for record in row.records}
        for one in (board, more)
    )
    assert {row.label: row.seeds for row in board.rows} == {"noisy": (0, 3), "distance": (0,)}
    assert of_list == {seed: of_number[seed] for seed in (0, 3)}

    arguments = ("run", "-d", "noisy", "--no-floors", "--dataset", "pumploop", "--format", "json")
    done = tsadbench(*arguments, "--seeds", "3,", "--out", "command")
    assert (done.code, json.loads(done.out)["rows"][0]["seeds"]) == (0, [3])
    (tmp_path / "run.toml").write_text("detectors = ['noisy']\ndatasets = ['pumploop']\nseeds = [3]\nfloors = false\n")
    done = tsadbench("run", "--config", "run.toml", "--out", "command", "--format", "json")
    assert "1 trial is kept in command, 1 of them from an earlier run" in done.err
    for wrong, message in [
        ("two", "seeds: expected a number N, or seeds with commas (0,3), found 'two'"),
        ("0,0", "seeds: expected a list of different seeds, found [0, 0]"),
    ]:
        done = tsadbench(*arguments, "--seeds", wrong)
        assert (done.code, done.out, done.err) == (2, "", f"tsadbench: {message}\n")


def test_fast_means_one_seed_and_few_steps_that_the_label_shows(monkeypatch):
    """`TSADBENCH_FAST`: what is given by name keeps its value, and what takes no steps is as it is."""
    detectors = ["vanilla-ae", "vanilla-ae[max_steps=3]", "t2"]
    monkeypatch.setenv("TSADBENCH_FAST", "1")
    plan = make_plan(RunRequest(detectors=detectors, datasets=["pumploop"], seeds=4, floors=False))
    assert [(trial.contender.label, trial.seed) for trial in plan.trials] == [
        ("vanilla-ae[max_steps=20]", 0),
        ("vanilla-ae[max_steps=3]", 0),
        ("t2", 0),
    ]
    monkeypatch.setenv("TSADBENCH_FAST", "0")
    plan = make_plan(RunRequest(detectors=detectors[:1], datasets=["pumploop"], seeds=4, floors=False))
    assert [(trial.contender.label, trial.seed) for trial in plan.trials] == [("vanilla-ae", seed) for seed in range(4)]
