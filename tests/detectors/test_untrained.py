"""The untrained floor: DPR-GM's score of a network whose weights are those it was initialised with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from tests.detectors.test_dprgm import PRIOR, errors_one_by_one, plant, small
from tsadbench_detectors.dprgm import DPRGM, Network
from tsadbench_detectors.untrained import Untrained

TRAIN = plant(90)


def _untrained(seed: int = 3) -> Untrained:
    return Untrained(prior=PRIOR, window=6, horizon=3, hidden_size=4, embedding_size=2, seed=seed)


def test_the_network_has_the_weights_that_its_seed_draws() -> None:
    detector = _untrained().fit(TRAIN)
    torch.manual_seed(3)
    expected = Network(
        torch.from_numpy(detector.adjacency_).float(), backbone="sage", horizon=3, hidden_size=4, layers=2,
        embedding_size=2,
    ).state_dict()  # fmt: skip
    weights = detector.network_.state_dict()
    assert weights.keys() == expected.keys()
    assert all(torch.equal(weights[name], tensor) for name, tensor in expected.items())
    assert detector.training_facts() == {}


def test_the_errors_quantiles_and_the_score_are_dpr_gms() -> None:
    detector = _untrained().fit(TRAIN)
    z = (TRAIN.values - TRAIN.values.mean(axis=0)) / TRAIN.values.std(axis=0)
    full = errors_one_by_one(detector, z)[: len(z) - 6 - 3 + 1]
    np.testing.assert_allclose(detector.error_median_, np.median(full, axis=0), rtol=1e-4)
    trained = small(hidden_size=4, seed=3).fit(TRAIN)
    assert not np.allclose(trained.score(TRAIN), detector.score(TRAIN))
    trained.restore(detector.learned())
    np.testing.assert_array_equal(trained.score(TRAIN), detector.score(TRAIN))


def test_is_a_floor_that_depends_on_the_seed() -> None:
    traits = _untrained().declared_traits()
    own = {"family": "floor", "floor": True, "paper": ""}
    assert traits == replace(small().declared_traits(), **own)  # type: ignore[arg-type]  # of the fields' types
    assert not np.array_equal(_untrained(3).fit(TRAIN).score(TRAIN), _untrained(4).fit(TRAIN).score(TRAIN))
    assert issubclass(Untrained, DPRGM)
