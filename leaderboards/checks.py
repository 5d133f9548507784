"""Run all checks on every detector of the committed tables, and keep the reports in `checks.jsonl`.

Existing reports of the same label, code and version of the checks are kept, so an interrupted command continues where
it stopped. Reports of other versions, and of labels and code that no table shows any more, are removed at the end.
A quarter of an hour on one core.

    python leaderboards/checks.py
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tsadbench.errors import TsadbenchError
from tsadbench.execution.identity import code_of
from tsadbench.execution.record import RECORDS, read_records
from tsadbench.leaderboard.checks import CHECKS_VERSION, read_reports, report_of, write_reports
from tsadbench.testing import check_detector

HERE = Path(__file__).parent


def main() -> int:
    """Run what is missing and return the exit code: 1 if a detector cannot be checked."""
    shown = committed()
    checked = {one.identity for one in read_reports(HERE)}
    code, older = 0, set[str]()  # labels whose rows, and so reports, are of older code
    for label in sorted({label for label, _ in shown}):
        try:
            here = report_of(label)
            if (label, here.code_hash) not in shown:
                older.add(label)
                continue
            if here.identity in checked:
                continue
            start = time.monotonic()
            report = report_of(label, check_detector(label, on_fail=None))
        except TsadbenchError as error:
            print(f"{label}: {error}", flush=True)
            code = 1
            continue
        write_reports([*read_reports(HERE), report], HERE)
        print(f"{label}: {', '.join(report.failed) or 'passed'} ({time.monotonic() - start:.0f} s)", flush=True)
    reports = [one for one in read_reports(HERE) if one.checks == CHECKS_VERSION]
    write_reports([one for one in reports if (one.label, one.code_hash) in shown or one.label in older], HERE)
    return code


def committed() -> set[tuple[str, str]]:
    """Return label and code hash of the rows that are checked.

    The check `replays` trains in full, which takes up to an hour at the published size: those rows are `not checked`.
    """
    records = (one for file in HERE.rglob(RECORDS) for one in read_records(file) if "size=paper" not in one.label)
    return {(one.label, code_of(one.manifest)) for one in records}


if __name__ == "__main__":
    sys.exit(main())
