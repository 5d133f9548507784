"""Verifies a submission without running its code: every file is what it says, every metric is what our labels give."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tsadbench.base.dataset import LabelledDataset
from tsadbench.errors import StoreError, TsadbenchError
from tsadbench.execution.check_reports import CheckReport, CheckReports
from tsadbench.execution.record import Record
from tsadbench.execution.run_store import Store
from tsadbench.execution.score_arrays import score_shapes
from tsadbench.execution.trial import Outcome
from tsadbench.registry import is_registered
from tsadbench.results.bank.bank_file import BankFile
from tsadbench.results.bank.parquet_form import read_bank_file
from tsadbench.results.judging import Judge
from tsadbench.results.shipped import committed_labels
from tsadbench.results.submissions.code import code_fault, is_shipped, machine_fault
from tsadbench.results.submissions.folder import Fault, Files
from tsadbench.results.submissions.form import (
    CHECKS,
    DESCRIPTION,
    RECORDS,
    STATEMENT,
    Description,
    plain_fault,
    statement_fault,
    unfit_texts,
)
from tsadbench.results.submissions.listed import read_lines
from tsadbench.results.verification import verify
from tsadbench.utils.grouping import grouped
from tsadbench.utils.names import name_fault
from tsadbench.utils.parameters import parse_label
from tsadbench.utils.text import one_line

_OTHER_CODE = "here is not what made it"


@dataclass(slots=True)
class Verification:
    """What verifying a submission found.

    Parameters
    ----------
    folder
        The submission's.
    description
        What it says of itself; None if that cannot be read.
    faults
        Why it is refused, by file; empty if it is not.
    records
        Of the trials whose files could be read, by the files' paths.
    reports
        Of checks.
    store
        The submitted trials as a run store, while `verified` is open.
    """

    folder: Path
    description: Description | None = None
    faults: list[Fault] = field(default_factory=list)
    records: dict[str, Record] = field(default_factory=dict)
    reports: tuple[CheckReport, ...] = ()
    store: Store | None = None

    @property
    def refused(self) -> bool:
        """Whether a file has a fault."""
        return bool(self.faults)

    def refuse(self, file: str, *reasons: str) -> None:
        """Note why a file is refused; a reason that is known already is not repeated."""
        for reason in reasons:
            fault = Fault(file, one_line(reason, 500))
            if reason and fault not in self.faults:
                self.faults.append(fault)


@contextmanager
def verified(
    folder: Path, load: Callable[[str], LabelledDataset], tables: Path | None = None
) -> Iterator[Verification]:
    """Verify a submission, and give what was found while its scores lie in a run store.

    Parameters
    ----------
    folder
        The submission's.
    load
        Returns the data set of a name.
    tables
        Folder of committed tables, in which no row may have one of its labels; None: those that ship.
    """
    found = Verification(folder)
    files = Files(folder)
    found.faults += files.faults
    with tempfile.TemporaryDirectory(prefix="tsadbench-verify-") as place:
        description = _read_description(found, files)
        if description is not None:
            banked = _read_files(found, files, description)
            if not found.refused:
                _check_detectors(found, description, tables)
            if not found.refused:
                found.store = Store.create(Path(place) / "submitted")
                _judge(found, banked, load)
        found.faults.sort()
        yield found


def _read_description(found: Verification, files: Files) -> Description | None:
    """Read ``submission.json`` and the statement, and compare all files with what they name."""
    for name in (DESCRIPTION, STATEMENT, RECORDS, CHECKS):
        if name not in files.sizes and all(fault.file != name for fault in found.faults):
            found.refuse(name, "it is missing")
    if DESCRIPTION not in files.sizes:
        return None
    try:
        text = files.read(DESCRIPTION)
        description = found.description = Description.from_json(text)
    except (OSError, StoreError) as error:
        found.refuse(DESCRIPTION, str(error))
        return None
    if description.name != found.folder.resolve().name:
        found.refuse(DESCRIPTION, f"its name is {description.name}, its folder's {found.folder.resolve().name}")
    if STATEMENT in files.sizes:
        said = files.read(STATEMENT).decode(errors="replace")
        found.refuse(STATEMENT, statement_fault(said, text, description.name))
    for detector in description.detectors:
        found.refuse(DESCRIPTION, code_fault(detector.label, detector.code, files.sizes))
    here = files.digests()
    for name in sorted({*description.files, *here}):
        if name not in here:
            if all(fault.file != name for fault in found.faults):
                found.refuse(one_line(name, 200), f"{DESCRIPTION} names it, and it is missing")
        elif name not in description.files:
            found.refuse(name, f"{DESCRIPTION} does not name it")
        elif here[name] != description.files[name]:
            found.refuse(name, "it was edited: its SHA-256 is not the one that submission.json names")
    return description


def _read_files(found: Verification, files: Files, description: Description) -> Mapping[str, BankFile]:
    """Return what the score files hold, by their paths; those with a fault are left out."""
    bad = {fault.file for fault in found.faults}
    banked: dict[str, BankFile] = {}
    for trial, name in description.trials.items():
        if name not in files.sizes:
            found.refuse(one_line(name, 200), f"the scores of trial {one_line(trial, 40)} are missing")
        elif name not in bad:
            try:
                banked[name] = read_bank_file(files.read(name), name)
            except (OSError, TsadbenchError) as error:
                found.refuse(name, str(error).removeprefix(f"{name}: "))
                continue
            record = found.records[name] = banked[name].record
            found.refuse(name, "" if record.trial == trial else f"its record is of trial {record.trial}, not {trial}")
            found.refuse(name, *_record_faults(record))
    for name in sorted(files.sizes):
        if name.startswith("scores/") and name not in description.trials.values():
            found.refuse(name, "it is the file of no trial that submission.json names")
    if RECORDS in files.sizes and RECORDS not in bad:
        try:
            listed = read_lines(files.read(RECORDS), RECORDS)
        except StoreError as error:
            found.refuse(RECORDS, str(error))
        else:
            of_files = [found.records[name] for name in description.trials.values() if name in found.records]
            if len(of_files) == len(description.trials) and list(listed) != of_files:
                found.refuse(RECORDS, "its records are not those of the score files, in the order of submission.json")
    if CHECKS in files.sizes and CHECKS not in bad:
        try:
            lines = files.read(CHECKS).splitlines()
            found.reports = tuple(CheckReport.from_json(line, CHECKS) for line in lines)
        except StoreError as error:
            found.refuse(CHECKS, str(error))
    return banked


def _record_faults(record: Record) -> Iterator[str]:
    """Yield what no record of a submission may hold, whatever its author."""
    if record.floor:
        yield "it is a floor's: every table has the floors already"
    if record.smoothing != 1:
        yield "its scores were smoothed before they were judged"
    if record.trust != "rerun":
        yield "it says itself how far it is to be trusted"
    if not is_registered(record.dataset, "datasets"):
        yield f"there is no data set {record.dataset!r:.80} here"
    names = [record.label, record.detector, record.family, record.stands_for, record.protocol, *record.splits]
    names += [name for split in record.splits.values() for name in (*split.metrics, *split.entities)]
    names += [*record.pretrained_on, *map(str, record.parameters)]
    yield from filter(None, map(plain_fault, names))
    if fault := name_fault(record.dataset) or machine_fault(record.label):
        yield fault
    yield from unfit_texts({"manifest": dict(record.manifest), "parameters": dict(record.parameters)})
    shown = (record.leaky, record.note, record.seal_reason, *record.notes, *record.protocol_notes)
    yield from (fault for text in shown for fault in unfit_texts(text))


def _check_detectors(found: Verification, description: Description, tables: Path | None) -> None:
    """Compare detectors with the trials, the reports of checks and the rows that are committed."""
    of_label = dict(grouped(found.records, lambda name: found.records[name].label))
    known = {one.label for one in description.detectors}
    for label in known ^ of_label.keys():
        found.refuse(DESCRIPTION, f"{label:.80} is {'a detector without trials' if label in known else 'not named'}")
    for detector in description.detectors:
        names = of_label.get(detector.label, ())
        verdict = CheckReports(found.reports).verdict([found.records[name] for name in names])
        if verdict.checked == "no":
            found.refuse(CHECKS, f"no report of today's checks vouches for {detector.label} and its code")
        elif verdict.checked == "fail":
            found.refuse(CHECKS, f"{detector.label} fails the checks {', '.join(verdict.failed)}")
    for name, record in found.records.items():
        if record.label in committed_labels(record.dataset, record.protocol, tables):
            found.refuse(name, f"{record.label} has a row already under {record.dataset}, {record.protocol}")


def _judge(found: Verification, banked: Mapping[str, BankFile], load: Callable[[str], LabelledDataset]) -> None:
    """Compare data, identities, thresholds and metrics with what the submitted scores and our labels give."""
    store, judge = found.store, Judge(load)
    if store is None:
        return
    file_of = {}
    for name, one in banked.items():
        file_of[one.record.trial] = name
        store.add(Outcome(one.record, one.scores))
        try:
            data = judge.data(one.record.dataset)
            if one.record.dataset_version != data.dataset.version:
                version = f"version {one.record.dataset_version} of {one.record.dataset}"
                found.refuse(name, f"it was run on {version}, and version {data.dataset.version} is here")
            shapes = score_shapes(judge.episodes(one.record))
        except TsadbenchError as error:
            found.refuse(name, str(error))
            continue
        missing, more = sorted(shapes.keys() - one.scores.keys()), sorted(one.scores.keys() - shapes.keys())
        for what, names in (("lacks", missing), ("has besides", more)):
            if names:
                found.refuse(name, f"it {what} the scores of {', '.join(names[:3])} ({len(names)} recordings)")
    for checked in verify(store, load):
        name = file_of[checked.trial]
        found.refuse(name, *checked.faults[:5])
        record = checked.record
        if record is not None and is_shipped(parse_label(record.label).target):
            found.refuse(name, *(remark for remark in checked.remarks if _OTHER_CODE in remark))
