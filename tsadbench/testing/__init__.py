"""Checks that anyone can run on any detector: whether it keeps its contract, leaks, repeats, learns.

For tests of detectors: `check_detector` runs them from Python, `DetectorContract` and `parametrize_with_checks` as
pytest tests; `normal` and `with_fault` make small data with known answers.
"""

from tsadbench.testing.check import Check, CheckResult
from tsadbench.testing.detector_contract import (
    CheckFailedError,
    DetectorContract,
    check_detector,
    parametrize_with_checks,
)
from tsadbench.testing.detector_under_test import DetectorUnderTest
from tsadbench.testing.suite import all_checks, check_named, run_checks
from tsadbench.testing.synthetic import normal, with_fault

__all__ = [
    "Check",
    "CheckFailedError",
    "CheckResult",
    "DetectorContract",
    "DetectorUnderTest",
    "all_checks",
    "check_detector",
    "check_named",
    "normal",
    "parametrize_with_checks",
    "run_checks",
    "with_fault",
]
