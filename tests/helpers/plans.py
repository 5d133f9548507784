"""Plans for tests, by the settings that they need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tsadbench.execution.plan import Plan, Trial
from tsadbench.execution.plan import make_plan as plan_of
from tsadbench.execution.request import DatasetSpec, DetectorSpec, RunRequest
from tsadbench.execution.trial import Outcome, run_trials


def make_plan(
    detectors: Sequence[DetectorSpec], *, dataset: DatasetSpec = "skab", protocol: str = "strict", **settings: Any
) -> Plan:
    """Return the plan for one data set and protocol; ``settings`` are those of a `RunRequest`."""
    return plan_of(RunRequest(detectors=list(detectors), datasets=[dataset], protocols=[protocol], **settings))


def run_trial(trial: Trial, plan: Plan, *options: Any, **more: Any) -> Outcome:
    """Return the outcome of one trial; options as for `run_trials`."""
    (outcome,) = run_trials((trial,), plan, *options, **more)
    return outcome
