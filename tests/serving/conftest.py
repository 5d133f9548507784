"""A data set card on small files, and models fitted on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.german_plant import write_german_plant
from tsadbench.serving import Model, fit_model


@pytest.fixture(scope="session")
def plant(tmp_path_factory) -> Path:
    """The folder of a card."""
    return write_german_plant(tmp_path_factory.mktemp("plant")).parent


@pytest.fixture(scope="session")
def t2_model(plant) -> Model:
    """Fitted with a smoothing of three rows; its file is t2.model in the plant's folder."""
    return fit_model("t2[smoothing=3]", str(plant / "card.toml"), plant / "t2.model")


@pytest.fixture(scope="session")
def model_file(plant, t2_model) -> Path:
    return plant / "t2.model"
