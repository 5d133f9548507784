"""Every promise of the detector contract (docs/adding-a-detector.md), checked for every detector that ships."""

from __future__ import annotations

import pickle
import random
import re
from inspect import signature

import numpy as np
import pytest
import torch
from sklearn.base import clone

from tests.helpers.detectors import load_detector
from tests.helpers.planted import padded
from tests.tuning.test_space import drawn
from tsadbench import DataError, Prior, Recording, UsageError
from tsadbench.base.prior import Edge
from tsadbench.base.search_space import Tune
from tsadbench.base.serialization import from_parts, to_parts
from tsadbench.registry import entries, package_of
from tsadbench.testing import normal
from tsadbench.testing.synthetic import PRIOR, SENSORS
from tsadbench.utils.docstrings import definitions, sections
from tsadbench_detectors.deep.network_detector import NetworkDetector
from tsadbench_detectors.deep.windows import Windows

SHIPPED = [entry.name for entry in entries("detectors") if package_of(entry) == "tsadbench"]
# Also variants whose parameters change what is promised: memory, look-ahead, or what a fit keeps.
VARIANTS = [
    *((name, {}) for name in SHIPPED),
    ("dprgm", {"graph": "domain", "prior": PRIOR, "backbone": "gat"}),
    ("grelen", {"statistic": "reconstruction"}),
    ("multiview", {"adaptive": True}),
    ("t2", {"smoothing": 4}),
    ("arima", {"q": 0}),
    ("pyod:KNN", {"window": 3}),
    ("pyod:INNE", {}),
    ("sklearn:LocalOutlierFactor", {}),
]
# All trained networks: `untrained`, a floor, is the only other one.
NETWORKS = [
    name
    for name in SHIPPED
    if issubclass(load_detector(name), NetworkDetector) and not load_detector(name).traits.floor
]
TRAIN = (normal(120, 1, "one"), normal(80, 2, "two"))
TEST, OTHER = normal(70, 3, "test"), normal(50, 4, "other")
# How contributions combine to the score, where not as their sum; None: in no simple way.
MADE_OF = {
    **dict.fromkeys(("arima", "gdn", "lstm-ndt", "max-z", "sensor-range"), lambda terms: terms.max(axis=1)),
    **dict.fromkeys(
        ("l2-z", "mset", "nearest-neighbour", "own-start", "ridge"), lambda terms: np.sqrt(terms.sum(axis=1))
    ),
    **dict.fromkeys(("dprgm", "untrained", "grelen", "ocsvm", "svdd")),
}
# Not published, or not yet.
NO_YEAR = {"dprgm", "multiview"}


def cheap(name, changes):
    """Return a detector with its `test_params` and at most two epochs: no test here needs it to be accurate."""
    cls = load_detector(name)
    arguments = {**cls.test_params(), **changes}
    if "epochs" in arguments:
        arguments["epochs"] = min(2, arguments["epochs"])
    if cls.traits.needs_prior:
        arguments.setdefault("prior", PRIOR)
    return cls(**arguments)


FITTED = {}


def fitted(name, changes):
    """Return a fitted detector, cached; no test may change it."""
    key = (name, *changes)
    if key not in FITTED:
        FITTED[key] = cheap(name, changes).fit(TRAIN)
    return FITTED[key]


def close(found, expected):
    """Tolerate single precision in networks, whose order of summation also depends on the batch size."""
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5 * np.abs(expected).max())


def still(recording):
    """Return the recording with a constant second sensor."""
    return Recording(recording.id, recording.values * [1, 0, 1, 1] + [0, 0.1, 0, 0], SENSORS)


def generators():
    return random.getstate(), repr(np.random.get_state()), torch.get_rng_state().tolist()


