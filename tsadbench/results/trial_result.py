"""A trial's stored arrays with the data and the labels, for figures, reports and comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from tsadbench.base.dataset import LabelledDataset, Labels
from tsadbench.base.protocol import Episode, Protocol, Scored, SplitJudgement
from tsadbench.base.recording import Recording
from tsadbench.errors import BrokenTrialError, DataError, StoreError
from tsadbench.execution.judging import contribution_name, contribution_shapes, score_shapes, scored_episodes
from tsadbench.execution.plan import make_protocol
from tsadbench.execution.record import Record
from tsadbench.execution.store import Store
from tsadbench.results.admission import known_detector
from tsadbench.utils.arrays import BoolArray, Float32Array, FloatArray
from tsadbench.utils.parameters import parse_label, require_known

# The spread of larger scores overflows, which breaks thresholds and histograms.
_LARGEST_SCORE = 1e300


@dataclass(frozen=True, slots=True, eq=False)
class ScoredRecording:
    """One test recording as a trial's detector saw it, with the truth; arrays are [n_rows].

    ``scores`` are NaN for rows that the detector could not score; ``evaluated`` marks the rows that count under the
    protocol; ``episode`` is the fit that scored it. A row is flagged if its score exceeds its limit in ``limits``: the
    fit's threshold, unless the protocol moves it. ``contributions`` are [n_rows, n_sensors], or None if not kept.
    """

    recording: Recording
    anomalous: BoolArray
    scores: FloatArray
    evaluated: BoolArray
    episode: str
    limits: FloatArray
    contributions: Float32Array | None

    @property
    def flagged(self) -> BoolArray:
        """[n_rows], whether a row's score is above its limit, evaluated or not."""
        flagged: BoolArray = self.scores > self.limits
        return flagged


