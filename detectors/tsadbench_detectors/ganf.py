"""GANF: the density of every sensor's next value given its own past and the sensors that a learned graph puts first."""

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

# The share of the epochs in which the graph is held to be acyclic: the paper has at most 20, then 30.
_STRUCTURE_SHARE = 0.4
# How often the constraint's weights are raised meanwhile.
_N_UPDATES = 10


@detector
class GANF(NetworkDetector):
    """Scores how improbable a row is under a normalising flow along a learned acyclic graph of the sensors.

    One LSTM, shared by all sensors, reads each sensor's window. A graph A over the sensors, learned together with the
    network, says which sensors' states a sensor's value depends on, besides its own past; because A has no cycle, the
    product of the sensors' densities is the density of the row. The score is its negative logarithm, given the rows of
    the window before it; the sensors' terms are the contributions.

    Parameters of training, and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that it sees at once.
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
        In the authors' code, the flow's masks let a series of one variable see the value whose density it gives: what
        comes out is no density. Here m and s depend on d alone; this is what a masked autoregressive flow of one
        variable is, and it makes several blocks as flexible as one. A's diagonal is 0 throughout (there it is only
        penalised: it would show a value to its own condition). The constraint is raised 10 times during the first 40 %
        of the epochs (there after each of at most 20 epochs, followed by 30); then edges that still close a cycle are
        removed, the weakest first, and the rest of the training has an acyclic graph, so that held-out windows have a
        likelihood that can be compared. One learning rate, no weight decay, no clipped gradients; log-scales are
        limited to -3 to 3. Rows are scaled by the training rows (there by all rows, those tested included), and a
        score is that of its last row (there the mean over a window, labelled by its first row).
    Defaults
        Widths, one block and the learning rate are the paper's for SWaT; its windows have 60 rows, ours the project's
        30. Every second window, batches of 32 (not 512) and 5 epochs (not 50) give about 620 steps on SKAB, for cost.

    References
    ----------
    E. Dai and J. Chen, Graph-augmented normalizing flows for anomaly detection of multiple time series, ICLR 2022
    (arXiv 2202.07857). The constraint: X. Zheng et al., DAGs with NO TEARS, NeurIPS 2018.
    """

    traits: ClassVar[Traits] = Traits(family="graph", stochastic=True, extra="deep", paper="Dai and Chen, ICLR 2022")
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
        steps_an_epoch = math.ceil(len(windows.hold_out(plan.held_out)[0]) / plan.batch_size)
        n_epochs = max(plan.epochs, math.ceil(plan.min_steps / steps_an_epoch))
        n_structure = math.ceil(_STRUCTURE_SHARE * n_epochs)
        constrained = ConstrainedLoss(self.network_, self._loss, n_structure * steps_an_epoch)
        # No held-out loss counts yet, so that none can end this part.
        structure = replace(plan, epochs=n_structure, min_steps=1, patience=n_structure + 1)
        self._train_part(windows, structure, loss=constrained)
        self.network_.project()
        n_taken, remaining = int(cast("int", self.facts_["steps"])), self.network_.acyclicity()
        self.network_.cut()
        if n_structure < n_epochs and n_taken != plan.max_steps:
            fewest = max(1, plan.min_steps - n_taken)
            most = None if plan.max_steps is None else plan.max_steps - n_taken
            self._train_part(windows, replace(plan, epochs=n_epochs - n_structure, min_steps=fewest, max_steps=most))
            self.network_.project()
        self.facts_ = {**self.facts_, "acyclicity": remaining, "edges": int(np.count_nonzero(self.adjacency_))}

    def _loss(self, windows: Tensor) -> Tensor:
        self.network_.project()
        return torch.as_tensor(-self.network_(windows).mean())

    def _row_terms(self, windows: Tensor) -> Tensor:
        return -torch.as_tensor(self.network_(windows, last_only=True)[-1])


class ConstrainedLoss:
    """A loss with the addition that makes a network's graph acyclic; in scoring mode it is NaN.

    While the graph has cycles, the likelihood of held-out windows is not one that could be compared.

    Parameters
    ----------
    network
        Whose graph.
    loss
        To which the constraint is added.
    n_steps
        Over which the constraint's weights are raised, at even distances.
    """

    def __init__(self, network: Network, loss: Loss, n_steps: int) -> None:
        self._network, self._loss = network, loss
        self._constraint = AugmentedLagrangian()
        self._steps_an_update = math.ceil(n_steps / (_N_UPDATES + 1))
        self._n_taken = 0

    def __call__(self, windows: Tensor) -> Tensor:
        """Return the loss; raise the constraint's weights where it is time."""
        if not self._network.training:
            return windows.new_tensor(math.nan)
        loss = self._loss(windows)
        h = acyclicity(self._network.adjacency())
        if self._n_taken > 0 and self._n_taken % self._steps_an_update == 0:
            self._constraint.update(h.item())
        self._n_taken += 1
        return loss + self._constraint.penalty(h).to(loss)
