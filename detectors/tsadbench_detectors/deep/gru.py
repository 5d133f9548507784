"""A gated recurrent unit for many short sequences at once: PyTorch's, at a third of its cost on a CPU.

PyTorch's own CPU path spends most of its time copying the gates apart. Here time comes first and sequences last, so
that every gate is a contiguous block of rows, and one matrix product a step gives all gates. Parameters, their
initial values and the formulas are those of `torch.nn.GRU`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from tsadbench_detectors.deep.activation_gradients import sigmoid_backward, tanh_backward

_Gradients: TypeAlias = tuple[Tensor | None, Tensor, Tensor]


class _Context(Protocol):
    """What PyTorch hands to a function with its own gradient."""

    saved_tensors: tuple[Tensor, ...]
    needs_input_grad: tuple[bool, ...]

    def save_for_backward(self, *tensors: Tensor) -> None: ...


class SummarisingGRU(nn.Module):
    """One layer of gated recurrent units that starts from the state 0 (Cho et al. 2014), and a summary of its states.

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
        """Return last state, mean and maximum of the states, one below the other, [3 * hidden_size, n_sequences].

        As for `torch.amax`, steps that share the maximum share its gradient.

        Parameters
        ----------
        inputs
            [n_steps, input_size, n_sequences].
        """
        if inputs.device.type != "cpu":
            states = self.gru(inputs.transpose(1, 2))[0].transpose(1, 2)
            return torch.cat([states[-1], states.mean(dim=0), states.amax(dim=0)])
        weights = self._weights()
        if torch.is_grad_enabled():
            return _Summary.apply(inputs, *weights)  # type: ignore[no-any-return,no-untyped-call]
        of_columns, of_gates = _sizes(inputs, weights[1])
        # Without a gradient, one step's gates are overwritten by the next one's.
        columns, gates = inputs.new_empty(of_columns), inputs.new_empty(1, *of_gates[1:])
        return _run(inputs, *weights, columns, gates)

    def _weights(self) -> tuple[Tensor, Tensor]:
        """Return all parameters in two matrices.

        The first, [3 * hidden, hidden + input + 1], is multiplied by (state, input, 1): the reset gate, the update
        gate, and what the state brings to the candidate. The second, [hidden, input + 1], is multiplied by (input, 1):
        what the input brings to the candidate. These two stay apart because the reset gate acts on the first alone.
        """
        gru, gates = self.gru, 2 * self.gru.hidden_size
        by_state, by_input = gru.get_parameter("weight_hh_l0"), gru.get_parameter("weight_ih_l0")
        state_bias, input_bias = gru.get_parameter("bias_hh_l0")[:, None], gru.get_parameter("bias_ih_l0")[:, None]
        no_input = torch.zeros_like(by_input[gates:])
        of_gates = torch.cat([by_state[:gates], by_input[:gates], (state_bias + input_bias)[:gates]], dim=1)
        of_state = torch.cat([by_state[gates:], no_input, state_bias[gates:]], dim=1)
        return torch.cat([of_gates, of_state]), torch.cat([by_input[gates:], input_bias[gates:]], dim=1)


def _run(inputs: Tensor, by_column: Tensor, by_input: Tensor, columns: Tensor, gates: Tensor) -> Tensor:
    """Return the last state, and the states' mean and maximum, one below the other.

    Parameters
    ----------
    inputs, by_column, by_input
        Of `SummarisingGRU.forward`, and its two matrices.
    columns
        [n_steps + 1, hidden + input + 1, n_sequences]; overwritten by (state, input, 1) before each step and, without
        the inputs, after the last.
    gates
        [n_steps, 4 * hidden, n_sequences]; overwritten by each step's reset gate, update gate, state's part of the
        candidate, and candidate. If the first dimension is 1, every step overwrites the one before.
    """
    n_steps, hidden = len(inputs), len(by_input)
    columns[0, :hidden] = 0.0
    columns[:n_steps, hidden:-1] = inputs
    columns[:n_steps, -1] = 1.0
    states, rest = columns[:, :hidden].unbind(), columns[:, hidden:].unbind()
    sigmoids, others = gates[:, : 2 * hidden].unbind(), gates.view(-1, hidden, gates.shape[2]).unbind()
    # tanh(x) = 2 * sigmoid(2 * x) - 1, and PyTorch's sigmoid takes a ninth of its tanh's time.
    doubled, minus_one = 2 * by_input, inputs.new_tensor(-1.0)
    total, largest = torch.zeros_like(states[0]), torch.full_like(states[0], -torch.inf)
    for step, column in enumerate(columns[:n_steps].unbind()):
        kept = step % len(gates)
        reset, update, from_state, candidate = others[4 * kept : 4 * kept + 4]
        of_gates, of_candidate = torch.mm(by_column, column), _outer(doubled, rest[step])
        torch.sigmoid(of_gates[: 2 * hidden], out=sigmoids[kept])
        from_state.copy_(of_gates[2 * hidden :])
        of_candidate.addcmul_(reset, from_state, value=2).sigmoid_()
        torch.add(minus_one, of_candidate, alpha=2, out=candidate)
        # (1 - update) * candidate + update * state, written where the next step's product reads it: no copy.
        torch.lerp(candidate, states[step], update, out=states[step + 1])
        # Here, the state is still in the processor's cache.
        total += states[step + 1]
        torch.maximum(largest, states[step + 1], out=largest)
    return torch.cat([states[-1], total / n_steps, largest])


