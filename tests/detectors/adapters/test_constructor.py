"""The constructor that is made of another library's: names, types, defaults, meanings."""

from __future__ import annotations

from typing import Literal

import pytest
from sklearn.base import clone

from tsadbench.base.detector import Detector
from tsadbench.errors import UsageError
from tsadbench.utils.parameters import format_label, parameters_of, parse_arguments
from tsadbench_detectors.adapters.constructor import constructor, documentation, seed_name


class Theirs:
    """Finds outliers.

    It is not ours.

    Parameters
    ----------
    k : int, optional (default=5)
        Neighbours.

    share : int or float, optional (default="auto")
        A number of rows, or a share of them.

    metric : {'l1', 'l2'} or callable, default='l2'
        Distance.

    layers : list of int or None, optional (default=None)
        Sizes.

    tol : float, default=0
        Tolerance.

    fast : boolean
        Whether to hurry.

    scaler : Scaler instance, optional (default=None)
        Cannot be said in a text.

    options : dict, optional
        Neither can this.

    contamination : float in (0., 0.5), optional (default=0.1)
        The protocol's business.

    random_state : int, RandomState instance or None
        Seed.

    Attributes
    ----------
    k_ : float
        Not a parameter.
    """

    def __init__(
        self,
        required,
        k=5,
        share="auto",
        metric="l2",
        layers=None,
        tol=0,
        fast=True,
        undocumented=1.5,
        scaler=None,
        options={},  # noqa: B006 - as theirs have it
        contamination=0.1,
        random_state=None,
        n_jobs=1,
    ):
        pass


class Ours(Detector):
    __doc__ = documentation(Theirs, seeded=True)
    __init__ = constructor(Theirs, seeded=True)

    def _fit(self, recordings): ...

    def _score(self, recording): ...


def parsed(**texts: str) -> dict[str, object]:
    return parse_arguments(Ours, texts, "ours")


def test_types_come_from_defaults_and_from_the_text():
    assert {one.name: (one.annotation, one.default) for one in parameters_of(Ours)} == {
        "window": (int, 1),
        "k": (int, 5),
        "share": (int | float | str, "auto"),
        "metric": (Literal["l1", "l2"], "l2"),
        "layers": (list[int] | None, None),
        "tol": (int | float, 0),
        "fast": (bool, True),
        "undocumented": (float, 1.5),
        "seed": (int, 0),
    }


def test_meanings_come_from_the_text():
    meanings = {one.name: one.meaning for one in parameters_of(Ours)}
    assert meanings["share"] == "A number of rows, or a share of them."
    assert meanings["window"].startswith("Rows of the trailing window")
    assert meanings["seed"].startswith("Of all chance in it")
    assert meanings["undocumented"] == ""
    assert Ours.__doc__.startswith("Finds outliers.\n\nIt is not ours.\n\nParameters\n")


def test_without_chance_there_is_no_seed():
    class Calm(Ours):
        __init__ = constructor(Theirs, seeded=False)

    assert "seed" not in {one.name for one in parameters_of(Calm)}
    assert "\nseed\n" not in documentation(Theirs, seeded=False)


def test_texts_become_values_of_the_right_type():
    found = parsed(k="7", share="1", layers="[8, 4]", tol="1e-3", fast="off", metric="l1")
    assert found == {"k": 7, "share": 1, "layers": [8, 4], "tol": 1e-3, "fast": False, "metric": "l1"}
    assert isinstance(found["share"], int)
    share = parsed(share="1.0")["share"]
    assert (share, type(share)) == (1.0, float)  # a share of all rows, not one row
    assert parsed(share="auto", layers="none") == {"share": "auto", "layers": None}


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"k": "many"}, "'k' cannot be 'many'"),
        ({"k": "1.5"}, "'k' cannot be '1.5'"),
        ({"metric": "l3"}, "'l1' or 'l2'"),
        ({"layers": "[a]"}, "'layers' cannot be"),
        ({"kk": "3"}, "no parameter 'kk'; did you mean 'k'"),
        ({"contamination": ".1"}, "no parameter 'contamination'"),
        ({"scaler": "x"}, "no parameter 'scaler'"),
    ],
)
def test_wrong_texts_are_refused(texts, message):
    with pytest.raises(UsageError, match=message):
        parsed(**texts)


def test_labels_can_be_read_again():
    label = format_label("ours", Ours, parsed(layers="[8, 4]", share="0.5"))
    assert label == "ours[layers=[8,4],share=0.5]"


def test_it_is_a_constructor_as_scikit_learn_wants_it():
    ours = Ours(k=3, window=2)
    assert ours.get_params() == {
        "window": 2, "k": 3, "share": "auto", "metric": "l2", "layers": None, "tol": 0, "fast": True,
        "undocumented": 1.5, "seed": 0,
    }  # fmt: skip
    assert clone(ours).get_params() == ours.get_params()
    with pytest.raises(TypeError, match="unexpected keyword argument 'kk'"):
        Ours(kk=3)
    with pytest.raises(TypeError, match="positional"):
        Ours(3)


def test_the_seed_has_several_names_over_there():
    class Other:
        def __init__(self, random_seed=42): ...

    assert (seed_name(Theirs), seed_name(Other), seed_name(Ours)) == ("random_state", "random_seed", None)
