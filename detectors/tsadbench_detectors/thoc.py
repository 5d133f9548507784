"""Temporal hierarchical one-class network: clusters features at several time scales around learned centres."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from typing import Annotated, ClassVar

import numpy as np
from sklearn.cluster import kmeans_plusplus

from tsadbench.base import Cheap, Choice, Detector, FloatArray, Ge, Gt, Lt, Recording, Traits, Tune, detector, extra

with extra("thoc", "deep"):
    import torch
    from torch import Tensor, nn
    from torch.nn.functional import linear, mse_loss, normalize

    from tsadbench_detectors.deep.network_detector import NetworkDetector, Size
    from tsadbench_detectors.deep.windows import Windows

_WINDOWS_FOR_CENTRES = 512  # training windows on whose features the centres are placed
_NUDGE = 0.01  # standard deviation of the noise that separates centres placed on equal features


@detector
class THOC(NetworkDetector):
    """Scores how far a row's features at several time scales lie from the centres of a learned hierarchy of clusters.

    A dilated recurrent network reads the window: its layer l looks back ``2^(l-1)`` rows at a time. At the bottom, the
    last row's feature is distributed over the centres by cosine similarity; each centre's share is merged with the
    feature of the next layer and distributed again, up to the top. The score is the cosine distance of the top features
    from their centres, weighted by the paths that lead there. It gives no contributions.

    Parameters of training, and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that the network sees at once.
    layers
        Recurrent layers L; the top one's ``2^(L-1)`` rows must be fewer than ``window``.
    size
        "default", or "paper": the published width, if ``hidden_size`` is None.
    hidden_size
        Width of layers and features. None: 32, or the number of sensors if that is more; at size "paper" 128.
    temperature
        Divides the cosine similarities before the softmax: the smaller, the harder the clusters.
    orthogonality
        Weight of the loss that keeps a layer's centres orthogonal and of length 1.
    self_supervision
        Weight of the loss of the forecasts.
    weight_decay
        Weight of the sum of the squared parameters.
    warm_up
        First epochs, at most a third of ``max_steps``, that train the forecasts alone; then the centres are placed.
        Must be fewer than ``patience``, or training ends with the warm-up.

    Notes
    -----
    Equations
        Dilated layer: ``f^l_t = GRU(f^(l-1)_t, f^l_(t-s))``, ``s = 2^(l-1)``, ``f^0 = x``. Level l has
        ``K_l = 2 (L - l + 1)`` centres ``c^l_j``. From ``g^1 = f^1_t + b_1`` and ``R^0 = 1``, level by level:
        ``P_ij = softmax_j(cos(g^l_i, c^l_j) / temperature)``, ``h^l_j = sum_i P_ij ReLU(W_l g^l_i + b)``,
        ``R^l_j = sum_i R^(l-1)_i P_ij``, ``g^(l+1)_j = MLP([h^l_j; f^(l+1)_t])``.
        The loss is the sum of four terms: ``sum_j R^L_j (1 - cos(h^L_j, c^L_j))`` (multiscale vector data description,
        MVDD); ``orthogonality mean_l |C_l' C_l - I|_F``; ``self_supervision`` times the mean over the layers of the
        mean squared error of ``V_l f^l_t + v_l`` as a forecast of ``x_(t+s)``; ``weight_decay |parameters|^2``.
        The score of row t is its MVDD term.
    Differences
        The authors published no code. MVDD is computed for the window's last row alone, which is the one scored. Of a
        dilated layer, only the chain of rows that ends there is computed: the same last features at two fifths of the
        cost, and a window's forecasts start from these chains. Ports average the distance over all levels, ignore the
        temperature, or forecast without a predictor; this network does not.
        New are ``b_1`` and the warm-up: at first the forecasts alone train; then each level's inputs are moved so that
        their mean over 512 training windows is 0, and its centres are placed on inputs that k-means++ picks, with a
        little noise. Without this, all features lie in one narrow cone and join the nearest centre. Even so, training
        ends with nearly all weight on one centre at the top, because MVDD is smallest there; the levels below still
        tell rows apart.
    Defaults
        Every layer looks back within the window of 32 rows, so L = 5 (ports have one more, which sees a single row).
        The published table could not be verified: the width of 128 and the weights of 1 are those of ports. 32 units,
        every second window, batches of 64 and 10 epochs (a port has 30) are for cost. At the ports' temperature of 1
        none of 10 orthogonal centres can get more than a quarter of a feature; hence 0.1. The ``weight_decay`` is Deep
        SVDD's. 3 warm-up epochs, about 200 steps on SKAB, reduce most of the forecasts' error.

    References
    ----------
    L. Shen, Z. Li and J. Kwok, Timeseries anomaly detection using temporal hierarchical one-class network,
    NeurIPS 2020.
    """

    traits: ClassVar[Traits] = Traits(
        family="one-class", stochastic=True, extra="deep", paper="Shen, Li, Kwok, NeurIPS 2020"
    )
    paper: ClassVar[dict[str, int]] = {"hidden_size": 128}
    network_: Network = field(init=False)

    # Losses cannot be compared between one-class networks whose distances differ in meaning.
    window: Annotated[int, Ge(2), Tune(32, 100, log=True, alters_loss=True), Cheap(8)] = 32
    stride: Annotated[int, Cheap(1)] = 2
    layers: Annotated[int, Ge(1), Tune(3, 5, alters_loss=True), Cheap(3)] = 5
    size: Size = "default"
    hidden_size: Annotated[int | None, Ge(1), Choice((None, 16, 64), alters_loss=True), Cheap(8)] = None
    temperature: Annotated[float, Gt(0), Lt(math.inf), Tune(0.05, 1.0, log=True, alters_loss=True)] = 0.1
    orthogonality: Annotated[float, Ge(0), Lt(math.inf), Tune(0.1, 2.0, log=True, alters_loss=True)] = 1.0
    self_supervision: Annotated[float, Ge(0), Lt(math.inf), Tune(0.1, 2.0, log=True, alters_loss=True)] = 1.0
    weight_decay: Annotated[float, Ge(0), Lt(math.inf)] = 1e-6
    warm_up: Annotated[int, Ge(0), Cheap(1)] = 3
    epochs: Annotated[int, Cheap(10)] = 10
    batch_size: Annotated[int, Choice((32, 64, 128))] = 64
    learning_rate: Annotated[float, Tune(1e-4, 1e-2, log=True), Cheap(5e-3)] = 1e-3
    patience: int = 5

    def _check(self, sensors: tuple[str, ...]) -> None:
        super()._check(sensors)
        most = (self.window - 1).bit_length()
        self._require(
            self.layers <= most,
            "layers",
            f"at most {most}, so that the top one looks back within the window of {self.window} rows",
        )
        fewest = 2 * self.layers
        self._require(
            self._width(len(sensors)) >= fewest, "hidden_size", f"at least {fewest}, for that many orthogonal centres"
        )

    def _width(self, n_sensors: int) -> int:
        return self._given_or("hidden_size", max(32, n_sensors))

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        n_sensors = recordings[0].n_sensors
        return Network(n_sensors, self._width(n_sensors), self.layers, self.temperature)

    def _train(self, windows: Windows) -> None:
        """Train the forecasts alone for ``warm_up`` epochs, place the centres, then train on the whole loss."""
        plan = self._plan
        trained, _ = windows.hold_out(self.held_out)
        some = windows[trained[:: math.ceil(len(trained) / _WINDOWS_FOR_CENTRES)]]
        warming = self.warm_up * plan.steps_an_epoch(len(trained))
        if self.max_steps is not None:
            warming = min(warming, self.max_steps // 3)
        self.centres_placed_ = False

        def place_centres(step: int) -> None:
            if step == warming:
                self.network_.place_centres(some, self.seed)
                self.centres_placed_ = True

        self._train_part(windows, plan, before_step=place_centres)
        if not self.centres_placed_:  # training ended while it warmed up
            place_centres(warming)

    def _loss(self, windows: Tensor) -> Tensor:
        network, rows = self.network_, windows.permute(1, 2, 0).contiguous()
        chains = network.chains(rows)
        error = network.forecast_error(chains, rows)
        if not self.centres_placed_:
            # Without its centres, a network must not count as the best one on the held-out windows.
            return error if network.training else torch.full_like(error, torch.inf)
        distance, _ = network.distance(last_features(chains))
        decay = torch.cat([parameter.flatten() for parameter in network.parameters()]).square().sum()
        loss = distance.mean() + self.orthogonality * network.overlap() + self.self_supervision * error
        return loss + self.weight_decay * decay

    def _score(self, recording: Recording) -> FloatArray:
        return self._by_row(recording, self._distances)

    # THOC has none.
    _contributions = Detector._contributions

    def _distances(self, windows: Tensor) -> Tensor:
        """Return the windows' MVDD terms, [batch]."""
        return self.network_.distance(last_features(self.network_.chains(windows.permute(1, 2, 0).contiguous())))[0]


