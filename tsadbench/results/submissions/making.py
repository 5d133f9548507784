"""Makes a submission from a run store."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from tsadbench._version import __version__
from tsadbench.base.dataset import LabelledDataset
from tsadbench.errors import UsageError
from tsadbench.execution.check_reports import CheckReport, CheckReports, kept
from tsadbench.execution.record import CHECKSUM, Record
from tsadbench.execution.run_store import Store
from tsadbench.execution.score_arrays import arrays_hash
from tsadbench.execution.trial import Outcome
from tsadbench.registry import is_registered
from tsadbench.results.bank.bank_file import single_precision
from tsadbench.results.bank.parquet_form import bank_bytes
from tsadbench.results.judging import Judge
from tsadbench.results.submissions.code import CLOSED, code_of, machine_fault
from tsadbench.results.submissions.form import (
    CHECKS,
    DESCRIPTION,
    ENDING,
    MOST_BYTES,
    MOST_FILE_BYTES,
    RECORDS,
    SCHEMA,
    SCORES,
    STATEMENT,
    Description,
    SubmittedDetector,
    signer_fault,
    statement,
    submission_name_fault,
    submitted_label_fault,
)
from tsadbench.utils.atomic_files import write_file
from tsadbench.utils.digests import digest
from tsadbench.utils.grouping import grouped
from tsadbench.utils.names import corpora_fault
from tsadbench.utils.parameters import stored_label
from tsadbench.utils.progress import progress


def submit(
    store: Store,
    name: str,
    folder: Path,
    load: Callable[[str], LabelledDataset],
    *,
    detectors: Sequence[str] = (),
    pretrained_on: Sequence[str] = (),
    closed: bool = False,
    signed_by: str = "",
) -> list[Path]:
    """Write trials of a store as a submission, and return its files.

    Scores are rounded to float32 and judged again, so that the metrics are those of the scores that are submitted.
    What only this machine knows, as the command line, is left out of the records.

    Parameters
    ----------
    store
        The store.
    name
        The submission's: small letters, digits, hyphens.
    folder
        In which its folder is made.
    load
        Returns the data set of a name.
    detectors
        Labels (default: all detectors of the store; floors are never among them, as every table has them).
    pretrained_on
        What the detectors were trained on before their fit, besides what their traits say.
    closed
        Whether to leave their code out.
    signed_by
        Who signs the statement today; empty: it is left to be signed.

    Raises
    ------
    UsageError
        If a trial cannot be submitted; every reason is named.
    """
    for option, fault in (
        ("--name", submission_name_fault(name)),
        ("--pretrained-on", corpora_fault(tuple(pretrained_on))),
        ("--signed-by", signer_fault(signed_by)),
    ):
        if fault:
            raise UsageError(f"{option}: {fault}")
    if (folder / name).exists():
        raise UsageError(f"{folder / name} exists already: remove it, or choose another --name")
    records, reports = _chosen(store, detectors), tuple(kept(store.path))
    if faults := _unfit(records, reports):
        raise UsageError("\n".join(["this cannot be submitted:", *(f"- {fault}" for fault in faults)]))
    codes = {label: (CLOSED, dict[str, Path]()) if closed else code_of(label) for label in _labels(records)}
    content: dict[str, bytes] = {}
    for _, files in codes.values():
        content |= {path: file.read_bytes() for path, file in files.items()}
    submitted, trials = [], {}
    with tempfile.TemporaryDirectory(prefix="tsadbench-submit-") as place:
        judge, rounded = Judge(load), Store.create(Path(place) / "rounded")
        for done, record in enumerate(records):
            progress(done, len(records), record.label)
            judged = _rounded(record, store, rounded, judge)
            packed = bank_bytes(judged, rounded.scores(judged.trial))
            trials[judged.trial] = f"{SCORES}/{digest(packed)}{ENDING}"
            content[trials[judged.trial]] = packed
            submitted.append(judged)
    content[RECORDS] = "".join(f"{record.to_json(indent=None)}\n" for record in submitted).encode()
    content[CHECKS] = "".join(_plain(one).to_json() for one in _of(reports, records)).encode()
    _require_budget(content)
    description = Description(
        schema=SCHEMA,
        name=name,
        made=datetime.now(UTC).date().isoformat(),
        tsadbench=__version__,
        detectors=tuple(
            SubmittedDetector(label=label, code=code, pretrained_on=tuple(pretrained_on))
            for label, (code, _) in codes.items()
        ),
        trials=trials,
        files={path: digest(content[path]) for path in sorted(content)},
    ).to_json()
    content[DESCRIPTION] = description
    content[STATEMENT] = statement(description, name, signed_by, datetime.now(UTC).date()).encode()
    return [write_file(folder / name / path, content[path]) for path in sorted(content)]


def _chosen(store: Store, detectors: Sequence[str]) -> tuple[Record, ...]:
    """Return the newest trial of each detector, data set, protocol and seed, without floors, in a lasting order."""
    records = [record for record in store.readable() if not record.floor]
    known = {record.label for record in records}
    wanted = {stored_label(one, known) for one in detectors} or known
    if missing := wanted - known:
        raise UsageError(
            f"{store.path} has no detector {', '.join(sorted(missing))}; it has: {', '.join(sorted(known))}"
        )
    newest = {
        (record.dataset, record.protocol, record.label, record.seed): record
        for record in records
        if record.label in wanted
    }
    if not newest:
        raise UsageError(f"{store.path} has no detector to submit: every table has the floors already")
    return tuple(newest[key] for key in sorted(newest))


def _unfit(records: Sequence[Record], reports: Sequence[CheckReport]) -> list[str]:
    faults: list[str] = []
    for label, of_label in grouped(records, lambda record: record.label).items():
        fault = submitted_label_fault(label) or machine_fault(label)
        faults += [f"{label}: {fault}"] if fault else []
        for record in of_label:
            where = f"{label}, {record.dataset}, {record.protocol}, seed {record.seed}"
            if record.status != "ok":
                faults.append(f"{where}: {record.status} ({record.reason}); run it again, or name the others")
            if not is_registered(record.dataset, "datasets"):
                faults.append(f"{where}: the data set is your own, and nobody could verify the row")
        verdict = CheckReports(reports).verdict(of_label)
        if verdict.checked == "no":
            faults.append(f"{label}: no report of its checks: tsadbench check {label!r} --out RUNS")
        elif verdict.checked == "fail":
            faults.append(f"{label}: it fails the checks {', '.join(verdict.failed)}")
    return faults


def _rounded(record: Record, store: Store, rounded: Store, judge: Judge) -> Record:
    """Return the record of a trial's scores as float32, judged, and put both into a store."""
    scores = {name: values.astype("float64") for name, values in single_precision(store.scores(record.trial)).items()}
    manifest = {
        key: value
        for key, value in record.manifest.items()
        if key not in ("command", "interpreter", "contributions_hash", CHECKSUM)
    }
    plain = replace(record, manifest={**manifest, "scores_hash": arrays_hash(scores)}, trust="rerun")
    rounded.add(Outcome(plain, scores))
    judged = judge.again(plain, rounded)
    made = replace(judged, manifest={**judged.manifest, CHECKSUM: judged.checksum})
    rounded.replace_record(made, plain.trial)
    return made


def _labels(records: Sequence[Record]) -> list[str]:
    return list(dict.fromkeys(record.label for record in records))


def _of(reports: Sequence[CheckReport], records: Sequence[Record]) -> list[CheckReport]:
    """Return the reports that vouch for records."""
    return [report for report in reports if any(report.vouches_for(record) for record in records)]


def _plain(report: CheckReport) -> CheckReport:
    """Return a report whose reasons hold nothing that a page takes for markup: they may name classes."""
    return replace(
        report, reasons={check: text.replace("<", "(").replace(">", ")") for check, text in report.reasons.items()}
    )


def _require_budget(content: Mapping[str, bytes]) -> None:
    for path, text in content.items():
        if len(text) > MOST_FILE_BYTES:
            raise UsageError(
                f"{path} has {len(text):,} bytes, expected at most {MOST_FILE_BYTES:,}: submit fewer trials"
            )
    if (total := sum(map(len, content.values()))) > MOST_BYTES:
        raise UsageError(f"it has {total:,} bytes, expected at most {MOST_BYTES:,} in all: submit fewer trials")
