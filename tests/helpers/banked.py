"""A score bank of committed trials, fitted here again without a box: a second for what a run takes half a minute."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.protocol import Scored
from tsadbench.execution.judging import named_scores
from tsadbench.execution.record import Record, read_records
from tsadbench.registry import load_detector
from tsadbench.results.bank import file_bytes, write_registry
from tsadbench.results.trial_result import protocol_of


def bank_of(folder: Path, records: Path, data: LabelledDataset, labels: Sequence[str]) -> Path:
    """Write the bank of the committed trials of some labels, names without parameters, of the lowest seed."""
    folder.mkdir(parents=True)
    for record in read_records(records):
        if record.label in labels and record.seed == 0:
            content = file_bytes(record, named_scores(_scored(record, data)))
            (folder / f"{record.trial}.parquet").write_bytes(content)
    write_registry(folder)
    return folder


def _scored(record: Record, data: LabelledDataset) -> list[Scored]:
    scored = []
    for episode in protocol_of(record).episodes(data.dataset):
        detector = load_detector(record.detector)().fit(episode.train)
        of_roles = [tuple(map(detector.score, part)) for part in (episode.train, episode.test, episode.calibration)]
        scored.append(Scored(episode, of_roles[0], of_roles[1], calibration=of_roles[2]))
    return scored
