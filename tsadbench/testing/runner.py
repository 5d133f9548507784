"""Runs the checks on a detector, for the command line, Python and pytest.

None of the detector's code runs in the calling process. Most checks run with it in one box without data; checks of
trials (`testing.trials`) run in the calling process and inspect trials' boxes.
"""

from __future__ import annotations

import contextlib
import os
import traceback
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from tsadbench.base.detector import Detector
from tsadbench.base.status import CheckStatus
from tsadbench.errors import PluginError, UsageError
from tsadbench.registry import locate
from tsadbench.sandbox import Construction, ask, asking, describe
from tsadbench.sandbox.description import with_files_read
from tsadbench.testing import contract, leakage, reproducibility, robustness, synthetic  # noqa: F401 - their checks
from tsadbench.testing.check import Check, CheckResult, Compared, Failed, Skipped, Warned, all_checks
from tsadbench.testing.subject import Subject
from tsadbench.testing.trials import Trials
from tsadbench.utils.error_place import own_place
from tsadbench.utils.parameters import format_value, parameter_defaults, parse_label, require_known

if TYPE_CHECKING:
    import pytest

_WORKS = next(check for check in all_checks() if check.id == "works")
_SECONDS = 24 * 3600.0  # networks at their real size take hours


class CheckFailedError(AssertionError):
    """A detector failed checks; the message lists them."""


def check_detector(
    detector: str | Detector | type[Detector],
    *,
    full: bool = False,
    only: Sequence[str] = (),
    expected_failures: Mapping[str, str] | None = None,
    on_fail: Literal["raise"] | None = "raise",
) -> list[CheckResult]:
    """Run the checks on a detector, as ``tsadbench check`` does: its code runs in boxes, with one thread.

    Parameters
    ----------
    detector
        A detector, its class, or its label: ``NAME[key=value,...]``, ``path/to/file.py:Class``.
    full
        Whether to use its own parameters and more rows instead of its `test_params`.
    only
        Ids of the checks to run; empty: all.
    expected_failures
        Reason by id, for known failures besides those that the detector declares itself
        (`Detector.expected_check_failures`). Such a check must fail: one that passes is a failure.
    on_fail
        "raise", or None to return failures like any other result.

    Raises
    ------
    CheckFailedError
        If a check fails, or one that was expected to fail passes.
    UsageError
        If there is no such detector or check, or a parameter is out of range.
    PluginError
        If the detector cannot be loaded, or ends or blocks the process in which it is checked.

    Examples
    --------
    >>> from tsadbench_detectors.max_z import MaxZ
    >>> {result.status for result in check_detector(MaxZ, only=["prefix", "fault"])}
    {'pass'}
    """
    expected = dict(expected_failures or {})
    checks = _named(only, expected)
    with asking():
        results = _results(_construction(detector), checks, expected, full)
    failures = [_failure(result) for result in results if result.status == "fail"]
    if failures and on_fail == "raise":
        name = detector if isinstance(detector, str) else getattr(detector, "__name__", type(detector).__name__)
        raise CheckFailedError(f"{name} fails {len(failures)} checks:\n" + "\n".join(failures))
    return results


def _construction(detector: str | Detector | type[Detector]) -> Construction:
    if isinstance(detector, str):
        label = parse_label(detector)
        return with_files_read(Construction(locate(label.target), label.arguments))
    if isinstance(detector, type):
        return Construction.of(detector)
    defaults, given = parameter_defaults(type(detector)), detector.get_params().items()
    return Construction.of(type(detector), {name: value for name, value in given if value is not defaults[name]})


def _named(only: Sequence[str], expected: Iterable[str]) -> list[Check]:
    """Return the checks to be run; a UsageError if one that is named does not exist."""
    checks = {check.id: check for check in all_checks()}
    require_known((*only, *expected), checks, "there is no check")
    return [check for check in checks.values() if not only or check.id in only]


def _results(own: Construction, checks: list[Check], expected: dict[str, str], full: bool) -> list[CheckResult]:
    if describe(own.source).traits.needs_prior and own.given.get("prior") is None:
        own = replace(own, arguments={**own.arguments, "prior": synthetic.PRIOR})
    try:
        cheap, works = _tried(own, full)
    except PluginError as error:  # for instance, its process ended
        cheap, works = own, _WORKS.result("fail", str(error))
    others = [check for check in checks if check.id != "works"]
    if not others or not works.good:
        return [works, *(check.result("not-run") for check in others)]
    inside = ask(own, examined, Inside, cheap, full, [check.id for check in others], expected, seconds=_SECONDS)
    trials = Trials(full, cheap, own, inside.scores, inside.repeats)
    of_trials = [_examine(check, trials, inside.expected) for check in others if check.of_trials]
    results = {result.id: result for result in (works, *inside.results, *of_trials)}
    if lacking := [check.id for check in checks if check.id not in results]:
        raise PluginError(f"{own.source.target} cannot be checked: its box gave no result of {lacking[0]!r}")
    return [results[check.id] for check in checks]


