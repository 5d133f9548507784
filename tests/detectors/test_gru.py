"""The recurrent layer that writes out its own gradient, against PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from tsadbench_detectors.deep.gru import SummarisingGRU
from tsadbench_detectors.deep.linear import linear

SHAPES = pytest.mark.parametrize(
    ("n_steps", "input_size", "hidden_size", "n_sequences"), [(6, 1, 4, 7), (6, 3, 5, 7), (1, 2, 3, 4), (30, 1, 32, 64)]
)
# Tolerances of gradients that are summed over sequences and steps, by the type of number.
CLOSE = {torch.float64: {"rtol": 1e-9, "atol": 1e-12}, torch.float32: {"rtol": 1e-4, "atol": 1e-5}}


def drawn(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def by_pytorch(layer: SummarisingGRU, inputs: Tensor) -> Tensor:
    states = layer.gru(inputs.transpose(1, 2))[0].transpose(1, 2)
    return torch.cat([states[-1], states.mean(dim=0), states.amax(dim=0)])


def compare(layer: SummarisingGRU, inputs: Tensor) -> None:
    """Compare outputs and all gradients with PyTorch's."""
    inputs = inputs.clone().requires_grad_()
    leaves = [inputs, *layer.parameters()]
    ours, theirs = layer(inputs), by_pytorch(layer, inputs)
    torch.testing.assert_close(ours, theirs, **CLOSE[inputs.dtype])
    upstream = drawn(*ours.shape, dtype=inputs.dtype, seed=1)
    torch.testing.assert_close(
        torch.autograd.grad(ours, leaves, upstream),
        torch.autograd.grad(theirs, leaves, upstream),
        **CLOSE[inputs.dtype],
    )


@SHAPES
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_the_summary_and_its_gradient_are_pytorchs(
    n_steps: int, input_size: int, hidden_size: int, n_sequences: int, dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    compare(SummarisingGRU(input_size, hidden_size).to(dtype), drawn(n_steps, input_size, n_sequences, dtype=dtype))


def test_steps_that_share_the_maximum_share_its_gradient() -> None:
    torch.manual_seed(0)
    layer = SummarisingGRU(1, 4).double()
    with torch.no_grad():
        # Units 0 and 1 never leave the state 0; the others reach a state at which the sigmoids are 0 or 1 to the bit.
        for name, parameter in layer.gru.named_parameters():
            parameter.view(3, 4, -1)[:, :2] = 0.0
            if name.startswith("bias"):
                parameter.view(3, 4)[:, 2:] = torch.tensor([-400.0, -400.0, 400.0], dtype=torch.float64)[:, None]
    states = layer(torch.zeros(5, 1, 3, dtype=torch.float64)).detach()
    assert states[8:].tolist() == [[0.0] * 3] * 2 + [[1.0] * 3] * 2
    compare(layer, drawn(5, 1, 3))


@pytest.mark.parametrize("n_steps", [1, 4])
def test_the_gradient_against_differences(n_steps: int) -> None:
    torch.manual_seed(0)
    layer = SummarisingGRU(2, 3).double()
    names = [name for name, _ in layer.named_parameters()]

    def output(inputs: Tensor, *parameters: Tensor) -> Tensor:
        return torch.func.functional_call(layer, dict(zip(names, parameters, strict=True)), (inputs,))

    assert torch.autograd.gradcheck(output, (drawn(n_steps, 2, 3).requires_grad_(), *layer.parameters()))


def test_the_summary_without_a_gradient_is_the_same() -> None:
    layer, inputs = SummarisingGRU(1, 4), drawn(5, 1, 3, dtype=torch.float32)
    with torch.inference_mode():
        without = layer(inputs)
    torch.testing.assert_close(without, layer(inputs))


def test_training_steps_do_not_disturb_each_other() -> None:
    torch.manual_seed(0)
    layer = SummarisingGRU(1, 4).double()
    for n_sequences in (6, 6, 2, 6, 9):
        compare(layer, drawn(5, 1, n_sequences, seed=n_sequences))

    # Two passes forward before the first one back, and outputs that are kept while the layer goes on.
    first, second = (drawn(5, 1, 6, seed=seed) for seed in (7, 8))
    outputs = [layer(first), layer(second)]
    before = [output.detach().clone() for output in outputs]
    parameters = list(layer.parameters())
    for inputs, output in zip((first, second), outputs, strict=True):
        expected = torch.autograd.grad(by_pytorch(layer, inputs).sum(), parameters)
        torch.testing.assert_close(torch.autograd.grad(output.sum(), parameters), expected)
        compare(layer, drawn(5, 1, 6, seed=9))
    assert all(torch.equal(output, copy) for output, copy in zip(outputs, before, strict=True))


def test_a_gradient_is_taken_again_or_refused_but_never_wrong() -> None:
    torch.manual_seed(0)
    layer, inputs = SummarisingGRU(1, 4).double(), drawn(5, 1, 6)
    parameters = list(layer.parameters())
    output = layer(inputs).sum()
    once = torch.autograd.grad(output, parameters, retain_graph=True)
    torch.testing.assert_close(torch.autograd.grad(output, parameters, retain_graph=True), once)
    # What was given back twice must not be handed out twice.
    compare(layer, drawn(2, 1, 2, seed=2))
    layer(drawn(5, 1, 6, seed=1))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(output, parameters)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shapes", [((3, 4), (5, 4)), ((4, 3), (5, 4)), ((3, 4), (4, 5)), ((4, 3), (4, 5))])
def test_a_product_of_matrices_and_of_their_transposed_views(shapes, dtype: torch.dtype) -> None:
    inputs, weight = (
        tensor if tensor.shape[1] == 4 else tensor.t()
        for tensor in (drawn(*shape, dtype=dtype, seed=seed) for seed, shape in enumerate(shapes))
    )
    expected = inputs.numpy().astype(np.float64) @ weight.numpy().astype(np.float64).T
    tolerance = 1e-14 if dtype == torch.float64 else 1e-6
    np.testing.assert_allclose(linear(inputs, weight).numpy(), expected, rtol=0, atol=tolerance * 10)
