"""Wrapped detectors: what the library receives, and which row gets which of its scores."""

from __future__ import annotations

import random

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tsadbench import ContractError, DataError, Traits
from tsadbench.base import Windows, WrappedDetector


def rows(n: int, *, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 2)) * [1.0, 50.0] + [0.0, 1000.0]


class Library:
    """Remembers what it was fitted on; a window's score is the first sensor's sum over its rows."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.fitted = None
        self.calls = 0

    def fit(self, data):
        self.fitted = data

    def window_scores(self, data):
        self.calls += 1
        return np.array([data[at : at + self.window, 0].sum() for at in range(len(data) - self.window + 1)])


class ByRows(WrappedDetector):
    traits = Traits(family="other")
    takes = "series"
    standardised = False

    def __init__(self, *, window: int = 3) -> None:
        self.window = window

    def _build(self, n_sensors):
        return Library(self.window)

    def _rate(self, model, data):
        return np.concatenate([np.full(self.window - 1, -9.0), model.window_scores(data)])


class ByWindows(ByRows):
    def _rate(self, model, data):
        return model.window_scores(data).astype(np.float32)


class Samples(ByRows):
    takes = "rows"
    standardised = True

    def _rate(self, model, data):
        return data[:, ::2].sum(axis=1)


@pytest.mark.parametrize("cls", [ByRows, ByWindows])
def test_a_windows_score_goes_to_its_last_row_and_the_first_rows_have_one_too(cls):
    series = rows(50, seed=1)
    scores = cls(window=3).fit(rows(40)).score(series)
    first = series[:, 0]
    assert scores.dtype == np.float64
    assert_allclose(scores[2:], first[2:] + first[1:-1] + first[:-2], atol=1e-5)
    assert_allclose(scores[:2], [3 * first[0], 2 * first[0] + first[1]], atol=1e-5)


def test_one_series_is_the_longest_recording_and_the_share_is_stated():
    parts = [rows(20), rows(60, seed=2), rows(40, seed=3)]
    fitted = ByRows().fit(parts)
    assert_array_equal(fitted.model_.fitted, parts[1])
    assert fitted.training_facts() == {"share_seen": 0.5}


def test_windows_are_those_of_single_recordings_standardised_by_all_training_rows():
    parts = [rows(20), rows(2), rows(30, seed=2)]
    joined = np.concatenate(parts)
    scaled = [(one - joined.mean(axis=0)) / joined.std(axis=0) for one in (parts[0], parts[2])]
    expected = [one[at : at + 3] for one in scaled for at in range(len(one) - 2)]
    flat = Samples(window=3).fit(parts)
    assert_allclose(flat.model_.fitted, np.reshape(expected, (46, 6)))
    assert_allclose(flat.score(parts[0])[2:], [one[:, 0].sum() for one in expected[:18]])
    assert flat.declared_traits().memory == 2


def test_windows_are_a_torch_data_set():
    import torch

    windows = Windows([rows(10), rows(6)], 4)
    (batch, *rest) = torch.utils.data.DataLoader(windows, batch_size=8)
    assert batch.shape == (8, 4, 2)
    assert len(windows) == 10
    assert rest[0].shape == (2, 4, 2)
    assert len(Windows([rows(3)], 4)) == 0


class Pipeline(WrappedDetector):
    def __init__(self, *, window: int = 1, seed: int = 0) -> None:
        self.window = window
        self.seed = seed

    def _build(self, n_sensors):
        return make_pipeline(StandardScaler(), PCA(1), IsolationForest(n_estimators=10, random_state=self.seed))


def test_scikit_learns_sign_is_reversed_and_pyods_is_not():
    train, far = rows(200), np.array([[0.0, 1000.0], [90.0, 9000.0]])
    for fitted in (Pipeline().fit(train), Neighbours().fit(train)):
        normal, anomalous = fitted.score(far)
        assert anomalous > normal


class Neighbours(WrappedDetector):
    """PyOD's nearest neighbours, which remember their training rows."""

    def __init__(self, *, window: int = 1) -> None:
        self.window = window

    def _build(self, n_sensors):
        from pyod.models.knn import KNN

        return KNN(n_neighbors=1)

    def _fitted_scores(self, model):
        return model.decision_scores_


def test_a_model_that_remembers_its_rows_gives_its_own_scores_of_them():
    parts = [rows(30), rows(40, seed=2)]
    fitted = Neighbours(window=2).fit(parts)
    found = fitted.training_scores(parts)
    assert_allclose(np.concatenate([one[1:] for one in found]), fitted.model_.decision_scores_)
    assert min(one[1:].min() for one in found) > 0
    assert fitted.score(parts[0])[1:].max() == 0  # without them, the threshold would be set on zeros


class Wrong(ByRows):
    def __init__(self, *, window: int = 3, what: str = "column") -> None:
        super().__init__(window=window)
        self.what = what

    def _rate(self, model, data):
        scores = model.window_scores(data)
        return {"column": scores[:, None], "short": scores[:-1], "text": scores.astype(str)}[self.what]


@pytest.mark.parametrize(
    ("what", "said"),
    [("column", r"Wrong.* \[20, 1\]"), ("short", r"Wrong.*\[20\].*\[19\]"), ("text", "Wrong.* <U")],
)
def test_invalid_scores_are_refused_with_the_reason(what, said):
    with pytest.raises(ContractError, match=said):
        Wrong(what=what).fit(rows(40)).score(rows(20))


def test_too_few_rows_for_two_windows_are_refused():
    with pytest.raises(DataError, match="30 .* 20 "):
        ByRows(window=30).fit([rows(20), rows(10)])


class Chance(WrappedDetector):
    """A library that uses the global random generators in fitting and scoring."""

    traits = Traits(stochastic=True)

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def _build(self, n_sensors):
        import torch

        return np.array([np.random.random(), random.random(), torch.rand(()).item()])

    def _train(self, model, data):
        pass

    def _rate(self, model, data):
        import torch

        return data[:, 0] + model.sum() + np.random.random() + random.random() + torch.rand(()).item()


def test_the_seed_alone_decides_a_librarys_random_numbers():
    train, test = rows(20), rows(10, seed=1)
    first = Chance(seed=3).fit(train)
    assert_array_equal(first.score(test), first.score(test))
    assert_array_equal(Chance(seed=3).fit(train).score(test), first.score(test))
    assert not np.array_equal(Chance(seed=4).fit(train).score(test), first.score(test))
