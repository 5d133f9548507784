"""Reports of ``tsadbench check``, kept by the identity of what was checked, and which rows of tables they vouch for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import TypeAdapter, ValidationError

from tsadbench.base.status import CHECKS_VERSION, CheckStatus
from tsadbench.errors import StoreError
from tsadbench.execution.record import Record
from tsadbench.execution.stored_files import CHECKS, open_regular
from tsadbench.utils.atomic_files import write_file
from tsadbench.utils.grouping import grouped
from tsadbench.utils.names import label_fault
from tsadbench.utils.parameters import JsonValue
from tsadbench.utils.shipped_tables import LEADERBOARDS
from tsadbench.utils.text import one_line

SCHEMA = 1
# Beside committed tables, one report a line; in a store, one file a report.
FILE = "checks.jsonl"
_ENDING = ".json"
# A report has some 3,000 bytes.
_MOST_BYTES = 2**20

Checked: TypeAlias = Literal["pass", "fail", "no"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """What all checks found on a detector.

    Parameters
    ----------
    schema
        Version of this layout.
    label
        The detector with the parameters that differ from their defaults.
    code_hash
        Fingerprint of what its code does.
    versions
        Of the libraries that a trial's identity names.
    checks
        `CHECKS_VERSION` of the checks.
    full
        Whether they ran with the detector's own parameters (``--full``).
    day
        When they ran, UTC.
    results
        How each check ended, by its id.
    reasons
        Why, of each that did not pass.
    """

    schema: int
    label: str
    code_hash: str
    versions: Mapping[str, str | None]
    checks: int
    full: bool
    day: str
    results: Mapping[str, CheckStatus]
    reasons: Mapping[str, str]

    @property
    def identity(self) -> str:
        """Hash of what determines the report, and the name of its file in a store."""
        parts = [self.label, self.code_hash, dict(self.versions), self.checks, self.full]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]

    @property
    def failed(self) -> tuple[str, ...]:
        """Ids of the checks that failed; those that did not run failed with the first, `works`."""
        return tuple(check for check, status in self.results.items() if status == "fail")

    def vouches_for(self, record: Record) -> bool:
        """Whether it is about the detector of a trial: its label, its code, and the libraries that both name."""
        if (self.label, self.code_hash) != (record.label, record.manifest.get("code_hash")):
            return False
        of_trial = versions_of(record)
        return all(of_trial[name] == version for name, version in self.versions.items() if name in of_trial)

    def to_json(self, indent: int | None = None) -> str:
        """Return it as JSON, on one line unless it is indented."""
        return _adapter().dump_json(self, indent=indent).decode() + "\n"

    @classmethod
    def from_json(cls, text: str | bytes, origin: str) -> CheckReport:
        """Read a report; a StoreError if it is none."""
        try:
            report = _adapter().validate_json(text)
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            where = one_line(".".join(map(str, fault["loc"])), 100)
            raise StoreError(f"{origin}: not a report of checks ({where}: {fault['msg']}); remove it") from error
        if report.schema != SCHEMA:
            raise StoreError(f"{origin}: expected a report of schema {SCHEMA}, found {report.schema}; remove it")
        for name in (report.label, *report.results):
            if what := label_fault(name):
                raise StoreError(f"{origin}: not a report of checks ({what}); remove it")
        reasons = {check: one_line(reason) for check, reason in report.reasons.items() if check in report.results}
        return replace(report, reasons=reasons)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What reports say of a row.

    Parameters
    ----------
    checked
        "pass" if a report without failures vouches for each of its trials, "fail" if one has failures, else "no".
    failed
        Ids of the checks that failed.
    reports
        Those that it rests on.
    """

    checked: Checked = "no"
    failed: tuple[str, ...] = ()
    reports: tuple[CheckReport, ...] = ()


UNKNOWN = Verdict()


class CheckReports:
    """Reports, to be looked up for rows.

    Parameters
    ----------
    reports
        Those of other versions of the checks than today's count for nothing.
    """

    def __init__(self, reports: Iterable[CheckReport] = ()) -> None:
        self._by_label = grouped((one for one in reports if one.checks == CHECKS_VERSION), lambda one: one.label)

    @classmethod
    def beside(cls, folder: Path | None, more: Iterable[CheckReport] = ()) -> CheckReports:
        """Return the reports that ship, those of a run store or a folder of tables, if there is one, and more."""
        of_folder = () if folder is None else (*kept(folder), *read_reports(folder / FILE))
        return cls([*shipped_reports(), *of_folder, *more])

    def verdict(self, records: Sequence[Record]) -> Verdict:
        """Return what the reports say of the trials of one row."""
        found: list[tuple[CheckReport, ...]] = []
        seen = set()
        for record in records:
            key = record.manifest.get("code_hash"), tuple(sorted(versions_of(record).items()))
            if key not in seen:
                seen.add(key)
                about = self._by_label.get(record.label, ())
                found.append(tuple(one for one in about if one.vouches_for(record)))
        every = tuple(one for reports in found for one in reports)
        failed = tuple(dict.fromkeys(check for one in every for check in one.failed))
        return Verdict("fail" if failed else "pass" if found and all(found) else "no", failed, every)


def keep(report: CheckReport, store: Path) -> Path:
    """Write a report into a store; one of the same identity is replaced. Errors as for `write_file`."""
    return write_file(store / CHECKS / f"{report.identity}{_ENDING}", report.to_json())


def kept(store: Path) -> Iterator[CheckReport]:
    """Yield the reports of a store; what cannot be read counts for nothing, as if the checks had not run."""
    folder = store / CHECKS
    if folder.is_symlink() or not folder.is_dir():
        return
    for file in sorted(folder.glob(f"*{_ENDING}")):
        try:
            with open_regular(file, _MOST_BYTES) as content:
                report = CheckReport.from_json(content.read(), str(file))
        except (OSError, StoreError):
            continue
        if file.name == f"{report.identity}{_ENDING}":
            yield report


def read_reports(file: Path) -> tuple[CheckReport, ...]:
    """Return the reports of a file with one a line; none if there is no such file.

    Raises
    ------
    StoreError
        If a line is not a report.
    """
    if not file.is_file():
        return ()
    lines = file.read_text(encoding="utf-8").splitlines()
    return tuple(CheckReport.from_json(line, f"{file}, line {number}") for number, line in enumerate(lines, start=1))


@cache
def shipped_reports() -> tuple[CheckReport, ...]:
    """Return the reports that ship with the package, of the detectors of its tables."""
    return read_reports(LEADERBOARDS / FILE)


def write_reports(reports: Iterable[CheckReport], file: Path) -> Path:
    """Write reports in the order of their labels, one a line; of one identity the last counts."""
    by_identity = {one.identity: one for one in reports}
    ordered = sorted(by_identity.values(), key=lambda one: (one.label, one.code_hash, one.identity))
    return write_file(file, "".join(one.to_json() for one in ordered))


def versions_of(record: Record) -> dict[str, str | None]:
    """Return the versions of libraries that a trial's record names."""
    parts = (record.manifest.get(name) for name in ("versions", "adapted", "imported"))
    found = {name: value for part in parts if isinstance(part, dict) for name, value in part.items()}
    return {name: value for name, value in version_texts(found).items() if name != "python"}


def version_texts(versions: Mapping[str, JsonValue]) -> dict[str, str | None]:
    """Return versions as reports hold them."""
    return {name: None if version is None else str(version) for name, version in versions.items()}


@cache
def _adapter() -> TypeAdapter[CheckReport]:
    return TypeAdapter(CheckReport)
