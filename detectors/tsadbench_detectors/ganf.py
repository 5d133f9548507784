"""GANF: the density of every sensor's next value given its own past and its parents in a learned graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Annotated, ClassVar, cast

import numpy as np

from tsadbench.base import Cheap, Choice, FloatArray, Ge, Recording, Traits, Tune, detector, extra

with extra("ganf", "deep"):
    import torch
    from torch import Tensor, nn

    from tsadbench_detectors.deep.acyclic_graph import AugmentedLagrangian, acyclicity
    from tsadbench_detectors.deep.graph_flow import Network
    from tsadbench_detectors.deep.network_detector import NetworkDetector
    from tsadbench_detectors.deep.training import Loss
    from tsadbench_detectors.deep.windows import Windows

_STRUCTURE_SHARE = 0.4  # share of the epochs that learn an acyclic graph: in the paper at most 20, before another 30
_N_UPDATES = 10  # of the constraint's weights in these epochs


@detector
class GANF(NetworkDetector):
    """Scores how improbable a row is under a normalising flow along a learned acyclic graph of the sensors.

    One LSTM, shared by all sensors, reads each sensor's window. A learned graph A says which sensors' states a sensor's
    value depends on, besides its own past. Because A has no cycle, the product of the sensors' densities is the density
    of the row. The score is its negative logarithm given the window's earlier rows, the sum of the sensors'
    contributions.

    Parameters of training, and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that the network sees at once.
    hidden_size
        Width of the LSTM, of the condition d and of the flow's hidden layer.
    blocks
        Blocks of the flow, one after the other.

    Notes
    -----
    Equations
        ``h_t^k`` is the LSTM's state after sensor k's value at step t. Sensor j's condition is
        ``d_t^j = W_2 relu(W_n sum_k A_kj h_t^k + W_r h_(t-1)^j)``. Each block of the flow computes
        ``u = (x - m(d)) exp(-s(d))``, with m and s from a network of one hidden tanh layer, so that
        ``log p(x_t^j | d_t^j) = log N(u; 0, 1) - sum s(d)``. The loss is the mean of ``-log p`` over sensors and steps,
        plus ``rho / 2 h(A)^2 + alpha h(A)`` with ``h(A) = tr(exp(A * A)) - n``. The score is ``-sum_j log p(x_t^j)``
        of the window's last step alone.
    Differences
        The sensors share one network and A is not negative: sensors that follow others with opposite signs are hard to
        learn together, in the paper's network as in this one.
        In the authors' code, the flow's masks let a series of one variable see the value whose density it gives, so the
        result is no density. Here m and s depend on d alone, as in a masked autoregressive flow of one variable, which
        makes several blocks as flexible as one. m and s have one hidden layer (there two). A's diagonal is 0 throughout
        (there only penalised, although it shows a value to its own condition). The constraint is raised 10 times during
        the first 40 % of the steps (there after each of at most 20 epochs, followed by 30); then edges that still close
        a cycle are removed, the weakest first, and training goes on with an acyclic graph, so that held-out likelihoods
        can be compared. One learning rate, no weight decay, no clipped gradients; log-scales are limited to -3 to 3.
        Rows are scaled by the training rows (there by all rows, test rows included), and a window scores its last row
        (there, its mean scores its first row).
    Defaults
        Widths, one block and the learning rate are the paper's for SWaT; its windows have 60 rows, ours the project's
        30. For cost, every second window, batches of 32 (not 512) and 5 epochs (not 50): about 620 steps on SKAB.

    References
    ----------
    E. Dai and J. Chen, Graph-augmented normalizing flows for anomaly detection of multiple time series, ICLR 2022
    (arXiv 2202.07857). The constraint: X. Zheng et al., DAGs with NO TEARS, NeurIPS 2018.
    """

    traits: ClassVar[Traits] = Traits(
        family="graph", stochastic=True, extra="deep", paper="Dai and Chen, ICLR 2022", differs=("schedule differs",)
    )
    _needs_two_sensors_for = "graph"

    window: Annotated[int, Tune(10, 60, log=True, alters_loss=True), Cheap(8)] = 30
    stride: int = 2
    hidden_size: Annotated[int, Ge(1), Choice((8, 16, 32, 64)), Cheap(8)] = 32
    blocks: Annotated[int, Ge(1)] = 1
    epochs: Annotated[int, Cheap(4)] = 5
    batch_size: Annotated[int, Choice((32, 64, 128, 256))] = 32
    learning_rate: Annotated[float, Tune(1e-4, 1e-2, log=True)] = 2e-3
    network_: Network = field(init=False)

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        return Network(recordings[0].n_sensors, self.hidden_size, self.blocks)

    @property
    def adjacency_(self) -> FloatArray:
        """The learned graph [n_sensors, n_sensors]: entry [k, j] is how much sensor j takes from sensor k."""
        return np.asarray(self.network_.adjacency().detach().double().cpu())

    def _train(self, windows: Windows) -> None:
        """Train under the constraint, cut the graph to an acyclic one, and train on."""
        plan = self._plan
        steps_an_epoch = plan.steps_an_epoch(len(windows.hold_out(plan.held_out)[0]))
        n_epochs = max(plan.epochs, math.ceil(plan.min_steps / steps_an_epoch))
        n_structure = math.ceil(_STRUCTURE_SHARE * n_epochs)
        n_steps, most = n_structure * steps_an_epoch, plan.max_steps
        if most is not None:
            n_steps = most = min(n_steps, math.ceil(_STRUCTURE_SHARE * most))
        constrained = ConstrainedLoss(self.network_, self._loss, n_steps)
        # Held-out losses do not count yet, so they must not end this part.
        structure = replace(plan, epochs=n_structure, min_steps=1, max_steps=most, patience=n_structure + 1)
        self._train_part(windows, structure, loss=constrained)
        self.network_.project()
        n_taken, remaining = int(cast("int", self.facts_["steps"])), self.network_.acyclicity()
        self.network_.cut()
        n_left = n_epochs - n_taken // steps_an_epoch
        if n_left > 0 and n_taken != plan.max_steps:
            self._train_part(windows, replace(plan.rest(n_taken), epochs=n_left))
            self.network_.project()
        self.facts_ = {**self.facts_, "acyclicity": remaining, "edges": int(np.count_nonzero(self.adjacency_))}

    def _loss(self, windows: Tensor) -> Tensor:
        self.network_.project()
        return torch.as_tensor(-self.network_(windows).mean())

    def _row_terms(self, windows: Tensor) -> Tensor:
        return -torch.as_tensor(self.network_(windows, last_only=True)[-1])


class ConstrainedLoss:
    """A loss with a constraint that makes a network's graph acyclic, whose weights rise evenly over ``n_steps``.

    It is NaN in scoring mode: while the graph has cycles, held-out likelihoods cannot be compared.
    """

    def __init__(self, network: Network, loss: Loss, n_steps: int) -> None:
        self._network, self._loss = network, loss
        self._constraint = AugmentedLagrangian()
        self._steps_an_update = math.ceil(n_steps / (_N_UPDATES + 1))
        self._n_taken = 0

    def __call__(self, windows: Tensor) -> Tensor:
        """Return the loss; raise the constraint's weights when it is time."""
        if not self._network.training:
            return windows.new_tensor(math.nan)
        loss = self._loss(windows)
        h = acyclicity(self._network.adjacency())
        if self._n_taken > 0 and self._n_taken % self._steps_an_update == 0:
            self._constraint.update(h.item())
        self._n_taken += 1
        return loss + self._constraint.penalty(h).to(loss)
