"""GDN: neighbours, attention, forecasts and scores against slow implementations of their formulas."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tests.detectors.test_deep import padded
from tsadbench import Detector, Recording
from tsadbench.utils.arrays import FloatArray
from tsadbench_detectors.gdn import GDN, Network


def rows(n_rows: int = 300, n_sensors: int = 4, seed: int = 0) -> FloatArray:
    generator = np.random.default_rng(seed)
    phase = np.arange(n_rows)[:, None] / 9.0 + np.arange(n_sensors)
    return 3.0 + np.sin(phase) + 0.1 * generator.normal(size=(n_rows, n_sensors))


def network(n_sensors: int = 5, top_k: int = 3) -> Network:
    torch.manual_seed(0)
    made = Network(n_sensors, window=6, embedding_size=4, top_k=top_k, dropout=0.2)
    torch.nn.init.normal_(made.of_target_identity)
    torch.nn.init.normal_(made.of_source_identity)
    return made.eval()


def small(**parameters: object) -> Detector:
    return GDN(**{"window": 6, "embedding_size": 8, "epochs": 2, "min_steps": 1, **parameters})  # type: ignore[arg-type]


def test_neighbours_are_the_most_similar_identities_and_the_sensor_itself() -> None:
    made = network()
    vectors = made.identity.detach().numpy()
    for target, found in enumerate(made.neighbours().tolist()):
        cosine = vectors @ vectors[target] / np.linalg.norm(vectors, axis=1) / np.linalg.norm(vectors[target])
        others = [sensor for sensor in np.argsort(-cosine) if sensor != target]
        assert set(found) == {target, *others[:2]}


def test_the_forecast_by_loops() -> None:
    made = network()
    past = torch.randn(2, 6, 5)
    expected = torch.stack([_forecast_by_loops(made, window) for window in past])
    with torch.inference_mode():
        torch.testing.assert_close(made(past)[:, 0], expected)


def _forecast_by_loops(made: Network, window: Tensor) -> Tensor:
    """Forecast one window sensor by sensor, with key_i = [W x_i ; v_i] written out."""
    with torch.inference_mode():
        features = [made.features.weight @ window[:, sensor] for sensor in range(5)]
        keys = [torch.cat([features[sensor], made.identity[sensor]]) for sensor in range(5)]
        as_target = torch.cat([made.of_target.weight[0], made.of_target_identity])
        as_source = torch.cat([made.of_source.weight[0], made.of_source_identity])
        forecast = []
        for target, neighbours in enumerate(made.neighbours().tolist()):
            logits = [torch.dot(as_target, keys[target]) + torch.dot(as_source, keys[source]) for source in neighbours]
            weights = torch.softmax(torch.nn.functional.leaky_relu(torch.stack(logits), 0.2), dim=0)
            summed = sum(weight * features[source] for weight, source in zip(weights, neighbours, strict=True))
            state = made.norm((summed + made.bias)[None]).relu()
            output = made.output_norm(made.identity[target] * state).relu()
            forecast.append(made.head(output)[0, 0])
        return torch.stack(forecast)


def test_the_score_by_hand() -> None:
    detector = small(smoothing=3).fit(rows())
    assert isinstance(detector, GDN)
    fresh = rows(40, seed=1)
    low, span = rows().min(axis=0), np.ptp(rows(), axis=0)
    scaled = torch.from_numpy(padded((fresh - low) / span, 6)).float()
    with torch.inference_mode():
        errors = np.array(
            [(detector.network_(scaled[None, row - 6 : row])[0, 0] - scaled[row]).abs().numpy() for row in range(6, 46)]
        )
    epsilon = 0.01 * np.median(detector.error_iqr_)
    deviations = (errors - detector.error_median_) / (detector.error_iqr_ + epsilon)
    smooth = np.array([deviations[max(0, row - 2) : row + 1].mean(axis=0) for row in range(len(deviations))])
    np.testing.assert_allclose(detector.contributions(fresh), smooth, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(detector.score(fresh), smooth.max(axis=1), rtol=1e-3, atol=1e-3)


def test_median_and_spread_are_those_of_the_held_out_rows() -> None:
    detector = small(held_out=0.3, batch_size=64).fit(rows())
    assert isinstance(detector, GDN)
    # 294 windows, the last 88 of them held out: they forecast the last 88 rows.
    low, span = rows().min(axis=0), np.ptp(rows(), axis=0)
    scaled = torch.from_numpy((rows() - low) / span).float()
    with torch.inference_mode():
        past = torch.stack([scaled[row - 6 : row] for row in range(300 - 88, 300)])
        errors = (detector.network_(past)[:, 0] - scaled[300 - 88 :]).abs().numpy()
    np.testing.assert_allclose(detector.error_median_, np.median(errors, axis=0), rtol=1e-3)
    first, third = np.quantile(errors, [0.25, 0.75], axis=0)
    np.testing.assert_allclose(detector.error_iqr_, third - first, rtol=1e-3)


def test_the_quirk_is_marked_leaky_and_changes_scoring_alone() -> None:
    detector = small().fit(rows())
    assert detector.declared_traits().leaky == ""
    detector.set_params(quirks=True)
    assert "rows that it scores" in detector.declared_traits().leaky
    fresh = rows(60, seed=1)
    found = detector.score(fresh)
    np.testing.assert_array_equal(found, small(quirks=True).fit(rows()).score(fresh))
    np.testing.assert_array_equal(found[:9], 0.0)
    assert (found[9:] != 0.0).all()
    np.testing.assert_array_equal(detector.score(rows(5)), 0.0)


def test_the_quirks_score_by_hand() -> None:
    detector, fresh = small(quirks=True, smoothing=3).fit(rows()), rows(40, seed=1)
    assert isinstance(detector, GDN)
    errors = np.sqrt(detector._errors(Recording("fresh", fresh, detector.sensors_)))[6:]
    first, median, third = np.quantile(errors, [0.25, 0.5, 0.75], axis=0)
    deviations = (errors - median) / (third - first + 0.01)
    smooth = np.array([deviations[max(0, row - 2) : row + 1].mean(axis=0) for row in range(len(deviations))])
    np.testing.assert_allclose(detector.score(fresh)[8:], smooth.max(axis=1)[2:], rtol=1e-10)
    np.testing.assert_array_equal(detector.score(fresh)[6:8], 0.0)


def test_the_attention_starts_with_the_windows_alone() -> None:
    made = Network(4, window=6, embedding_size=4, top_k=3, dropout=0.2)
    assert not made.of_target_identity.any()
    assert not made.of_source_identity.any()
