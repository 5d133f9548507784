"""A gated recurrent unit for many short sequences at once: PyTorch's, at half its cost on a CPU.

PyTorch's own CPU path spends most of its time copying the gates apart. Here time comes first and sequences last, so
that every gate is a contiguous block of rows, and one matrix product a step gives all gates. Parameters, their
initial values and the formulas are those of `torch.nn.GRU`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

_sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
_tanh_backward = torch.ops.aten.tanh_backward.grad_input


class GRU(nn.Module):
    """One layer of gated recurrent units that starts from the state 0 (Cho et al. 2014).

    Parameters
    ----------
    input_size
        Inputs a step.
    hidden_size
        Width of the state.
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.gru = nn.GRU(input_size, hidden_size)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the state after every step, [n_steps, hidden_size, n_sequences].

        Parameters
        ----------
        inputs
            [n_steps, input_size, n_sequences].
        """
        if inputs.is_cuda:
            states: Tensor = self.gru(inputs.transpose(1, 2))[0]
            return states.transpose(1, 2)
        if torch.is_grad_enabled():
            return _Recurrence.apply(inputs, self._weight())  # type: ignore[no-any-return,no-untyped-call]
        return _run(inputs, self._weight(), keep_gates=False)[0]

    def _weight(self) -> Tensor:
        """All parameters in one matrix [4 * hidden, hidden + input + 1], which is multiplied by (state, input, 1).

        Its blocks of rows give the reset gate, the update gate, and what state and input bring to the candidate:
        these two stay apart because the reset gate acts on the first alone.
        """
        gru, gates = self.gru, 2 * self.gru.hidden_size
        by_state, by_input = gru.get_parameter("weight_hh_l0"), gru.get_parameter("weight_ih_l0")
        state_bias, input_bias = gru.get_parameter("bias_hh_l0")[:, None], gru.get_parameter("bias_ih_l0")[:, None]
        no_state, no_input = torch.zeros_like(by_state[gates:]), torch.zeros_like(by_input[gates:])
        return torch.cat(
            [
                torch.cat([by_state[:gates], by_input[:gates], (state_bias + input_bias)[:gates]], dim=1),
                torch.cat([by_state[gates:], no_input, state_bias[gates:]], dim=1),
                torch.cat([no_state, by_input[gates:], input_bias[gates:]], dim=1),
            ]
        )


def _run(inputs: Tensor, weight: Tensor, *, keep_gates: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Return the states after each step, the columns (state, input, 1) before each, and the gates."""
    n_steps, n_inputs, n_sequences = inputs.shape
    hidden = weight.shape[0] // 4
    columns = inputs.new_ones(n_steps + 1, hidden + n_inputs + 1, n_sequences)
    columns[0, :hidden] = 0.0
    columns[:n_steps, hidden:-1] = inputs
    # Scoring needs no gradient: one step's gates are overwritten by the next one's.
    gates = inputs.new_empty(n_steps if keep_gates else 1, 4 * hidden, n_sequences)
    for step in range(n_steps):
        now = torch.mm(weight, columns[step], out=gates[step % len(gates)])
        reset, update, from_state, candidate = now.chunk(4)
        now[: 2 * hidden].sigmoid_()
        candidate.addcmul_(reset, from_state).tanh_()
        # (1 - update) * candidate + update * state, written where the next step's product reads it: no copy.
        torch.lerp(candidate, columns[step, :hidden], update, out=columns[step + 1, :hidden])
    return columns[1:, :hidden], columns, gates


class _Recurrence(torch.autograd.Function):
    """The recurrence with its gradient (back-propagation through time) written out."""

    @staticmethod
    def forward(ctx: FunctionCtx, inputs: Tensor, weight: Tensor) -> Tensor:
        states, columns, gates = _run(inputs, weight, keep_gates=True)
        ctx.save_for_backward(weight, columns, gates)
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, by_states: Tensor) -> tuple[Tensor | None, Tensor]:
        weight, columns, gates = ctx.saved_tensors  # type: ignore[attr-defined]
        n_steps, hidden = by_states.shape[:2]
        to_state, to_input = weight[:, :hidden].t().contiguous(), weight[:, hidden:-1].t().contiguous()
        by_inputs = weight.new_empty(n_steps, len(to_input), by_states.shape[2]) if ctx.needs_input_grad[0] else None  # type: ignore[attr-defined]
        by_weight, by_state = torch.zeros_like(weight), torch.zeros_like(by_states[0])
        # One buffer for all steps: it stays in the processor's cache.
        by_gates = torch.empty_like(gates[0])
        for step in reversed(range(n_steps)):
            by_state += by_states[step]
            kept = _backward_step(by_state, columns[step, :hidden], gates[step], by_gates)
            by_weight.addmm_(by_gates, columns[step].t())
            if by_inputs is not None:
                torch.mm(to_input, by_gates, out=by_inputs[step])
            by_state = torch.addmm(kept, to_state, by_gates)
        return by_inputs, by_weight


def _backward_step(by_state: Tensor, before: Tensor, gates: Tensor, by_gates: Tensor) -> Tensor:
    """Write the gradient by the gates' inputs into ``by_gates``; return what reaches the state before directly."""
    reset, update, from_state, candidate = gates.chunk(4)
    by_reset, by_update, by_from_state, by_candidate = by_gates.chunk(4)
    # In place and in this order: every block of ``by_gates`` is written once, from values that are still there.
    torch.sub(before, candidate, out=by_update).mul_(by_state)
    _sigmoid_backward(by_update, update, grad_input=by_update)
    kept = by_state * update
    torch.sub(by_state, kept, out=by_candidate)
    _tanh_backward(by_candidate, candidate, grad_input=by_candidate)
    torch.mul(by_candidate, reset, out=by_from_state)
    torch.mul(by_candidate, from_state, out=by_reset)
    _sigmoid_backward(by_reset, reset, grad_input=by_reset)
    return kept
