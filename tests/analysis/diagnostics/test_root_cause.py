"""Hit rates of blamed sensors, against an enumeration of all orders and by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsadbench import Dataset, Labels, Recording
from tsadbench.analysis.diagnostics import of_splits
from tsadbench.analysis.diagnostics.compute import NAMES, blamed_events, hit_chances, root_cause
from tsadbench.base.dataset import Cause, LabelledDataset
from tsadbench.results.trial_result import ScoredRecording, TrialResult

SENSORS = ("a", "b", "c", "d", "e", "f")
SPLITS = {"overall": ("one", "two"), "one": ("one",), "two": ("two",)}
# Rows 0 and 1 are not evaluated under "strict[warm_up=2]".
ROWS = {"one": "...xxx..xx..", "two": "xxx.........."}
CAUSES = {
    "one": (Cause(3, 6, ("b",)), Cause(8, 10, ("a", "c"))),
    "two": (Cause(0, 3, ("f",)),),
}


def made(causes=CAUSES, **changes) -> LabelledDataset:
    def recording(name: str, n_rows: int) -> Recording:
        return Recording(name, np.random.default_rng(n_rows).normal(size=(n_rows, 6)), SENSORS)

    test = tuple(recording(name, len(rows)) for name, rows in ROWS.items())
    labels = {name: np.array([row == "x" for row in rows]) for name, rows in ROWS.items()}
    dataset = replace(Dataset("plant", (recording("normal", 40),), test, SPLITS), **changes)
    return LabelledDataset(dataset, Labels(labels, SPLITS, causes))


def contributions(**rows: dict[str, float]) -> dict[str, np.ndarray]:
    """Return contributions by recording: those of ``rows`` in anomalous rows, and a decoy sensor in all others."""
    found = {}
    for name, text in ROWS.items():
        values = np.zeros((len(text), 6))
        values[:, 3] = [0.0 if row == "x" else 9.0 for row in text]  # d is loud while nothing is wrong
        for sensor, value in rows.get(name, {}).items():
            values[[row == "x" for row in text], SENSORS.index(sensor)] = value
        found[name] = values
    return found


@st.composite
def cases(draw):
    n_sensors = draw(st.integers(1, 6))
    sums = np.array(draw(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), min_size=n_sensors, max_size=n_sensors)))
    to_blame = draw(st.sets(st.integers(0, n_sensors - 1), min_size=1))
    return sums, np.isin(np.arange(n_sensors), list(to_blame))


class TestHits:
    @given(cases())
    def test_ties_are_the_mean_over_all_orders_that_they_can_have(self, case):
        sums, to_blame = case
        ranks = (1, 2, 3, 5, 9)
        hits = []
        for order in permutations(range(len(sums))):
            ranked = sorted(order, key=lambda sensor: -sums[sensor])  # stable: ties stay in this permutation's order
            hits.append([any(to_blame[sensor] for sensor in ranked[:k]) for k in ranks])
        assert hit_chances(sums, to_blame, ranks) == pytest.approx(np.mean(hits, axis=0).tolist())


class TestEvents:
    def scored(self, contributions: np.ndarray | None, evaluated: str) -> ScoredRecording:
        n_rows = len(evaluated)
        return ScoredRecording(
            recording=Recording("r", np.zeros((n_rows, 3)), ("a", "b", "c")),
            anomalous=np.ones(n_rows, dtype=bool),
            scores=np.ones(n_rows),
            evaluated=np.array([row == "x" for row in evaluated]),
            episode="all",
            limits=np.zeros(n_rows),
            contributions=None if contributions is None else contributions.astype(np.float32),
        )

    def test_contributions_are_summed_over_the_evaluated_rows_of_the_cause(self):
        values = np.array([[9.0, 0, 0], [0, 2, 3], [0, 2, 0], [0, 9, 0]])
        # Rows 1 and 2 count: b has 4, c has 3. Row 0 is not evaluated, row 3 is after the event.
        (event,) = blamed_events(self.scored(values, ".xxx"), [Cause(0, 3, ("b",))])
        assert [event[name] for name in NAMES[:3]] == [1.0, 1.0, 1.0]
        values[1, 1], values[2, 1] = np.inf, -np.inf  # cancel
        (event,) = blamed_events(self.scored(values, ".xxx"), [Cause(0, 3, ("c",))])
        assert event["hit_at_1"] == 1.0
        values[1:3, 1] = 2.0
        (event,) = blamed_events(self.scored(values, ".xxx"), [Cause(0, 3, ("c",))])
        assert [event[name] for name in NAMES] == pytest.approx([0.0, 1.0, 1.0, 1 / 3, 1.0, 1.0])

    def test_each_cause_is_an_event_even_if_they_touch_or_overlap(self):
        values = np.array([[3.0, 1, 0], [0, 2, 3]])
        causes = [Cause(0, 1, ("a",)), Cause(1, 2, ("a",)), Cause(0, 2, ("a", "b"))]
        events = list(blamed_events(self.scored(values, "xx"), causes, "pump"))
        # Over both rows all three have 3: a or b comes first in two of three orders.
        assert [event["hit_at_1"] for event in events] == pytest.approx([1.0, 0.0, 2 / 3])
        assert {event["entity"] for event in events} == {"pump"}


class TestMeans:
    def test_they_are_of_each_entity_first(self):
        events = [
            ("pump", 1.0, 1.0, 1.0, 0.1, 0.2, 0.3),
            ("pump", 0.0, 1.0, 1.0, 0.3, 0.4, 0.5),
            ("pump", 0.5, 0.5, 1.0, 0.2, 0.3, 0.4),
            ("fan", 0.0, 0.0, 0.5, 0.5, 0.7, 0.9),
        ]
        events = [dict(zip(("entity", *NAMES), event, strict=True)) for event in events]
        expected = (0.25, (5 / 6) / 2, 0.75, 0.35, 0.5, 0.65)
        assert tuple(root_cause(events).values()) == pytest.approx(expected)


class TestTrials:
    def result(self, add, store, data=None, **options) -> TrialResult:
        data = data or made()
        flagged = {name: "." * len(rows) for name, rows in ROWS.items()}  # missed events count, too
        return TrialResult(add(data, options.pop("flagged", flagged), **options), store, data)

    def test_numbers_of_each_split(self, add, store):
        kept = contributions(one={"b": 2.0, "e": 1.0}, two={"a": 1.0, "f": 1.0})
        found = of_splits(self.result(add, store, contributions=kept), list(SPLITS), ["root-cause"])
        # one: b comes first, a hit for the first event; for the second, a and c tie with d and f for third place.
        third = 1 - (2 / 4)
        assert found["one"]["hit_at_1"] == 0.5
        assert found["one"]["hit_at_3"] == pytest.approx((1 + third) / 2)
        assert found["one"]["hit_at_5"] == 1.0
        # two: one row is evaluated; f ties with a.
        assert (found["two"]["hit_at_1"], found["two"]["hit_at_3"]) == (0.5, 1.0)
        assert found["overall"]["hit_at_1"] == pytest.approx((1 + 0 + 0.5) / 3)
        assert [one["n_causes"] for one in found.values()] == [3, 2, 1]
        assert found["two"]["chance_at_3"] == pytest.approx(0.5)
        assert found["overall"]["chance_at_1"] == pytest.approx((1 / 6 + 2 / 6 + 1 / 6) / 3)
