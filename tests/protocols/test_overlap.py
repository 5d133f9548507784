"""Training rows that recur in the test: found exactly, and cut out."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.protocol_plant import SENSORS, recording
from tsadbench.base.recording import Recording
from tsadbench_protocols.training_rows import without_shared_rows


def joined(name: str, *parts: Recording) -> Recording:
    return Recording(
        name,
        np.concatenate([part.values for part in parts]),
        SENSORS,
        np.concatenate([part.time for part in parts if part.time is not None]),
    )


def test_shared_rows_are_cut_out_and_the_pieces_named_after_their_rows() -> None:
    train = recording("free", 100, start=0)
    test = (
        joined("a", recording("x", 7, start=500), train.rows(40, 60)),
        joined("b", train.rows(75, 76), recording("y", 5, start=900)),
    )
    pieces = without_shared_rows([train], test)
    assert [piece.id for piece in pieces] == ["free[0:40]", "free[60:75]", "free[76:100]"]
    for piece, (start, stop) in zip(pieces, [(0, 40), (60, 75), (76, 100)], strict=True):
        np.testing.assert_array_equal(piece.values, train.values[start:stop])
        np.testing.assert_array_equal(piece.time, train.time[start:stop])
    untimed = (recording("free", 20), recording("test", 20))
    np.testing.assert_array_equal(untimed[0].values, untimed[1].values)
    assert without_shared_rows(untimed[:1], untimed[1:]) == untimed[:1], "rows without time are never the same"


def test_minus_zero_equals_zero() -> None:
    time = np.arange(3.0)
    train = Recording("free", np.array([[0.0, 1.0], [-0.0, 2.0], [3.0, 3.0]]), SENSORS, time)
    test = Recording("test", np.array([[-0.0, 1.0], [0.0, 2.0], [4.0, 3.0]]), SENSORS, time)
    (piece,) = without_shared_rows([train], [test])
    assert piece.id == "free[2:3]"


def rows_as_recording(name: str, rows: list[tuple[int, int, int]]) -> Recording:
    table = np.array(rows, dtype=np.float64)
    return Recording(name, table[:, 1:], SENSORS, table[:, 0])


few_rows = st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 1), st.integers(0, 1)), min_size=1, max_size=25)


@settings(deadline=None)
@given(few_rows, few_rows, few_rows)
def test_the_remaining_rows_match_a_set_difference(
    one: list[tuple[int, int, int]], two: list[tuple[int, int, int]], test: list[tuple[int, int, int]]
) -> None:
    train = [rows_as_recording("one", one), rows_as_recording("two", two)]
    kept = without_shared_rows(train, [rows_as_recording("test", test)])
    expected = [row for row in one + two if row not in set(test)]
    assert [(t, *row) for piece in kept for t, row in zip(piece.time, piece.values.tolist(), strict=True)] == expected
