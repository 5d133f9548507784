"""DPR-GM: forecasts each sensor from its own past and from the sensors that physically drive it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from itertools import pairwise
from typing import Annotated, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from tsadbench import UsageError
from tsadbench.base import Cheap, Choice, Fact, FloatArray, Ge, Le, Prior, Recording, Traits, Tune, detector, extra
from tsadbench_detectors import sensor_graph
from tsadbench_detectors.standardise import Standardiser, pooled_rows

with extra("dprgm", "deep"):
    import torch
    from torch import Tensor, nn

    from tsadbench_detectors.deep.forecaster import Forecaster
    from tsadbench_detectors.deep.graph_layer import Backbone, GraphLayer
    from tsadbench_detectors.deep.gru import SummarisingGRU

Graph: TypeAlias = Literal["auto", "domain", "none", "complete", "random", "correlation"]


@detector
class DPRGM(Forecaster):
    """Scores how far the next rows are from what a graph network over physically coupled sensors forecasts.

    A language model reads the system's documentation and lists directed couplings, which are weighted by how sensors
    correlate. Steady sensors weigh most in the score. Row t is scored by the forecast of the rows t to t + horizon - 1
    from the ``window`` rows before it, a recording's last rows by the part of the horizon that exists.

    Parameters of training, and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    backbone
        Graph layers: "sage" (GraphSAGE with weighted edges), "gcn" (graph convolution), "gat" (graph attention)
        or "transformer" (graph transformer); the last two see which edges there are, not their weights.
    edge_weights
        Whether an edge from i to j weighs 0.5 + 0.5 * correlation(i, j) instead of 1.
    edge_votes
        Whether the weight of an edge is multiplied by its share of votes; needs a prior with votes.
    node_weights
        Whether sensors that vary less in the training rows weigh more in the score; otherwise all weigh 1/N.
    graph
        Where edges come from: "domain" (the prior), "none", "complete", "random" (as many as in the prior, drawn by
        the seed), "correlation" (the complete graph; needs edge_weights); "auto": "domain" with a prior, otherwise the
        complete graph, which edge_weights weigh by correlations.
    prior
        Directed physical couplings between sensors; "domain" and "random" need one.
    window
        Rows that a forecast sees.
    horizon
        Rows that a forecast covers; the score looks horizon - 1 rows ahead.
    hidden_size
        Width of the recurrent layer and of the graph layers.
    layers
        Graph layers.
    embedding_size
        Width of each sensor's learned identity.
    alpha
        Share of the largest contribution in the score, the rest being their mean; 0 to 1.

    Notes
    -----
    Equations
        ``A_ij = D_ij (0.5 + 0.5 rho_ij)`` with D the prior's couplings and rho the correlation; ``w_i = r_i / sum r``
        with ``r_i = 1 / CV_i``; graph layers ``h_i' = ReLU(W1 h_i + b + W2 mean_(j -> i) A_ji h_j)``; ``e_i`` the mean
        squared error over the horizon, contributions ``c_i = w_i max(0, (e_i - median) / IQR)`` with median and IQR of
        the training windows, and the score ``(1 - alpha) mean(c) + alpha max(c)``.
    Differences
        None known; docs/reproduction.md compares the paper's tables cell by cell. Rows that depend on settings that the
        paper does not state differ.
    Defaults
        window = 30 and horizon = 10 follow from the paper's row counts. The other values (two layers, widths 32 and 8,
        alpha = 0.2, batches of 256, 20 epochs) are those of the prototype that reproduced the paper's tables.
    """

    traits: ClassVar[Traits] = Traits(
        family="graph",
        stochastic=True,
        needs_prior=True,
        scoring_parameters=("node_weights", "alpha"),
        extra="deep",
        paper="DPR-GM, whose tables follow the protocol `published`",
    )

    backbone: Annotated[Backbone, Choice(get_args(Backbone))] = "sage"
    edge_weights: bool = True
    edge_votes: bool = False
    node_weights: Annotated[bool, Choice((True, False))] = True
    graph: Annotated[Graph, Cheap("correlation")] = "auto"
    prior: Prior | None = None
    window: Annotated[int, Tune(10, 60, log=True)] = 30
    horizon: Annotated[int, Tune(1, 20, log=True, alters_loss=True)] = 10
    hidden_size: Annotated[int, Ge(1), Tune(16, 64, log=True), Cheap(4)] = 32
    layers: Annotated[int, Ge(1), Tune(1, 3)] = 2
    embedding_size: Annotated[int, Ge(1), Tune(2, 16, log=True), Cheap(2)] = 8
    alpha: Annotated[float, Ge(0), Le(1), Tune(0.0, 1.0)] = 0.2
    epochs: Annotated[int, Tune(5, 40, log=True)] = 20
    batch_size: Annotated[int, Choice((32, 64, 128, 256))] = 256
    held_out: float = field(default=0.0, init=False)
    patience: int = field(default=1, init=False)

    def declared_traits(self) -> Traits:  # noqa: D102
        return replace(super().declared_traits(), needs_prior=self._uses_prior)

    def _check(self, sensors: tuple[str, ...]) -> None:
        super()._check(sensors)
        if self.graph == "correlation" and not self.edge_weights:
            raise UsageError(
                "DPRGM: graph 'correlation' is the complete graph with edge weights, found edge_weights off; "
                "leave edge_weights on, or choose graph 'complete'"
            )
        if self._uses_prior:
            self._known_prior().check(sensors)
        from_edges = self._uses_prior and self.graph != "random"
        if self.edge_votes and not (from_edges and any(edge.votes for edge in self._known_prior().edges)):
            raise UsageError(
                f"DPRGM: edge_votes needs a prior whose edges have votes, found graph {self.graph!r} and prior "
                f"{self.prior}; leave edge_votes off, or make a prior with tsadbench prior extract"
            )

    @property
    def _uses_prior(self) -> bool:
        return self.graph in ("domain", "random") or (self.graph == "auto" and self.prior is not None)

    def _known_prior(self) -> Prior:
        if not isinstance(self.prior, Prior):
            raise UsageError(
                f"DPRGM: expected a Prior for graph {self.graph!r}, found {self.prior!r}; give one as prior "
                f"(docs/priors.md says how to get one), or choose graph 'none', 'complete' or 'correlation'"
            )
        return self.prior

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        self.standardiser_ = Standardiser.of(recordings)
        super()._fit(recordings)
        errors = self._training_errors(recordings)
        first, self.error_median_, third = np.quantile(errors, [0.25, 0.5, 0.75], axis=0)
        self.error_iqr_ = _floored(third - first)

    def _training_facts(self) -> Mapping[str, Fact]:
        return {**super()._training_facts(), "graph_from_prior": self._uses_prior and self.graph != "random"}

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        self.adjacency_ = self._adjacency(recordings, self.standardiser_)
        return self._rebuilt_network()

    def _rebuilt_network(self) -> nn.Module:
        return Network(
            torch.from_numpy(self.adjacency_).float(),
            backbone=self.backbone,
            horizon=self.horizon,
            hidden_size=self.hidden_size,
            layers=self.layers,
            embedding_size=self.embedding_size,
        )

    @property
    def node_weights_(self) -> FloatArray:
        """Each sensor's weight in the score, [n_sensors]."""
        return self._node_weights(self.standardiser_)

    def sensor_graph(self, recordings: Sequence[Recording]) -> tuple[FloatArray, FloatArray]:
        """Return A [n_sensors, n_sensors], entry [i, j] for the edge from i to j, and the node weights, as in `fit`."""
        standardiser = Standardiser.of(recordings)
        return self._adjacency(recordings, standardiser), self._node_weights(standardiser)

    def _node_weights(self, standardiser: Standardiser) -> FloatArray:
        if self.node_weights:
            return sensor_graph.node_weights(standardiser)
        return sensor_graph.equal_node_weights(len(standardiser.mean))

    def _adjacency(self, recordings: Sequence[Recording], standardiser: Standardiser) -> FloatArray:
        couplings = self._couplings(recordings[0].sensors)
        if not self.edge_weights:
            return couplings
        return sensor_graph.weighted(couplings, sensor_graph.correlations(standardiser, pooled_rows(recordings)))

    def _couplings(self, sensors: tuple[str, ...]) -> FloatArray:
        """Return D [n_sensors, n_sensors], zeros and ones; with ``edge_votes``, shares of votes instead of ones."""
        if self.graph == "random":
            return sensor_graph.random_graph(len(sensors), len(self._known_prior().edges), self.seed)
        if self._uses_prior:
            prior = self._known_prior()
            return prior.votes(sensors) if self.edge_votes else prior.matrix(sensors)
        if self.graph == "none":
            return np.zeros((len(sensors), len(sensors)))
        return sensor_graph.complete_graph(len(sensors))

    def _contributions(self, recording: Recording) -> FloatArray:
        normalised = (self._errors(recording) - self.error_median_) / self.error_iqr_
        contributions: FloatArray = self.node_weights_ * np.maximum(0.0, normalised)
        return contributions

    def _score(self, recording: Recording) -> FloatArray:
        contributions = self._contributions(recording)
        scores: FloatArray = (1 - self.alpha) * contributions.mean(axis=1) + self.alpha * contributions.max(axis=1)
        return scores