@pytest.mark.parametrize(
    ("name", "changes"), VARIANTS, ids=["-".join([name, *map(str, changes)]) for name, changes in VARIANTS]
)
class TestEveryDetector:
    @pytest.fixture
    def detector(self, name, changes):
        return fitted(name, changes)

    def test_parameters_are_stored_cloned_and_left_alone(self, name, changes):
        detector = cheap(name, changes)
        given = detector.get_params(deep=False)
        assert set(vars(detector)) == set(given)
        assert clone(detector).get_params(deep=False) == given
        assert type(detector)().set_params(**given).get_params(deep=False) == given
        detector.fit(TRAIN).score(TEST)
        assert all(getattr(detector, key) is value for key, value in given.items())
        assert all(key.endswith("_") for key in vars(detector) if key not in given)

    def test_every_row_has_a_finite_score_and_contributions(self, detector, name, changes):
        for recording in (TEST, *(TEST.rows(0, n) for n in (1, 2, 7))):  # also where no window is full
            assert np.isfinite(detector.score(recording)).all()
        look_ahead = detector.declared_traits().look_ahead
        known = 7 - look_ahead
        if detector.declared_traits().memory is not None and known > 0:
            close(detector.score(TEST.rows(0, 7))[:known], detector.score(TEST)[:known])
        assert [len(scores) for scores in detector.training_scores(TRAIN)] == [120, 80]
        assert all(np.isfinite(scores).all() for scores in detector.training_scores(TRAIN))
        if detector.offers_contributions():
            found = detector.contributions(TEST)
            assert found.shape == TEST.values.shape
            assert np.isfinite(found).all()
            made_of = MADE_OF.get(name, lambda terms: terms.sum(axis=1))
            if made_of is not None and not changes:
                close(made_of(found), detector.score(TEST))
        rested = cheap(name, changes).fit([still(one) for one in TRAIN])  # a sensor that is constant in training moves
        for recording in (still(TEST), TEST):
            assert np.isfinite(rested.score(recording)).all()
            if rested.offers_contributions():
                assert rested.contributions(recording).shape == TEST.values.shape

    def test_scoring_leaves_no_trace_and_a_model_file_scores_the_same_to_the_bit(self, detector):
        before, learned = generators(), pickle.dumps(detector.learned())
        first = detector.score(TEST)
        detector.score(OTHER)
        detector.training_scores(TRAIN)
        np.testing.assert_array_equal(detector.score(TEST), first)
        assert pickle.dumps(detector.learned()) == learned
        assert generators() == before

        again = from_parts(type(detector), to_parts(detector), {})
        np.testing.assert_array_equal(again.score(TEST), detector.score(TEST))
        for found, expected in zip(again.training_scores(TRAIN), detector.training_scores(TRAIN), strict=True):
            np.testing.assert_array_equal(found, expected)
        if detector.offers_contributions():
            np.testing.assert_array_equal(again.contributions(TEST), detector.contributions(TEST))
        assert again.training_facts() == detector.training_facts()

    def test_a_fit_depends_on_the_seed_and_not_on_earlier_fits(self, name, changes, detector):
        before = generators()
        again = cheap(name, changes).fit((OTHER,)).fit(TRAIN)
        np.testing.assert_array_equal(again.score(TEST), detector.score(TEST))
        assert again.training_facts() == detector.training_facts()
        if "seed" in detector.get_params():
            another = cheap(name, {**changes, "seed": 7}).fit(TRAIN)
            differs = not np.allclose(another.score(TEST), detector.score(TEST), rtol=1e-6)
            assert differs == detector.declared_traits().stochastic
        assert generators() == before

    def test_a_score_depends_only_on_the_declared_rows(self, detector):
        scores, traits = detector.score(TEST), detector.declared_traits()
        ahead = traits.look_ahead
        close(detector.score(TEST.rows(0, 50))[: 50 - ahead], scores[: 50 - ahead])
        if traits.memory is not None and traits.memory < 50:
            for row in (traits.memory, 55):
                part = detector.score(TEST.rows(row - traits.memory, row + ahead + 1))
                close(part[traits.memory], scores[row])


@pytest.mark.parametrize("name", SHIPPED)
def test_its_docstring_its_search_space_and_its_ranges(name):
    cls = load_detector(name)
    notes, paper = definitions(sections(cls.__doc__).get("Notes", "")), cls.traits.paper
    assert list(notes) == ["Equations", "Differences", "Defaults"]
    assert all(len(text) > 10 for text in notes.values())
    assert re.search(r"``[^`]*([=~|]|<=|>=)[^`]*``", notes["Equations"])
    assert paper or cls.traits.floor
    years = re.findall(r"(?<![\d.])(?:19|20)\d\d(?!\d|\.\d)", paper)
    years = years or [f"20{number}" for number in re.findall(r"arXiv (\d\d)\d\d\.", paper)]
    if years:
        references = sections(cls.__doc__)["References"]
        assert years[-1] in references
        assert re.split(r"[ ,]", paper)[0] in references
    assert bool(years) == bool(paper and name not in NO_YEAR)

    space, draw = cls.search_space(), random.Random(name)
    assert bool(space) != cls.traits.floor
    defaults = {key: one.default for key, one in signature(cls).parameters.items()}
    assert all(one.holds(defaults[key]) for key, one in space.items())
    fixed = {"prior": PRIOR} if "prior" in defaults else {}
    for _ in range(20):
        cls(**fixed, **{key: drawn(one, draw) for key, one in space.items()}).check(SENSORS)

    wrong = [key for key, one in space.items() if isinstance(one, Tune)]
    for key in [*wrong, *({"seed", "mean", "smoothing", "size"} & set(defaults))]:
        with pytest.raises(UsageError, match=key):
            cls(**{**cls.test_params(), key: -1}).check(SENSORS)


