"""An audit as text: its tables, and Markdown."""

from __future__ import annotations

from typing import NamedTuple

from tsadbench.analysis.audit.audit import Audit
from tsadbench.analysis.audit.facts import RecordingFacts
from tsadbench.analysis.audit.predictors import Ranking
from tsadbench.analysis.audit.sensors import SensorFacts, Shift
from tsadbench.analysis.label_noise import LabelNoise
from tsadbench.leaderboard.formatting import number, plain, plain_table

MARKS = {"good": "✓", "note": "·", "fault": "✗"}
# A page shows so many rows of a table; JSON and the terminal have all of them.
MOST_ROWS = 100


class AuditTable(NamedTuple):
    """A table behind the verdicts.

    Parameters
    ----------
    title, header, rows
        Its text.
    weights
        How much each row tells; empty: the first ones tell most.
    """

    title: str
    header: list[str]
    rows: list[list[str]]
    weights: list[float] = []  # noqa: RUF012 - a default of a named tuple, never changed

    @property
    def telling(self) -> list[list[str]]:
        """The `MOST_ROWS` rows that tell most, in the table's order."""
        weights = self.weights or range(len(self.rows), 0, -1)
        places = sorted(range(len(self.rows)), key=lambda place: -weights[place])[:MOST_ROWS]
        return [self.rows[place] for place in sorted(places)]


def markdown(audit: Audit) -> str:
    """Return an audit as Markdown: verdicts, then the tables behind them, long ones cut off."""
    parts = [f"# Audit of the data set {plain(audit.dataset)}", ""]
    parts += [f"- {MARKS[finding.grade]} **{finding.about}**: {plain(finding.sentence)}" for finding in audit.findings]
    parts += ["", f"{MARKS['good']} good, {MARKS['note']} to be known, {MARKS['fault']} makes tables worth less.", ""]
    for table in tables(audit):
        parts += [f"## {plain(table.title)}", "", *plain_table(table.header, table.telling), ""]
        if len(table.rows) > MOST_ROWS:
            command = f"`tsadbench data audit {plain(audit.dataset)} --format json`"
            parts += [f"{len(table.rows) - MOST_ROWS:,} more rows: {command}.", ""]
    return "\n".join(parts)


def tables(audit: Audit) -> list[AuditTable]:
    """Return the tables behind the verdicts; those without rows are left out."""
    noise = (table for noise in audit.label_noise for table in (_by_other_labels(noise), _change_places(noise)))
    every = (
        _predictors(audit),
        _predictors_of_entities(audit),
        _events(audit),
        *noise,
        _overlap(audit),
        _shared(audit),
        _copies(audit),
        _sensors(audit),
        _shifts(audit),
        _recordings(audit),
    )
    return [table for table in every if table.rows]


def _predictors(audit: Audit) -> AuditTable:
    rows = [[one.name, number(one.auroc), number(one.auprc)] for one in audit.predictors]
    mean = f" (mean over {len(audit.entities)} entities)" if audit.entities else ""
    return AuditTable(f"What predicts the label{mean}", ["predictor", "AUROC", "AUPRC"], rows)


def _predictors_of_entities(audit: Audit) -> AuditTable:
    undefined = Ranking(None, None)
    rows = [
        [entity, *(number(one.entities.get(entity, undefined).auroc) for one in audit.predictors)]
        for entity in audit.entities
    ]
    return AuditTable("AUROC by entity", ["entity", *(one.name for one in audit.predictors)], rows)


def _events(audit: Audit) -> AuditTable:
    header = ["entity", "test rows", "anomalous", "events", "shortest", "median", "longest", "found",
              "by chance", "best alone", "finds", "alone by chance"]  # fmt: skip
    rows = [
        [
            one.entity or "all",
            f"{one.n_rows:,}",
            f"{one.n_anomalous:,}",
            f"{one.n_events:,}",
            _count(one.shortest),
            "-" if one.median is None else f"{one.median:g}",
            _count(one.longest),
            *map(_percent, (one.trivial, one.by_chance)),
            one.best or "-",
            *map(_percent, (one.best_share, one.best_by_chance)),
        ]
        for one in audit.events
    ]
    return AuditTable("Events, and how many of them a threshold on one sensor finds", header, rows)


