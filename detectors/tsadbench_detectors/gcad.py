"""GCAD: which sensor's past moves which forecast, and how that differs from normal operation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Annotated, ClassVar

import numpy as np

from tsadbench.base import (
    Cheap,
    Choice,
    FloatArray,
    Ge,
    Gt,
    Le,
    Lt,
    Recording,
    Traits,
    Tune,
    detector,
    extra,
    trailing_mean,
)

with extra("gcad", "deep"):
    import torch
    from torch import Tensor, nn

    from tsadbench_detectors.deep.forecaster import Forecaster
    from tsadbench_detectors.deep.mixer import Mixer
    from tsadbench_detectors.deep.network_detector import Size
    from tsadbench_detectors.deep.windows import WINDOWS_AT_ONCE

_EPSILON = 0.01  # as a share of the median edge
_ENTRIES_AT_ONCE = 2**18  # values in the windows that are differentiated at once
_ENOUGH_EDGES = 2**22  # from which the threshold, a quantile, is taken; 32 MiB


@detector
class GCAD(Forecaster):
    """Scores how the Granger causality between sensors differs from its mean in normal operation.

    A network forecasts the next row. The edge from sensor i to sensor j in a window is the gradient of j's squared
    forecast error by i's rows. Of the two directions between i and j only the excess of the stronger one is kept, and
    weak edges are dropped. The score is the mean relative deviation of the edges from the mean graph of training
    windows, over the last rows. Each of an edge's two sensors gets half of its deviation.

    Parameters of training, ``size`` and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that a forecast sees.
    hidden_size
        Width of the layers that mix sensors. None: 32, or half as many as there are sensors if that is more; at size
        "paper" 2,048.
    blocks
        Blocks of the network. None: 2; at size "paper" 6.
    normalised
        Whether the network brings each window to mean 0 and variance 1 (RevIN).
    sparsity
        Share of the edges of training windows that is dropped as weak; from 0 to below 1.
    sample
        Share of the training windows, drawn by the seed, whose mean graph is the normal one; above 0, up to 1.
    beta
        Weight of the sensors' own past, the graph's diagonal, in the score.
    smoothing
        Rows of the trailing mean over the score; 1 = none.

    Notes
    -----
    Equations
        ``G_ij = mean over lags of |d (f_j - x_j)^2 / d x_i| = 2 |f_j - x_j| * mean |d f_j / d x_i|``, with f the
        forecast; ``D_ij = max(G_ij - G_ji, 0)`` for i other than j, ``D_ii = G_ii``, and 0 where that is below a
        threshold. With M the mean of D over sampled training windows, the score is the mean of
        ``|D_ij - M_ij| / (M_ij + eps)`` over the pairs of sensors, plus beta times its mean over the diagonal.
    Differences
        The threshold is a quantile of the training windows' edges (there .002 to .008, by data set), and eps is .01 of
        the median edge of M (there 1e-4): both scale with the edges. The trailing mean takes the last 3 rows (there 2
        and the next one). Gradients go through the window's mean and deviation as well. The diagonal's term is in the
        paper, but not in the authors' code. A row has its own label (there any of its window's rows decides), all rows
        are scored, and the sample depends on the seed. Gradients are in double precision, so rounding never decides
        whether an edge exists.
    Defaults
        Batches of 128, the sample and beta are the paper's for SWaT, its plant (beta is 0 to 1 elsewhere). Windows have
        30 rows, as the paper's for three of five data sets; its 5 rows for SWaT forecast SKAB's held-out training rows
        worse. For cost (a score takes a derivative for each pair of sensors and row) the network is narrow and trains
        for about 620 steps on SKAB at a rate of 1e-3 (there up to 100 epochs at 1e-4). Half of the edges are dropped, a
        choice without labels.

    References
    ----------
    Z. Liu, M. Gao and P. Jiao, GCAD: anomaly detection in multivariate time series from the perspective of Granger
    causality, AAAI 2025 (arXiv 2501.13493). The network: S.-A. Chen et al., TSMixer: an all-MLP architecture for time
    series forecasting, TMLR 2023; T. Kim et al., Reversible instance normalization, ICLR 2022.
    """

    traits: ClassVar[Traits] = Traits(
        family="graph",
        stochastic=True,
        scoring_parameters=("beta", "smoothing"),
        extra="deep",
        paper="Liu, Gao and Jiao, AAAI 2025",
        differs=("schedule differs",),
    )
    _needs_two_sensors_for = "graph"

    paper: ClassVar[Mapping[str, int]] = {"hidden_size": 2048, "blocks": 6}

    window: Annotated[int, Tune(5, 30, log=True), Cheap(6)] = 30
    size: Size = "default"
    hidden_size: Annotated[int | None, Ge(1), Choice((None, 16, 64)), Cheap(8)] = None
    blocks: Annotated[int | None, Ge(1), Choice((None, 1, 3))] = None
    normalised: Annotated[bool, Choice((True, False))] = True
    sparsity: Annotated[float, Ge(0), Lt(1)] = 0.5
    sample: Annotated[float, Gt(0), Le(1)] = 0.2
    beta: Annotated[float, Ge(0), Lt(math.inf)] = 0.5
    smoothing: Annotated[int, Ge(1)] = 3
    epochs: Annotated[int, Cheap(2)] = 10
    batch_size: Annotated[int, Choice((32, 64, 128, 256))] = 128
    network_: Mixer = field(init=False)

    def declared_traits(self) -> Traits:  # noqa: D102
        memory = self.window + self.smoothing - 1
        return replace(super().declared_traits(), memory=memory, window_normalised=self.normalised)

    def expected_check_failures(self) -> Mapping[str, str]:  # noqa: D102
        fault = (
            "the network brings each window to mean 0, as published: of a fault longer than a window it sees the "
            "beginning and the end (normalised=off sees all of it)"
        )
        return {**super().expected_check_failures(), **({"fault": fault} if self.normalised else {})}

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        n_sensors = recordings[0].n_sensors
        hidden_size, blocks = self._given_or("hidden_size", max(32, n_sensors / 2)), self._given_or("blocks", 2)
        return Mixer(self.window, n_sensors, hidden_size, blocks, normalised=self.normalised)

    def _loss(self, windows: Tensor) -> Tensor:
        return super()._loss(windows.to(self.network_.gain.dtype))

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        super()._fit(recordings)
        self.network_.double()  # so rounding decides neither which hidden units are active nor which edges exist
        windows = self._training_windows(recordings)
        n_sampled = math.ceil(self.sample * len(windows))
        order = torch.randperm(len(windows), generator=torch.Generator().manual_seed(self.seed))
        sampled = order[: math.ceil(n_sampled / self._plan.gap(n_sampled))]
        n_sensors = recordings[0].n_sensors
        some = sampled[: max(1, _ENOUGH_EDGES // n_sensors**2)]
        with torch.no_grad():
            batches = torch.split(some, WINDOWS_AT_ONCE)
            edges = np.concatenate([of_pairs(self._graphs(windows[batch])) for batch in batches])
            self.threshold_ = float(np.quantile(edges[edges > 0.0], self.sparsity)) if edges.any() else 0.0
            total = np.zeros((n_sensors, n_sensors))
            for batch in torch.split(sampled, WINDOWS_AT_ONCE):
                total += self._sparse_graphs(windows[batch]).sum(axis=0)
        self.normal_graph_ = total / len(sampled)

    def _graphs(self, windows: Tensor) -> FloatArray:
        """Return D before edges are dropped, [n_windows, n_sensors, n_sensors], entry [i, j] for i's effect on j."""
        _, length, n_sensors = windows.shape
        at_once = max(1, _ENTRIES_AT_ONCE // (length * n_sensors))
        parts = [self._granger(part) for part in torch.split(windows.double(), at_once)]
        return directed(np.asarray(torch.cat(parts).cpu()))

    def _granger(self, windows: Tensor) -> Tensor:
        """Return G [n_windows, n_sensors, n_sensors] of windows that end with the forecast row, in double precision."""
        past, row = windows[:, :-1].requires_grad_(), windows[:, -1]
        with torch.enable_grad():
            # No window's error depends on another window.
            errors = (self.network_(past)[:, 0] - row).square().sum(dim=0)
            by_past = [torch.autograd.grad(error, past, retain_graph=True)[0] for error in errors]
        return torch.stack([one.abs().mean(dim=1) for one in by_past], dim=-1)

    def _sparse_graphs(self, windows: Tensor) -> FloatArray:
        """Return D, in which edges below the threshold are 0."""
        graphs = self._graphs(windows)
        graphs[graphs < self.threshold_] = 0.0
        return graphs

    def _contributions(self, recording: Recording) -> FloatArray:
        contributions = np.empty(recording.values.shape)
        normal, n_sensors = self.normal_graph_, recording.n_sensors
        weights = 1.0 / (normal + (_EPSILON * np.median(normal[normal > 0.0]) if normal.any() else 1.0))
        for first, windows in self._scored_windows(recording, self.window + 1, before=self.window):
            deviations = np.abs(self._sparse_graphs(windows) - normal) * weights
            own = np.einsum("tii->ti", deviations)
            of_edges = deviations.sum(axis=1) + deviations.sum(axis=2) - 2.0 * own
            of_rows = of_edges / (2 * n_sensors * (n_sensors - 1)) + self.beta * own / n_sensors
            contributions[self.window + first] = of_rows
        # Windows before the first row would hold only copies of it, as the first row's window does.
        before = np.repeat(contributions[:1], self.smoothing - 1, axis=0)
        return trailing_mean(np.concatenate([before, contributions]), self.smoothing)[self.smoothing - 1 :]


def directed(graphs: FloatArray) -> FloatArray:
    """Return by how much each edge exceeds its opposite, else 0, in graphs [n, n_sensors, n_sensors]; diagonals stay.

    Examples
    --------
    >>> directed(np.array([[[5.0, 3.0], [1.0, 4.0]]]))
    array([[[5., 2.],
            [0., 4.]]])
    """
    excess = np.maximum(graphs - graphs.transpose(0, 2, 1), 0.0)
    own = np.eye(graphs.shape[1], dtype=np.bool_)
    return np.where(own, graphs, excess)


def of_pairs(graphs: FloatArray) -> FloatArray:
    """Return the off-diagonal entries of graphs [n, n_sensors, n_sensors], in one dimension."""
    return graphs[:, ~np.eye(graphs.shape[1], dtype=np.bool_)].ravel()
