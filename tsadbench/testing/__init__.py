"""Checks that anyone can run on any detector: whether it keeps the contract, leaks, repeats, learns."""

from tsadbench.testing.check import Check, CheckResult
from tsadbench.testing.suite import all_checks, run_checks

__all__ = ["Check", "CheckResult", "all_checks", "run_checks"]
