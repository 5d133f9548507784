"""GDN: forecasts each sensor by attention over the sensors with the most similar learned embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np

from tsadbench.base import Cheap, Choice, FloatArray, Ge, Lt, Recording, Traits, Tune, detector, extra, trailing_mean
from tsadbench_detectors.standardise import UnitRange

with extra("gdn", "deep"):
    import torch
    from torch import Tensor, nn

    from tsadbench_detectors.deep.batch_norm import BatchNorm
    from tsadbench_detectors.deep.forecaster import Forecaster

_EPSILON = 1e-2  # the reference's, in units of the scaled sensors; here a share of their median spread


@detector
class GDN(Forecaster):
    """Graph deviation network: the largest of the sensors' forecast errors, each relative to its usual size.

    Median and inter-quartile range of the errors are those of the training rows held out from training, or of all if
    none are. A sensor's contribution is its deviation a_i, smoothed.

    Parameters of training, and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that a forecast sees.
    embedding_size
        Width of a sensor's learned embedding, and of the features of its window.
    top_k
        Neighbours of a sensor, itself included.
    smoothing
        Rows of the trailing mean over each sensor's deviation; 1 = none.
    quirks
        Whether to normalise as the reference does: by the statistics of the recording that is scored (a leak), with
        eps = .01, and 0 for the rows before the first ``smoothing`` forecasts from full windows.
    dropout
        Share of the activations before the last layer that are dropped in training.

    Notes
    -----
    Equations
        ``N(i)`` are the ``top_k`` sensors whose embeddings v have the largest cosine with v_i; ``z_i = ReLU(BN(sum_(j
        in N(i)) alpha_ij W x_j))``, alpha the softmax over j of ``LeakyReLU(a' [W x_i; v_i; W x_j; v_j])``; the
        forecast is a linear layer of ``ReLU(BN(v_i * z_i))``, BN batch normalisation. Score: ``max_i a_i`` with ``a_i =
        (|error_i| - median_i) / (IQR_i + eps)``, averaged over ``smoothing`` rows.
    Differences
        Median and inter-quartile range are those of held-out training rows; the reference takes them from the rows that
        it scores, a leak that ``quirks=on`` repeats. eps is .01 of the sensors' median inter-quartile range, not .01.
        The reference's threshold, the one with the best F1 on test labels, is not used here. The reference holds
        out a random block of windows; here they are the last ones.
    Defaults
        Embedding 64, top_k 5, smoothing 4, dropout 0.2, learning rate 1e-3, 30 epochs, patience 15 and a fifth of the
        windows held out are those of the reference's run script. The window of 30 rows (not 5) is this project's;
        batches of 128 (not 32) for cost.

    References
    ----------
    A. Deng and B. Hooi, Graph neural network-based anomaly detection in multivariate time series, AAAI (arXiv
    2106.06947), 2021.
    """

    traits: ClassVar[Traits] = Traits(
        family="graph",
        stochastic=True,
        scoring_parameters=("quirks", "smoothing"),
        extra="deep",
        paper="Deng and Hooi, AAAI 2021",
    )
    _scaling = UnitRange

    window: Annotated[int, Tune(5, 60, log=True), Cheap(8)] = 30
    embedding_size: Annotated[int, Ge(1), Tune(16, 128, log=True), Cheap(8)] = 64
    top_k: Annotated[int, Ge(1), Tune(2, 20, log=True)] = 5
    smoothing: Annotated[int, Ge(1), Tune(1, 30, log=True)] = 4
    quirks: bool = False
    dropout: Annotated[float, Ge(0), Lt(1), Tune(0.0, 0.5)] = 0.2
    epochs: Annotated[int, Cheap(2)] = 30
    batch_size: Annotated[int, Choice((32, 64, 128, 256))] = 128
    held_out: float = 0.2
    patience: int = 15

    def declared_traits(self) -> Traits:  # noqa: D102
        leaky = "median and inter-quartile range of the errors on the rows that it scores" if self.quirks else ""
        return replace(self.traits, memory=self.window + self.smoothing - 1, leaky=leaky)

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        return Network(recordings[0].n_sensors, self.window, self.embedding_size, self.top_k, self.dropout)

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        super()._fit(recordings)
        self.error_median_, self.error_iqr_ = _median_and_iqr(self._held_out_errors(recordings))

    def _held_out_errors(self, recordings: Sequence[Recording]) -> FloatArray:
        """Return the absolute errors on the windows that were not trained on, [n_windows, n_sensors]."""
        windows = self._training_windows(recordings)
        trained_on, held_out = windows.hold_out(self.held_out)
        looked_at = held_out if len(held_out) else trained_on
        errors = []
        with torch.inference_mode():
            for batch in torch.split(looked_at[:: self._plan.gap(len(looked_at))], self.batch_size):
                past, future = self._past_and_future(windows[batch])
                errors.append((self.network_(past) - future)[:, 0].abs().cpu().numpy())
        return np.concatenate(errors).astype(np.float64)

    def _contributions(self, recording: Recording) -> FloatArray:
        errors = np.sqrt(self._errors(recording))  # over a horizon of one row: the absolute error
        if not self.quirks:
            return trailing_mean(self._deviations(errors), self.smoothing)
        median, iqr = _median_and_iqr(errors[self.window :] if len(errors) > self.window else errors)
        smoothed = trailing_mean((errors - median) / (iqr + _EPSILON), self.smoothing)
        smoothed[: self.window + self.smoothing - 1] = 0.0
        return smoothed

    def _deviations(self, errors: FloatArray) -> FloatArray:
        typical = np.median(self.error_iqr_) or self.error_iqr_.max() or 1.0
        deviations: FloatArray = (errors - self.error_median_) / (self.error_iqr_ + _EPSILON * typical)
        return deviations

    def _score(self, recording: Recording) -> FloatArray:
        return np.asarray(self._contributions(recording).max(axis=1))


def _median_and_iqr(errors: FloatArray) -> tuple[FloatArray, FloatArray]:
    first, median, third = np.quantile(errors, [0.25, 0.5, 0.75], axis=0)
    return median, third - first


class Network(nn.Module):
    """Attention of each sensor over the ``top_k`` sensors whose learned embeddings are nearest to its own."""

    def __init__(self, n_sensors: int, window: int, embedding_size: int, top_k: int, dropout: float) -> None:
        super().__init__()
        self.n_neighbours = min(top_k, n_sensors)
        self.identity = nn.Parameter(torch.empty(n_sensors, embedding_size))
        nn.init.kaiming_uniform_(self.identity, a=5**0.5)
        self.features = nn.Linear(window, embedding_size, bias=False)
        self.bias = nn.Parameter(torch.zeros(embedding_size))
        # A pair's attention logit: parts of its target and its source, from their windows and their identities.
        self.of_target = nn.Linear(embedding_size, 1, bias=False)
        self.of_source = nn.Linear(embedding_size, 1, bias=False)
        self.of_target_identity = nn.Parameter(torch.zeros(embedding_size))
        self.of_source_identity = nn.Parameter(torch.zeros(embedding_size))
        self.norm = BatchNorm(embedding_size)
        self.output_norm = BatchNorm(embedding_size)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(embedding_size, 1)

    def neighbours(self) -> Tensor:
        """Return each sensor's neighbours, itself first, [n_sensors, n_neighbours]."""
        directions = nn.functional.normalize(self.identity.detach(), dim=1)
        similarity = (directions @ directions.t()).fill_diagonal_(2.0)  # above any cosine, so that it comes first
        return similarity.topk(self.n_neighbours, dim=1).indices

    def attention(self, features: Tensor, neighbours: Tensor) -> Tensor:
        """Return the attention weights over each sensor's neighbours, [batch, n_sensors, n_neighbours]."""
        target = self.of_target(features)[..., 0] + self.identity @ self.of_target_identity
        source = self.of_source(features)[..., 0] + self.identity @ self.of_source_identity
        logits = nn.functional.leaky_relu(target[..., None] + source[:, neighbours], 0.2)
        return logits.softmax(dim=-1)

    def forward(self, past: Tensor) -> Tensor:
        """Return the forecast [batch, 1, n_sensors] for scaled rows [batch, window, n_sensors]."""
        features = self.features(past.transpose(1, 2))
        neighbours = self.neighbours()
        weights = self.attention(features, neighbours)
        gathered = mixed(weights, features, neighbours) + self.bias
        states = self.norm(gathered.flatten(0, 1)).relu().view(gathered.shape)
        outputs = self.output_norm((self.identity * states).flatten(0, 1)).relu()
        forecast: Tensor = self.head(self.dropout(outputs))
        return forecast.view(len(past), 1, -1)


def mixed(weights: Tensor, features: Tensor, neighbours: Tensor) -> Tensor:
    """Return the weighted sum of each sensor's neighbours' features, [batch, n_sensors, size]."""
    n_sensors, size = features.shape[1:]
    if n_sensors > weights.shape[2] * size:  # a weight for every pair would take more memory than the gathered features
        return torch.einsum("bik,bikd->bid", weights, features[:, neighbours])
    of_all = weights.new_zeros(len(weights), n_sensors, n_sensors)
    return of_all.scatter(2, neighbours.expand_as(weights), weights) @ features
