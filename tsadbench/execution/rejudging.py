"""Stored scores, judged by today's rules: no detector runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from tsadbench.base.dataset import Labels
from tsadbench.base.protocol import Episode, Protocol
from tsadbench.errors import ContractError
from tsadbench.execution.provenance import judging_identity
from tsadbench.execution.record import Record
from tsadbench.execution.score_arrays import rows_scored, score_shapes, scored_episodes
from tsadbench.execution.stored_files import StoredScores


def judged_again(
    record: Record,
    store: StoredScores,
    protocol: Protocol,
    episodes: Sequence[Episode],
    labels: Labels,
    fixed_threshold: float | None,
    smoothing: int = 1,
) -> Record:
    """Return what a trial's record is by today's rules; the store is left as it is.

    Parameters
    ----------
    record, store
        The record, and the store that holds the trial's scores.
    protocol, episodes, labels
        The rules, what they yield on the data set that was scored, and its labels.
    fixed_threshold
        The threshold that the detector, a floor, brings; None for all others.
    smoothing
        Over how many rows the scores are averaged first.

    Raises
    ------
    StoreError
        If the scores cannot be read, or are not of these episodes' recordings.
    """
    arrays = store.scores(record.trial, score_shapes(episodes))
    scored = scored_episodes(arrays, episodes, fixed_threshold, smoothing)
    manifest = {
        **record.manifest,
        "labels_hash": labels.content_hash,
        "judged": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    judging = judging_identity(record.protocol, protocol, labels.content_hash, fixed_threshold)
    record = replace(
        record,
        judging=judging,
        protocol_version=protocol.version,
        manifest=manifest,
        rows_scored=rows_scored(scored),
        smoothing=smoothing,
        splits={},
        thresholds=(),
        protocol_notes=(),
    )
    try:
        judgement = protocol.judge(scored, labels)
    except ContractError as error:
        return replace(record, status="invalid", reason=str(error))
    record = replace(record, status="ok", reason=None)  # other rules may have called it invalid
    return replace(record, splits=judgement.splits, thresholds=judgement.thresholds, protocol_notes=judgement.notes)