def _by_other_labels(noise: LabelNoise) -> AuditTable:
    given, *_ = noise.moved
    rows = [
        [label, *(f"{number(one.auprc[label])} ({one.rank.get(label, '-')})" for one in noise.moved)]
        for label in sorted(given.auprc, key=lambda label: given.rank.get(label, len(given.auprc)))
    ]
    header = ["", *(one.change for one in noise.moved)]
    return AuditTable(f"AUPRC (rank) by other labels: {noise.about}", header, rows)


def _change_places(noise: LabelNoise) -> AuditTable:
    header = ["labels", "changed rows", "rows left out", "change places"]
    rows = [[one.change, f"{one.n_changed:,}", f"{one.n_left_out:,}", one.in_words() or "-"] for one in noise.moved[1:]]
    return AuditTable(f"Who changes places by other labels: {noise.about}", header, rows)


def _overlap(audit: Audit) -> AuditTable:
    header = ["entity", "test rows in training", "anomalous ones", "training rows in the test", "training in training"]
    rows = [
        [
            one.entity or "all",
            *map(_percent, (one.test_in_train, one.anomalous_in_train, one.train_in_test, one.train_in_train)),
        ]
        for one in audit.overlap
        if one.test_in_train or one.train_in_train
    ]
    return AuditTable("Rows that recur, by values alone", header, rows)


def _shared(audit: Audit) -> AuditTable:
    return AuditTable(
        "Rows that recordings share",
        ["first", "second", "roles", "rows", "with two labels"],
        [
            [pair.first, pair.second, pair.roles, f"{pair.n_rows:,}", _count(pair.n_contradicting)]
            for pair in audit.shared
        ],
        [pair.n_rows for pair in audit.shared],
    )


def _copies(audit: Audit) -> AuditTable:
    header = ["copy", "from row", "rows", "source", "from row", "roles", "with two labels"]
    rows = [
        [
            one.recording,
            f"{one.start:,}",
            f"{one.stop - one.start:,}",
            one.source,
            f"{one.source_start:,}",
            one.roles,
            _count(one.n_contradicting),
        ]
        for one in audit.copies
    ]
    return AuditTable("Stretches that occur twice", header, rows, [one.stop - one.start for one in audit.copies])


def _sensors(audit: Audit) -> AuditTable:
    header = ["entity", "normal test rows out of range", "never move", "move in training only", "move in the test only",
              "move in anomalies only", "off a training constant", "move", "scaled by both", "by training", "by either",
              "by each"]  # fmt: skip
    return AuditTable("Sensors in training and test", header, [_sensor_row(facts) for facts in audit.sensors])


def _sensor_row(facts: SensorFacts) -> list[str]:
    still = (facts.never, facts.train_only, facts.test_only, facts.anomalies_only)
    scaled = (facts.scaled_by_both, facts.scaled_by_train, facts.scaled_by_either, facts.scaled_by_each)
    return [
        facts.entity or "all",
        _percent(facts.outside),
        *(", ".join(names) or "-" for names in still),
        _percent(facts.off_constant),
        str(facts.moving),
        *map(str, scaled),
    ]


def _shifts(audit: Audit) -> AuditTable:
    header = ["split", "sensor", "training median", "test median", "z", "outside the training range"]
    rows = [_shift_row(shift) for shift in audit.shifts]
    # A sensor that is constant in training has no z-score: every row elsewhere is infinitely far.
    weights = [abs(shift.z) if shift.z is not None else 1e9 * shift.outside for shift in audit.shifts]
    return AuditTable("Normal test rows against training rows", header, rows, weights)


def _shift_row(shift: Shift) -> list[str]:
    z = "never moves" if shift.z is None else f"{shift.z:+.1f}"
    medians = f"{shift.train_median:.4g}", f"{shift.test_median:.4g}"
    return [shift.entity or shift.split, shift.sensor, *medians, z, f"{shift.outside:.1%}"]


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


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
