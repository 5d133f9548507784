"""The recurrent layer for long windows against PyTorch's own."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from tsadbench_detectors.deep.long_gru import LongGRU

N_STEPS = 6


def by_pytorch(layer: LongGRU, inputs: Tensor) -> Tensor:
    own = nn.GRU(layer.input_size, layer.hidden_size).to(inputs.dtype)
    own.load_state_dict(layer.state_dict())
    return own(inputs.expand(N_STEPS, -1, -1).transpose(1, 2))[0].transpose(1, 2).detach()


def inputs_of(n_steps: int, n_inputs: int, n_sequences: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(n_steps + n_inputs)
    return torch.randn(n_steps, n_inputs, n_sequences, dtype=torch.float64, generator=generator)


@pytest.mark.parametrize("last_only", [False, True])
@pytest.mark.parametrize("n_steps", [1, N_STEPS])
@pytest.mark.parametrize(("n_inputs", "hidden"), [(1, 1), (2, 5), (5, 2)])
def test_its_states_are_pytorchs_with_and_without_a_gradient(
    n_inputs: int, hidden: int, n_steps: int, last_only: bool
) -> None:
    layer, inputs = LongGRU(n_inputs, hidden).double(), inputs_of(n_steps, n_inputs)
    expected = by_pytorch(layer, inputs)[-1:] if last_only else by_pytorch(layer, inputs)
    torch.testing.assert_close(layer(inputs, N_STEPS, last_only=last_only), expected)
    with torch.inference_mode():
        torch.testing.assert_close(layer(inputs, N_STEPS, last_only=last_only), expected)


@pytest.mark.parametrize("last_only", [False, True])
@pytest.mark.parametrize("n_steps", [1, N_STEPS])
def test_its_gradients_against_differences(n_steps: int, last_only: bool) -> None:
    layer = LongGRU(2, 3).double()

    def states(inputs: Tensor, *_: Tensor) -> Tensor:  # the weights are changed in their place
        found: Tensor = layer(inputs, N_STEPS, last_only=last_only)
        return found

    assert torch.autograd.gradcheck(states, (inputs_of(n_steps, 2).requires_grad_(), *layer.parameters()))


def test_inputs_need_no_gradient() -> None:
    layer, inputs = LongGRU(2, 3).double(), inputs_of(N_STEPS, 2)
    by_weights = torch.autograd.grad(layer(inputs, N_STEPS).sum(), list(layer.parameters()))
    with_inputs = torch.autograd.grad(layer(inputs.requires_grad_(), N_STEPS).sum(), [*layer.parameters(), inputs])
    for one, other in zip(by_weights, with_inputs, strict=False):
        torch.testing.assert_close(one, other)


def test_large_inputs_leave_states_within_their_bounds() -> None:
    layer, inputs = LongGRU(2, 3), 1e15 * inputs_of(N_STEPS, 2).float()
    states = layer(inputs.requires_grad_(), N_STEPS)
    assert states.abs().max() <= 1
    assert torch.autograd.grad(states.sum(), inputs)[0].isfinite().all()


def test_its_initial_weights_are_pytorchs() -> None:
    torch.manual_seed(0)
    ours = LongGRU(3, 4).state_dict()
    torch.manual_seed(0)
    for (name, found), (same, expected) in zip(ours.items(), nn.GRU(3, 4).state_dict().items(), strict=True):
        assert name == same
        assert torch.equal(found, expected)


@pytest.mark.parametrize("n_steps", [1, N_STEPS])
def test_single_precision_has_pytorchs_gradients(n_steps: int) -> None:
    layer = LongGRU(24, 32)
    own = nn.GRU(24, 32)
    own.load_state_dict(layer.state_dict())
    inputs = inputs_of(n_steps, 24, 64).float().requires_grad_()
    upstream = torch.randn(N_STEPS, 32, 64)
    found = torch.autograd.grad(layer(inputs, N_STEPS), [inputs, *layer.parameters()], upstream)
    states = own(inputs.expand(N_STEPS, -1, -1).transpose(1, 2))[0].transpose(1, 2)
    expected = torch.autograd.grad(states, [inputs, *own.parameters()], upstream)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
