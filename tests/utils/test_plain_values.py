"""Values that are read without pydantic are those that pydantic reads."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from tsadbench.errors import UsageError
from tsadbench.utils.parameters import Parameter, parse_value
from tsadbench.utils.plain_values import plain_value

ANNOTATIONS = [
    bool, int, float, str, Path, int | None, float | None, int | float, int | str, str | None, bool | int, float | str,
    Literal["a", "b"], Literal[1, 2], Literal["a"] | int, list[int], list[float], list[str], tuple[int, ...],
    tuple[int, float], list[int] | None, list[list[int]], bool | float | None, list[int] | str,
]  # fmt: skip
TEXTS = [
    "1", "0", "2", "1.0", "1.5", "-3", "1e3", "1e-3", "nan", "inf", "true", "True", "false", "on", "off", "yes", "no",
    "a", "b", "c", "", " ", "none", "[1,2]", "[1, 2.5]", "[1.0]", '["a"]', "[[1],[2]]", "[]", '"a"', '"1"', "null",
    "a b", "1_000", "./x.py", "{}", "+4", "007",
]  # fmt: skip


def outcome(read, *arguments) -> object:
    """What is read, with its type; how else would 1, 1.0 and True differ?"""
    try:
        return repr(read(*arguments))
    except (UsageError, ValueError):
        return "refused"


@pytest.mark.parametrize("annotation", ANNOTATIONS, ids=str)
def test_a_text_has_the_value_that_pydantic_gives_it(annotation):
    def plainly(parameter: Parameter, text: str, owner: str) -> object:
        if text.lower() == "none" and parameter.accepts_none:
            return None
        return plain_value(parameter.annotation, text)

    parameter = Parameter("p", annotation, None, "")
    expected = {text: outcome(parse_value, parameter, text, "x") for text in TEXTS}
    assert {text: outcome(plainly, parameter, text, "x") for text in TEXTS} == expected
    assert len(set(expected.values())) > 1


def test_a_type_that_it_does_not_know_is_named():
    with pytest.raises(ValueError, match="expected complex"):
        plain_value(complex, "1")
