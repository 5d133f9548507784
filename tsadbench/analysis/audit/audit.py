"""All that an audit finds, and what it means, in sentences."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tsadbench.analysis.audit.facts import RecordingFacts, facts_of
from tsadbench.analysis.audit.predictors import Predictor, predictors
from tsadbench.analysis.audit.shared import SharedRows, recordings_sharing_rows
from tsadbench.analysis.audit.shift import Shift, shifts
from tsadbench.base.dataset import LabelledDataset

Grade: TypeAlias = Literal["good", "note", "fault"]

SCHEMA = 1
# What tells nothing has an AUROC of .5; beyond these it tells something, or much.
_TELLS, _TELLS_MUCH = 0.55, 0.75
_FEW_ANOMALIES, _MANY_ANOMALIES = 0.01, 0.4
_SHIFTED, _FAR = 3.0, 10.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One verdict.

    Parameters
    ----------
    about
        Stable: scripts name it.
    grade
        "good"; "note": to be known; "fault": it makes tables over the data set worth less.
    sentence
        What was found, with its figure.
    """

    about: str
    grade: Grade
    sentence: str


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found in a data set.

    Parameters
    ----------
    dataset
        Its name.
    recordings
        Facts of each.
    shared
        Pairs of recordings that share rows.
    shifts
        Every sensor's, in every split.
    predictors
        What position, time and one-liners are worth.
    findings
        Verdicts on all that.
    """

    dataset: str
    recordings: tuple[RecordingFacts, ...]
    shared: tuple[SharedRows, ...]
    shifts: tuple[Shift, ...]
    predictors: tuple[Predictor, ...]
    findings: tuple[Finding, ...]

    def to_json(self) -> str:
        """Return all of it as JSON."""
        return json.dumps({"schema": SCHEMA, **dataclasses.asdict(self)}, indent=1, allow_nan=False) + "\n"


def audit(data: LabelledDataset) -> Audit:
    """Look at a data set, labels included.

    Parameters
    ----------
    data
        Recordings and labels.
    """
    recordings = (
        *(facts_of(recording, "train", None) for recording in data.dataset.train),
        *(facts_of(recording, "test", data.labels.rows[recording.id]) for recording in data.dataset.test),
    )
    shared = recordings_sharing_rows(data.dataset.train, data.dataset.test, data.labels.rows)
    moved = shifts(data)
    telling = predictors(data)
    findings = (
        _about_anomalies(recordings),
        *_about_predictors(telling),
        *_about_shared(shared),
        _about_shift(moved),
        _about_gaps(recordings),
        _about_duplicates(recordings),
        _about_constant(recordings, len(data.dataset.sensors)),
    )
    return Audit(data.dataset.name, recordings, shared, moved, telling, findings)


def _about_anomalies(recordings: tuple[RecordingFacts, ...]) -> Finding:
    test = [one for one in recordings if one.role == "test"]
    n_rows = sum(one.n_rows for one in test)
    share = sum(one.n_anomalous or 0 for one in test) / n_rows
    f1 = 2 * share / (1 + share)
    sentence = f"{share:.1%} of the {n_rows:,} test rows are anomalous: flagging every row has F1 {f1:.3f}."
    if share == 0:
        return Finding("anomalies", "note", "No test row is anomalous: no ranking metric is defined.")
    if share > _MANY_ANOMALIES:
        return Finding("anomalies", "fault", f"{sentence} Faults are no exception here.")
    if share < _FEW_ANOMALIES:
        return Finding("anomalies", "note", f"{sentence} A few rows decide every figure.")
    return Finding("anomalies", "good", sentence)


def _about_predictors(telling: tuple[Predictor, ...]) -> Iterator[Finding]:
    meaning = {
        "position": "A row's place in its recording, data unseen",
        "time": "The time since its recording began, data unseen",
    }
    for one in telling:
        if one.auroc is None:
            yield Finding(one.name, "note", f"{one.name}: no AUROC, for the test rows are of one class.")
            continue
        blind = one.name in meaning
        what = meaning.get(one.name, f"The one-liner {one.name}")
        strength = abs(one.auroc - 0.5) + 0.5 if blind else one.auroc
        limit = _TELLS if blind else _TELLS_MUCH
        verdict = "tells anomalous rows from normal ones" if strength > limit else "does not give the labels away"
        grade: Grade = "good" if strength <= limit else "fault" if strength > _TELLS_MUCH else "note"
        yield Finding(one.name, grade, f"{what} {verdict}: AUROC {one.auroc:.3f}.")


def _about_shared(shared: tuple[SharedRows, ...]) -> Iterator[Finding]:
    for roles, what in (
        ("train and test", "training rows stand in test recordings too: a detector is tested on what it has learned"),
        ("test and test", "rows stand in two test recordings: they count twice"),
    ):
        pairs = [one for one in shared if one.roles == roles]
        n_rows = sum(one.n_rows for one in pairs)
        about = "shared-" + roles.replace(" and ", "-")
        if n_rows:
            yield Finding(about, "fault", f"{n_rows:,} {what} (pairs of recordings: {len(pairs)}).")
        else:
            yield Finding(about, "good", f"No row stands in both, {roles}.")
    contradicting = sum(one.n_contradicting or 0 for one in shared)
    if contradicting:
        sentence = (
            f"{contradicting:,} of the rows that test recordings share are anomalous in one and normal in the other."
        )
        yield Finding("contradicting-labels", "fault", sentence)
    else:
        yield Finding("contradicting-labels", "good", "No shared row has two labels.")


def _about_shift(moved: tuple[Shift, ...]) -> Finding:
    far = [one for one in moved if one.split != "overall" and one.z is not None and abs(one.z) > _SHIFTED]
    if not far:
        return Finding("shift", "good", "Normal test rows lie where the training rows lie, in every sensor and split.")
    worst = max(far, key=lambda one: abs(one.z or 0.0))
    groups = ", ".join(dict.fromkeys(one.split for one in far))
    sentence = (
        f"Normal test rows do not lie where the training rows lie ({groups}); furthest is {worst.sensor} in "
        f"{worst.split}: median {worst.test_median:.4g} against {worst.train_median:.4g} in training, "
        f"{abs(worst.z or 0.0):.0f} standard deviations off."
    )
    return Finding("shift", "fault" if abs(worst.z or 0.0) > _FAR else "note", sentence)


def _about_gaps(recordings: tuple[RecordingFacts, ...]) -> Finding:
    gaps = sorted(((gap.seconds, one.id, gap.row) for one in recordings for gap in one.gaps), reverse=True)
    if not gaps:
        return Finding("gaps", "good", "Time runs without gaps, or there is none.")
    longest = "; ".join(f"{seconds:g} s before row {row} of {id}" for seconds, id, row in gaps[:6])  # noqa: A001
    return Finding("gaps", "note", f"{len(gaps)} gaps in time; the longest: {longest}.")


def _about_duplicates(recordings: tuple[RecordingFacts, ...]) -> Finding:
    count = sum(one.duplicates for one in recordings)
    if not count:
        return Finding("duplicates", "good", "No row repeats the one before it.")
    return Finding("duplicates", "note", f"{count:,} rows repeat the row before them in every sensor.")


def _about_constant(recordings: tuple[RecordingFacts, ...], n_sensors: int) -> Finding:
    still = [(one.id, sensor) for one in recordings for sensor in one.constant]
    if not still:
        return Finding("constant", "good", f"Each of the {n_sensors} sensors moves in every recording.")
    shown = ", ".join(f"{sensor} in {id}" for id, sensor in still[:5])  # noqa: A001
    return Finding("constant", "note", f"{len(still)} sensors never move in a recording: {shown}.")
