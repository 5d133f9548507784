"""What detectors declare: every point is valid, and losses of points can be compared where the objective does so."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tests.helpers.plans import make_plan
from tsadbench import Dataset, Labels, Prior, Recording, UsageError
from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.prior import Edge
from tsadbench.base.search_space import Choice, IntegerRange, RealRange, Space
from tsadbench.execution.plan import Contender
from tsadbench.registry import entries, load_detector
from tsadbench.tuning.folds import GAP_WITHOUT_END
from tsadbench.tuning.task import reach_of, searched
from tsadbench.utils.parameters import parameters_of, parse_arguments

SHIPPED = [entry.name for entry in entries("detectors") if entry.package == "tsadbench"]
TUNABLE = [name for name in SHIPPED if not load_detector(name).traits.floor]
SENSORS = tuple("abcdefgh")
PRIOR = Prior((Edge("a", "b"),))


def arguments(name: str) -> dict[str, object]:
    """What has to be set, for a prior is nothing to search."""
    if name == "multiview-graph":
        return {"prior": PRIOR}
    return {"graph": "none"} if name == "dprgm" else {}


def without_end(name: str, point: dict[str, object]) -> bool:
    """Return whether scores depend on all rows before: a moving average of past errors does, by a recursion."""
    return name == "arima" and point["q"] != 0


def drawn(space: Space, generator: random.Random) -> object:
    if isinstance(space, Choice):
        return generator.choice(space.values)
    if isinstance(space, IntegerRange):
        return generator.randint(space.low, space.high)
    return space.rounded(generator.uniform(space.low, space.high))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Choice((1,)),
        lambda: Choice((1, 1)),
        lambda: IntegerRange(3, 3),
        lambda: RealRange(2.0, 1.0),
        lambda: RealRange(0.0, float("inf")),
        lambda: RealRange(0.0, 1.0, log=True),
    ],
)
def test_a_space_without_a_choice_is_refused(make):
    with pytest.raises(UsageError, match=r"expected|starts above 0"):
        make()


def test_a_choice_tells_truth_values_from_numbers():
    assert Choice((True, False)).holds(True)
    assert not Choice((True, False)).holds(1)
    assert not IntegerRange(0, 5).holds(True)
    assert IntegerRange(0, 5).holds(5)
    assert not RealRange(0.0, 1.0).holds(1.5)


@given(st.floats(1e-4, 1e-2))
def test_a_number_is_rounded_to_three_digits_within_its_bounds(value):
    rounded = RealRange(1e-4, 1e-2).rounded(value)
    assert 1e-4 <= rounded <= 1e-2
    assert rounded == pytest.approx(value, rel=5.1e-3)
    assert len(f"{rounded:e}".split("e")[0].rstrip("0").replace(".", "")) <= 3


def test_all_detectors_but_the_floors_declare_a_space():
    assert {name for name in SHIPPED if load_detector(name).search_space()} == set(TUNABLE)


@pytest.mark.parametrize("name", TUNABLE)
def test_every_point_constructs_passes_the_check_and_sees_no_farther_than_declared(name):
    cls = load_detector(name)
    space, fixed = cls.search_space(), arguments(name)
    reach = reach_of(_contender(name), space, SENSORS)
    generator = random.Random(name)
    for _ in range(50):
        point = {key: drawn(one, generator) for key, one in space.items()}
        assert all(one.holds(point[key]) for key, one in space.items())
        detector = cls(**{**fixed, **point})
        detector.check(SENSORS)
        traits = detector.declared_traits()
        assert (traits.memory is None) == without_end(name, point)
        assert (GAP_WITHOUT_END if traits.memory is None else traits.memory) <= reach.before
        assert traits.look_ahead <= reach.after
        written = {key: str(value) for key, value in point.items()}
        assert parse_arguments(cls, written, name) == point


@pytest.mark.parametrize("name", TUNABLE)
def test_the_defaults_are_a_point_of_the_space(name):
    cls = load_detector(name)
    defaults = {parameter.name: parameter.default for parameter in parameters_of(cls)}
    assert all(one.holds(defaults[key]) for key, one in cls.search_space().items())


class _Zeros(nn.Module):
    """Stands for a network that always answers 0."""

    def __init__(self, shape):
        super().__init__()
        self.shape = shape

    def forward(self, *inputs, **_flags):
        return self.shape(*inputs)


class _ZeroVAE(nn.Module):
    def __init__(self, latent_size):
        super().__init__()
        self.latent_size = latent_size

    def encode(self, windows):
        return (torch.zeros(len(windows), self.latent_size),) * 2

    def decode(self, latent, window):
        return (torch.zeros(len(latent), window, len(SENSORS)),) * 2


class _ZeroBound(nn.Module):
    latent_size = 4

    def minus_bound(self, rows, noise):
        assert noise.shape == (len(rows), self.latent_size, rows.shape[2])
        return rows.square().sum() / rows.shape[2]


class _ZeroLayers(nn.Module):
    n_latent = 12

    def losses(self, rows, noise):
        surprise = rows.square().sum() / rows.shape[2]
        return surprise, torch.zeros(()), rows[-1].square().sum() / rows.shape[2]


class _ZeroRelations(nn.Module):
    def __init__(self):
        super().__init__()
        n = len(SENSORS)
        self.learner = _Zeros(lambda windows: torch.zeros(len(windows), 4, n, n))
        self.learner.weight = nn.Parameter(torch.zeros(1))
        self.decoder = lambda windows, relations: torch.zeros_like(windows)


class _ZeroDensity(nn.Module):
    """Every value is distributed normally, whatever was before."""

    def project(self):
        pass

    def forward(self, windows):
        return -windows[:, 1:].square().transpose(0, 1) / 2


class _ZeroClusters(nn.Module):
    """All distances from the centres are 1, and the centres are one more from being orthogonal."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def chains(self, rows):
        return [torch.zeros(len(rows), 4, rows.shape[2])]

    def forecast_error(self, chains, rows):
        return rows[1:].square().mean()

    def distance(self, features):
        return torch.ones(len(features[0])), torch.ones(len(features[0]), 2)

    def overlap(self):
        return torch.ones(())