def _floored(spread: FloatArray) -> FloatArray:
    """Return the sensors' spreads with a positive minimum, because they are divisors."""
    largest = spread.max()
    return np.maximum(spread, 1e-8 * largest) if largest > 0 else np.ones_like(spread)


class Network(nn.Module):
    """One recurrent layer for all sensors, then graph layers between sensors, then a forecast for each sensor.

    Messages go from sensor j to sensor i if ``adjacency[j, i]`` is above 0; the other parameters are `DPRGM`'s.
    """

    def __init__(
        self, adjacency: Tensor, *, backbone: Backbone, horizon: int, hidden_size: int, layers: int, embedding_size: int
    ) -> None:
        super().__init__()
        widths = [hidden_size + embedding_size, *[hidden_size] * layers]
        self.encoder = SummarisingGRU(1, hidden_size)
        self.summary = nn.Linear(3 * hidden_size, hidden_size)
        self.identity = nn.Embedding(len(adjacency), embedding_size)
        self.graph_layers = nn.ModuleList(
            GraphLayer(backbone, n_in, n_out, adjacency) for n_in, n_out in pairwise(widths)
        )
        self.head = nn.Linear(hidden_size, horizon)

    def forward(self, past: Tensor) -> Tensor:
        """Return [batch, horizon, n_sensors] for standardised rows [batch, window, n_sensors]."""
        nodes = torch.cat([self._encode(past), self.identity.weight.expand(len(past), -1, -1)], dim=-1)
        for layer in self.graph_layers:
            nodes = torch.relu(layer(nodes))
        forecast: Tensor = self.head(nodes)
        return forecast.transpose(1, 2)

    def _encode(self, past: Tensor) -> Tensor:
        """Return each sensor's window as a vector, [batch, n_sensors, hidden_size]."""
        n_windows, n_steps, n_sensors = past.shape
        pooled = self.encoder(past.transpose(0, 1).reshape(n_steps, 1, n_windows * n_sensors))
        encoded: Tensor = self.summary(pooled.t())
        return encoded.view(n_windows, n_sensors, encoded.shape[-1])