class TrialResult:
    """The stored scores of a trial with status "ok", with its data.

    ``episodes`` of the record's protocol on these data are computed if not given. Raises a DataError if the data or the
    labels differ from the trial's; a StoreError if its scores cannot be read, do not fit its recordings or are
    those of another run, the trial failed, or another version of the protocol judged it.
    """

    def __init__(
        self, record: Record, store: Store, data: LabelledDataset, episodes: Sequence[Episode] | None = None
    ) -> None:
        trial = f"trial {record.trial} ({record.label})"
        if record.status != "ok":
            raise StoreError(f"{trial} has no scores: {record.status}, {record.reason}")
        if faults := data_faults(record, data):
            raise DataError(f"{trial}: {'; '.join(faults)}")
        self.record = record
        self.data = data
        self.protocol = protocol_named(record.protocol)
        if record.protocol_version != self.protocol.version:
            raise StoreError(
                f"{trial} was judged by {record.rules}, and version {self.protocol.version} is installed; to judge "
                f"its scores again, run: tsadbench judge {store.path}"
            )
        if episodes is None:
            episodes = tuple(self.protocol.episodes(data.dataset))
        arrays = store.scores(record, score_shapes(episodes))
        self.scored = scored_episodes(arrays, episodes, fixed_threshold_of(record))
        for role in ("train", "test"):  # no judge accepts other scores
            values = np.concatenate([scores for one in self.scored for scores in getattr(one, role)])
            if not np.fmax.reduce(np.abs(values), initial=np.nan) <= _LARGEST_SCORE:  # NaN if all scores are NaN
                raise BrokenTrialError(f"{trial}: its {role} scores are not finite numbers up to {_LARGEST_SCORE:g}")
        if sorted(fit.episode for fit in record.thresholds) != sorted(episode.id for episode in episodes):
            raise BrokenTrialError(f"{trial}: its thresholds do not match its episodes")
        self._contributions = store.contributions(record, contribution_shapes(episodes))

    @cached_property
    def recordings(self) -> Mapping[str, ScoredRecording]:
        """The test recordings that the protocol scores, by id, in the data set's order."""
        by_id = {recording.id: recording for recording in self.data.dataset.test}
        n_rows = {name: len(rows) for name, rows in self.data.labels.rows.items()}
        thresholds = {fit.episode: fit.threshold for fit in self.record.thresholds}
        scored_recordings = {}
        for scored in self.scored:
            limits = self.protocol.limits(scored, thresholds[scored.episode.id])
            for place in self.protocol.places(scored.episode, n_rows):
                rows = slice(place.start, place.start + n_rows[place.recording])
                evaluated = np.zeros(n_rows[place.recording], dtype=np.bool_)
                evaluated[place.evaluated] = True
                kept = self._contributions.get(contribution_name(scored.episode, scored.episode.test[place.scored]))
                scored_recordings[place.recording] = ScoredRecording(
                    recording=by_id[place.recording],
                    anomalous=self.data.labels.rows[place.recording],
                    scores=scored.test[place.scored][rows],
                    evaluated=evaluated,
                    episode=scored.episode.id,
                    limits=limits[place.scored][rows],
                    contributions=None if kept is None else kept[rows],
                )
        return {name: scored_recordings[name] for name in n_rows if name in scored_recordings}

    def recording(self, name: str) -> ScoredRecording:
        """Return a test recording by its id; a UsageError if the protocol does not score it."""
        require_known([name], self.recordings, f"data set {self.record.dataset!r} has no test recording")
        return self.recordings[name]

    def judge(self, groups: Mapping[str, Sequence[str]]) -> Mapping[str, SplitJudgement]:
        """Return the protocol's judgement on groups of test recordings, without recordings that it does not score."""
        scored = {group: tuple(name for name in names if name in self.recordings) for group, names in groups.items()}
        kept = {group: names for group, names in scored.items() if names}
        return self.protocol.judge(self.scored, Labels(self.data.labels.rows, kept)).splits

    def calibrated_on(self, episode: str) -> Literal["training", "held-out"]:
        """Return which normal rows set the threshold of one fit."""
        return "held-out" if self._of(episode).calibration else "training"

    def _of(self, episode: str) -> Scored:
        return next(one for one in self.scored if one.episode.id == episode)

    def calibration_scores(self, episode: str) -> FloatArray:
        """Return the scores [n] of normal rows that set the threshold of one fit, without NaN."""
        pooled: FloatArray = np.concatenate(self.protocol.calibration_scores(self._of(episode)))
        return pooled[~np.isnan(pooled)]


def readable_result(
    record: Record, store: Store, data: LabelledDataset, episodes: Sequence[Episode] | None = None
) -> TrialResult | None:
    """Return a trial with its data; None, and a `BrokenTrialWarning`, if its arrays are broken."""
    try:
        return TrialResult(record, store, data, episodes)
    except BrokenTrialError as error:
        store.pass_over(record.trial, error)
        return None


def protocol_named(label: str) -> Protocol:
    """Return the protocol that a record's label names, with its parameters."""
    parsed = parse_label(label)
    return make_protocol(parsed.target, parsed.arguments)[0]


def fixed_threshold_of(record: Record) -> float | None:
    """Return a floor's fixed threshold, from the record or, if the trial is invalid, from the floor; else None."""
    if not record.floor:
        return None
    if not record.thresholds:
        floor = known_detector(record.detector)
        return None if floor is None else floor.traits.fixed_threshold
    return next((entry.threshold.value for entry in record.thresholds if entry.threshold.method == "fixed"), None)


def data_faults(record: Record, data: LabelledDataset) -> list[str]:
    """Return faults if the data set or its labels differ from the trial's; else an empty list."""
    here = {"data": data.dataset.content_hash, "labels": data.labels.content_hash}
    recorded = {name: str(record.manifest.get(f"{name}_hash")) for name in here}
    return [
        f"the {name} here differ from the trial's: hash {here[name][:12]}, recorded {recorded[name][:12]}"
        for name in here
        if here[name] != recorded[name]
    ]
