"""An audit: facts about a data set, and verdicts on them in sentences."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tsadbench.analysis.audit.facts import (
    RecordingFacts,
    SharedRows,
    Shift,
    facts_of,
    recordings_sharing_rows,
    shifts,
)
from tsadbench.analysis.audit.findings import Finding, Grade
from tsadbench.analysis.audit.predictors import Predictor, one_liner_scores, predictors
from tsadbench.analysis.label_changes import LabelChange, label_changes
from tsadbench.analysis.label_noise import LabelNoise, of_scores
from tsadbench.base.dataset import LabelledDataset

SCHEMA = 1
# An uninformative predictor has an AUROC of .5; beyond these it is a weak or a strong one.
_WEAK, _STRONG = 0.55, 0.75
# Shares of anomalous test rows.
_FEW_ANOMALIES, _MANY_ANOMALIES = 0.01, 0.4
# Distances from the training mean, in standard deviations.
_SHIFTED, _FAR = 3.0, 10.0


@dataclass(frozen=True, slots=True)
class Audit:
    """Facts about a data set, and verdicts on them.

    Parameters
    ----------
    dataset
        Its name.
    recordings
        Facts about each.
    shared
        Pairs of recordings that share rows.
    shifts
        Of every sensor in every split.
    predictors
        How well position, time and one-liners predict the labels.
    label_noise
        What other labels move of the one-liners, and of stored trials if there are any.
    findings
        The verdicts.
    """

    dataset: str
    recordings: tuple[RecordingFacts, ...]
    shared: tuple[SharedRows, ...]
    shifts: tuple[Shift, ...]
    predictors: tuple[Predictor, ...]
    label_noise: tuple[LabelNoise, ...]
    findings: tuple[Finding, ...]

    def to_json(self) -> str:
        """Return the audit as JSON."""
        return json.dumps({"schema": SCHEMA, **dataclasses.asdict(self)}, indent=1, allow_nan=False) + "\n"


def audit(
    data: LabelledDataset, changes: Sequence[LabelChange] | None = None, stored: LabelNoise | None = None
) -> Audit:
    """Audit a data set, labels included.

    Parameters
    ----------
    data
        Recordings and labels.
    changes
        Of the labels, whose effect on the one-liners is shown; None for those that `label_changes` returns.
    stored
        Their effect on stored trials.
    """
    recordings = (
        *(facts_of(recording, "train", None) for recording in data.dataset.train),
        *(facts_of(recording, "test", data.labels.rows[recording.id]) for recording in data.dataset.test),
    )
    shared = recordings_sharing_rows(data.dataset.train, data.dataset.test, data.labels.rows)
    moved = shifts(data)
    one_liners = one_liner_scores(data)
    predicting = predictors(data, one_liners)
    noise = of_scores(one_liners, data, label_changes(data) if changes is None else changes)
    noises = (noise,) if stored is None else (noise, stored)
    findings = (
        _about_anomalies(recordings),
        *_about_predictors(predicting),
        *_about_shared(shared),
        _about_shift(moved),
        _about_gaps(recordings),
        _about_duplicates(recordings),
        _about_constant(recordings, len(data.dataset.sensors)),
        *map(_about_label_noise, noises),
    )
    return Audit(data.dataset.name, recordings, shared, moved, predicting, noises, findings)


def _about_anomalies(recordings: tuple[RecordingFacts, ...]) -> Finding:
    test = [facts for facts in recordings if facts.role == "test"]
    n_rows = sum(facts.n_rows for facts in test)
    share = sum(facts.n_anomalous or 0 for facts in test) / n_rows
    f1 = 2 * share / (1 + share)
    sentence = f"{share:.1%} of the {n_rows:,} test rows are anomalous: flagging every row has F1 {f1:.3f}."
    if share == 0:
        return Finding("anomalies", "note", "No test row is anomalous: no ranking metric is defined.", "no anomaly")
    if share > _MANY_ANOMALIES:
        brief = f"{share:.1%} of the test rows are anomalous"
        return Finding("anomalies", "fault", f"{sentence} Faults are no exception here.", brief)
    if share < _FEW_ANOMALIES:
        brief = f"{share:.2%} of the test rows are anomalous"
        return Finding("anomalies", "note", f"{sentence} A few rows decide every figure.", brief)
    return Finding("anomalies", "good", sentence)


def _about_predictors(predictors: tuple[Predictor, ...]) -> Iterator[Finding]:
    meaning = {
        "position": "A row's place in its recording, data unseen",
        "time": "The time since its recording began, data unseen",
    }
    # Of the one-liners, summaries name the strongest alone.
    strongest = max((one.auroc or 0.0 for one in predictors if one.name not in meaning), default=0.0)
    for predictor in predictors:
        name, auroc = predictor.name, predictor.auroc
        if auroc is None:
            yield Finding(name, "note", f"{name}: no AUROC, because the test rows are of one class.")
            continue
        # Position and time see no data: they should not predict at all, in either direction. A one-liner may.
        blind = name in meaning
        subject = meaning.get(name, f"The one-liner {name}")
        strength = abs(auroc - 0.5) + 0.5 if blind else auroc
        limit = _WEAK if blind else _STRONG
        verdict = "tells anomalous rows from normal ones" if strength > limit else "does not give the labels away"
        grade: Grade = "good" if strength <= limit else "fault" if strength > _STRONG else "note"
        brief = f"{name} alone has AUROC {auroc:.3f}" if strength > limit and (blind or auroc == strongest) else ""
        yield Finding(name, grade, f"{subject} {verdict}: AUROC {auroc:.3f}.", brief)


def _about_shared(shared: tuple[SharedRows, ...]) -> Iterator[Finding]:
    for roles, what, brief in (
        (
            "train and test",
            "training rows stand in test recordings too: a detector is tested on what it has learned",
            "training rows stand in the test too",
        ),
        ("test and test", "rows stand in two test recordings: they count twice", "test rows count twice"),
    ):
        pairs = [pair for pair in shared if pair.roles == roles]
        n_rows = sum(pair.n_rows for pair in pairs)
        about = "shared-" + roles.replace(" and ", "-")
        if n_rows:
            yield Finding(
                about, "fault", f"{n_rows:,} {what} (pairs of recordings: {len(pairs)}).", f"{n_rows:,} {brief}"
            )
        else:
            yield Finding(about, "good", f"No row stands in both, {roles}.")
    contradicting = sum(pair.n_contradicting or 0 for pair in shared)
    if contradicting:
        sentence = (
            f"{contradicting:,} of the rows that test recordings share are anomalous in one and normal in the other."
        )
        yield Finding("contradicting-labels", "fault", sentence, f"{contradicting:,} test rows have two labels")
    else:
        yield Finding("contradicting-labels", "good", "No shared row has two labels.")


def _about_shift(shifts: tuple[Shift, ...]) -> Finding:
    far = [(abs(shift.z), shift) for shift in shifts if shift.split != "overall" and shift.z is not None]
    far = [(distance, shift) for distance, shift in far if distance > _SHIFTED]
    if not far:
        return Finding("shift", "good", "Normal test rows lie where the training rows lie, in every sensor and split.")
    distance, worst = max(far, key=lambda item: item[0])
    splits = ", ".join(dict.fromkeys(shift.split for _, shift in far))
    sentence = (
        f"Normal test rows do not lie where the training rows lie ({splits}); furthest is {worst.sensor} in "
        f"{worst.split}: median {worst.test_median:.4g} against {worst.train_median:.4g} in training, "
        f"{distance:.0f} standard deviations off."
    )
    brief = f"normal test rows lie up to {distance:.0f} standard deviations off the training rows"
    return Finding("shift", "fault" if distance > _FAR else "note", sentence, brief)


def _about_gaps(recordings: tuple[RecordingFacts, ...]) -> Finding:
    gaps = sorted(((gap.seconds, facts.id, gap.row) for facts in recordings for gap in facts.gaps), reverse=True)
    if not gaps:
        return Finding("gaps", "good", "Time runs without gaps, or there is none.")
    longest = "; ".join(f"{seconds:g} s before row {row} of {recording}" for seconds, recording, row in gaps[:6])
    return Finding("gaps", "note", f"{len(gaps)} gaps in time; the longest: {longest}.", f"{len(gaps)} gaps in time")


def _about_duplicates(recordings: tuple[RecordingFacts, ...]) -> Finding:
    count = sum(facts.duplicates for facts in recordings)
    if not count:
        return Finding("duplicates", "good", "No row repeats the one before it.")
    brief = f"{count:,} rows repeat the row before"
    return Finding("duplicates", "note", f"{count:,} rows repeat the row before them in every sensor.", brief)


def _about_constant(recordings: tuple[RecordingFacts, ...], n_sensors: int) -> Finding:
    still = [f"{sensor} in {facts.id}" for facts in recordings for sensor in facts.constant]
    if not still:
        return Finding("constant", "good", f"Each of the {n_sensors} sensors moves in every recording.")
    sentence = f"{len(still)} sensors never move in a recording: {', '.join(still[:5])}."
    return Finding("constant", "note", sentence, f"{len(still)} sensors never move in a recording")


def _about_label_noise(noise: LabelNoise) -> Finding:
    missing = f" Without scores, and left out: {', '.join(noise.left_out)}." if noise.left_out else ""
    if noise.largest is None:
        return Finding("label-noise", "note", f"No AUPRC is defined for {noise.about}.{missing}")
    move, label, change = noise.largest
    sentence = f"Other labels move the AUPRC of {noise.about} by up to {move:+.4f} ({label}, {change})"
    moved = [one for one in noise.moved if one.change_places]
    if not moved:
        return Finding("label-noise", "good", f"{sentence}; no two rows change places.{missing}")
    most = max(moved, key=lambda one: len(one.change_places))
    how_often = f"{len(moved)} of {len(noise.moved) - 1} changes let rows change places"
    sentence = f"{sentence}; {how_often}, {most.change} the most: {most.in_words()}.{missing}"
    return Finding("label-noise", "note", sentence, "labels shifted by a few rows let rows change places")
