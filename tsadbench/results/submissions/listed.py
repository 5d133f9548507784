"""Submissions that are here, with the trust that their rows have: what tables and pages read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from tsadbench.base.status import Trust
from tsadbench.errors import StoreError
from tsadbench.execution.check_reports import CheckReport
from tsadbench.execution.record import Record
from tsadbench.execution.stored_files import open_regular
from tsadbench.results.submissions.folder import Files
from tsadbench.results.submissions.form import CHECKS, DESCRIPTION, RECORDS, Description
from tsadbench.utils.atomic_files import write_file
from tsadbench.utils.digests import digest

# Below the folder of the tables.
SUBMISSIONS = "submissions"
# Beside the folder of a submission, which its maker writes; this is written by those who verified it.
_VERIFIED = ".verified.json"
_MOST_BYTES = 2**22


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedRow:
    """What verifying one row of a submission gave.

    Parameters
    ----------
    label, dataset, protocol
        The row.
    trust
        "recomputed", or "rerun" if one of its trials was run again.
    rerun
        The trial that was, or empty.
    difference
        The largest difference between its scores and those submitted, as a share of their range.
    """

    label: str
    dataset: str
    protocol: str
    trust: Trust
    rerun: str = ""
    difference: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedSubmission:
    """The outcome of verifying a submission, kept beside its folder.

    Parameters
    ----------
    description
        SHA-256 of the ``submission.json`` that was verified, which names all other files.
    day, tsadbench
        When, and by which version.
    rows
        Of all rows.
    """

    description: str
    day: str
    tsadbench: str
    rows: tuple[VerifiedRow, ...]


@dataclass(frozen=True, slots=True)
class Submission:
    """A submission as tables show it.

    Parameters
    ----------
    folder
        Where it lies.
    description
        What ``submission.json`` holds.
    records
        One a trial, with the trust of its row, and all that its detector was trained on before its fit.
    reports
        Of checks of its detectors.
    """

    folder: Path
    description: Description
    records: tuple[Record, ...]
    reports: tuple[CheckReport, ...]

    @property
    def name(self) -> str:
        """Its name."""
        return self.description.name


def is_submission(folder: Path) -> bool:
    """Whether a folder says of itself that it is a submission."""
    return (folder / DESCRIPTION).is_file()


def read_submission(folder: Path) -> Submission:
    """Return a submission; its rows are "reported" unless this content was verified. No score is read.

    Raises
    ------
    StoreError
        If it is none, or a file is not the one that it names.
    """
    files = Files(folder)
    if files.faults:
        raise StoreError(f"{folder}: {files.faults[0].file}: {files.faults[0].reason}")
    try:
        text = files.read(DESCRIPTION)
        description = Description.from_json(text)
        content = {name: files.read(name) for name in (RECORDS, CHECKS)}
    except (KeyError, OSError, StoreError) as error:
        raise StoreError(f"{folder}: not a submission ({error}); expected a folder of tsadbench submit") from error
    for name, found in content.items():
        if digest(found) != description.files.get(name):
            raise StoreError(f"{folder / name}: its SHA-256 is not the one that {DESCRIPTION} names")
    trusts = _trusts(folder, digest(text))
    corpora = {one.label: one.pretrained_on for one in description.detectors}
    records = tuple(
        replace(
            record,
            trust=trusts.get((record.label, record.dataset, record.protocol), "reported"),
            pretrained_on=tuple(dict.fromkeys([*record.pretrained_on, *corpora.get(record.label, ())])),
        )
        for record in read_lines(content[RECORDS], str(folder / RECORDS))
    )
    reports = (CheckReport.from_json(line, str(folder / CHECKS)) for line in content[CHECKS].splitlines())
    return Submission(folder, description, records, tuple(reports))


def submissions_below(tables: Path) -> Iterator[Submission]:
    """Yield the submissions below a folder of tables, by their names; a StoreError if one cannot be read."""
    folder = tables / SUBMISSIONS
    if folder.is_dir():
        yield from (read_submission(one) for one in sorted(folder.iterdir()) if one.is_dir())


def ranked_submissions(tables: Path) -> Mapping[tuple[str, str], tuple[Record, ...]]:
    """Return the verified rows of all submissions below a folder of tables, by data set and protocol."""
    found: dict[tuple[str, str], tuple[Record, ...]] = {}
    for submission in submissions_below(tables):
        for record in submission.records:
            if record.trust != "reported":
                key = record.dataset, record.protocol
                found[key] = (*found.get(key, ()), record)
    return found


def keep_verified(folder: Path, verified: VerifiedSubmission) -> Path:
    """Write the outcome of verifying a submission beside its folder."""
    return write_file(_beside(folder), _adapter().dump_json(verified, indent=1) + b"\n")


def read_lines(content: bytes, origin: str) -> tuple[Record, ...]:
    """Return the records of a text with one a line; a StoreError if a line is none."""
    lines = content.splitlines()
    return tuple(Record.from_json(line, f"{origin}, line {number}") for number, line in enumerate(lines, start=1))


def _trusts(folder: Path, description: str) -> dict[tuple[str, str, str], Trust]:
    file = _beside(folder)
    if not file.exists():
        return {}
    try:
        with open_regular(file, _MOST_BYTES) as stream:
            verified = _adapter().validate_json(stream.read())
    except (OSError, ValidationError) as error:
        raise StoreError(f"{file}: cannot be read; verify {folder} again and write it anew") from error
    if verified.description != description:
        return {}
    return {(row.label, row.dataset, row.protocol): row.trust for row in verified.rows}


def _beside(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}{_VERIFIED}")


@cache
def _adapter() -> TypeAdapter[VerifiedSubmission]:
    return TypeAdapter(VerifiedSubmission)