def _zero_rows_and_one_discrepancy(windows):
    """Reconstruct 0. A discrepancy's two phases differ in what they teach, not in value."""
    discrepancy = windows.square().mean(dim=2)
    return torch.zeros_like(windows), discrepancy, discrepancy


def _stand_in(name, detector):
    """Return a network that knows nothing: its loss depends on what is measured alone, not on what was learned."""
    if name == "ganf":
        return _ZeroDensity()
    if name == "thoc":
        detector.to_place_on_ = None  # the centres are placed
        return _ZeroClusters()
    if name == "anomaly-transformer":
        return _Zeros(_zero_rows_and_one_discrepancy)
    if name == "catch":
        return _Zeros(lambda rows: (torch.zeros_like(rows), torch.fft.fft(torch.zeros_like(rows)), torch.ones(())))
    if name == "usad":
        return _Zeros(lambda windows: (torch.zeros_like(windows),) * 3)
    if name == "tranad":
        return _Zeros(lambda windows: (torch.zeros_like(windows[:, -1]),) * 3)
    if name == "gcad":
        forecaster = _Zeros(lambda windows: torch.zeros_like(windows[:, :1]))
        forecaster.gain = nn.Parameter(torch.ones(len(SENSORS)))
        return forecaster
    if name == "lstm-vae":
        return _ZeroVAE(detector.latent_size or 4)
    if name == "omnianomaly":
        return _ZeroBound()
    if name == "dvgcrn":
        return _ZeroLayers()
    if name == "grelen":
        return _ZeroRelations()
    if name == "mtad-gat":
        return _Zeros(lambda windows: (torch.zeros_like(windows[:, 0]), torch.zeros_like(windows)))
    if name == "mscred":
        return _Zeros(lambda images, n_steps, shift: torch.zeros_like(images[(n_steps - 1) * shift :]))
    if detector.horizon:
        return _Zeros(lambda windows: torch.zeros(len(windows), detector.horizon, windows.shape[-1]))
    return _Zeros(torch.zeros_like)


