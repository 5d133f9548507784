"""Runs the checks on a detector, and compares failures with those expected."""

from __future__ import annotations

import contextlib
import functools
import itertools
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tsadbench.base.detector import Detector, Traits
from tsadbench.base.status import CheckStatus
from tsadbench.errors import PluginError, UsageError
from tsadbench.registry import locate
from tsadbench.sandbox import Construction, Description, ask, asking, default_launcher, describe
from tsadbench.sandbox.description import with_files_read
from tsadbench.testing import (
    contract,
    leakage,
    learning,
    libraries,
    position,
    probe,
    replays,
    reproducibility,
    robustness,
    synthetic,
)
from tsadbench.testing.check import Check, CheckResult, Failed, Skipped, Warned
from tsadbench.testing.detector_under_test import BoxedSubject, DetectorUnderTest, Outside
from tsadbench.utils.error_place import own_place
from tsadbench.utils.parameters import nearest, parse_label
from tsadbench.utils.threads import limit_threads

# The probe first: if it fails, the others do not run. Leakage and replays last: they run boxes, whose server imports in
# the meantime.
_MODULES = (probe, contract, reproducibility, robustness, learning, position, libraries, leakage, replays)
(_PROBE,) = probe.group.checks
# Networks at their real size take hours.
_SECONDS = 24 * 3600.0


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
    checks = _asked_for(only, expected_failures or {})
    limit_threads(1)
    probed = _probed(subject)
    if not probed.good:
        return _nothing_else_run(probed, checks)
    declared = subject.make().expected_check_failures()
    _asked_for(only, declared)
    expected = {**_excused(declared, subject.traits), **(expected_failures or {})}
    default_launcher().warm()
    of = functools.partial(Construction.of, subject.cls)
    boxed: BoxedSubject | None = None
    results = []
    for check in checks:
        if check.boxed is not None and boxed is None:
            full = subject.full
            boxed = BoxedSubject(of(subject.parameters), of(subject.own), Outside.of(subject), full=full)
        results.append(probed if check.id == probe.PROBE else _run(check, subject, boxed, expected.get(check.id)))
    return results


@dataclass(frozen=True, slots=True)
class Inside:
    """What a box that holds a detector alone tells of it.

    Parameters
    ----------
    results
        Of the checks that need no boxes of trials.
    declared
        Reasons of failures that the detector expects, by check.
    outside
        What it is outside of the boxes of trials; None if no check needs it.
    without_prior
        Whether it needs a prior and has none with the parameters of tests, and with those of its runs.
    """

    results: list[CheckResult]
    declared: dict[str, str]
    outside: Outside | None
    without_prior: tuple[bool, bool]


def check_named(detector: str, *, full: bool = False, only: Sequence[str] = ()) -> list[CheckResult]:
    """Run checks on a detector without running any of its code in this process.

    Parameters
    ----------
    detector
        Its label.
    full, only
        As for `check_detector`.

    Raises
    ------
    UsageError
        If there is no such detector or check, or a parameter is out of range: that is wrong usage, not a failed check.
    PluginError
        If it cannot be loaded, or ends or blocks the process in which it is checked.
    """
    checks = _asked_for(only)
    label = parse_label(detector)
    named = Construction(locate(label.target), label.arguments)
    source = named.source
    with asking():
        description = describe(source)
        own = with_files_read(named)
        cheap = own if full else replace(own, cheap=True)
        try:
            cheap, probed = _probed_boxed(cheap, description, full=full)
        except PluginError as error:  # it ends its process, for instance
            failed = replace(_not_run(_PROBE), status="fail", reason=str(error))
            return _nothing_else_run(failed, checks)
        if not probed.good:
            return _nothing_else_run(replace(probed, group=_PROBE.group, sentence=_PROBE.sentence), checks)
        inside = ask(source, checked_inside, Inside, cheap, own, full, tuple(only), seconds=_SECONDS)
    expected = _excused(inside.declared, description.traits)
    found = {result.id: result for result in inside.results}
    boxed: BoxedSubject | None = None
    if inside.outside is not None:
        prior = synthetic.PRIOR
        constructions = [
            replace(one, arguments={**one.arguments, "prior": prior}) if missing else one
            for one, missing in zip((cheap, own), inside.without_prior, strict=True)
        ]
        boxed = BoxedSubject(constructions[0], constructions[1], inside.outside, full=full)
    results = []
    for check in checks:
        if check.id == probe.PROBE:
            results.append(replace(probed, group=check.group, sentence=check.sentence))
        elif check.boxed is not None:
            results.append(_run(check, None, boxed, expected.get(check.id)))
        elif check.id in found:
            results.append(replace(found[check.id], group=check.group, sentence=check.sentence))
        else:
            raise PluginError(f"{detector} cannot be checked: its box gave no result of {check.id!r}")
    return results