def every_second(steps: Tensor) -> Tensor:
    """Return the last of these steps [n_steps, ...], and every second one before it."""
    return steps[(len(steps) - 1) % 2 :: 2]


def last_features(chains: Sequence[Tensor]) -> list[Tensor]:
    """Return the last states [batch, hidden_size] of chains [n_steps, hidden_size, batch]."""
    return [chain[-1].t() for chain in chains]


class Network(nn.Module):
    """Dilated recurrent layers, the hierarchy of clusters above them, and a forecast by each layer."""

    def __init__(self, n_sensors: int, hidden_size: int, layers: int, temperature: float) -> None:
        super().__init__()
        inputs = [n_sensors, *[hidden_size] * (layers - 1)]
        self.recurrent = nn.ModuleList(nn.GRU(size, hidden_size) for size in inputs)
        self.predictors = nn.ModuleList(nn.Linear(hidden_size, n_sensors) for _ in inputs)
        self.mixing = nn.ModuleList(nn.Linear(hidden_size, hidden_size) for _ in inputs)
        self.merging = nn.ModuleList(
            nn.Sequential(
                nn.Linear(2 * hidden_size, hidden_size), nn.ReLU(), nn.Linear(hidden_size, hidden_size, bias=False)
            )
            for _ in inputs[1:]
        )
        self.offsets = nn.ParameterList(nn.Parameter(torch.zeros(hidden_size)) for _ in inputs)
        centres = [normalize(torch.randn(n, hidden_size), dim=1) for n in range(2 * layers, 0, -2)]
        self.centres = nn.ParameterList(nn.Parameter(of_level) for of_level in centres)
        self.temperature = temperature

    def chains(self, rows: Tensor) -> list[Tensor]:
        """Return each layer's states, in order of time, at the last row and every ``s = 2^(l-1)`` rows before it.

        At these rows, a dilated layer equals a recurrent layer that reads every second state of the chain below. For
        rows [window, n_sensors, batch], a chain is [ceil(window / s), hidden_size, batch].
        """
        found, below = list[Tensor](), rows
        for layer, recurrent in enumerate(self.recurrent):
            inputs = every_second(below) if layer else below
            below = recurrent(inputs.mT)[0].mT
            found.append(below)
        return found

    def distance(self, features: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Return the weighted cosine distance from the top centres [batch], and their weights R [batch, n_centres].

        ``features`` are each layer's at the scored row, [batch, hidden_size].
        """
        mixed, relevance = None, features[0].new_ones(len(features[0]), 1, 1)
        for level, feature in enumerate(features):
            assigned, mixed = self.shared_out(self.inputs(feature, mixed, level), level)
            relevance = relevance @ assigned
        # Half the squared distance of unit vectors is 1 - cos, without the rounding of a difference from 1.
        directions, centres = normalize(torch.as_tensor(mixed), dim=2), normalize(self.centres[-1], dim=1)
        distances = (directions - centres).square().sum(dim=2) / 2
        reached = relevance[:, 0]
        return torch.as_tensor((reached * distances).sum(dim=1)), reached

    def inputs(self, feature: Tensor, mixed: Tensor | None, level: int) -> Tensor:
        """Return g of a level (from 0 up), [batch, n, hidden_size].

        It is the layer's feature [batch, hidden_size] at the bottom, and above it the feature merged with what each of
        the n centres below got (``mixed``, [batch, n, hidden_size]).
        """
        if mixed is None:
            return torch.as_tensor(feature + self.offsets[0])[:, None]
        both = torch.cat([mixed, feature[:, None].expand(-1, mixed.shape[1], -1)], dim=2)
        return torch.as_tensor(self.merging[level - 1](both) + self.offsets[level])

    def shared_out(self, inputs: Tensor, level: int) -> tuple[Tensor, Tensor]:
        """Return P [batch, n, n_centres], and what the centres get, h [batch, n_centres, hidden_size]."""
        centres = normalize(self.centres[level], dim=1)
        assigned = (linear(normalize(inputs, dim=2), centres) / self.temperature).softmax(dim=2)
        return assigned, assigned.mT @ self.mixing[level](inputs).relu()

    def overlap(self) -> Tensor:
        """Return the mean over the levels of the Frobenius norm of ``C' C - I``, C's columns being the centres."""
        norms = []
        for centres in self.centres:
            identity = torch.eye(len(centres), device=centres.device)
            norms.append(torch.linalg.matrix_norm(centres @ centres.t() - identity))
        return torch.stack(norms).mean()

    def forecast_error(self, chains: Sequence[Tensor], rows: Tensor) -> Tensor:
        """Return the mean squared error of each layer's forecast of the row s later, averaged over the layers."""
        errors, targets = [], rows
        for layer, (chain, predictor) in enumerate(zip(chains, self.predictors, strict=True)):
            targets = every_second(targets) if layer else targets
            errors.append(mse_loss(predictor(chain[:-1].mT).mT, targets[1:]))
        return torch.stack(errors).mean()

    @torch.no_grad()
    def place_centres(self, windows: Tensor, seed: int) -> None:
        """Move each level's inputs so that their mean is 0, and place its centres on inputs that k-means++ picks."""
        picks, mixed = np.random.RandomState(seed), None
        for level, chain in enumerate(self.chains(windows.permute(1, 2, 0).contiguous())):
            feature = chain[-1].t()
            self.offsets[level].sub_(self.inputs(feature, mixed, level).mean(dim=(0, 1)))
            inputs, centres = self.inputs(feature, mixed, level), self.centres[level]
            directions = normalize(inputs, dim=2).flatten(0, 1).cpu().numpy()
            enough = np.resize(directions, (max(len(directions), len(centres)), directions.shape[1]))
            picked, _ = kmeans_plusplus(enough, len(centres), random_state=picks)
            nudged = torch.from_numpy(picked + _NUDGE * picks.standard_normal(picked.shape))
            centres.copy_(normalize(nudged.to(centres), dim=1))
            _, mixed = self.shared_out(inputs, level)
