from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest

from tsadbench import Prior
from tsadbench.utils.parameters import Label, changed_texts, parameters_of, parse_arguments


def format_label(name: str, cls: type, arguments: dict[str, object]) -> str:
    return str(Label(name, changed_texts(cls, arguments)))


class Example:
    """An example.

    Parameters
    ----------
    window
        Rows of
        a window.
    rate, mode
        Shared text.

    Notes
    -----
    Not a parameter.
    """

    def __init__(
        self,
        *,
        window: int = 30,
        rate: float = 1e-3,
        mode: Literal["a", "b"] = "a",
        weights: bool = True,
        limit: int | None = 5,
        prior: Prior | None = None,
    ) -> None: ...


def test_parameters_have_their_meaning_from_the_docstring():
    meanings = {parameter.name: parameter.meaning for parameter in parameters_of(Example)}
    assert meanings["window"] == "Rows of a window."
    assert meanings["rate"] == meanings["mode"] == "Shared text."
    assert meanings["weights"] == ""


def test_texts_are_parsed_by_the_annotations():
    texts = {"window": "10", "rate": "0.5", "mode": "b", "weights": "off", "limit": "none"}
    assert parse_arguments(Example, texts, "x") == {
        "window": 10,
        "rate": 0.5,
        "mode": "b",
        "weights": False,
        "limit": None,
    }


def test_a_prior_is_given_as_its_file(tmp_path):
    path = tmp_path / "p.json"
    path.write_text('[{"source": "a", "target": "b"}]')
    parsed = parse_arguments(Example, {"prior": str(path)}, "x")
    assert isinstance(parsed["prior"], Prior)
    assert format_label("x", Example, parsed) == f"x[prior={path}]"


class Either:
    def __init__(self, *, share: int | float = 1.0, sizes: list[int] | None = None, bins: int | str = 10) -> None: ...


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("share", "1", 1),
        ("share", "1.0", 1.0),
        ("sizes", "[8, 4]", [8, 4]),
        ("sizes", "none", None),
        ("bins", "7", 7),
        ("bins", "auto", "auto"),
    ],
)
def test_a_number_keeps_the_type_that_it_is_written_in(name, text, value):
    found = parse_arguments(Either, {name: text}, "x")[name]
    assert (found, type(found)) == (value, type(value))


def test_an_integer_is_a_float_only_where_the_parameter_is_one():
    @dataclass
    class Share:
        features: int | float = 1.0
        rate: float = 1.0
        cap: float = 5
        gamma: float | None = None

    assert changed_texts(Share, {"features": 1, "rate": 1, "cap": 5}) == {"features": "1"}
    assert changed_texts(Share, {"features": 1.0, "rate": 2, "cap": 5.0, "gamma": 1}) == {"gamma": "1.0", "rate": "2.0"}


def test_labels_sort_keys_and_leave_defaults_out():
    assert format_label("x", Example, {"window": 30}) == "x"
    assert format_label("x", Example, {"window": 5, "rate": 0.5, "weights": False, "limit": None}) == (
        "x[limit=none,rate=0.5,weights=off,window=5]"
    )
