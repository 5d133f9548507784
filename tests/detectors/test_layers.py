"""Layers with a hand-written gradient or recurrence, against plain PyTorch."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from tsadbench_detectors.deep.gru import SummarisingGRU
from tsadbench_detectors.deep.mixer import Mixer


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def require_same(found: Tensor, expected: Tensor, leaves: list[Tensor]) -> None:
    """Compare values and the gradients of all leaves."""
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    upstream = drawn(*expected.shape, seed=1)
    gradients = (torch.autograd.grad(one, leaves, upstream, retain_graph=True) for one in (found, expected))
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("n_steps", "hidden_size", "n_sequences"), [(1, 3, 4), (30, 32, 64), (5, 4, 150)])
def test_the_summary_matches_pytorchs_recurrent_layer(n_steps: int, hidden_size: int, n_sequences: int) -> None:
    torch.manual_seed(0)
    layer, inputs = SummarisingGRU(2, hidden_size), drawn(n_steps, 2, n_sequences).requires_grad_()
    states = layer.gru(inputs.transpose(1, 2))[0].transpose(1, 2)
    expected = torch.cat([states[-1], states.mean(dim=0), states.amax(dim=0)])
    require_same(layer(inputs), expected, [inputs, *layer.parameters()])
    with torch.inference_mode():
        torch.testing.assert_close(layer(inputs), expected, rtol=1e-4, atol=1e-5)


def test_two_forward_passes_before_the_first_backward_pass_do_not_interfere() -> None:
    torch.manual_seed(0)
    layer, both = SummarisingGRU(1, 4), [drawn(5, 1, 6, seed=seed) for seed in (7, 8)]
    parameters = list(layer.parameters())
    expected = [torch.autograd.grad(layer(inputs).sum(), parameters) for inputs in both]
    outputs = [layer(inputs).sum() for inputs in both]
    torch.testing.assert_close([torch.autograd.grad(output, parameters) for output in outputs], expected)


def test_the_mixers_forecast_by_loops() -> None:
    torch.manual_seed(0)
    mixer = Mixer(5, 3, 7, 1, normalised=True).double()
    mixer(2.0 * drawn(50, 5, 3, seed=3).double() + 1.0)
    mixer, window = mixer.eval(), drawn(5, 3).double()
    block = mixer.blocks[0]
    with torch.no_grad():
        for weight in (mixer.gain, mixer.offset, block.row_norm.weight, block.sensor_norm.bias):
            weight.add_(0.3 * torch.rand_like(weight))
    level, spread = window.mean(dim=0), (window.var(dim=0, correction=0) + 1e-5).sqrt()
    rows = (window - level) / spread * mixer.gain + mixer.offset

    def normal(norm: nn.BatchNorm1d, values: Tensor) -> Tensor:
        return norm(values.flatten()[None]).view(values.shape)

    rows = rows + block.rows(normal(block.row_norm, rows).T).relu().T
    hidden = [block.sensors_in(row).relu() for row in normal(block.sensor_norm, rows)]
    rows = rows + torch.stack([block.sensors_out(units) for units in hidden])
    output = mixer.head.weight[0] @ rows + mixer.head.bias
    torch.testing.assert_close(mixer(window[None])[0, 0], (output - mixer.offset) / mixer.gain * spread + level)
