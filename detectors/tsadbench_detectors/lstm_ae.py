"""LSTM autoencoder: one recurrent layer reads the window, another reconstructs it from the last state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tsadbench.base import Choice, Recording, Space, Traits, Tune, extra

with extra("lstm-ae", "deep"):
    import torch
    from torch import Tensor, nn

    from tsadbench_detectors.deep.reconstructor import Reconstructor
    from tsadbench_detectors.deep.sizes import SizedNetwork, Width


class LSTMAE(SizedNetwork, Reconstructor):
    """Scores how far a window's last row is from its reconstruction by an LSTM encoder and decoder.

    The encoder's last state is the decoder's input at every step. The loss is the mean absolute error, the score the
    sum of the absolute errors of the last row. The SKAB benchmark replaces the LSTM's tanh by a ReLU, which makes it
    unstable; this one has the tanh, and shuffles its training windows, which the benchmark does not.

    Parameters of training, and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that it sees at once.
    hidden_size
        Width of both layers, and of the summary of the window between them. None: 100, or twice as many as there are
        sensors if that is more.

    Notes
    -----
    Equations
        ``s`` is the encoder's last state, ``r(t) = W d(t) + b`` with d the decoder's state, which gets s at every step;
        the loss is the mean of ``|x - r|`` over the window, the score ``sum_i |x_i - r_i|`` of its last row.
    Differences
        The paper's decoder runs backwards and is fed its own outputs, and its score is a Mahalanobis distance of the
        errors; this is the simpler form of the SKAB benchmark. That one replaces the LSTM's tanh by a ReLU, which makes
        it unstable, and does not shuffle its training windows.
    Defaults
        Width 100, learning rate 1e-3, patience 5 and a tenth of the windows held out are the SKAB benchmark's; the
        window of 30 rows (not 10) is this project's. By cost: every second window of training, in batches of 64 (not
        32), at most 30 epochs (not 100).

    References
    ----------
    P. Malhotra et al., LSTM-based encoder-decoder for multi-sensor anomaly detection, ICML workshop (arXiv 1607.00148),
    2016.
    """

    widths: ClassVar[Mapping[str, Width]] = {"hidden_size": Width(100, per_sensor=2)}
    traits: ClassVar[Traits] = Traits(
        family="reconstruction", stochastic=True, extra="deep", paper="Malhotra et al., arXiv 1607.00148"
    )

    def __init__(
        self,
        *,
        window: int = 30,
        stride: int = 2,
        hidden_size: int | None = None,
        epochs: int = 30,
        min_steps: int = 500,
        max_steps: int | None = None,
        batch_size: int = 64,
        learning_rate: float = 1e-3,
        held_out: float = 0.1,
        patience: int = 5,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.window = window
        self.stride = stride
        self.hidden_size = hidden_size
        self.epochs = epochs
        self.min_steps = min_steps
        self.max_steps = max_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.held_out = held_out
        self.patience = patience
        self.seed = seed
        self.device = device

    @classmethod
    def search_space(cls) -> Mapping[str, Space]:  # noqa: D102
        return {
            "window": Tune(10, 60, log=True, alters_loss=True),
            "hidden_size": Choice((None, 16, 32, 64, 128)),
            "batch_size": Choice((32, 64, 128, 256)),
            "learning_rate": Tune(1e-4, 1e-2, log=True),
        }

    @classmethod
    def test_params(cls) -> dict[str, object]:  # noqa: D102
        return {"window": 8, "hidden_size": 8, "epochs": 2, "min_steps": 1}

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        n_sensors = recordings[0].n_sensors
        return Network(n_sensors, self._width("hidden_size", n_sensors))

    def _loss(self, windows: Tensor) -> Tensor:
        return nn.functional.l1_loss(self.network_(windows), windows)


class Network(nn.Module):
    """Maps [batch, window, n_sensors] to its reconstruction.

    On a CPU, PyTorch hands an LSTM to oneDNN, which runs it at close to the speed of its matrix products: the only
    work left to save is products that are not needed.
    """

    def __init__(self, n_sensors: int, hidden_size: int) -> None:
        super().__init__()
        self.encoder = nn.LSTM(n_sensors, hidden_size)
        self.decoder = nn.LSTM(hidden_size, hidden_size)
        self.head = nn.Linear(hidden_size, n_sensors)

    def forward(self, windows: Tensor) -> Tensor:
        """Return the reconstruction."""
        # Time comes first: thus the layers copy neither their inputs nor their states into another order.
        _, (summary, _) = self.encoder(windows.transpose(0, 1))
        reconstruction: Tensor = self.head(self._decoded(summary[0], windows.shape[1])).transpose(0, 1)
        return reconstruction

    def _decoded(self, summary: Tensor, n_steps: int) -> Tensor:
        """Return the decoder's states, [n_steps, batch, hidden_size], if every step's input is ``summary``."""
        batch, hidden_size = summary.shape
        if summary.device.type != "cpu" or batch >= hidden_size:
            states: Tensor = self.decoder(summary.expand(n_steps, -1, -1))[0]
            return states
        # The input's product with its weights is the same at every step. It is made once and takes the weights'
        # place, with a constant input that picks each window's own column: a narrower input, without a gradient.
        by_input, by_state, *biases = self.decoder.parameters()
        picks = torch.eye(batch, dtype=summary.dtype, device=summary.device).expand(n_steps, -1, -1)
        start = summary.new_zeros(1, batch, hidden_size)
        parameters = [by_input @ summary.t(), by_state, *biases]
        # Biases: yes; one layer; no dropout; neither in both directions nor the batch first.
        return torch.lstm(picks, (start, start), parameters, True, 1, 0.0, self.training, False, False)[0]
