"""Checks for any detector: whether it keeps its contract, leaks, repeats and learns.

For tests of detectors: `check_detector` runs them from Python, `DetectorContract` as pytest tests; `normal` and
`with_fault` make small data with known answers.
"""

from tsadbench.testing.check import Check, CheckResult, all_checks
from tsadbench.testing.runner import CheckFailedError, DetectorContract, check_detector
from tsadbench.testing.synthetic import normal, with_fault

__all__ = [
    "Check",
    "CheckFailedError",
    "CheckResult",
    "DetectorContract",
    "all_checks",
    "check_detector",
    "normal",
    "with_fault",
]
