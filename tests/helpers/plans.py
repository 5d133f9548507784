"""Plans for tests, by the settings that they need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tsadbench.execution.plan import Plan
from tsadbench.execution.plan import make_plan as plan_of
from tsadbench.execution.request import DatasetSpec, DetectorSpec, RunRequest


def make_plan(
    detectors: Sequence[DetectorSpec], *, dataset: DatasetSpec = "skab", protocol: str = "strict", **settings: Any
) -> Plan:
    """Return the plan for one data set and protocol; ``settings`` are those of a `RunRequest`."""
    return plan_of(RunRequest(detectors=list(detectors), datasets=[dataset], protocols=[protocol], **settings))
