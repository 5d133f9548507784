"""Detectors as users write them around libraries that they have: scikit-learn, statsmodels, PyTorch, PyOD, SciPy."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from tsadbench import Detector, Traits


class Wrapped(Detector):
    """Fits an estimator of scikit-learn's interface on all rows; its negative decision function is the score."""

    traits = Traits(memory=0)

    def make(self):
        raise NotImplementedError

    def _fit(self, recordings):
        self.estimator_ = self.make().fit(np.concatenate([one.values for one in recordings]))

    def _score(self, recording):
        return -self.estimator_.decision_function(recording.values)


class Forest(Wrapped):
    """scikit-learn's isolation forest."""

    def make(self):
        return IsolationForest(n_estimators=20, random_state=0)


class Factor(Wrapped):
    """scikit-learn's local outlier factor."""

    def make(self):
        return LocalOutlierFactor(n_neighbors=10, novelty=True)


class Machine(Wrapped):
    """scikit-learn's one-class support vector machine."""

    def make(self):
        return OneClassSVM(nu=0.1)


class Piped(Wrapped):
    """A pipeline of scikit-learn's."""

    def make(self):
        return make_pipeline(StandardScaler(), PCA(n_components=2), IsolationForest(n_estimators=10, random_state=1))


class Neighbours(Wrapped):
    """PyOD's nearest neighbours, called as PyOD's users do; it knows higher as more anomalous."""

    def make(self):
        from pyod.models.knn import KNN

        return KNN(n_neighbors=5)

    def _score(self, recording):
        return np.asarray(self.estimator_.decision_function(recording.values), dtype=np.float64)


class Autoregression(Detector):
    """statsmodels' vector autoregression of order 1: the norm of its residuals."""

    traits = Traits(memory=1)

    def _fit(self, recordings):
        from statsmodels.tsa.api import VAR

        fitted = VAR(np.concatenate([one.values for one in recordings])).fit(1)
        self.constant_, self.matrix_ = fitted.params[0], fitted.params[1:]

    def _score(self, recording):
        before = np.concatenate([recording.values[:1], recording.values[:-1]])
        return np.linalg.norm(recording.values - self.constant_ - before @ self.matrix_, axis=1)


class Autoencoder(Detector):
    """A small network of PyTorch's that is trained for a few steps."""

    traits = Traits(memory=0, stochastic=True)

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def _fit(self, recordings):
        import torch

        rows = np.concatenate([one.values for one in recordings])
        self.mean_, self.scale_ = rows.mean(axis=0), rows.std(axis=0) + 1e-9
        torch.manual_seed(self.seed)
        layers = (torch.nn.Linear(rows.shape[1], 2), torch.nn.Tanh(), torch.nn.Linear(2, rows.shape[1]))
        self.network_ = torch.nn.Sequential(*layers).double()
        optimiser = torch.optim.Adam(self.network_.parameters(), lr=0.01)
        scaled = torch.from_numpy((rows - self.mean_) / self.scale_)
        for _ in range(20):
            optimiser.zero_grad()
            ((self.network_(scaled) - scaled) ** 2).mean().backward()
            optimiser.step()

    def _score(self, recording):
        import torch

        scaled = torch.from_numpy((recording.values - self.mean_) / self.scale_)
        with torch.no_grad():
            return ((self.network_(scaled) - scaled) ** 2).mean(dim=1).numpy()


class Spectrum(Detector):
    """SciPy's filters and transforms: energy of a trailing window above its lowest frequencies."""

    traits = Traits(memory=None)

    def _fit(self, recordings):
        from scipy.signal import butter

        self.filter_ = butter(2, 0.2, btype="high", output="sos")
        self.mean_ = np.concatenate([one.values for one in recordings]).mean(axis=0)

    def _score(self, recording):
        from scipy.signal import sosfilt

        return (sosfilt(self.filter_, recording.values - self.mean_, axis=0) ** 2).sum(axis=1)


ALL = (Forest, Factor, Machine, Piped, Neighbours, Autoregression, Autoencoder, Spectrum)
