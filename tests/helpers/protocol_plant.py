"""Small data sets and scores for the protocols' tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tsadbench.base.dataset import Dataset, LabelledDataset, Labels
from tsadbench.base.protocol import Episode, Judgement, Protocol, Scored
from tsadbench.base.recording import Recording
from tsadbench.utils.arrays import BoolArray, FloatArray

SENSORS = ("pressure", "flow")


def recording(name: str, n_rows: int, *, start: float | None = None, seed: int = 0) -> Recording:
    """Return random values, with one row per second from `start`, or without time."""
    values = np.random.default_rng([seed, n_rows]).normal(size=(n_rows, len(SENSORS)))
    return Recording(name, values, SENSORS, None if start is None else start + np.arange(n_rows))


def plant(
    train: tuple[Recording, ...],
    test: tuple[Recording, ...],
    anomalous: Mapping[str, slice] | None = None,
    splits: Mapping[str, tuple[str, ...]] | None = None,
) -> LabelledDataset:
    """Return a data set whose rows are normal except for one stretch in each recording of `anomalous`."""
    rows: dict[str, BoolArray] = {one.id: np.zeros(one.n_rows, dtype=np.bool_) for one in test}
    for name, stretch in (anomalous or {}).items():
        rows[name][stretch] = True
    splits = {"overall": tuple(rows)} if splits is None else splits
    return LabelledDataset(Dataset("plant", train, test, splits), Labels(rows, splits))


def scores_of(episode: Episode, rule: Callable[[Recording], FloatArray], fixed: float | None = None) -> Scored:
    """Return the episode's scores of a detector that scores by a rule."""
    train, calibration, test = (
        tuple(rule(one) for one in part) for part in (episode.train, episode.calibration, episode.test)
    )
    return Scored(episode, train, test, fixed, calibration)


def trial(
    protocol: Protocol, data: LabelledDataset, rule: Callable[[Recording], FloatArray], fixed: float | None = None
) -> Judgement:
    """Return the protocol's judgement of a detector that scores by a rule."""
    scored = [scores_of(episode, rule, fixed) for episode in protocol.episodes(data.dataset)]
    return protocol.judge(scored, data.labels)


def pressure(one: Recording) -> FloatArray:
    """Score a row by its first sensor."""
    return one.values[:, 0].copy()
