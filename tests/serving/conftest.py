"""A data set card on small files, and models fitted on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.german_plant import CARD, HEADER, lines
from tsadbench.serving import Model, fit_model


@pytest.fixture(scope="session")
def plant(tmp_path_factory) -> Path:
    """The folder of a card."""
    folder = tmp_path_factory.mktemp("plant")
    (folder / "card.toml").write_text(CARD)
    (folder / "normal.csv").write_text("\n".join([HEADER, *lines(0, 200)]) + "\n")
    (folder / "run.csv").write_text("\n".join([HEADER, *lines(1, 60, range(40, 50))]) + "\n")
    return folder


@pytest.fixture(scope="session")
def t2_model(plant) -> Model:
    """Fitted with a smoothing of three rows; its file is t2.model in the plant's folder."""
    return fit_model("t2[smoothing=3]", str(plant / "card.toml"), plant / "t2.model")


@pytest.fixture(scope="session")
def model_file(plant, t2_model) -> Path:
    return plant / "t2.model"
