"""What ``tsadbench verify`` prints of a submission."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import typer

from tsadbench.base.dataset import LabelledDataset
from tsadbench.cli.live import progress_bar
from tsadbench.execution.records_file import committed_records
from tsadbench.leaderboard.submitted import acceptance_comment, refusal_comment
from tsadbench.results.submissions.listed import keep_verified
from tsadbench.results.submissions.rerun import Rerun, outcome_of, rerun
from tsadbench.results.submissions.verification import Verification, verified
from tsadbench.utils.atomic_files import write_file
from tsadbench.utils.shipped_tables import LEADERBOARDS
from tsadbench.utils.text import counted, one_line


def print_submission(
    folder: Path,
    load: Callable[[str], LabelledDataset],
    *,
    again: bool,
    tolerance: float,
    timeout: float | None,
    memory: float | None,
    comment: Path | None,
    write: bool,
    tables: Path = LEADERBOARDS,
) -> bool:
    """Verify a submission and print what was found; return whether it is not refused."""
    reruns: list[Rerun] = []
    with progress_bar("Verifying"), verified(folder, load, tables) as found:
        if again and not found.refused:
            reruns = list(rerun(found, load, tolerance=tolerance, timeout=timeout, memory=memory))
    for fault in found.faults:
        typer.echo(f"refused: {fault.file}: {fault.reason}")
    name = one_line(folder.resolve().name, 80)
    if found.refused:
        files = counted(len({one.file for one in found.faults}), "file")
        typer.echo(f"{name}: refused, {counted(len(found.faults), 'reason')} in {files}")
        text = refusal_comment(name, found.faults)
    else:
        text = _accepted(folder, found, reruns, tables, write)
    if comment is not None:
        write_file(comment, text)
    return not found.refused


def _accepted(folder: Path, found: Verification, reruns: list[Rerun], tables: Path, write: bool) -> str:
    outcome = outcome_of(found, reruns)
    trusts = {(row.label, row.dataset, row.protocol): row.trust for row in outcome.rows}
    detectors = () if found.description is None else found.description.detectors
    corpora = {one.label: one.pretrained_on for one in detectors}
    records = [
        replace(
            record,
            trust=trusts[record.label, record.dataset, record.protocol],
            pretrained_on=tuple(dict.fromkeys([*record.pretrained_on, *corpora[record.label]])),
        )
        for record in found.records.values()
    ]
    remarks = [_said(one) for one in reruns]
    remarks += [f"{one.label}: its code is not part of the submission" for one in detectors if not one.is_open]
    for row in outcome.rows:
        typer.echo(f"{row.trust}: {row.label}, {row.dataset}, {row.protocol}")
    for remark in remarks:
        typer.echo(f"note: {one_line(remark)}")
    trials = counted(len(records), "trial")
    typer.echo(f"{folder.resolve().name}: verified, {trials} in {counted(len(outcome.rows), 'row')}")
    if write:
        typer.echo(keep_verified(folder, outcome), err=True)
    return acceptance_comment(
        folder.resolve().name,
        records,
        found.reports,
        lambda dataset, protocol: committed_records(tables, dataset, protocol),
        remarks,
    )


def _said(one: Rerun) -> str:
    about = f"{one.detector.label}: trial {one.record.trial} ({one.record.dataset}, seed {one.record.seed})"
    if one.repeated is None:
        return f"{about} was not run again"
    size = "" if not one.repeated.difference else f", largest difference {one.repeated.difference:.2g} of their range"
    return f"{about} was run again, {one.repeated.seal}: its scores repeat {one.repeated.verdict}{size}"
