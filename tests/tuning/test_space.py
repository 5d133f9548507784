"""What is searched, and how far back a fold has to keep its distance.

That each detector's space holds its defaults and valid points alone is tests/detectors/test_contract.py's.
"""

from __future__ import annotations

import contextlib
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.plans import make_plan
from tsadbench import Dataset, Labels, Prior, Recording, UsageError
from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.prior import Edge
from tsadbench.base.search_space import Choice, Tune
from tsadbench.execution.plan import Contender
from tsadbench.registry import entries, load_detector, package_of
from tsadbench.tuning.objective import GAP_WITHOUT_END
from tsadbench.tuning.task import reach_of, searched
from tsadbench.utils.parameters import parse_arguments

SENSORS = tuple("abcdefgh")
TUNABLE = [
    entry.name
    for entry in entries("detectors")
    if package_of(entry) == "tsadbench" and not load_detector(entry.name).traits.floor
]
# What `heldout` may choose: what changes neither what the loss measures nor the scores alone.
HELDOUT = {
    "anomaly-transformer": "batch_size d_model learning_rate n_layers weight",
    "arima": "d p q smoothing",
    "catch": "batch_size cf_dim d_model dropout learning_rate mask_rate patch_size patch_stride",
    "conv-ae": "batch_size dropout learning_rate",
    "dprgm": "backbone batch_size embedding_size epochs hidden_size layers learning_rate window",
    "dvgcrn": "batch_size hidden_size latent_size layers learning_rate warm_up",
    "ganf": "batch_size hidden_size learning_rate",
    "gcad": "batch_size blocks hidden_size learning_rate normalised window",
    "gdn": "batch_size dropout embedding_size learning_rate top_k window",
    "grelen": "batch_size diffusion_steps hidden_size learning_rate temperature",
    "lstm-ae": "batch_size hidden_size learning_rate",
    "lstm-ndt": "batch_size dropout hidden_size learning_rate span window",
    "lstm-vae": "batch_size hidden_size latent_size learning_rate warm_up",
    "mscred": "batch_size channels gap learning_rate steps",
    "mset": "memory_rows ridge",
    "mtad-gat": "batch_size dropout hidden_size learning_rate",
    "omnianomaly": "batch_size flows hidden_size latent_size learning_rate",
    "thoc": "batch_size learning_rate",
    "timesnet": "batch_size d_model learning_rate n_layers top_k",
    "tranad": "batch_size dropout heads hidden_size learning_rate window",
    "usad": "batch_size hidden_size latent_size learning_rate",
    "vanilla-ae": "batch_size learning_rate",
    "vanilla-lstm": "batch_size hidden_size learning_rate window",
}


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


@pytest.mark.parametrize("name", ["dprgm[graph=none]", "mscred", "t2-q", "arima"])
def test_no_point_sees_farther_than_a_fold_keeps_its_distance(name):
    cls = load_detector(name.partition("[")[0])
    reach, generator = reach_of(contender(name), cls.search_space(), SENSORS), random.Random(name)
    for _ in range(30):
        point = {
            key: generator.choice(one.values)
            if isinstance(one, Choice)
            else generator.randint(one.low, one.high)
            if one.integer
            else one.rounded(generator.uniform(one.low, one.high))
            for key, one in cls.search_space().items()
        }
        traits = cls(**({"graph": "none"} if "graph" in name else {}), **point).declared_traits()
        assert (GAP_WITHOUT_END if traits.memory is None else traits.memory) <= reach.before
        assert traits.look_ahead <= reach.after
        assert parse_arguments(cls, {key: str(value) for key, value in point.items()}, name) == point


def test_what_heldout_searches():
    found = {}
    for name in TUNABLE:
        with contextlib.suppress(UsageError):  # it has no held-out loss
            label = "dprgm[graph=none]" if name == "dprgm" else name
            found[name] = " ".join(sorted(searched(contender(label), "heldout")))
    assert found == HELDOUT
