"""GDN: neighbours, attention, forecasts and scores against slow implementations of their formulas."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tests.helpers.planted import in_range, padded, waves, windows
from tsadbench import Recording
from tsadbench_detectors.gdn import GDN, Network


def network() -> Network:
    """Return a network of five sensors, each with three neighbours."""
    torch.manual_seed(0)
    made = Network(5, window=6, embedding_size=4, top_k=3, dropout=0.2)
    torch.nn.init.normal_(made.of_target_identity)
    torch.nn.init.normal_(made.of_source_identity)
    return made.eval()


TRAINING = waves(300, 4)


def small(**parameters: object) -> GDN:
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
    detector, fresh = small(smoothing=3).fit(TRAINING), waves(40, 4, seed=1)
    given = windows(padded(in_range(fresh, TRAINING), 6), 7)
    with torch.inference_mode():
        errors = (detector.network_(given[:, :6])[:, 0] - given[:, 6]).abs().numpy()
    epsilon = 0.01 * np.median(detector.error_iqr_)
    deviations = (errors - detector.error_median_) / (detector.error_iqr_ + epsilon)
    smooth = np.array([deviations[max(0, row - 2) : row + 1].mean(axis=0) for row in range(len(deviations))])
    np.testing.assert_allclose(detector.contributions(fresh), smooth, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(detector.score(fresh), smooth.max(axis=1), rtol=1e-3, atol=1e-3)


def test_median_and_spread_come_from_the_held_out_rows() -> None:
    detector = small(held_out=0.3, batch_size=64).fit(TRAINING)
    # 294 windows, the last 88 of them held out: they forecast the last 88 rows.
    given = windows(in_range(TRAINING, TRAINING), 7)[-88:]
    with torch.inference_mode():
        errors = (detector.network_(given[:, :6])[:, 0] - given[:, 6]).abs().numpy()
    np.testing.assert_allclose(detector.error_median_, np.median(errors, axis=0), rtol=1e-3)
    first, third = np.quantile(errors, [0.25, 0.75], axis=0)
    np.testing.assert_allclose(detector.error_iqr_, third - first, rtol=1e-3)


def test_the_quirk_is_marked_leaky_and_its_score_by_hand() -> None:
    detector, fresh = small(smoothing=3).fit(TRAINING), waves(40, 4, seed=1)
    assert detector.declared_traits().leaky == ""
    detector.set_params(quirks=True)
    assert "rows that it scores" in detector.declared_traits().leaky
    found = detector.score(fresh)
    np.testing.assert_array_equal(found, small(quirks=True, smoothing=3).fit(TRAINING).score(fresh))
    errors = np.sqrt(detector._errors(Recording("fresh", fresh, detector.sensors_)))[6:]
    first, median, third = np.quantile(errors, [0.25, 0.5, 0.75], axis=0)
    deviations = (errors - median) / (third - first + 0.01)
    smooth = np.array([deviations[max(0, row - 2) : row + 1].mean(axis=0) for row in range(len(deviations))])
    np.testing.assert_allclose(found[8:], smooth.max(axis=1)[2:], rtol=1e-10)
    np.testing.assert_array_equal(found[:8], 0.0)
    np.testing.assert_array_equal(detector.score(waves(5, 4)), 0.0)
