"""DPR-GM as a detector: edges and weights, score formula, what it detects; and the untrained floor."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from tests.helpers.planted import padded
from tsadbench import Prior, Recording
from tsadbench.base.prior import Edge
from tsadbench.utils.arrays import FloatArray
from tsadbench_detectors import sensor_graph
from tsadbench_detectors.dprgm import DPRGM, Network
from tsadbench_detectors.standardise import Standardiser
from tsadbench_detectors.untrained import Untrained

SENSORS = ("drive", "flow", "heat")
PRIOR = Prior((Edge("drive", "flow"), Edge("flow", "heat"), Edge("drive", "heat")))


def small(**parameters: object) -> DPRGM:
    defaults = {
        "prior": PRIOR,
        "window": 6,
        "horizon": 3,
        "hidden_size": 4,
        "embedding_size": 2,
        "epochs": 2,
        "min_steps": 1,
    }
    return DPRGM(**{**defaults, "learning_rate": 0.01, "batch_size": 32, **parameters})  # type: ignore[arg-type]


def plant(n_rows: int, seed: int = 0, broken: slice = slice(0, 0)) -> Recording:
    """Noise drives a flow three rows later, which heats a body two rows later; in ``broken``, other noise does."""
    rng = np.random.default_rng(seed)
    drive = rng.normal(size=n_rows + 5)
    heard = drive.copy()
    heard[broken] = rng.normal(size=len(heard[broken]))
    flow = np.roll(heard, 3) + 0.1 * rng.normal(size=n_rows + 5)
    heat = np.roll(flow, 2) + 0.1 * rng.normal(size=n_rows + 5)
    values = np.stack([10 + drive, 20 + flow, 30 + heat], axis=1)
    return Recording(f"plant-{seed}", values[5:], SENSORS)


@pytest.fixture(scope="module")
def fitted() -> DPRGM:
    return small().fit([plant(60), plant(50, seed=1)])


def errors_one_by_one(detector: DPRGM, rows: FloatArray) -> FloatArray:
    """Return mean squared forecast errors, [n_rows - window, n_sensors], over the existing part of the horizon."""
    window, horizon = detector.window, detector.horizon
    errors = []
    for first in range(window, len(rows)):
        past, future = rows[first - window : first], rows[first : first + horizon]
        with torch.no_grad():
            predicted = detector.network_(torch.tensor(past[None], dtype=torch.float32))[0, : len(future)].numpy()
        errors.append(((predicted - future) ** 2).mean(axis=0))
    return np.array(errors)


@pytest.mark.parametrize(("node_weights", "alpha"), [(True, 0.2), (False, 1.0)])
def test_the_score_from_the_forecasts(node_weights: bool, alpha: float) -> None:
    training, test = [plant(60), plant(50, seed=1)], plant(40, seed=2)
    detector = small(node_weights=node_weights, alpha=alpha).fit(training)

    rows = np.concatenate([recording.values for recording in training])
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    weights = np.full(3, 1 / 3)
    if node_weights:
        reliability = 1 / (deviation / (np.abs(mean) + 1e-8) * 100 + 1e-8)
        weights = reliability / reliability.sum()
    calibration = np.concatenate(
        [errors_one_by_one(detector, (recording.values - mean) / deviation)[:-2] for recording in training]
    )
    first, median, third = np.quantile(calibration, [0.25, 0.5, 0.75], axis=0)
    errors = errors_one_by_one(detector, padded((test.values - mean) / deviation, 6))
    weighted = weights * np.maximum(0, (errors - median) / (third - first))
    expected = (1 - alpha) * weighted.sum(axis=1) / 3 + alpha * weighted.max(axis=1)

    np.testing.assert_allclose(detector.score(test), expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(detector.contributions(test), weighted, rtol=1e-4, atol=1e-6)


def test_edge_weights_come_from_the_raw_training_rows(fitted: DPRGM) -> None:
    rows = np.concatenate([plant(60).values, plant(50, seed=1).values])
    rho = np.corrcoef(rows, rowvar=False)
    expected = np.zeros((3, 3))
    for source, target in ((0, 1), (1, 2), (0, 2)):
        expected[source, target] = 0.5 + 0.5 * rho[source, target]
    np.testing.assert_allclose(fitted.adjacency_, expected)
    np.testing.assert_array_equal(small(edge_weights=False).fit(plant(60)).adjacency_, PRIOR.matrix(SENSORS))


def test_with_edge_votes_edges_are_weighted_by_their_votes_as_well(fitted: DPRGM) -> None:
    prior = Prior((replace(PRIOR.edges[0], votes=0.6), *PRIOR.edges[1:]))
    voted = small(prior=prior, edge_votes=True).fit([plant(60), plant(50, seed=1)])
    np.testing.assert_allclose(voted.adjacency_, fitted.adjacency_ * [[1, 0.6, 1], [1, 1, 1], [1, 1, 1]])


def test_by_default_the_prior_gives_the_graph_and_without_one_correlations_do(fitted: DPRGM) -> None:
    training = [plant(60), plant(50, seed=1)]
    np.testing.assert_array_equal(small(graph="domain").fit(training).adjacency_, fitted.adjacency_)
    without, by_name = (small(prior=None, graph=graph).fit(training) for graph in ("auto", "correlation"))
    np.testing.assert_array_equal(without.score(plant(30, seed=2)), by_name.score(plant(30, seed=2)))
    assert [one.training_facts()["graph_from_prior"] for one in (fitted, without)] == [True, False]


def test_without_a_graph_no_sensor_influences_another() -> None:
    detector = small(graph="none").fit(plant(60))
    np.testing.assert_array_equal(detector.adjacency_, 0.0)
    recording = plant(30, seed=2)
    values = recording.values.copy()
    values[:, 0] += 5.0
    before, after = detector.contributions(recording), detector.contributions(Recording("a", values, SENSORS))
    np.testing.assert_allclose(after[:, 1:], before[:, 1:], rtol=1e-6)
    assert not np.allclose(after[6:, 0], before[6:, 0])


def test_a_random_graph_has_as_many_edges_as_the_prior_and_follows_the_seed() -> None:
    pairs = list(permutations(SENSORS, 2))
    prior = Prior(tuple(Edge(*pair) for pair in pairs[:-1]))  # all but one: an edge drawn twice would show
    graphs = [
        small(graph="random", prior=prior, edge_weights=False, seed=seed, epochs=1).fit(plant(40)).adjacency_
        for seed in (0, 0, 1, 2, 3)
    ]
    assert [graph.sum() for graph in graphs] == [len(pairs) - 1] * 5
    assert not any(graph.diagonal().any() for graph in graphs)
    np.testing.assert_array_equal(graphs[0], graphs[1])
    assert len({graph.tobytes() for graph in graphs}) > 1


def test_a_constant_sensor_has_no_weight() -> None:
    values = plant(60).values.copy()
    values[:, 1] = 20.1
    detector = small().fit(Recording("a", values, SENSORS))
    assert detector.node_weights_[1] == 0.0
    np.testing.assert_allclose(detector.adjacency_[[0, 1], [1, 2]], 0.5)
    values[30:, 1] = 25.0
    test = Recording("b", values, SENSORS)
    assert np.isfinite(detector.score(test)[6:]).all()
    np.testing.assert_array_equal(detector.contributions(test)[6:, 1], 0.0)


@pytest.mark.long  # 6 s of training
def test_a_broken_coupling_is_found_only_with_the_graph() -> None:
    training, broken = plant(800), slice(300, 600)
    test = plant(900, seed=1, broken=broken)
    # Row 300 of the drive is row 295 of the recording, and reaches the flow three rows later.
    rows = np.arange(900)
    labels = (rows >= 298) & (rows < 598)

    def auroc(graph: str) -> float:
        detector = small(graph=graph, epochs=15, hidden_size=16, embedding_size=4, window=8).fit(training)
        return float(roc_auc_score(labels[8:], detector.score(test)[8:]))

    assert auroc("domain") > 0.9
    assert auroc("none") < 0.6


def test_edge_weights_by_hand() -> None:
    x = np.array([0.1, 0.3, -0.2, 0.4, -0.6])
    # In other units; mirrored; a sensor that never changes; one that rises with x, but not always.
    rows = np.stack([x, 7 * x + 3, 5 - 2 * x, np.full(5, 0.1), [1.0, 0.0, 0.0, 2.0, 0.0]], axis=1)
    graph = np.zeros((5, 5))
    graph[0, [1, 2, 3]] = graph[2, 0] = graph[4, 0] = 1.0
    standardiser = Standardiser.of([Recording("a", rows, tuple("abcde"))])
    adjacency = sensor_graph.weighted(graph, sensor_graph.correlations(standardiser, rows))

    # Products with the deviations (0.4, -0.6, -0.6, 1.4, -0.6) from the mean 0.6; x has the mean 0.
    rho = (0.04 - 0.18 + 0.12 + 0.56 + 0.36) / np.sqrt(0.66 * 3.2)
    expected = np.zeros((5, 5))
    expected[0, 1], expected[0, 3], expected[4, 0] = 1.0, 0.5, 0.5 + 0.5 * rho
    np.testing.assert_allclose(adjacency, expected, atol=1e-12)
    assert adjacency[0, 2] == adjacency[2, 0] == 0.0
    assert (adjacency <= 1.0).all()


def test_the_network_has_the_weights_that_its_seed_draws() -> None:
    detector = Untrained(prior=PRIOR, window=6, horizon=3, hidden_size=4, embedding_size=2, seed=3).fit(plant(90))
    torch.manual_seed(3)
    expected = Network(
        torch.from_numpy(detector.adjacency_).float(), backbone="sage", horizon=3, hidden_size=4, layers=2,
        embedding_size=2,
    ).state_dict()  # fmt: skip
    torch.testing.assert_close(detector.network_.state_dict(), expected, rtol=0.0, atol=0.0)
    assert detector.training_facts() == {"graph_from_prior": True}
