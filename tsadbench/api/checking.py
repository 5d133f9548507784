"""`tsadbench.check`: runs a detector's checks, and writes the report that tables read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tsadbench.base.detector import Detector
from tsadbench.errors import UsageError
from tsadbench.execution.plan import refuse_unsealed
from tsadbench.execution.store import Store
from tsadbench.leaderboard.checks import keep, report_of
from tsadbench.testing import CheckResult, check_detector


def check(
    detector: str | type[Detector],
    *,
    full: bool = False,
    only: Sequence[str] = (),
    require_seal: bool = False,
    out: str | Path | None = None,
) -> list[CheckResult]:
    """Check a detector for leaks and broken promises, as ``tsadbench check`` does; failed checks raise nothing.

    ``detector``, ``full`` and ``only`` are as for `tsadbench.testing.check_detector`. ``require_seal`` refuses
    machines that cannot seal boxes. ``out`` is a run store for the report on a named detector, so that its tables no
    longer say ``not checked``. Returns a result for each check: ``id``, ``status``, ``reason``, ``evidence``.
    """
    if out is not None and only:
        raise UsageError("it stores the report of all checks: leave out `only`", field="out")
    if require_seal:
        refuse_unsealed()
    store = None if out is None else Store.create(Path(out))
    results = list(check_detector(detector, full=full, only=only, on_fail=None))
    if store is not None and isinstance(detector, str):
        keep(report_of(detector, results, full=full), store.path)
    return results