def _tried(own: Construction, full: bool) -> tuple[Construction, CheckResult]:
    """Return the detector's construction for the checks, and whether it works."""
    refused: list[UsageError] = []
    # If a value of `test_params` does not fit the detector's own parameters, try the defaults, one at a time.
    instead = [] if full else [{one.name: format_value(one.default)} for one in describe(own.source).parameters]
    for texts in ({}, *instead):
        tried = replace(own, cheap=not full, texts={**texts, **own.texts})
        try:
            return tried, ask(tried, worked, CheckResult, tried, full, seconds=_SECONDS)
        except UsageError as error:
            refused.append(error)
    raise refused[0]


def _examine(check: Check, subject: Subject | Trials, expected: Mapping[str, str]) -> CheckResult:
    """Run one check; a UsageError of `works` is raised, because it means wrong usage."""
    reason = expected.get(check.id, "")
    # `single-sensor` tries data that a detector may decline.
    declared: CheckStatus = "not-applicable" if check.id == "single-sensor" else "expected-failure"
    try:
        if check.compares != "nothing" and subject.repeats == "nothing":
            raise Skipped("scores of one recording differ from call to call: the check `pure` says so")
        if check.compares == "fits" and subject.repeats == "scores":
            raise Skipped("two fits with one seed differ: the check `repeat` says so")
        if check.varies and isinstance(subject, Subject) and subject.constant:
            raise Skipped("its scores are constant: the check `not-constant` reports it")
        check.run(subject)
    except Skipped as skipped:
        return check.result("skip", str(skipped))
    except Failed as failure:
        failed: CheckStatus = "warn" if isinstance(failure, Warned) else "fail"
        return check.result(declared if reason else failed, reason or str(failure), failure.evidence)
    except Exception as error:  # any error of the detector is a failure
        if check is _WORKS:
            raise
        where = traceback.extract_tb(error.__traceback__)[-1]
        module = subject.cls.__module__ if isinstance(subject, Subject) else ""
        place = own_place(error, module) or f"{where.filename}:{where.lineno}"
        said = reason or f"{type(error).__name__}: {error}"
        return check.result(declared if reason else "fail", said, {"raised_in": place})
    if reason:
        return check.result("fail", f"expected to fail ({reason}), but it passes: remove the expectation")
    return check.result("pass")


# --- Functions that run in the detector's process


@dataclass(frozen=True, slots=True)
class Inside:
    """The answer of the detector's box: results, expected failures, and what trials need."""

    results: list[CheckResult]
    expected: dict[str, str]
    scores: list[float]
    repeats: Compared


def worked(cheap: Construction, full: bool) -> CheckResult:
    """Run the check `works`; a UsageError if a parameter is wrong."""
    return _examine(_WORKS, Subject(cheap, full), {})


def examined(cheap: Construction, full: bool, ids: list[str], given: dict[str, str]) -> Inside:
    """Run the checks that run in the detector's process."""
    # Not a trial's working directory: if scores depend on where a detector runs, the check `same-in-box` fails.
    os.chdir(os.path.expanduser("~"))
    subject = Subject(cheap, full)
    declared = subject.make().expected_check_failures()
    checks = _named(ids, declared)
    # Leaks are never excused, except in floors, which tables mark.
    may_fail = [one.id for one in checks if subject.traits.floor or one.group not in ("leakage", "replay")]
    expected = {name: declared[name] for name in may_fail if name in declared} | given
    results = [_examine(check, subject, expected) for check in checks if not check.of_trials]
    if len(results) < len(checks):
        with contextlib.suppress(Exception):  # other checks report the error, and those of trials are skipped
            return Inside(results, expected, subject.usual.tolist(), subject.repeats)
    return Inside(results, expected, [], "nothing")


class DetectorContract:
    """A test class to subclass: every check becomes a test of the detector.

    ``detector`` is a detector or its class; ``expected_failures`` gives the reason for each check that is known to
    fail. A check that does not apply is a skipped test; one that warns, a warning. The first test runs all checks.

    Examples
    --------
    >>> from tsadbench_detectors.max_z import MaxZ
    >>> class TestMaxZ(DetectorContract):
    ...     detector = MaxZ()
    """

    detector: ClassVar[Detector | type[Detector]]
    expected_failures: ClassVar[Mapping[str, str]] = {}
    _results: ClassVar[list[CheckResult]]

    def test_check(self, check_id: str) -> None:
        """Fail, skip or warn like the check."""
        import pytest  # not a dependency, but it runs this

        case = type(self)
        if "_results" not in vars(case):
            case._results = check_detector(case.detector, expected_failures=case.expected_failures, on_fail=None)
        results = {result.id: result for result in case._results}
        result = results[check_id] if results["works"].good else results["works"]
        if result.status == "fail":
            raise CheckFailedError(_failure(result))
        if result.status in ("skip", "not-applicable"):
            pytest.skip(result.reason)
        if result.status == "expected-failure":
            pytest.xfail(result.reason)
        if result.status == "warn":
            warnings.warn(f"{check_id}: {result.reason}", stacklevel=2)

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make one test per check."""
        metafunc.parametrize("check_id", [check.id for check in all_checks()])


def _failure(result: CheckResult) -> str:
    return f"{result.id}: {result.reason} {result.evidence}"
