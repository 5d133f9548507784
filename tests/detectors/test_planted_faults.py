"""Networks trained for seconds find faults in time or coupling that no single value shows; floors do not."""

from __future__ import annotations

import pytest
from sklearn.metrics import roc_auc_score

from tests.helpers.detectors import load_detector
from tests.helpers.planted import Fault, planted, series

# Detector, parameters, training rows, faults, minimum AUROC.
CASES: list[tuple[str, dict[str, object], int, tuple[Fault, ...], float]] = [
    ("anomaly-transformer", {"window": 24, "d_model": 16, "stride": 1, "min_steps": 300, "max_steps": 300,
                             "association": False}, 1_500, ("order",), 0.75),
    ("timesnet", {"window": 24, "d_model": 8, "n_layers": 1, "min_steps": 100, "max_steps": 100},
     1_500, ("order",), 0.75),
    ("catch", {"window": 32, "score_rows": 16, "batch_size": 16, "learning_rate": 3e-3, "max_steps": 200},
     4_000, ("rhythm", "order"), 0.8),
    ("thoc", {"window": 16, "layers": 4, "hidden_size": 32, "stride": 4, "batch_size": 32, "learning_rate": 3e-3,
              "warm_up": 4, "epochs": 40, "max_steps": 350}, 4_000, ("rhythm", "order"), 0.8),
    ("deep-svdd", {"window": 10, "hidden_size": 32, "batch_size": 64, "min_steps": 1},
     1_500, ("rhythm", "order"), 0.9),
    ("lstm-ndt", {"window": 10, "hidden_size": 16, "span": 5, "dropout": 0.0, "epochs": 8, "min_steps": 1,
                  "learning_rate": 1e-2}, 1_500, ("rhythm", "order"), 0.9),
    ("dvgcrn", {"window": 6, "layers": 2, "hidden_size": 8, "embedding_size": 8, "min_steps": 1, "epochs": 10,
                "learning_rate": 1e-2, "held_out": 0.0}, 1_000, ("rhythm", "order"), 0.85),
    ("omnianomaly", {"window": 8, "flows": 2, "min_steps": 1, "hidden_size": 16, "epochs": 10, "learning_rate": 1e-2,
                     "held_out": 0.0}, 1_000, ("rhythm", "order"), 0.85),
    ("usad", {"epochs": 12, "min_steps": 400}, 2_000, ("coupling",), 0.8),
    ("tranad", {"min_steps": 200, "hidden_size": 16, "learning_rate": 1e-2}, 1_000, ("coupling",), 0.8),
]  # fmt: skip


@pytest.mark.long  # ten seconds each
@pytest.mark.parametrize(("name", "parameters", "n_rows", "faults", "least"), CASES, ids=[case[0] for case in CASES])
def test_it_finds_faults_that_no_single_value_shows(
    name: str, parameters: dict[str, object], n_rows: int, faults: tuple[Fault, ...], least: float
) -> None:
    training = series(n_rows)
    detector = load_detector(name)(**parameters).fit(training)
    floors = [load_detector(floor)().fit(training) for floor in ("max-z", "l2-z")]
    for fault in faults:
        rows, labels = planted(fault)
        assert roc_auc_score(labels, detector.score(rows)) > least
        assert max(roc_auc_score(labels, floor.score(rows)) for floor in floors) < 0.65
