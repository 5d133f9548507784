"""The checks of ``tsadbench check`` from Python and as pytest tests, for authors of plugins."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, TypeVar

from tsadbench.base.detector import Detector
from tsadbench.testing.check import CheckResult
from tsadbench.testing.detector_under_test import DetectorUnderTest
from tsadbench.testing.suite import all_checks, run_checks
from tsadbench.utils.parameters import parameters_of

if TYPE_CHECKING:
    import pytest

T = TypeVar("T")


class CheckFailedError(AssertionError):
    """A detector failed checks; the message lists them."""


def _under_test(detector: Detector | type[Detector], *, full: bool = False) -> DetectorUnderTest:
    """Return the detector, or its class, with `test_params`, except for those that it sets itself; none if ``full``."""
    if isinstance(detector, type):
        return DetectorUnderTest(detector, {} if full else detector.test_params(), full=full, own={})
    cls = type(detector)
    defaults = {parameter.name: parameter.default for parameter in parameters_of(cls)}
    own = {name: value for name, value in detector.get_params(deep=False).items() if value is not defaults[name]}
    return DetectorUnderTest(cls, own if full else {**cls.test_params(), **own}, full=full, own=own)


def check_detector(
    detector: Detector | type[Detector],
    *,
    full: bool = False,
    only: Sequence[str] = (),
    expected_failures: Mapping[str, str] | None = None,
    on_fail: Literal["raise"] | None = "raise",
) -> list[CheckResult]:
    """Run the checks on a detector.

    Parameters
    ----------
    detector
        A detector, or its class.
    full
        Whether to use its own parameters and more rows instead of its `test_params`.
    only
        Ids of the checks to run; empty: all.
    expected_failures
        Reason by id, for known failures besides those that the detector declares itself.
    on_fail
        "raise", or None to return failures like any other result.

    Raises
    ------
    CheckFailedError
        If a check fails, or one that was expected to fail passes.
    UsageError
        If there is no check of an id.

    Examples
    --------
    >>> from tsadbench_detectors.max_z import MaxZ
    >>> {result.status for result in check_detector(MaxZ, only=["prefix", "fault"])}
    {'pass'}
    """
    subject = _under_test(detector, full=full)
    results = run_checks(subject, only=only, expected_failures=expected_failures)
    failures = [f"{result.id}: {result.reason} {result.evidence}" for result in results if result.status == "fail"]
    if failures and on_fail == "raise":
        raise CheckFailedError(f"{subject.cls.__name__} fails {len(failures)} checks:\n" + "\n".join(failures))
    return results


def parametrize_with_checks(
    detectors: Sequence[Detector | type[Detector]],
) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Return a pytest decorator for a test of ``detector`` and ``check_id``: one test per detector and check.

    Parameters
    ----------
    detectors
        Detectors, or their classes.
    """
    import pytest  # not a dependency: whoever calls this runs pytest

    cases = [
        pytest.param(detector, check.id, id=f"{_name(detector)}-{check.id}")
        for detector in detectors
        for check in all_checks()
    ]
    return pytest.mark.parametrize(("detector", "check_id"), cases)


class DetectorContract:
    """A test class to subclass: every check becomes a test of the detector.

    ``detector`` is a detector or its class; ``expected_failures`` gives the reason for each check that is known to
    fail. A check that does not apply is a skipped test; one that warns, a warning.

    Examples
    --------
    >>> from tsadbench_detectors.max_z import MaxZ
    >>> class TestMaxZ(DetectorContract):
    ...     detector = MaxZ()
    """

    detector: ClassVar[Detector | type[Detector]]
    expected_failures: ClassVar[Mapping[str, str]] = {}

    def test_check(self, check_id: str) -> None:
        """Run one check."""
        import pytest  # not a dependency: it runs this

        results = check_detector(self.detector, only=[check_id], expected_failures=self.expected_failures)
        (result,) = (result for result in results if result.id == check_id)
        if result.status == "skip":
            pytest.skip(result.reason)
        if result.status == "expected-failure":
            pytest.xfail(result.reason)
        if result.status == "warn":
            warnings.warn(f"{check_id}: {result.reason}", stacklevel=2)

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make one test per check."""
        metafunc.parametrize("check_id", [check.id for check in all_checks()])


def _name(detector: Detector | type[Detector]) -> str:
    return (detector if isinstance(detector, type) else type(detector)).__name__
