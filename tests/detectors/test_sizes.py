"""``size``, and widths that grow with the number of sensors: the shapes of the networks that are built."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import nn

from tests.helpers.detectors import load_detector
from tests.helpers.planted import noise
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


def fitted(name: str, n_sensors: int, **parameters: object) -> NetworkDetector:
    return load_detector(name)(**{"max_steps": 1, "batch_size": 4, **parameters}).fit(noise(130, n_sensors))


@pytest.mark.parametrize("name", PUBLISHED)
def test_size_paper_is_the_published_network(name: str) -> None:
    by_size, by_hand = fitted(name, 3, size="paper"), fitted(name, 3, **PUBLISHED[name])
    assert by_size.declared_traits() == by_hand.declared_traits()
    narrower = [type(by_size)(**given).declared_traits().differs[:1] for given in ({}, {"size": "paper"})]
    assert narrower[0] == ("narrower than published",) != narrower[1]
    found, expected = (dict(one.network_.named_parameters()) for one in (by_size, by_hand))
    torch.testing.assert_close(found, expected, rtol=0.0, atol=0.0)


@pytest.mark.parametrize(("size", "inside"), [("default", (33, 26, 13)), ("paper", (5, 4, 2))])
def test_the_dense_layers_widths(size: str, inside: tuple[int, int, int]) -> None:
    network = fitted("vanilla-ae", 52, size=size).network_
    found = [(one.in_features, one.out_features) for one in network.modules() if isinstance(one, nn.Linear)]
    assert found == list(pairwise((52, *inside, *inside[-2::-1], 52)))
