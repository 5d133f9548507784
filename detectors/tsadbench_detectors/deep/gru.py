"""`torch.nn.GRU` for many short sequences at once, at a quarter of its cost on a CPU.

PyTorch's own CPU path spends most of its time separating the gates by copies. Here time comes first and sequences
last, so that every gate is a contiguous block of rows, and one matrix product a step gives all gates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
tanh_backward = torch.ops.aten.tanh_backward.grad_input

# Sequences per product in a weight's gradient: blocks of this size take half the time of one product of all.
_BLOCK = 64


class _Context(Protocol):
    """The context that PyTorch passes to a function with its own gradient."""

    saved_tensors: tuple[Tensor, ...]
    needs_input_grad: tuple[bool, ...]

    def save_for_backward(self, *tensors: Tensor) -> None: ...


class SummarisingGRU(nn.Module):
    """One layer of gated recurrent units, from the state 0 (Cho et al. 2014), and a summary of its states."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.gru = nn.GRU(input_size, hidden_size)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return last state, mean and maximum of the states, stacked, [3 * hidden_size, n_sequences].

        Inputs are [n_steps, input_size, n_sequences]. As for `torch.amax`, steps that share the maximum share its
        gradient.
        """
        if inputs.device.type != "cpu":
            states = self.gru(inputs.transpose(1, 2))[0].transpose(1, 2)
            return torch.cat([states[-1], states.mean(dim=0), states.amax(dim=0)])
        weights = self._weights()
        if torch.is_grad_enabled():
            return _Summary.apply(inputs, weights)  # type: ignore[no-any-return,no-untyped-call]
        # Without a gradient, one step's gates are overwritten by the next one's.
        return _run(inputs, weights, *_buffers(inputs, weights, 1))

    def _weights(self) -> Tensor:
        """Return all parameters in one matrix [4 * hidden, hidden + input + 1], which multiplies (state, input, 1).

        Its rows give the reset gate, the update gate, and the candidate's parts from the state and from the input: the
        reset gate acts on the first alone.
        """
        gru, gates = self.gru, 2 * self.gru.hidden_size
        by_state, by_input = gru.get_parameter("weight_hh_l0"), gru.get_parameter("weight_ih_l0")
        state_bias, input_bias = gru.get_parameter("bias_hh_l0")[:, None], gru.get_parameter("bias_ih_l0")[:, None]
        of_gates = torch.cat([by_state[:gates], by_input[:gates], (state_bias + input_bias)[:gates]], dim=1)
        of_state = torch.cat([by_state[gates:], torch.zeros_like(by_input[gates:]), state_bias[gates:]], dim=1)
        of_input = torch.cat([torch.zeros_like(by_state[gates:]), by_input[gates:], input_bias[gates:]], dim=1)
        return torch.cat([of_gates, of_state, of_input])


def _buffers(inputs: Tensor, weights: Tensor, n_kept: int) -> tuple[Tensor, Tensor]:
    """Return buffers for `_run`'s columns, and for the gates of ``n_kept`` steps."""
    n_steps, _, n_sequences = inputs.shape
    columns = inputs.new_empty(n_steps + 1, weights.shape[1], n_sequences)
    return columns, inputs.new_empty(n_kept, len(weights), n_sequences)


def _run(inputs: Tensor, weights: Tensor, columns: Tensor, gates: Tensor) -> Tensor:
    """Return the last state, and the states' mean and maximum, stacked.

    It writes (state, input, 1) before each step to ``columns`` [n_steps + 1, hidden + input + 1, n_sequences], and the
    step's reset gate, update gate, state's part of the candidate, and candidate to ``gates`` [n_steps or 1, 4 * hidden,
    n_sequences]; with 1, every step overwrites the one before.
    """
    n_steps, hidden = len(inputs), len(weights) // 4
    columns[0, :hidden] = 0.0
    columns[:n_steps, hidden:-1] = inputs
    columns[:n_steps, -1] = 1.0
    states, parts = columns[:, :hidden].unbind(), gates.view(-1, hidden, gates.shape[2]).unbind()
    every, sigmoids = gates.unbind(), gates[:, : 2 * hidden].unbind()
    total, largest = torch.zeros_like(states[0]), torch.full_like(states[0], -torch.inf)
    for step, column in enumerate(columns[:n_steps].unbind()):
        kept = step % len(gates)
        reset, update, from_state, candidate = parts[4 * kept : 4 * kept + 4]
        torch.mm(weights, column, out=every[kept])
        sigmoids[kept].sigmoid_()
        candidate.addcmul_(reset, from_state).tanh_()
        # (1 - update) * candidate + update * state, written where the next step's product reads it: no copy.
        torch.lerp(candidate, states[step], update, out=states[step + 1])
        # The state is still in the processor's cache.
        total += states[step + 1]
        torch.maximum(largest, states[step + 1], out=largest)
    return torch.cat([states[-1], total / n_steps, largest])


