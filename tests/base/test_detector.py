from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Literal

import cloudpickle
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from tsadbench import ContractError, DataError, Detector, NotFittedError, Recording, Traits, UsageError, detector
from tsadbench.base import Cheap, Choice, Ge, Gt, Tune
from tsadbench.utils.parameters import changed_texts, parameters_of, parse_arguments


class Returns(Detector):
    """Returns the given scores."""

    def __init__(self, *, scores: object = None) -> None:
        self.scores = scores

    def _fit(self, recordings):
        self.learned_ = True

    def _score(self, recording):
        return self.scores


class Distance(Detector):
    """Distance to the training mean."""

    traits = Traits(memory=0)

    def __init__(self, *, power: float = 2.0) -> None:
        self.power = power

    def _check(self, sensors):
        self._require(self.power > 0, "power", "positive")

    def _fit(self, recordings):
        if hasattr(self, "mean_"):
            raise AssertionError("what an earlier fit learned must be forgotten")
        self.mean_ = np.concatenate([one.values for one in recordings]).mean(axis=0)

    def _score(self, recording):
        return (np.abs(recording.values - self.mean_) ** self.power).sum(axis=1)

    def _contributions(self, recording):
        return np.abs(recording.values - self.mean_) ** self.power


ROWS = np.ones((4, 2))


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.zeros(3), r"\[4\].* \[3\]"),
        (np.zeros((4, 1)), r"\[4\].* \[4, 1\].* scores\.ravel"),
        (np.zeros(4, dtype=np.bool_), "bool"),
        (np.zeros(4, dtype=np.complex128), "complex128"),
        ([0.0, 0.0, 0.0, 0.0], "list"),
        (None, "NoneType"),
        (np.array([0, np.inf, 0, 0]), "infinite.* row 1 "),
        (np.array([0, np.nan, 0, 0]), "row 1 .*NaN"),
        (np.array([np.nan, 0, np.nan, 0]), "row 2 .*NaN"),
    ],
)
def test_broken_scores_are_refused(scores, message):
    detector = Returns(scores=scores).fit(ROWS)
    with pytest.raises(ContractError, match=message):
        detector.score(ROWS)
    with pytest.raises(ContractError, match=message):
        detector.training_scores(ROWS)


@pytest.mark.parametrize("scores", [[np.nan] * 4, [np.nan, 1, 2, np.nan], [1, 2, 3, 4]])
@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_nan_may_lead_and_trail_and_other_floats_become_float64(scores, dtype):
    found = Returns(scores=np.array(scores, dtype=dtype)).fit(ROWS).score(ROWS)
    assert found.dtype == np.float64
    assert_array_equal(found, scores)


def test_scores_before_fit_and_of_other_sensors_are_refused():
    with pytest.raises(NotFittedError, match="fit"):
        Distance().score(ROWS)
    with pytest.raises(DataError, match="sensors"):
        Distance().fit(ROWS).score(np.ones((4, 3)))


def test_a_second_fit_forgets_the_first():
    again = Distance().fit(ROWS).fit(ROWS * 3)
    assert_array_equal(again.score(ROWS), Distance().fit(ROWS * 3).score(ROWS))


def test_frames_arrays_and_recordings_give_the_same_scores():
    frame = pd.DataFrame({"x0": [1.0, 5.0], "x1": [2.0, 0.0]})
    fitted = Distance().fit(frame)
    for series in (frame, frame.to_numpy(), Recording("r", frame.to_numpy(), ("x0", "x1"))):
        assert_allclose(fitted.score(series), [5.0, 5.0])  # the mean is (3, 1)


def test_contributions_are_offered_only_where_implemented():
    assert Distance.offers_contributions()
    assert Distance().fit(ROWS).contributions(ROWS * 2).shape == (4, 2)
    assert not Returns.offers_contributions()
    with pytest.raises(UsageError, match="contributions|sensor"):
        Returns(scores=np.zeros(4)).fit(ROWS).contributions(ROWS)


def test_scikit_learn_can_clone_it_and_change_its_parameters():
    detector = clone(Distance(power=3.0).fit(ROWS))
    assert detector.power == 3.0
    assert not hasattr(detector, "mean_")
    assert detector.set_params(power=1.0).get_params() == {"power": 1.0}
    assert repr(detector) == "Distance(power=1.0)"
    with pytest.raises(UsageError, match="pwer.*'power'"):
        detector.set_params(pwer=1.0)


@detector
class Declared(Distance):
    """Its parameters are fields.

    Parameters
    ----------
    share
        A share.
    """

    power: Annotated[float, Gt(0), Tune(1, 4)] = 2.0
    window: Annotated[int | None, Ge(1), Cheap(3)] = None
    kind: Annotated[Literal["a", "b"], Choice(("a", "b"))] = "a"
    share: float = 0.5
    strict: bool = False


@detector
class Later(Declared):
    """Another default keeps the range, with an annotation or without."""

    power: float = 1.0
    window = 5


def test_a_declared_parameter_has_type_range_tuning_range_and_default():
    assert Declared.search_space() == {"power": Tune(1.0, 4.0), "kind": Choice(("a", "b"))}
    assert Declared.test_params() == {"window": 3}
    parameters = {one.name: one for one in parameters_of(Declared)}
    assert parameters["window"].annotation == int | None
    assert parameters["share"].meaning == "A share."
    assert changed_texts(Declared, {"share": 0.25}) == {"share": "0.25"}
    assert parse_arguments(Declared, {"window": "4"}, "declared") == {"window": 4}
    assert repr(clone(Declared(kind="b"))) == "Declared(kind='b')"
    assert (Later().power, Later().window) == (1.0, 5)
    assert Later.search_space() == Declared.search_space()


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("power", 0), ("power", "2"), ("window", 0), ("window", 2.0), ("kind", "c"), ("share", None), ("strict", 1)],
)
@pytest.mark.parametrize("cls", [Declared, Later])
def test_a_value_out_of_its_declared_range_is_refused(cls, parameter, value):
    cls().check(("a",))
    with pytest.raises(UsageError, match=f"{parameter} must be .*{value!r}"):
        cls(**{parameter: value}).check(("a",))


def test_a_class_that_is_pickled_by_value_keeps_its_declarations():
    # A notebook's class reaches its box this way.
    made = type(
        "Cell", (Declared,), {"__module__": "__main__", "__annotations__": {"more": Annotated[int, Ge(2)]}, "more": 2}
    )
    code = "import pickle, sys; C = pickle.load(sys.stdin.buffer); print(C(more=3).get_params()); C(more=1).check('a')"
    pickled, root = cloudpickle.dumps(detector(made)), Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], input=pickled, capture_output=True, cwd=root, check=False)
    assert b"'more': 3" in done.stdout, done.stderr
    assert re.search(b"UsageError.*more must be .*1", done.stderr)