def _contender(name: str) -> Contender:
    return make_plan([_request(name)], dataset=_plant(), floors=False, seeds=1).trials[0].contender


def _losses(name: str, objective_searches: bool, n_points: int = 4) -> set[float]:
    """Return the losses of ignorant networks at points that differ in what ``heldout`` searches, or in all else."""
    cls = load_detector(name)
    contender = _contender(name)
    by_loss = searched(contender, "heldout")
    space = {k: v for k, v in cls.search_space().items() if (k in by_loss) == objective_searches}
    reach = reach_of(contender, cls.search_space(), SENSORS)
    values = np.random.default_rng(0).normal(1.0, 1.0, (reach.before + 260, len(SENSORS)))
    held_out = Recording("held out", values, SENSORS)
    generator = random.Random(name)
    found = set()
    for _ in range(n_points):
        point = {key: drawn(one, generator) for key, one in space.items()}
        detector = cls(**{**arguments(name), **point})
        detector.scaler_ = detector._learn_scaler([held_out])
        detector.device_ = torch.device("cpu")
        detector.sensors_ = SENSORS
        detector.losses_ = []
        detector.network_ = _stand_in(name, detector)
        found.add(round(detector.held_out_loss(held_out, reach.before), 5))
    return found


def _request(name: str) -> str:
    return f"{name}[graph=none]" if name == "dprgm" else name


def _plant() -> LabelledDataset:
    rows = Recording("rows", np.random.default_rng(0).normal(size=(50, len(SENSORS))), SENSORS)
    splits = {"overall": ("test",)}
    test = Recording("test", rows.values, SENSORS)
    labels = Labels({"test": np.zeros(50, dtype=bool)}, splits)
    return LabelledDataset(Dataset("plant", (rows,), (test,), splits, prior=PRIOR), labels)


# The loss of deep-svdd is smallest if everything collapses, whatever its parameters: nothing is left for heldout.
NETWORKS = [name for name in TUNABLE if hasattr(load_detector(name), "_build_network") and name != "deep-svdd"]


def test_a_loss_that_can_choose_nothing_says_so():
    with pytest.raises(UsageError, match="deep-svdd: nothing is left to search with --objective heldout"):
        searched(_contender("deep-svdd"), "heldout")


@pytest.mark.parametrize("name", NETWORKS)
def test_what_heldout_searches_does_not_change_what_the_loss_measures(name):
    assert len(_losses(name, objective_searches=True)) == 1


@pytest.mark.parametrize("name", ["dprgm", "lstm-vae", "grelen", "mscred", "catch", "thoc"])
def test_what_heldout_leaves_out_would_change_it(name):
    assert len(_losses(name, objective_searches=False)) > 1


def test_grelens_loss_leaves_its_scores_as_they_were():
    rows = np.random.default_rng(0).normal(size=(120, 3))
    cls = load_detector("grelen")
    detector = cls(**cls.test_params()).fit(rows)
    before = detector.score(rows)
    assert np.isfinite(detector.held_out_loss(rows, 20))
    np.testing.assert_array_equal(detector.score(rows), before)


def test_msets_loss_hangs_on_no_scoring_parameter():
    rows = np.random.default_rng(0).normal(size=(300, 3))
    losses = {
        load_detector("mset")(residual=residual, smoothing=smoothing).fit(rows).held_out_loss(rows[:100] + 1.0, 10)
        for residual in ("raw", "standardised")
        for smoothing in (1, 9)
    }
    assert len(losses) == 1
    assert losses.pop() > 0.0
