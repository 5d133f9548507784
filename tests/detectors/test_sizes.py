"""``size``, and widths that grow with the number of sensors: the shapes of the networks that are built."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from tsadbench import Detector
from tsadbench.registry import load_detector
from tsadbench_detectors.deep.network_detector import NetworkDetector

# What size "paper" sets for each detector: the published sizes.
PUBLISHED: dict[str, dict[str, object]] = {
    "mtad-gat": {"hidden_size": 300},
    "grelen": {"hidden_size": 64},
    "mscred": {"scale_short": 10, "scale_middle": 30, "scale_long": 60, "gap": 10, "channels": 32},
    "lstm-vae": {"hidden_size": 32, "latent_size": 100},
    "anomaly-transformer": {"window": 100, "d_model": 512, "n_heads": 8, "n_layers": 3},
    "timesnet": {"window": 100, "d_model": 32, "n_layers": 3},
    "omnianomaly": {"hidden_size": 500, "latent_size": 3, "flows": 20},
    "dvgcrn": {"latent_size": 15, "hidden_size": 20, "embedding_size": 256},
    "usad": {"latent_size": 40},
    "thoc": {"hidden_size": 128},
    "gcad": {"hidden_size": 2048, "blocks": 6},
    "catch": {"d_model": 128, "cf_dim": 64, "layers": 3, "head_dim": 64, "feed_forward": 256},
}


def rows(n_sensors: int, n_rows: int = 130) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n_rows, n_sensors))


def fitted(name: str, n_sensors: int, **parameters: object) -> Detector:
    return load_detector(name)(**{"max_steps": 1, "batch_size": 4, **parameters}).fit(rows(n_sensors))


def weights(detector: Detector) -> dict[str, torch.Tensor]:
    assert isinstance(detector, NetworkDetector)
    return dict(detector.network_.named_parameters())


def shapes(detector: Detector) -> dict[str, torch.Size]:
    return {name: weight.shape for name, weight in weights(detector).items()}


@pytest.mark.parametrize("name", PUBLISHED)
def test_size_paper_is_the_published_network(name: str) -> None:
    by_size, by_hand = fitted(name, 3, size="paper"), fitted(name, 3, **PUBLISHED[name])
    assert shapes(by_size) == shapes(by_hand)
    assert by_size.declared_traits() == by_hand.declared_traits()
    narrower = [type(by_size)(**given).declared_traits().differs[:1] for given in ({}, {"size": "paper"})]
    assert narrower[0] == ("narrower than published",) != narrower[1]
    for found, expected in zip(weights(by_size).values(), weights(by_hand).values(), strict=True):
        assert torch.equal(found, expected)


@pytest.mark.parametrize(("size", "inside"), [("default", (33, 26, 13)), ("paper", (5, 4, 2))])
def test_the_dense_layers_widths(size: str, inside: tuple[int, int, int]) -> None:
    detector = fitted("vanilla-ae", 52, size=size)
    assert isinstance(detector, NetworkDetector)
    found = [(one.in_features, one.out_features) for one in detector.network_.modules() if isinstance(one, nn.Linear)]
    assert found == list(pairwise((52, *inside, *inside[-2::-1], 52)))