class _Summary(torch.autograd.Function):
    """The recurrence and the summary of its states, and the gradient of both in one pass back through time."""

    @staticmethod
    def forward(ctx: _Context, inputs: Tensor, weights: Tensor) -> Tensor:
        columns, gates = _buffers(inputs, weights, len(inputs))
        summary = _run(inputs, weights, columns, gates)
        ctx.save_for_backward(weights, columns, gates, summary)
        return summary

    @staticmethod
    @once_differentiable
    def backward(ctx: _Context, by_summary: Tensor) -> tuple[Tensor | None, Tensor]:
        weights, columns, gates, summary = ctx.saved_tensors
        states, largest = columns[1:, : len(weights) // 4].unbind(), summary.chunk(3)[2]
        by_last, by_mean, by_largest = by_summary.chunk(3)
        # As floats, which PyTorch writes six times as fast as booleans.
        is_largest = torch.empty_like(largest)
        n_largest = torch.zeros_like(largest)
        for state in states:
            n_largest += torch.eq(state, largest, out=is_largest)
        by_mean, by_largest = by_mean / len(states), by_largest / n_largest

        def by_state(step: int) -> Tensor:
            torch.eq(states[step], largest, out=is_largest)
            pooled = torch.addcmul(by_mean, is_largest, by_largest)
            return pooled + by_last if step == len(states) - 1 else pooled

        return _run_back(weights, columns, gates, by_state, ctx.needs_input_grad[0])


def _run_back(
    weights: Tensor, columns: Tensor, gates: Tensor, by_states: Callable[[int], Tensor], with_inputs: bool
) -> tuple[Tensor | None, Tensor]:
    """Return the gradients by the inputs (None unless ``with_inputs``) and by the weights.

    ``by_states`` returns the gradient by the state after a step, less the part that goes through later steps.
    """
    (n_steps, _, n_sequences), hidden = gates.shape, len(weights) // 4
    to_state, to_inputs = weights[: 3 * hidden, :hidden].t().contiguous(), weights[:, hidden:-1].t().contiguous()
    of_inputs = gates.new_empty(n_steps, len(to_inputs), n_sequences) if with_inputs else None
    # One buffer for all steps: it stays in the processor's cache.
    by_gates = torch.empty_like(gates[0])
    parts, by_three = by_gates.chunk(4), by_gates[: 3 * hidden]
    states, kept = columns[:, :hidden].unbind(), gates.view(-1, hidden, gates.shape[2]).unbind()
    n_blocks, rest = divmod(n_sequences, _BLOCK)
    whole, in_blocks = slice(n_sequences - rest), (n_blocks, _BLOCK)
    blocks = torch.unflatten(columns[..., whole], 2, in_blocks).transpose(1, 2).unbind()
    by_blocks = torch.unflatten(by_gates[:, whole], 1, in_blocks).permute(1, 2, 0)
    of_blocks = weights.new_zeros(n_blocks, *weights.t().shape)
    of_rest = torch.zeros_like(weights.t())
    by_state = by_states(n_steps - 1)
    for step in reversed(range(n_steps)):
        of_step = kept[4 * step : 4 * step + 4]
        _gates_back(by_state, states[step + 1], of_step, parts)
        of_blocks.baddbmm_(blocks[step], by_blocks)
        if rest:
            of_rest.addmm_(columns[step, :, -rest:], by_gates[:, -rest:].t())
        if of_inputs is not None:
            torch.mm(to_inputs, by_gates, out=of_inputs[step])
        if step > 0:
            past = torch.addcmul(by_states(step - 1), by_state, of_step[1])
            by_state = past.addmm_(to_state, by_three)
    return of_inputs, of_blocks.sum(dim=0).add_(of_rest).t()


def _gates_back(by_state: Tensor, after: Tensor, gates: Sequence[Tensor], by_gates: Sequence[Tensor]) -> None:
    """Write into ``by_gates`` the gradients by the gates before their sigmoid or tanh, and by the state's part."""
    reset, update, from_state, candidate = gates
    by_reset, by_update, by_from_state, by_candidate = by_gates
    # after = (1 - update) * candidate + update * before, so that (before - candidate) * update = after - candidate.
    through = torch.addcmul(by_state, by_state, update, value=-1)
    torch.sub(after, candidate, out=by_update).mul_(through)
    tanh_backward(through, candidate, grad_input=by_candidate)
    torch.mul(by_candidate, reset, out=by_from_state)
    torch.mul(by_candidate, from_state, out=by_reset)
    sigmoid_backward(by_reset, reset, grad_input=by_reset)
