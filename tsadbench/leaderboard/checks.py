"""Reports of ``tsadbench check``, kept in run stores and next to committed tables."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from tsadbench.base.status import CheckStatus
from tsadbench.errors import PluginError
from tsadbench.execution.store import CHECKS
from tsadbench.registry import locate
from tsadbench.sandbox import Construction, asking, describe
from tsadbench.sandbox.description import with_files_read
from tsadbench.utils.files import LEADERBOARDS, open_regular, write_file
from tsadbench.utils.parameters import Label, parse_label
from tsadbench.utils.text import LabelText, one_line, without_folders

if TYPE_CHECKING:
    from tsadbench.testing import CheckResult

# Raise it with a new or stricter check: reports of other versions are ignored.
CHECKS_VERSION = 1
FILE = "checks.jsonl"  # for committed tables, one report per line; a store has one file per report
_MOST_BYTES = 2**26  # a report has about 3,000


class CheckReport(BaseModel):
    """How each check of a detector ended, and why, if it did not pass; ``checks`` is `CHECKS_VERSION`.

    It applies to trials with the same label and code.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: LabelText
    code_hash: str
    checks: int
    full: bool
    day: str
    results: dict[LabelText, CheckStatus]
    reasons: dict[LabelText, Annotated[str, AfterValidator(one_line)]]

    @property
    def identity(self) -> str:
        """Hash of what the report is about, and the name of its file in a store."""
        parts = [self.label, self.code_hash, self.checks, self.full]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]

    @property
    def failed(self) -> tuple[str, ...]:
        """Ids of the checks that failed; if `works` fails, the others do not run."""
        return tuple(check for check, status in self.results.items() if status == "fail")


def report_of(detector: str, results: Sequence[CheckResult] = (), *, full: bool = False) -> CheckReport:
    """Return the report of checks of a detector, by default without results; errors as for `describe`."""
    from tsadbench.testing.synthetic import PRIOR

    label = parse_label(detector)
    with asking():
        own = with_files_read(Construction(locate(label.target), label.arguments))
        description = describe(own.source)
        try:
            changed = describe(own, prior=PRIOR if description.traits.needs_prior else None).changed
        except PluginError:  # the check `works` reports it
            changed = {name: str(text) for name, text in sorted(own.given.items())}
    return CheckReport(
        label=str(Label(without_folders(label.target), changed)),
        code_hash=description.sources.digest,
        checks=CHECKS_VERSION,
        full=full,
        day=datetime.now(UTC).date().isoformat(),
        results={result.id: result.status for result in results},
        reasons={result.id: one_line(result.reason, 500) for result in results if result.reason},
    )


def keep(report: CheckReport, store: Path) -> Path:
    """Write a report into a store; one of the same identity is replaced. Errors as for `write_file`."""
    return write_file(store / CHECKS / f"{report.identity}.json", report.model_dump_json() + "\n")


def read_reports(folder: Path) -> tuple[CheckReport, ...]:
    """Return the reports of a run store or a folder of tables; lines that are not reports are skipped."""
    found = []
    files = [] if (folder / CHECKS).is_symlink() else sorted((folder / CHECKS).glob("*.json"))
    for file in (*files, folder / FILE):
        with suppress(OSError), open_regular(file, _MOST_BYTES) as lines:
            for line in lines:
                with suppress(ValidationError):
                    found.append(CheckReport.model_validate_json(line))
    return tuple(found)


@cache
def shipped_reports() -> tuple[CheckReport, ...]:
    """Return the reports that ship with the package, on the detectors in its tables."""
    return read_reports(LEADERBOARDS)


def write_reports(reports: Iterable[CheckReport], folder: Path) -> Path:
    """Write reports into a folder of tables sorted by label; of reports with the same identity, the last counts."""
    by_identity = {one.identity: one for one in reports}
    ordered = sorted(by_identity.values(), key=lambda one: (one.label, one.code_hash, one.identity))
    return write_file(folder / FILE, "".join(f"{one.model_dump_json()}\n" for one in ordered))
