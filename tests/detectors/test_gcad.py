"""GCAD: its causality graphs against the gradients of the loss, and its score by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.helpers.planted import in_deviations, noise, padded, windows
from tsadbench.base import FloatArray
from tsadbench_detectors.gcad import GCAD

TRAINING = noise(120, 3)


def fitted(**parameters: object) -> GCAD:
    cheap = {"window": 5, "hidden_size": 6, "epochs": 2, "min_steps": 1}
    return GCAD(**{**cheap, **parameters}).fit(TRAINING)  # type: ignore[arg-type]


def scaled_windows(rows: FloatArray) -> torch.Tensor:
    """Return scaled windows [n, 6, n_sensors] of five rows and the forecast row, rounded to single precision."""
    return windows(in_deviations(rows, TRAINING), 6).double()


def graphs_by_autograd(detector: GCAD, given: torch.Tensor) -> FloatArray:
    """Return G of each window: the mean over lags of the size of each squared error's gradient by each input."""
    found = []
    for window in given:
        past = window[None, :5].clone().requires_grad_()
        losses = (detector.network_(past)[0, 0] - window[5]).square()
        gradients = [torch.autograd.grad(loss, past, retain_graph=True)[0][0] for loss in losses]
        found.append(torch.stack([gradient.abs().mean(dim=0) for gradient in gradients], dim=1).numpy())
    return np.array(found)


def sparse_graphs(detector: GCAD, given: torch.Tensor, threshold: float) -> FloatArray:
    """Return D of each window, entry by entry."""
    found = graphs_by_autograd(detector, given)
    sparse = np.zeros_like(found)
    for window, cause, effect in np.ndindex(found.shape):
        edge = found[window, cause, effect]
        if cause != effect:
            edge = max(edge - found[window, effect, cause], 0.0)
        sparse[window, cause, effect] = edge if edge >= threshold else 0.0
    return sparse


def test_threshold_and_normal_graph_come_from_the_training_windows() -> None:
    detector = fitted(sample=1.0, sparsity=0.3)
    given = scaled_windows(TRAINING)
    assert len(given) == 115
    edges = sparse_graphs(detector, given, 0.0)[:, ~np.eye(3, dtype=bool)]
    assert detector.threshold_ == pytest.approx(np.quantile(edges[edges > 0], 0.3), rel=1e-6)
    expected = sparse_graphs(detector, given, detector.threshold_).mean(axis=0)
    np.testing.assert_allclose(detector.normal_graph_, expected, rtol=1e-6)


@pytest.mark.parametrize(("beta", "normalised"), [(0.0, True), (2.0, False)])
def test_the_score_by_hand(beta: float, normalised: bool) -> None:
    detector, fresh = fitted(beta=beta, normalised=normalised), noise(15, 3, seed=1)
    normal = detector.normal_graph_
    epsilon = 0.01 * np.median(normal[normal > 0])
    graphs = sparse_graphs(detector, scaled_windows(padded(fresh, 5)), detector.threshold_)
    deviations = np.abs(graphs - normal) / (normal + epsilon)
    expected, by_sensor = np.zeros(15), np.zeros((15, 3))
    for row, cause, effect in np.ndindex(deviations.shape):
        share = deviations[row, cause, effect] * (beta / 3 if cause == effect else 1 / 6)
        expected[row] += share
        by_sensor[row, cause] += share / 2
        by_sensor[row, effect] += share / 2
    # Rows before the first are copies of it.
    of_three = np.stack([padded(expected, 2)[row : row + 3] for row in range(15)]).mean(axis=1)
    np.testing.assert_allclose(detector.score(fresh), of_three, rtol=1e-6)
    np.testing.assert_allclose(
        fitted(beta=beta, normalised=normalised, smoothing=1).contributions(fresh), by_sensor, rtol=1e-6
    )
