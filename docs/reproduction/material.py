"""What the scripts beside this one share: SKAB as the protocol `published` sees it, and the paper's ranking metrics."""

from __future__ import annotations

import numpy as np

from tsadbench.base.dataset import DataOptions
from tsadbench.datasets.skab import load
from tsadbench_protocols.metrics import rank

WINDOW, HORIZON = 30, 10

_data = load(DataOptions())
train = _data.dataset.train
train_rows = np.concatenate([recording.values for recording in train])
test_rows = np.concatenate([recording.values for recording in _data.dataset.test])
anomalous = np.concatenate(list(_data.labels.rows.values()))
mean, deviation = train_rows.mean(axis=0), train_rows.std(axis=0)
train_z, test_z = (train_rows - mean) / deviation, (test_rows - mean) / deviation
_evaluated = slice(WINDOW, len(test_rows) - HORIZON + 1)


def judged(name: str, scores: np.ndarray) -> None:
    """Print AUROC, AUPRC and best F1 of the scores [n_test_rows] over the rows that count, overall."""
    found = rank(scores[_evaluated], anomalous[_evaluated])
    print(f"{name:58} AUROC {found.auroc:.4f}  AUPRC {found.auprc:.4f}  BF-F1 {found.bf_f1:.4f}", flush=True)
