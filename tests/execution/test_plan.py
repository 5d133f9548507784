from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.helpers.packages import write_package
from tests.helpers.plans import make_plan
from tests.helpers.tiny import Distance
from tsadbench import Detector, Labels, PluginError
from tsadbench.base import Edge, Prior
from tsadbench.base.dataset import LabelledDataset
from tsadbench.errors import DataError, UsageError
from tsadbench.execution.plan import floor_labels

pytestmark = pytest.mark.usefixtures("tiny_plugin")


class Mine(Detector):
    """Mine."""

    def _fit(self, recordings):
        pass

    def _score(self, recording):
        return np.zeros(recording.n_rows)


def labels(plan):
    return [(trial.contender.label, trial.seed) for trial in plan.trials]


def test_stochastic_detectors_run_once_per_seed_the_others_once_and_floors_always(small_data):
    plan = make_plan(["distance", "noisy"], dataset=small_data, seeds=2)
    # Of the floors, which join every run, only `random` is stochastic.
    assert labels(plan) == [
        ("distance", 0),
        ("noisy", 0),
        ("noisy", 1),
        *((floor, seed) for floor in floor_labels() for seed in range(2 if floor == "random" else 1)),
    ]
    assert labels(make_plan(["distance"], dataset=small_data, floors=False)) == [("distance", 0)]


def test_the_floors_are_those_registered_and_the_variants_that_they_declare(small_data):
    averaged = ("l1-z", "l2-z", "lag", "max-z", "moving-spread", "nearest-neighbour", "ridge", "sensor-range")
    shipped = {"all-positive", "own-start", "random", *averaged}
    plan = make_plan([], dataset=small_data)
    assert set(floor_labels()) == {*shipped, *(f"{name}[mean=10]" for name in averaged), "largest"}
    assert {label for label, _ in labels(plan)} == set(floor_labels())
    assert all(trial.contender.traits.floor for trial in plan.trials)


def test_a_requested_variant_of_a_floor_is_a_floor_and_planned_once(small_data):
    plan = make_plan(["max-z[mean=10]", "max-z[mean=3]"], dataset=small_data)
    floors = [trial.contender.label for trial in plan.trials if trial.contender.traits.floor]
    assert {"max-z[mean=3]", *floor_labels()} == set(floors)
    assert floors.count("max-z[mean=10]") == 1
    (smoothed,) = make_plan(["t2[mean=10]"], dataset=small_data, floors=False).trials
    assert not smoothed.contender.traits.floor


def test_all_ways_to_name_a_detector(small_data):
    plan = make_plan(
        ["distance[power=3.0]", Distance, Distance(power=7.0), "tests.helpers.tiny:Distance", Mine],
        dataset=small_data,
        floors=False,
    )
    mine = f"{Mine.__module__}:Mine"
    assert [label for label, _ in labels(plan)] == [
        "distance[power=3.0]",
        "distance",
        "distance[power=7.0]",
        "tests.helpers.tiny:Distance",
        mine,
    ]


@pytest.mark.parametrize("label", ["dprgm", "dprgm[node_weights=off]", "untrained", "dprgm[graph=none]"])
def test_a_detector_keeps_its_label_with_and_without_a_prior(small_data, label):
    sensors = small_data.dataset.sensors
    prior = Prior(edges=(Edge(sensors[0], sensors[1]),))
    known = small_data._replace(dataset=replace(small_data.dataset, prior=prior))
    for data, expected in ((small_data, None), (known, prior)):
        (trial,) = make_plan([label], dataset=data, floors=False, seeds=1).trials
        assert trial.contender.label == label
        assert trial.contender.construction.arguments.get("prior") == expected


def test_a_plugins_floor_joins_every_run_and_must_declare_itself_one(small_data, tmp_path, monkeypatch):
    source = (
        "import numpy as np\nfrom tsadbench import Detector, Traits\n"
        "class Own(Detector):\n"
        "    traits = Traits(floor=True)\n"
        "    def _fit(self, recordings): pass\n"
        "    def _score(self, recording): return np.zeros(recording.n_rows)\n"
    )
    write_package(tmp_path, "own_floor", "[tsadbench.floors]\nown-floor = own_floor:Own\n", source)
    monkeypatch.syspath_prepend(tmp_path)
    contenders = {trial.contender.name: trial.contender for trial in make_plan(["distance"], dataset=small_data).trials}
    assert contenders["own-floor"].traits.floor
    assert not contenders["distance"].traits.floor
    (tmp_path / "own_floor.py").write_text(source.replace("floor=True", ""))
    with pytest.raises(PluginError, match="own-floor"):
        make_plan(["distance"], dataset=small_data)


@pytest.mark.parametrize(("card", "field"), [("folder.toml", "dataset"), ("card.toml", "data")])
def test_errors_of_a_card_name_the_argument(tmp_path, card, field):
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(UsageError, match=card) as raised:
        make_plan(["distance"], dataset=tmp_path / card, data=tmp_path, floors=False)
    assert raised.value.field == field


CLAIMS = """\
from tsadbench import Detector, Traits

class Floor(Detector):
    traits = Traits(floor=True, fixed_threshold=0.5)
    def _fit(self, recordings): pass
    def _score(self, recording): return recording.values[:, 0]

class Whisperer(Detector):
    def __init__(self, *, yes: int = 0, no: int = 0):
        self.yes, self.no = yes, no
    def _check(self, sensors): self.known_ = "Voltage" in sensors
    def declared_traits(self):
        return Traits(scoring_parameters=("yes",) if getattr(self, "known_", False) else ("no",))
    def _fit(self, recordings): pass
    def _score(self, recording): return recording.values[:, 0]

class Cheats(Floor):
    traits = Traits(fixed_threshold=0.5)

class Novelist(Floor):
    traits = Traits(family="family" * 100)
"""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Floor", r"traits\.floor"),
        ("Cheats", "fixed_threshold"),
        ("Whisperer", "scoring_parameters"),
        ("Novelist", r"traits\.family"),
    ],
)
def test_false_claims_of_a_detector_are_refused(small_data, tmp_path, name, message):
    (tmp_path / "claims.py").write_text(CLAIMS)
    with pytest.raises((UsageError, PluginError), match=message):
        make_plan([f"{tmp_path / 'claims.py'}:{name}"], dataset=small_data, floors=False)


def test_names_that_no_record_can_have_are_refused(small_data):
    data = small_data._replace(dataset=replace(small_data.dataset, name="plant/1"))
    with pytest.raises(DataError, match="plant/1"):
        make_plan(["t2"], dataset=data, floors=False)
    splits = {**small_data.dataset.splits, "a\tb": ("f1",)}
    data = LabelledDataset(
        replace(small_data.dataset, splits=splits), Labels(small_data.labels.rows, splits, small_data.labels.causes)
    )
    with pytest.raises(DataError, match=r"a\\tb"):
        make_plan(["t2"], dataset=data, floors=False)
