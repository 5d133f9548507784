"""Makes reports of ``tsadbench check`` (`execution.check_reports`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from tsadbench.base.status import CHECKS_VERSION
from tsadbench.errors import PluginError
from tsadbench.execution.check_reports import SCHEMA, CheckReport, version_texts
from tsadbench.execution.provenance import determining_versions
from tsadbench.registry import locate
from tsadbench.sandbox import Construction, asking, describe
from tsadbench.sandbox.description import with_files_read
from tsadbench.testing import all_checks, synthetic
from tsadbench.testing.check import CheckResult
from tsadbench.utils.names import without_folders
from tsadbench.utils.parameters import Label, parse_label
from tsadbench.utils.text import one_line


def subject_of(detector: str, *, full: bool = False) -> CheckReport:
    """Return the report that checks of a detector would fill: its identity, without results.

    Raises
    ------
    UsageError, MissingExtraError, PluginError
        If there is no such detector, it cannot be loaded, or a parameter is out of range.
    """
    label = parse_label(detector)
    named = Construction(locate(label.target), label.arguments)
    with asking():
        description = describe(named.source)
        own = with_files_read(named)
        prior = synthetic.PRIOR if description.traits.needs_prior else None
        try:
            changed = dict(describe(own, prior=prior).changed)
        except PluginError:  # the check `works` says so
            changed = {name: str(text) for name, text in sorted(own.given.items())}
    return CheckReport(
        schema=SCHEMA,
        label=str(Label(without_folders(label.target), changed)),
        code_hash=description.code_hash,
        versions=version_texts(determining_versions(description)),
        checks=CHECKS_VERSION,
        full=full,
        day=datetime.now(UTC).date().isoformat(),
        results={},
        reasons={},
    )


def filled(report: CheckReport, results: Sequence[CheckResult]) -> CheckReport:
    """Return a report with results of checks besides those that it has, in the order of all checks."""
    statuses = {**report.results, **{result.id: result.status for result in results}}
    reasons = {**report.reasons, **{result.id: one_line(result.reason, 500) for result in results if result.reason}}
    order = [check.id for check in all_checks() if check.id in statuses]
    return replace(
        report,
        results={check: statuses[check] for check in order},
        reasons={check: reasons[check] for check in order if check in reasons},
    )
