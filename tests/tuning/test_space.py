"""What is searched, and how wide the gap of a fold must be.

That each detector's space holds its defaults and only valid points is tested in tests/detectors/test_contract.py.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.detectors import load_detector
from tests.helpers.plans import make_plan
from tsadbench import Dataset, Labels, Prior, Recording, UsageError
from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.prior import Edge
from tsadbench.base.search_space import Choice, Tune
from tsadbench.execution.plan import Contender
from tsadbench.tuning.objective import GAP_WITHOUT_END
from tsadbench.tuning.task import reach_of
from tsadbench.utils.parameters import parse_arguments

SENSORS = tuple("abcdefgh")


def contender(name: str) -> Contender:
    rows = Recording("rows", np.random.default_rng(0).normal(size=(50, len(SENSORS))), SENSORS)
    splits = {"overall": ("test",)}
    test = Recording("test", rows.values, SENSORS)
    labels = Labels({"test": np.zeros(50, dtype=bool)}, splits)
    data = LabelledDataset(Dataset("plant", (rows,), (test,), splits, prior=Prior((Edge("a", "b"),))), labels)
    return make_plan([name], dataset=data, floors=False, seeds=1).trials[0].contender


@pytest.mark.parametrize(
    "make",
    [
        lambda: Choice((1,)),
        lambda: Choice((1, 1)),
        lambda: Tune(3, 3),
        lambda: Tune(0.0, float("inf")),
        lambda: Tune(0.0, 1.0, log=True),
    ],
)
def test_a_space_without_a_choice_is_refused(make):
    with pytest.raises(UsageError):
        make()


def test_a_choice_tells_truth_values_from_numbers():
    assert Choice((True, False)).holds(True)
    assert not Choice((True, False)).holds(1)
    assert not Tune(0, 5).holds(True)
    assert Tune(0, 5).holds(5)
    assert not Tune(0.0, 1.0).holds(1.5)


@given(st.floats(1e-4, 1e-2))
def test_a_number_is_rounded_to_three_digits_within_its_bounds(value):
    rounded = Tune(1e-4, 1e-2).rounded(value)
    assert 1e-4 <= rounded <= 1e-2
    assert rounded == pytest.approx(value, rel=5.1e-3)
    assert len(f"{rounded:e}".split("e")[0].rstrip("0").replace(".", "")) <= 3


def drawn(space, generator: random.Random):
    if isinstance(space, Choice):
        return generator.choice(space.values)
    if space.integer:
        return generator.choice((space.low, space.high, generator.randint(space.low, space.high)))
    return space.rounded(generator.choice((space.low, space.high, generator.uniform(space.low, space.high))))


@pytest.mark.parametrize("name", ["dprgm[graph=none]", "mscred", "t2-q", "arima"])
def test_no_point_reaches_farther_than_the_gap_of_a_fold(name):
    cls = load_detector(name.partition("[")[0])
    reach, generator = reach_of(contender(name), cls.search_space(), SENSORS), random.Random(name)
    for _ in range(30):
        point = {key: drawn(one, generator) for key, one in cls.search_space().items()}
        traits = cls(**({"graph": "none"} if "graph" in name else {}), **point).declared_traits()
        assert (GAP_WITHOUT_END if traits.memory is None else traits.memory) <= reach.before
        assert traits.look_ahead <= reach.after
        assert parse_arguments(cls, {key: str(value) for key, value in point.items()}, name) == point
