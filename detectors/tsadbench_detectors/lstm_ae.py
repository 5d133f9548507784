"""LSTM autoencoder: one recurrent layer reads the window, another reconstructs it from the last state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

from tsadbench.base import Cheap, Choice, Ge, Recording, Traits, Tune, detector, extra

with extra("lstm-ae", "deep"):
    from torch import Tensor, nn

    from tsadbench_detectors.deep.reconstructor import Reconstructor


@detector
class LSTMAE(Reconstructor):
    """Scores how far a window's last row is from its reconstruction by an LSTM encoder and decoder.

    Parameters of training, and ``device``: see `NetworkDetector`.

    Parameters
    ----------
    window
        Rows that the network sees at once.
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
        errors; this is the simpler form of the SKAB benchmark. The benchmark replaces the LSTM's tanh by a ReLU, which
        makes it unstable, and does not shuffle its training windows.
    Defaults
        Width 100, learning rate 1e-3, patience 5 and a tenth of the windows held out are the SKAB benchmark's; the
        window of 30 rows (not 10) is this project's. For cost: every second window of training, in batches of 64 (not
        32), at most 30 epochs (not 100).

    References
    ----------
    P. Malhotra et al., LSTM-based encoder-decoder for multi-sensor anomaly detection, ICML workshop (arXiv 1607.00148),
    2016.
    """

    traits: ClassVar[Traits] = Traits(
        family="reconstruction",
        stochastic=True,
        extra="deep",
        paper="Malhotra et al., arXiv 1607.00148",
        differs=("schedule differs",),
    )

    window: Annotated[int, Tune(10, 60, log=True, alters_loss=True), Cheap(8)] = 30
    stride: int = 2
    hidden_size: Annotated[int | None, Ge(1), Choice((None, 16, 32, 64, 128)), Cheap(8)] = None
    epochs: Annotated[int, Cheap(2)] = 30
    batch_size: Annotated[int, Choice((32, 64, 128, 256))] = 64
    patience: int = 5

    def _build_network(self, recordings: Sequence[Recording]) -> nn.Module:
        n_sensors = recordings[0].n_sensors
        return Network(n_sensors, self._given_or("hidden_size", max(100, 2 * n_sensors)))

    def _loss(self, windows: Tensor) -> Tensor:
        return nn.functional.l1_loss(self.network_(windows), windows)


class Network(nn.Module):
    """Maps [batch, window, n_sensors] to its reconstruction."""

    def __init__(self, n_sensors: int, hidden_size: int) -> None:
        super().__init__()
        self.encoder = nn.LSTM(n_sensors, hidden_size, batch_first=True)
        self.decoder = nn.LSTM(hidden_size, hidden_size, batch_first=True)
        self.head = nn.Linear(hidden_size, n_sensors)

    def forward(self, windows: Tensor) -> Tensor:
        """Return the reconstruction."""
        _, (summary, _) = self.encoder(windows)
        states, _ = self.decoder(summary[0][:, None].expand(-1, windows.shape[1], -1))
        reconstruction: Tensor = self.head(states)
        return reconstruction