def _outer(weight: Tensor, inputs: Tensor) -> Tensor:
    """Return ``weight @ inputs``, whose last row is 1."""
    if len(inputs) > 2:
        return torch.mm(weight, inputs)
    # With one input, a product takes longer than this.
    return torch.mul(weight[:, :1], inputs[:1]).add_(weight[:, 1:])


def _sizes(inputs: Tensor, by_input: Tensor) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Return the shapes of `_run`'s columns and gates."""
    n_steps, n_inputs, n_sequences = inputs.shape
    hidden = len(by_input)
    return (n_steps + 1, hidden + n_inputs + 1, n_sequences), (n_steps, 4 * hidden, n_sequences)


class _Summary(torch.autograd.Function):
    """The recurrence and the summary of its states, and the gradient of both in one pass back through time."""

    @staticmethod
    def forward(ctx: _Context, inputs: Tensor, by_column: Tensor, by_input: Tensor) -> Tensor:
        columns, gates = map(inputs.new_empty, _sizes(inputs, by_input))
        summary = _run(inputs, by_column, by_input, columns, gates)
        ctx.save_for_backward(by_column, by_input, columns, gates, summary)
        return summary

    @staticmethod
    @once_differentiable
    def backward(ctx: _Context, by_summary: Tensor) -> _Gradients:
        by_column, by_input, columns, gates, summary = ctx.saved_tensors
        states, largest = columns[1:, : len(by_input)].unbind(), summary.chunk(3)[2]
        by_last, by_mean, by_largest = by_summary.chunk(3)
        # 1 where a state is the largest. PyTorch writes it as numbers in a sixth of the time that truth values take.
        is_largest = torch.empty_like(largest)
        n_largest = torch.zeros_like(largest)
        for state in states:
            n_largest += torch.eq(state, largest, out=is_largest)
        by_mean, by_largest = by_mean / len(states), by_largest / n_largest

        def by_state(step: int) -> Tensor:
            torch.eq(states[step], largest, out=is_largest)
            pooled = torch.addcmul(by_mean, is_largest, by_largest)
            return pooled + by_last if step == len(states) - 1 else pooled

        return _run_back(by_column, by_input, columns, gates, by_state, ctx.needs_input_grad[0])


def _run_back(
    by_column: Tensor,
    by_input: Tensor,
    columns: Tensor,
    gates: Tensor,
    by_states: Callable[[int], Tensor],
    with_inputs: bool,
) -> _Gradients:
    """Return the gradients by the inputs (None unless ``with_inputs``) and by the two matrices.

    ``by_states`` returns the gradient by the state after a step, but for what goes through later steps; the other
    parameters are those of `_run`, after it.
    """
    hidden, n_steps, n_sequences = len(by_input), len(gates), gates.shape[2]
    to_state = by_column[:, :hidden].t().contiguous()
    to_inputs = torch.cat([by_column[:, hidden:-1], by_input[:, :-1]]).t().contiguous()
    of_column, of_input = torch.zeros_like(by_column.t()), torch.zeros_like(by_input.t())
    of_inputs = gates.new_empty(n_steps, len(to_inputs), n_sequences) if with_inputs else None
    # One buffer for all steps: it stays in the processor's cache.
    by_gates = torch.empty_like(gates[0])
    by_three, by_candidate, parts = by_gates[: 3 * hidden], by_gates[3 * hidden :], by_gates.chunk(4)
    column, rest, states = columns.unbind(), columns[:, hidden:].unbind(), columns[:, :hidden].unbind()
    kept = gates.view(-1, hidden, gates.shape[2]).unbind()
    by_state = by_states(n_steps - 1)
    for step in reversed(range(n_steps)):
        of_step = kept[4 * step : 4 * step + 4]
        _gates_back(by_state, states[step + 1], of_step, parts)
        # In this order of the factors, these products take a fifth less time than the other way round.
        of_column += torch.mm(column[step], by_three.t())
        of_input += torch.mm(rest[step], by_candidate.t())
        if of_inputs is not None:
            of_inputs[step] = torch.mm(to_inputs, by_gates)
        if step > 0:
            past = torch.addcmul(by_states(step - 1), by_state, of_step[1])
            by_state = torch.mm(to_state, by_three).add_(past)
    return of_inputs, of_column.t(), of_input.t()


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
