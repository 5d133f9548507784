"""Networks on a fake GPU that computes on the CPU: every tensor follows ``device``, and the numbers stay the same."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.helpers.detectors import load_detector
from tests.helpers.fake_device import FakeCuda, MixedDevicesError, fake_cuda
from tsadbench import UsageError
from tsadbench.base import FloatArray
from tsadbench.base.serialization import from_parts, to_parts
from tsadbench.registry import entries
from tsadbench_detectors.deep.device import find_device
from tsadbench_detectors.deep.network_detector import NetworkDetector

pytestmark = pytest.mark.filterwarnings("ignore:PyTorch was compiled without cuDNN")

NETWORKS = [one.name for one in entries("detectors") if issubclass(load_detector(one.name), NetworkDetector)]
VARIANTS: list[tuple[str, dict[str, object]]] = [
    *((name, {}) for name in NETWORKS),
    *(("dprgm", {"backbone": backbone}) for backbone in ("gcn", "gat", "transformer")),
    ("gdn", {"quirks": True}),
]


def rows(n_rows: int, seed: int = 0) -> FloatArray:
    return np.random.default_rng(seed).normal(size=(n_rows, 4)).cumsum(axis=0) / 10


TRAINING = [rows(60), rows(35, seed=1)]
TEST = rows(40, seed=2)


@pytest.mark.parametrize(("name", "parameters"), VARIANTS, ids=lambda value: str(value).strip("{}"))
def test_every_tensor_of_a_network_follows_the_device(name: str, parameters: dict[str, object]) -> None:
    cls = load_detector(name)
    arguments = {**cls.test_params(), "epochs": 1, "max_steps": 2, "batch_size": 32, **parameters}
    on_cpu = cls(**arguments).fit(TRAINING)
    with fake_cuda():
        on_gpu = cls(**arguments, device="cuda").fit(TRAINING)
        assert isinstance(on_gpu, NetworkDetector)
        assert all(isinstance(tensor, FakeCuda) for tensor in on_gpu.network_.state_dict().values())
        scores, loss, learned = on_gpu.score(TEST), on_gpu.held_out_loss(TEST), on_gpu.learned()
        contributions = on_gpu.contributions(TEST) if cls.offers_contributions() else None
    # On a GPU, recurrent layers are PyTorch's own and round differently, and dropout draws different numbers.
    rtol = 0.05 if hasattr(on_cpu, "dropout") else 1e-4
    expected = on_cpu.score(TEST)
    np.testing.assert_allclose(scores, expected, rtol=rtol, atol=1e-6 * np.abs(expected).max())
    np.testing.assert_allclose(loss, on_cpu.held_out_loss(TEST), rtol=rtol)
    restored_here = cls(**arguments).restore(learned)
    np.testing.assert_allclose(restored_here.score(TEST), scores, rtol=1e-4, atol=1e-6)
    if contributions is not None:
        expected = restored_here.contributions(TEST)
        np.testing.assert_allclose(contributions, expected, rtol=1e-3, atol=1e-5 * np.abs(expected).max())


def test_auto_takes_the_gpu_and_devices_do_not_mix() -> None:
    assert find_device("auto") == torch.device("cpu")
    with fake_cuda():
        assert find_device("auto").type == "cuda"
        with pytest.raises(MixedDevicesError):
            torch.ones(3, device="cuda") + torch.ones(3)
        facts = load_detector("vanilla-ae")(device="auto", max_steps=1).fit(TRAINING).training_facts()
    assert facts["on_gpu"] is True


def test_a_model_from_a_gpu_is_read_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    cls = load_detector("vanilla-ae")
    with fake_cuda():
        fitted = cls(epochs=1, min_steps=1, device="cuda").fit(TRAINING)
        scores, parts = fitted.score(TEST), to_parts(fitted)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(UsageError, match="^device: must"):
        from_parts(cls, parts, {})
    np.testing.assert_allclose(from_parts(cls, parts, {"device": "auto"}).score(TEST), scores, rtol=1e-5)
