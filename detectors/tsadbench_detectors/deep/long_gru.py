"""A gated recurrent unit for long windows in small batches: PyTorch's formulas at a fraction of its cost.

A step of few sequences is over before PyTorch has prepared the next one, so what counts is the number of operations a
step. Forwards these are two products and four element-wise operations. Backwards, all that does not wait for the
following step is computed for all steps at once: one product and two element-wise operations a step remain.
(`deep.gru` is for many sequences, where a step's working set should stay in the processor's cache.)
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

from tsadbench_detectors.deep.linear import linear


class LongGRU(nn.GRU):
    """One layer of gated recurrent units that starts from the state 0 (Cho et al. 2014).

    Parameters
    ----------
    input_size
        Inputs a step.
    hidden_size
        Width of the state.
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)

    def forward(self, inputs: Tensor, n_steps: int, *, last_only: bool = False) -> Tensor:  # type: ignore[override]
        """Return the state after every step, [n_steps or 1, hidden_size, n_sequences].

        Parameters
        ----------
        inputs
            [n_steps, input_size, n_sequences], or [1, input_size, n_sequences]: the same at every step.
        n_steps
            At least 1.
        last_only
            Return the last step's state alone.
        """
        if inputs.device.type != "cpu":
            states: Tensor = super().forward(inputs.expand(n_steps, -1, -1).transpose(1, 2))[0].transpose(1, 2)
            return states[-1:] if last_only else states
        weights = self._weights()
        if torch.is_grad_enabled():
            return _Recurrence.apply(inputs, *weights, n_steps, last_only)  # type: ignore[no-any-return,no-untyped-call]
        first = inputs.new_zeros(self.hidden_size, inputs.shape[2])
        # Scoring overwrites what no later step needs.
        kept = [first] * (n_steps + 1) if last_only else [first, *inputs.new_empty(n_steps, *first.shape)]
        gates = inputs.new_empty(4 * self.hidden_size, inputs.shape[2]).expand(n_steps, -1, -1)
        _run(inputs, *weights, kept, gates)
        return kept[-1][None] if last_only else torch.stack(kept[1:])

    def _weights(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the factors of input, state and 1: [4 * hidden, input], [3 * hidden, hidden], [4 * hidden, 1].

        Blocks of rows: what the input brings to the candidate; reset gate; update gate; what the state brings to the
        candidate (its product with the reset gate). The first is doubled: ``tanh(x) = 2 sigmoid(2 x) - 1``, and
        PyTorch's sigmoid takes a fraction of its tanh's time.
        """
        gates, candidate = slice(0, 2 * self.hidden_size), slice(2 * self.hidden_size, None)
        by_input, by_state = self.get_parameter("weight_ih_l0"), self.get_parameter("weight_hh_l0")
        input_bias, state_bias = self.get_parameter("bias_ih_l0"), self.get_parameter("bias_hh_l0")
        blocks = [2 * by_input[candidate], by_input[gates], torch.zeros_like(by_input[candidate])]
        biases = [2 * input_bias[candidate], input_bias[gates] + state_bias[gates], state_bias[candidate]]
        return torch.cat(blocks), by_state, torch.cat(biases)[:, None]


def _run(
    inputs: Tensor,
    by_input: Tensor,
    by_state: Tensor,
    bias: Tensor,
    states: Sequence[Tensor],
    gates: Tensor,
) -> None:
    """Run all steps from the state ``states[0]``.

    Written are the states after each, and in each step's gates: the candidate, reset gate, update gate, the state's
    part of the candidate.
    """
    hidden = len(states[0])
    minus_one = inputs.new_tensor(-1.0)
    constant = torch.addmm(bias, by_input, inputs[0]) if len(inputs) == 1 else None
    # All steps' views at once: one by one, they would take as long as an operation.
    parts = gates, gates[:, hidden:], gates[:, hidden : 3 * hidden], *gates.chunk(4, dim=1)
    views = zip(*(part.unbind() for part in parts), strict=True)
    for step, (now, of_state, sigmoids, candidate, reset, update, from_state) in enumerate(views):
        if constant is None:
            torch.addmm(bias, by_input, inputs[step], out=now)
        else:
            now.copy_(constant)
        of_state.addmm_(by_state, states[step])
        sigmoids.sigmoid_()
        candidate.addcmul_(reset, from_state, value=2).sigmoid_()
        torch.add(minus_one, candidate, alpha=2, out=candidate)
        torch.lerp(candidate, states[step], update, out=states[step + 1])


class _Recurrence(torch.autograd.Function):
    """The recurrence with its gradient (back-propagation through time) written out."""

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        inputs: Tensor,
        by_input: Tensor,
        by_state: Tensor,
        bias: Tensor,
        n_steps: int,
        last_only: bool,
    ) -> Tensor:
        hidden, n_sequences = by_state.shape[1], inputs.shape[2]
        states = inputs.new_empty(n_steps + 1, hidden, n_sequences)
        states[0] = 0.0
        gates = inputs.new_empty(n_steps, 4 * hidden, n_sequences)
        _run(inputs, by_input, by_state, bias, states.unbind(), gates)
        ctx.save_for_backward(inputs, by_input, by_state, states, gates)
        return states[-1:].clone() if last_only else states[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, towards: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients, given that by the returned states."""
        inputs, by_input, by_state, states, gates = ctx.saved_tensors  # type: ignore[attr-defined]
        n_steps, hidden = len(gates), by_state.shape[1]
        slopes = _slopes(gates, states)
        update, to_state = gates[:, 2 * hidden : 3 * hidden], by_state.t().contiguous()
        towards_state = torch.zeros_like(states[0])
        for step in reversed(range(n_steps)):
            if n_steps - step <= len(towards):
                towards_state += towards[step - n_steps]
            now = slopes[step]
            # From here on it is the gradient by the step's gates.
            now.view(4, *towards_state.shape).mul_(towards_state)
            towards_state = torch.addmm(towards_state.mul_(update[step]), to_state, now[hidden:])
        # One product for all steps, whose columns are (step, sequence).
        columns = _columns(slopes)
        by_states = linear(columns[hidden:], _columns(states[:-1]))
        if len(inputs) == 1:
            columns = slopes.sum(dim=0)
        by_inputs = None
        if ctx.needs_input_grad[0]:  # type: ignore[attr-defined]
            by_inputs = linear(by_input.t(), columns.t()).view(-1, len(inputs), inputs.shape[2]).transpose(0, 1)
        by_weight = linear(columns, _columns(inputs))
        return by_inputs, by_weight, by_states, columns.sum(dim=1)[:, None], None, None


def _columns(steps: Tensor) -> Tensor:
    """Return [size, n_steps * n_sequences] for [n_steps, size, n_sequences]."""
    return steps.transpose(0, 1).flatten(1)


def _slopes(gates: Tensor, states: Tensor) -> Tensor:
    """Return the gradient of the state after each step by that step's gates before their functions, as ``gates``."""
    candidate, reset, update, from_state = gates.chunk(4, dim=1)
    slopes = torch.empty_like(gates)
    by_candidate, by_reset, by_update, by_from_state = slopes.chunk(4, dim=1)
    # (1 - update) * tanh'(x), by 2 x
    torch.addcmul(gates.new_tensor(0.5), candidate, candidate, value=-0.5, out=by_candidate)
    by_candidate.addcmul_(by_candidate, update, value=-1)
    torch.mul(by_candidate, reset, out=by_from_state).mul_(2)
    torch.addcmul(by_from_state, by_from_state, reset, value=-1, out=by_reset).mul_(from_state)
    torch.sub(states[:-1], candidate, out=by_update).mul_(update)
    by_update.addcmul_(by_update, update, value=-1)
    return slopes
