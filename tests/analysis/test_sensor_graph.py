"""A detector's graph depends on its label and the training recordings, not on the protocol."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.helpers.data import make_data
from tests.helpers.plans import make_plan
from tsadbench import Detector, Labels
from tsadbench.analysis.sensor_graph import sensor_graph
from tsadbench.base.dataset import LabelledDataset
from tsadbench.errors import DataError
from tsadbench.execution.runner import run_plan
from tsadbench.execution.store import Store
from tsadbench.results.trial_result import TrialResult


class OwnGraph(Detector):
    """Reports how many training rows it was given."""

    def _fit(self, recordings):
        raise AssertionError("a graph needs no training")

    def _score(self, recording):
        return np.zeros(recording.n_rows)

    def sensor_graph(self, recordings):
        return np.full((3, 3), float(sum(one.n_rows for one in recordings))), np.full(3, 1 / 3)


def test_a_graph_is_derived_even_from_data_that_strict_refuses(tmp_path):
    data = make_data()
    copies = tuple(replace(one, id=f"copy of {one.id}") for one in data.dataset.train)
    test = (*data.dataset.test, *copies)
    splits = {"overall": tuple(one.id for one in test)}
    labels = Labels({**data.labels.rows, **{one.id: np.zeros(one.n_rows, dtype=bool) for one in copies}}, splits)
    data = LabelledDataset(replace(data.dataset, test=test, splits=splits), labels)
    with pytest.raises(DataError, match="'small'"):
        make_plan(["tests.helpers.tiny:Distance"], dataset=data, protocol="strict", floors=False)
    store = Store.create(tmp_path / "runs")
    (record,) = run_plan(
        make_plan(["tests.helpers.tiny:Distance"], dataset=data, protocol="published", floors=False), store
    )
    label = f"{__name__}:OwnGraph"
    result = TrialResult(replace(record, label=label, detector=label), store, data)
    graph = sensor_graph(result)
    assert graph.adjacency[0, 0] == 400.0
    assert all(name in graph.title for name in (label, "seed 0", "small", "published 2"))
