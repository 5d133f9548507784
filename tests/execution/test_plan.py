from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest

from tests.helpers.plans import make_plan
from tsadbench import Detector, PluginError, Traits, UsageError
from tsadbench.registry import floors, load_detector


class Mine(Detector):
    """Mine."""

    def _fit(self, recordings):
        pass

    def _score(self, recording):
        return np.zeros(recording.n_rows)


class Cheats(Mine):
    """Brings its own threshold."""

    traits = Traits(fixed_threshold=0.5)


class Wants(Mine):
    """Wants a prior."""

    traits = Traits(needs_prior=True)

    def __init__(self, *, prior=None):
        self.prior = prior

    def _check(self, sensors):
        self._require(self.prior is not None, "prior", "given")


def labels(plan):
    return [(trial.contender.label, trial.seed) for trial in plan.trials]


def test_stochastic_detectors_run_once_a_seed_the_others_once_and_floors_always(small_data):
    plan = make_plan(["t2", "isolation-forest"], dataset=small_data, seeds=2)
    assert labels(plan) == [
        ("t2", 0),
        ("isolation-forest", 0),
        ("isolation-forest", 1),
        *((floor, seed) for floor in floors() for seed in range(2 if floor == "random" else 1)),
    ]
    assert labels(make_plan(["t2"], dataset=small_data, floors=False)) == [("t2", 0)]


def test_a_floor_asked_for_is_not_planned_twice(small_data):
    assert labels(make_plan(["max-z"], dataset=small_data)).count(("max-z", 0)) == 1


def test_all_ways_to_name_a_detector(small_data):
    cls = load_detector("t2")
    plan = make_plan(
        ["t2[smoothing=3]", cls, cls(smoothing=7), "tsadbench_detectors.t2:T2", Mine],
        dataset=small_data,
        floors=False,
    )
    mine = f"{Mine.__module__}:Mine"
    assert [label for label, _ in labels(plan)] == [
        "t2[smoothing=3]",
        "t2",
        "t2[smoothing=7]",
        "tsadbench_detectors.t2:T2",
        mine,
    ]


def test_set_reaches_detectors_and_protocol_and_brackets_win(small_data):
    plan = make_plan(
        ["t2", "t2[smoothing=9]"],
        dataset=small_data,
        settings=["t2.smoothing=5", "strict.q=0.01"],
        floors=False,
    )
    assert [label for label, _ in labels(plan)] == ["t2[smoothing=5]", "t2[smoothing=9]"]
    assert plan.protocol_label == "strict[q=0.01]"
    assert plan.protocol.q == 0.01


def test_the_seed_reaches_the_constructor(small_data):
    plan = make_plan(["isolation-forest"], dataset=small_data, seeds=2, floors=False)
    assert [trial.contender.seeded(trial.seed).arguments["seed"] for trial in plan.trials] == [0, 1]


def test_splits_are_chosen_in_order(small_data):
    assert make_plan(["t2"], dataset=small_data).splits == ("overall", "f", "g")
    assert make_plan(["t2"], dataset=small_data, splits=["g", "f", "g"]).splits == ("g", "f")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"detectors": ["t22"]}, "no detector 't22'; did you mean 't2'"),
        ({"detectors": ["t2[smooth=3]"]}, "did you mean 'smoothing'"),
        ({"detectors": ["t2[smoothing=0]"]}, "smoothing must be"),
        ({"protocol": "stict"}, "did you mean 'strict'"),
        ({"splits": ["overal"]}, "did you mean 'overall'"),
        ({"dataset": "skabb"}, "no data set 'skabb'; did you mean 'skab'"),
        ({"seeds": 0}, "seeds: expected a number greater than or equal to 1, found 0"),
        ({"threads": 0}, "threads: expected a number greater than or equal to 1, found 0"),
        ({"settings": ["t2"]}, "--set expects NAME.key=value"),
        ({"settings": ["mset.window=3"]}, "this run has no 'mset'"),
        ({"settings": ["strict.q=0.5"]}, "q"),
        ({"settings": ["strict.level=x"]}, "'level' cannot be 'x'"),
        ({"detectors": [Cheats]}, "only floors may bring a threshold"),
        ({"detectors": [Wants]}, "prior must be given"),
    ],
)
def test_whatever_is_wrong_ends_in_planning(small_data, arguments, message):
    with pytest.raises(UsageError, match=message):
        make_plan(**{"detectors": ["t2"], "dataset": small_data, **arguments})


def test_a_strangers_floor_joins_every_run_and_must_say_that_it_is_one(small_data, tmp_path, monkeypatch):
    info = tmp_path / "own-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[tsadbench.floors]\nown-floor = own_floor:Own\n")
    source = (
        "import numpy as np\nfrom tsadbench import Detector, Traits\n"
        "class Own(Detector):\n"
        "    traits = Traits(floor=True)\n"
        "    def _fit(self, recordings): pass\n"
        "    def _score(self, recording): return np.zeros(recording.n_rows)\n"
    )
    (tmp_path / "own_floor.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    contenders = {trial.contender.name: trial.contender for trial in make_plan(["t2"], dataset=small_data).trials}
    assert contenders["own-floor"].floor
    assert not contenders["t2"].floor
    monkeypatch.delitem(sys.modules, "own_floor")
    (tmp_path / "own_floor.py").write_text(source.replace("floor=True", ""))
    importlib.invalidate_caches()
    with pytest.raises(PluginError, match=r"own-floor: .* must declare it"):
        make_plan(["t2"], dataset=small_data)