# Rules between parameters, and between parameters and the four sensors.
WRONG = [
    ("anomaly-transformer", {"d_model": 33}, "d_model"),
    ("arima", {"d": 3}, "d must"),
    ("catch", {"patch_size": 65}, "patch_size"),
    ("catch", {"patch_stride": 3}, "patch_stride"),
    ("cva", {"past": 1, "states": 9}, "states"),
    ("dprgm", {"graph": "star"}, "graph"),
    ("dprgm", {"graph": "domain", "prior": None}, "domain"),
    ("dprgm", {"prior": Prior((Edge("drive", "moon"),))}, "moon"),
    ("dprgm", {"graph": "correlation", "edge_weights": False}, "complete"),
    ("dprgm", {"prior": PRIOR, "edge_votes": True}, "edge_votes"),
    ("grelen", {"statistic": "graph"}, "statistic"),
    ("lof", {"blocks": 1}, "blocks"),
    ("mset", {"residual": "none"}, "residual"),
    ("multiview", {"views": "level+level"}, "views"),
    ("multiview", {"mean": 0}, "mean"),
    ("nearest-neighbour", {"exclude": 0.2}, "exclude"),
    ("pca", {"false_alarms": 0.6}, "false_alarms"),
    ("thoc", {"window": 8, "layers": 4}, "layers"),
    ("timesnet", {"window": 9, "top_k": 5}, "top_k"),
    ("tranad", {"heads": 3}, "heads"),
]


@pytest.mark.parametrize(("name", "parameters", "named"), WRONG)
def test_a_broken_rule_names_a_parameter(name, parameters, named):
    with pytest.raises(UsageError, match=named):
        load_detector(name)(**parameters).check(SENSORS)


@pytest.mark.parametrize("name", ["arima", "cva", "dynamic-pca", "multiview", "pca", "ridge", "t2", "t2-q"])
def test_too_few_or_constant_training_rows_are_refused(name):
    cls = load_detector(name)
    few, constant = normal(3, 1), Recording("still", np.ones((200, 4)), SENSORS)
    for train in (few,) if name == "ridge" else (few, constant) if name in ("arima", "cva") else (constant,):
        with pytest.raises(DataError, match=cls.__name__):
            cls().fit(train)


@pytest.mark.parametrize("name", ["dvgcrn", "ganf", "gcad"])
def test_one_sensor_has_no_graph_to_learn(name):
    with pytest.raises(UsageError, match="sensors"):
        load_detector(name)().check(("alone",))


SCORING = [name for name in SHIPPED if load_detector(name).traits.scoring_parameters]


@pytest.mark.parametrize("name", SCORING)
def test_training_does_not_depend_on_scoring_parameters(name):
    cls, space = load_detector(name), load_detector(name).search_space()
    for key in cls.traits.scoring_parameters:
        detector = cheap(name, {}).fit(TRAIN)
        value = getattr(detector, key)
        if isinstance(value, bool):
            value = not value
        elif isinstance(value, str):
            value = space[key].values[-1]
        else:
            value = value / 2 if isinstance(value, float) else value + 1
        other = cheap(name, {key: value})
        detector.set_params(**{key: value})
        np.testing.assert_array_equal(detector.score(TEST), other.fit(TRAIN).score(TEST))


@pytest.mark.parametrize("name", NETWORKS)
class TestEveryNetwork:
    def test_training_can_be_bounded(self, name):
        whole = cheap(name, {"max_steps": 10**6}).fit(TRAIN)
        np.testing.assert_array_equal(whole.score(TEST), fitted(name, {}).score(TEST))
        bounded = cheap(name, {"max_steps": 1, "stride": 3, "batch_size": 16}).fit(TRAIN)
        facts = bounded.training_facts()
        assert 1 <= facts["steps"] <= 2  # deep-svdd takes one more, in its pretraining
        assert 0 < facts["share_seen"] < 1
        assert np.isfinite(bounded.score(TEST)).all()
        with pytest.raises(UsageError, match="max_steps"):
            cheap(name, {"max_steps": 0}).check(SENSORS)

    def test_a_fit_sees_full_windows_of_one_recording(self, name, monkeypatch):
        seen, cut = [], Windows.__getitem__

        def spy(windows, numbers):
            seen.append(cut(windows, numbers))
            return seen[-1]

        monkeypatch.setattr(Windows, "__getitem__", spy)
        recordings = (*TRAIN, TEST.rows(0, 2))  # the last is shorter than most windows
        detector = cheap(name, {"epochs": 1}).fit(recordings)
        assert seen
        for windows in seen:
            length = windows.shape[1]
            scaled = [torch.as_tensor(detector.scaler_.scaled(one.values)).float() for one in recordings]
            full = {one[first : first + length].numpy().tobytes() for one in scaled for first in range(len(one))}
            # Forecasters fill a cut-off horizon with NaN, and leave it out of the error.
            assert {one.numpy().tobytes() for one in windows.contiguous() if one.isfinite().all()} <= full

    def test_the_first_rows_are_scored_as_if_preceded_by_copies_of_the_first(self, name):
        # GDN's smoothing averages over existing rows only, not over copies of the first.
        alone = {"smoothing": 1} if name == "gdn" else {}
        detector = fitted(name, alone)
        memory = detector.declared_traits().memory
        preceded = Recording("preceded", padded(TEST.values, memory), SENSORS)
        close(detector.score(TEST), detector.score(preceded)[memory:])