def _probed_boxed(cheap: Construction, description: Description, *, full: bool) -> tuple[Construction, CheckResult]:
    """Have a detector probed in a box; return how it was constructed, and the result.

    `test_params` are made for the defaults. One that does not go with a parameter of the label is left out: the default
    stands in its place.
    """

    def probe_of(construction: Construction) -> CheckResult:
        return ask(construction.source, probed_inside, CheckResult, construction, full, seconds=_SECONDS)

    try:
        return cheap, probe_of(cheap)
    except UsageError:
        if not (cheap.cheap and cheap.texts):
            raise
        for parameter in description.parameters:
            if parameter.name not in cheap.given:
                other = replace(cheap, texts={**cheap.texts, parameter.name: parameter.default_text})
                with contextlib.suppress(UsageError):
                    return other, probe_of(other)
        raise


def probed_inside(cheap: Construction, full: bool) -> CheckResult:
    """Run the check that comes before all others, with one thread."""
    cls = cheap.source.load()
    limit_threads(1)
    return _probed(DetectorUnderTest(cls, cheap.values(cls), full=full))


def checked_inside(cheap: Construction, own: Construction, full: bool, only: tuple[str, ...]) -> Inside:
    """Run the checks that need no boxes of trials beside the detector's code, with one thread."""
    cls = cheap.source.load()
    parameters, of_runs = cheap.values(cls), own.values(cls)
    subject = DetectorUnderTest(cls, parameters, full=full, own=of_runs)
    declared = dict(subject.make().expected_check_failures())
    checks = [check for check in _asked_for(only, declared) if check.id != probe.PROBE]
    expected = _excused(declared, subject.traits)
    limit_threads(1)
    return Inside(
        results=[_run(check, subject, None, expected.get(check.id)) for check in checks if check.boxed is None],
        declared=declared,
        outside=Outside.of(subject) if any(check.boxed for check in checks) else None,
        without_prior=(_lacks_prior(cls, parameters), _lacks_prior(cls, of_runs)),
    )


def _lacks_prior(cls: type[Detector], arguments: Mapping[str, object]) -> bool:
    return cls.traits.needs_prior and arguments.get("prior") is None


def _asked_for(only: Sequence[str], *others: Iterable[str]) -> list[Check]:
    """Return the checks to be run; a UsageError if one that is named does not exist."""
    checks = {check.id: check for check in all_checks()}
    for name in (*only, *itertools.chain(*others)):
        if name not in checks:
            raise UsageError(f"there is no check {name!r}{nearest(name, checks)}")
    return [check for check in checks.values() if not only or check.id in only]


def _excused(declared: Mapping[str, str], traits: Traits) -> dict[str, str]:
    """Return the failures that a detector may declare; a leak is a leak, but for floors, which every table marks."""
    groups = {check.id: check.group for check in all_checks()}
    return {id_: reason for id_, reason in declared.items() if traits.floor or groups[id_] not in ("leakage", "replay")}


def _probed(subject: DetectorUnderTest) -> CheckResult:
    """Run the check that comes before all others; a UsageError if a parameter is wrong."""
    return _run(_PROBE, subject, None, None)


def _nothing_else_run(probed: CheckResult, checks: Sequence[Check]) -> list[CheckResult]:
    return [probed, *(_not_run(check) for check in checks if check.id != probe.PROBE)]


def _not_run(check: Check) -> CheckResult:
    return CheckResult(check.id, check.group, check.sentence, "not-run")


def _run(
    check: Check, subject: DetectorUnderTest | None, boxed: BoxedSubject | None, expected: str | None
) -> CheckResult:
    def result(status: CheckStatus, reason: str, evidence: dict[str, object] | None = None) -> CheckResult:
        return CheckResult(check.id, check.group, check.sentence, status, reason, evidence or {})  # type: ignore[arg-type]

    declared: CheckStatus = "not-applicable" if check.declinable else "expected-failure"
    failed: CheckStatus = "fail" if expected is None else declared
    try:
        if check.run is not None and subject is not None:
            check.require_repetition(subject)
            check.run(subject)
        elif check.boxed is not None and boxed is not None:
            check.require_repetition(boxed)
            check.boxed(boxed)
    except Skipped as skipped:
        return result("skip", str(skipped))
    except Failed as failure:
        status: CheckStatus = "warn" if isinstance(failure, Warned) and expected is None else failed
        return result(status, expected or failure.reason, dict(failure.evidence))
    except Exception as error:  # any error of the detector is a failure
        if check.id == probe.PROBE:
            raise
        where = traceback.extract_tb(error.__traceback__)[-1]
        own = "" if subject is None else own_place(error, subject.cls.__module__)
        evidence = {"raised_in": own or f"{where.filename}:{where.lineno}"}
        return result(failed, expected or f"{type(error).__name__}: {error}", dict(evidence))
    if expected is not None:
        return result("fail", f"expected to fail ({expected}), but it passes: expect it no longer")
    return result("pass", "")
