"""Recordings x detectors, and which recordings belong together."""

from __future__ import annotations

import numpy as np
import pytest

from tsadbench import Recording, UsageError
from tsadbench.analysis.significance.matrix import Matrix, find_clusters
from tsadbench.base.dataset import DataOptions

VALUES = np.random.default_rng(0).normal(size=(100, 2))


def recording(name: str, *rows: slice, timed: bool = True) -> Recording:
    places = np.concatenate([np.arange(100)[some] for some in rows])
    return Recording(name, VALUES[places], ("flow", "pressure"), time=places.astype(float) if timed else None)


def test_recordings_that_share_rows_through_others_are_one_cluster():
    recordings = [
        recording("a", slice(0, 20)),
        recording("alone", slice(80, 90)),
        recording("c", slice(38, 60)),
        recording("b", slice(19, 40)),
    ]
    assert find_clusters(recordings) == (("a", "c", "b"), ("alone",))
    assert find_clusters(recordings[:3]) == (("a",), ("alone",), ("c",))
    assert find_clusters(recordings[:1]) == (("a",),)


def test_the_same_values_at_another_time_are_another_row_but_not_without_time():
    later = Recording("later", VALUES[:20], ("flow", "pressure"), time=np.arange(500.0, 520.0))
    assert len(find_clusters([recording("a", slice(0, 20)), later])) == 2
    untimed = [recording(name, slice(0, 20), timed=False) for name in "ab"]
    assert find_clusters(untimed) == (("a", "b"),)


@pytest.mark.skab
def test_skabs_clusters(skab_directory):
    from tsadbench.datasets.skab import load

    found = find_clusters(load(DataOptions(directory=skab_directory)).dataset.test)
    assert [members for members in found if len(members) > 1] == [
        ("other/2", "other/3", "other/4"),
        ("other/10", "other/11"),
        ("other/12", "other/13"),
    ]
    assert len(found) == 30


def test_a_cluster_is_the_mean_of_its_recordings():
    matrix = Matrix(("a", "b", "c"), ("x", "y"), np.array([[0.1, 0.2], [0.3, 0.4], [0.9, 0.7]]))
    found = matrix.clustered((("a", "c"), ("b",)))
    assert found.units == ("a + c", "b")
    assert found.values == pytest.approx(np.array([[0.5, 0.45], [0.3, 0.4]]))
    assert found.to_frame().loc["a + c", "x"] == 0.5


def test_undefined_values_are_known():
    matrix = Matrix(("a", "b"), ("x", "y"), np.array([[0.1, np.nan], [0.3, 0.4]]))
    assert matrix.defined.tolist() == [False, True]
    assert matrix.to_json() == {"a": {"x": 0.1, "y": None}, "b": {"x": 0.3, "y": 0.4}}


def test_what_is_no_matrix():
    with pytest.raises(UsageError, match="different names"):
        Matrix(("a", "a"), ("x",), np.zeros((2, 1)))
    with pytest.raises(UsageError, match=r"expected shape \[2, 1\], found \[1, 2\]"):
        Matrix(("a", "b"), ("x",), np.zeros((1, 2)))
