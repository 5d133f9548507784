"""An audit as text: its tables, and Markdown."""

from __future__ import annotations

from typing import NamedTuple

from tsadbench.analysis.audit.audit import Audit
from tsadbench.analysis.audit.facts import RecordingFacts, Shift
from tsadbench.analysis.label_noise import LabelNoise
from tsadbench.utils.markdown import optional_number, plain, plain_table

MARKS = {"good": "✓", "note": "·", "fault": "✗"}


class AuditTable(NamedTuple):
    """A table behind the verdicts."""

    title: str
    header: list[str]
    rows: list[list[str]]


def markdown(audit: Audit) -> str:
    """Return an audit as Markdown: verdicts, then the tables behind them."""
    parts = [f"# Audit of the data set {plain(audit.dataset)}", ""]
    parts += [f"- {MARKS[finding.grade]} **{finding.about}**: {plain(finding.sentence)}" for finding in audit.findings]
    parts += ["", f"{MARKS['good']} good, {MARKS['note']} to be known, {MARKS['fault']} makes tables worth less.", ""]
    for table in tables(audit):
        parts += [f"## {plain(table.title)}", "", *plain_table(table.header, table.rows), ""]
    return "\n".join(parts)


def tables(audit: Audit) -> list[AuditTable]:
    """Return the tables behind the verdicts; those without rows are left out."""
    noise = (table for noise in audit.label_noise for table in (_by_other_labels(noise), _change_places(noise)))
    every = (_predictors(audit), *noise, _shared(audit), _shifts(audit), _recordings(audit))
    return [table for table in every if table.rows]


def _predictors(audit: Audit) -> AuditTable:
    rows = [[one.name, optional_number(one.auroc), optional_number(one.auprc)] for one in audit.predictors]
    return AuditTable("What predicts the label", ["predictor", "AUROC", "AUPRC"], rows)


def _by_other_labels(noise: LabelNoise) -> AuditTable:
    given, *_ = noise.moved
    rows = [
        [label, *(f"{optional_number(one.auprc[label])} ({one.rank.get(label, '-')})" for one in noise.moved)]
        for label in sorted(given.auprc, key=lambda label: given.rank.get(label, len(given.auprc)))
    ]
    header = ["", *(one.change for one in noise.moved)]
    return AuditTable(f"AUPRC (rank) by other labels: {noise.about}", header, rows)


def _change_places(noise: LabelNoise) -> AuditTable:
    header = ["labels", "changed rows", "rows left out", "change places"]
    rows = [[one.change, f"{one.n_changed:,}", f"{one.n_left_out:,}", one.in_words() or "-"] for one in noise.moved[1:]]
    return AuditTable(f"Who changes places by other labels: {noise.about}", header, rows)


def _shared(audit: Audit) -> AuditTable:
    return AuditTable(
        "Rows that recordings share",
        ["first", "second", "roles", "rows", "with two labels"],
        [
            [pair.first, pair.second, pair.roles, f"{pair.n_rows:,}", _count(pair.n_contradicting)]
            for pair in audit.shared
        ],
    )


def _shifts(audit: Audit) -> AuditTable:
    header = ["split", "sensor", "training median", "test median", "z", "outside the training range"]
    return AuditTable("Normal test rows against training rows", header, [_shift_row(shift) for shift in audit.shifts])


def _shift_row(shift: Shift) -> list[str]:
    z = "never moves" if shift.z is None else f"{shift.z:+.1f}"
    medians = f"{shift.train_median:.4g}", f"{shift.test_median:.4g}"
    return [shift.split, shift.sensor, *medians, z, f"{shift.outside:.1%}"]


def _recordings(audit: Audit) -> AuditTable:
    header = ["recording", "role", "rows", "anomalous", "from row", "step, s", "gaps", "repeated rows", "never moves"]
    return AuditTable("Recordings", header, [_recording_row(facts) for facts in audit.recordings])


def _recording_row(facts: RecordingFacts) -> list[str]:
    return [
        facts.id,
        facts.role,
        f"{facts.n_rows:,}",
        _count(facts.n_anomalous),
        _count(facts.first_anomalous),
        "-" if facts.step_seconds is None else f"{facts.step_seconds:g}",
        ", ".join(f"{gap.seconds:g} s before row {gap.row}" for gap in facts.gaps) or "-",
        str(facts.duplicates),
        ", ".join(facts.constant) or "-",
    ]


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
