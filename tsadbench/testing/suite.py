"""Runs the checks on a detector, and compares failures with those expected."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence

from tsadbench.errors import UsageError
from tsadbench.sandbox import default_launcher
from tsadbench.testing import contract, leakage, learning, position, replays, reproducibility, robustness
from tsadbench.testing.check import Check, CheckResult, CheckStatus, Failed, Skipped, Warned
from tsadbench.testing.detector_under_test import DetectorUnderTest
from tsadbench.utils.parameters import nearest
from tsadbench.utils.threads import limit_threads

# Leakage and replays last: they run boxes, whose server imports in the meantime.
_MODULES = (contract, reproducibility, robustness, learning, position, leakage, replays)


def all_checks() -> tuple[Check, ...]:
    """Return every check, group by group."""
    return tuple(check for module in _MODULES for check in module.group.checks)


def run_checks(
    subject: DetectorUnderTest, *, only: Sequence[str] = (), expected_failures: Mapping[str, str] | None = None
) -> list[CheckResult]:
    """Run checks on a detector, with one thread.

    Parameters
    ----------
    subject
        The detector and the data.
    only
        Ids of the checks to run; empty: all.
    expected_failures
        Reason by id, besides those that the detector declares itself (`Detector.expected_check_failures`). Such a
        check must fail: one that passes is a failure, so that no reason outlives its cause.

    Raises
    ------
    UsageError
        If there is no check of an id.
    """
    checks = {check.id: check for check in all_checks()}
    declared = subject.make().expected_check_failures()
    for name in (*only, *declared, *(expected_failures or {})):
        if name not in checks:
            raise UsageError(f"there is no check {name!r}{nearest(name, checks)}")
    # A leak is a leak: only floors, which every table marks as such, may declare one away.
    excused = {
        id_: reason
        for id_, reason in declared.items()
        if subject.traits.floor or checks[id_].group not in ("leakage", "replay")
    }
    expected = {**excused, **(expected_failures or {})}
    limit_threads(1)
    default_launcher().warm()
    return [_run(check, subject, expected.get(check.id)) for check in checks.values() if not only or check.id in only]


def _run(check: Check, subject: DetectorUnderTest, expected: str | None) -> CheckResult:
    def result(status: CheckStatus, reason: str, evidence: dict[str, object] | None = None) -> CheckResult:
        return CheckResult(check.id, check.group, check.sentence, status, reason, evidence or {})  # type: ignore[arg-type]

    failed: CheckStatus = "fail" if expected is None else "expected-failure"
    try:
        check.require_repetition(subject)
        check.run(subject)
    except Skipped as skipped:
        return result("skip", str(skipped))
    except Failed as failure:
        status: CheckStatus = "warn" if isinstance(failure, Warned) and expected is None else failed
        return result(status, expected or failure.reason, dict(failure.evidence))
    except Exception as error:  # any error of the detector is a failure
        where = traceback.extract_tb(error.__traceback__)[-1]
        evidence = {"raised_in": f"{where.filename}:{where.lineno}"}
        return result(failed, expected or f"{type(error).__name__}: {error}", dict(evidence))
    if expected is not None:
        return result("fail", f"expected to fail ({expected}), but it passes: expect it no longer")
    return result("pass", "")
