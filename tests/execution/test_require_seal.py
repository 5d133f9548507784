"""``--require-seal``: what cannot be sealed is refused before anything starts, or fails with a reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tsadbench as package
from tests.helpers.data import make_data
from tests.helpers.plans import make_plan
from tests.helpers.tiny import Distance
from tsadbench import UsageError
from tsadbench.execution.runner import kept_records, run_plan
from tsadbench.execution.store import Store
from tsadbench.sandbox import SealStatus
from tsadbench.sandbox.server import Server

pytestmark = pytest.mark.usefixtures("tiny_plugin")
GUARDED = SealStatus("guarded", "the kernel has no Landlock")


@pytest.fixture
def unsealed_machine(monkeypatch):
    monkeypatch.setattr("tsadbench.execution.plan.seal_status", lambda: GUARDED)


@pytest.fixture
def guarded_boxes(monkeypatch):
    """A machine that reports that it can seal, but whose boxes are guarded, such as a cluster's worker."""
    server = Server(seal=False)
    monkeypatch.setattr("tsadbench.execution.plan.seal_status", lambda: SealStatus("sealed", ""))
    monkeypatch.setattr("tsadbench.sandbox.box.default_server", lambda: server)
    yield
    server.stop()


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "-d", "distance", "--dataset", "pumploop", "--out", "made"),
        ("run", "--config", "run.toml"),
        ("check", "distance"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_a_machine_that_cannot_seal_is_refused_before_anything_starts(
    tsadbench, unsealed_machine, tmp_path, monkeypatch, arguments
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.toml").write_text(
        "detectors = ['distance']\ndatasets = ['pumploop']\nout = 'made'\nrequire_seal = true\n"
    )
    done = tsadbench(*arguments, *(() if "--config" in arguments else ("--require-seal",)))
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert "--require-seal" in done.err
    assert GUARDED.reason in done.err
    assert not (tmp_path / "made").exists()


def test_code_that_the_caller_imported_is_refused_by_name(guarded_boxes):
    for detector in (Distance, Distance(power=3.0), "tests.helpers.tiny:Distance"):
        with pytest.raises(UsageError, match=r"Distance.*path/file\.py:Class"):
            package.run(detector, make_data(), require_seal=True)


def test_a_guarded_box_fails_its_trial_and_says_why(guarded_boxes, small_data, tmp_path):
    plan = make_plan(["max-z"], dataset=small_data, floors=False, require_seal=True)
    (record,) = run_plan(plan, Store.create(tmp_path / "runs"))
    assert (record.status, record.splits) == ("error", {})
    assert "--require-seal" in str(record.reason)


def test_kept_trials_that_are_guarded_do_not_count(guarded_boxes, small_data, tmp_path):
    store = Store.create(tmp_path / "runs")
    plan = make_plan(["max-z"], dataset=small_data, floors=False)
    required = replace(plan, require_seal=True)
    (guarded,) = run_plan(plan, store)
    assert (guarded.status, guarded.seal) == ("ok", "guarded")
    assert kept_records(plan, store) == (guarded,)
    assert kept_records(required, store) == ()
    sealed = replace(guarded, seal="sealed", seal_reason="")
    store.put(sealed)
    assert kept_records(required, store) == (sealed,)
    assert run_plan(required, store) == (sealed,)
