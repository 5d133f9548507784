"""Runs the code of a verified submission again, sealed: one trial of each detector, drawn afresh."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from tsadbench._version import __version__
from tsadbench.base.dataset import LabelledDataset
from tsadbench.errors import TsadbenchError
from tsadbench.execution.plan import refuse_unsealed
from tsadbench.execution.record import Record
from tsadbench.execution.run_store import Store
from tsadbench.registry import locate
from tsadbench.results.repetition import TOLERANCE, Repeated, repeat
from tsadbench.results.submissions.code import SHIPPED, foreign_code_fault, importable, label_here
from tsadbench.results.submissions.folder import Fault
from tsadbench.results.submissions.form import DESCRIPTION, SubmittedDetector
from tsadbench.results.submissions.listed import VerifiedRow, VerifiedSubmission
from tsadbench.results.submissions.verification import Verification
from tsadbench.sandbox.describing import describe
from tsadbench.testing import check_named
from tsadbench.utils.digests import digest
from tsadbench.utils.parameters import parse_label


@dataclass(frozen=True, slots=True)
class Rerun:
    """What running one detector's code again gave.

    Parameters
    ----------
    detector
        The submitted one.
    record
        The trial that was drawn.
    faults
        Why it does not give what was submitted; empty if it does.
    repeated
        How the scores compare; None if it did not come to that.
    """

    detector: SubmittedDetector
    record: Record
    faults: tuple[Fault, ...]
    repeated: Repeated | None = None


def rerun(
    found: Verification,
    load: Callable[[str], LabelledDataset],
    *,
    tolerance: float = TOLERANCE,
    timeout: float | None = None,
    memory: float | None = None,
) -> Iterator[Rerun]:
    """Check each open detector of a submission and run one of its trials again; what differs is among the faults.

    The code runs in boxes that the kernel seals, and nowhere else.

    Parameters
    ----------
    found
        A verification without faults, whose store is open.
    load
        Returns the data set of a name.
    tolerance, timeout, memory
        As for `repeat`.

    Raises
    ------
    UsageError
        If the kernel of this machine seals no box.
    """
    refuse_unsealed()
    if found.description is None or found.store is None:
        return
    for detector in found.description.detectors:
        if not detector.is_open:
            continue
        names = [name for name, record in found.records.items() if record.label == detector.label]
        name = secrets.choice(names)
        record = found.records[name]
        repeated: Repeated | None = None
        try:
            faults = [Fault(DESCRIPTION, reason)] if (reason := _foreign(detector, found.folder)) else []
            if not faults:
                with importable(found.folder, detector.code):
                    here = label_here(detector.label, detector.code, found.folder)
                    faults = list(_code_faults(here, detector, record))
                    if not faults:
                        repeated = _repeated(here, record, found.store, load, tolerance, timeout, memory)
                        faults = [Fault(name, f"run again: {one}") for one in repeated.faults[:5]]
                        if repeated.seal != "sealed" and not faults:
                            faults = [Fault(name, "run again: its box was not sealed")]
        except TsadbenchError as error:
            faults = [Fault(DESCRIPTION, f"{detector.label}: its code cannot be run: {error}")]
        for fault in faults:
            found.refuse(fault.file, fault.reason)
        yield Rerun(detector, record, tuple(faults), repeated)


def outcome_of(found: Verification, reruns: list[Rerun]) -> VerifiedSubmission:
    """Return what is kept of a verification without faults: the trust of every row."""
    done = {
        (one.record.label, one.record.dataset, one.record.protocol): one for one in reruns if one.repeated is not None
    }
    rows = []
    for key in dict.fromkeys((one.label, one.dataset, one.protocol) for one in found.records.values()):
        label, dataset, protocol = key
        again = done.get(key)
        rows.append(
            VerifiedRow(
                label=label,
                dataset=dataset,
                protocol=protocol,
                trust="recomputed" if again is None else "rerun",
                rerun="" if again is None else again.record.trial,
                difference=None if again is None or again.repeated is None else again.repeated.difference,
            )
        )
    return VerifiedSubmission(
        description=digest((found.folder / DESCRIPTION).read_bytes()),
        day=datetime.now(UTC).date().isoformat(),
        tsadbench=__version__,
        rows=tuple(rows),
    )


def _foreign(detector: SubmittedDetector, folder: Path) -> str:
    return "" if detector.code == SHIPPED else foreign_code_fault(detector.code, folder)


def _code_faults(here: str, detector: SubmittedDetector, record: Record) -> Iterator[Fault]:
    """Yield why the code is not what made the trial, or which checks it fails."""
    where = detector.code.rpartition(":")[0] if detector.code.endswith(".py") else DESCRIPTION
    code = describe(locate(parse_label(here).target)).code_hash
    if code != record.manifest.get("code_hash"):
        yield Fault(where, f"{detector.label}: the code of the submission is not what made its trials")
        return
    failed = [result.id for result in check_named(here) if not result.good]
    if failed:
        yield Fault(where, f"{detector.label}: it fails the checks {', '.join(failed)}")


def _repeated(
    here: str,
    record: Record,
    store: Store,
    load: Callable[[str], LabelledDataset],
    tolerance: float,
    timeout: float | None,
    memory: float | None,
) -> Repeated:
    again = replace(record, label=here, detector=parse_label(here).target)
    (repeated,) = repeat(
        [again],
        store,
        load,
        trust_code=True,
        tolerance=tolerance,
        timeout=timeout,
        memory=memory,
        single_precision=True,
    )
    return repeated
