from __future__ import annotations

import json

import pytest
from numpy.testing import assert_array_equal

from tsadbench import DataError, Prior, UsageError
from tsadbench.base.prior import Edge

EDGES = [{"source": "a", "target": "b", "mechanism": "a drives b"}, {"source": "c", "target": "a"}]


def write(tmp_path, content) -> str:
    path = tmp_path / "prior.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


def test_a_bare_list_and_an_object_with_a_schema_give_the_same_edges(tmp_path):
    bare = Prior.load(write(tmp_path, EDGES))
    whole = Prior.load(write(tmp_path, {"schema": 1, "edges": EDGES, "provenance": {"made": "by hand"}}))
    assert bare.edges == whole.edges == (Edge("a", "b", mechanism="a drives b"), Edge("c", "a"))
    assert whole.provenance == {"made": "by hand"}
    assert bare.content_hash == whole.content_hash


def test_the_matrix_is_directed():
    prior = Prior((Edge("a", "b"), Edge("c", "a")))
    assert_array_equal(prior.matrix(("a", "b", "c")), [[0, 1, 0], [0, 0, 0], [1, 0, 0]])


def test_unknown_sensors_are_named_with_a_way_out():
    with pytest.raises(UsageError, match=r"\['c'\].*docs/priors.md"):
        Prior((Edge("a", "b"), Edge("c", "a"))).matrix(("a", "b"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("not json", "JSON"),
        ("3", " 3;"),
        ({"schema": 2, "edges": EDGES}, "'schema': .* 1, .* 2;"),
        ({"schema": 1}, "'edges'"),
        ({"schema": 1, "edges": {}}, "'edges': .* {};"),
        ("[]", "edge"),
        ([{"source": "a"}], "'edges' 1 'target'"),
        ([EDGES[0], 3], "'edges' 2: .* 3;"),
        ([{**EDGES[0], "mechanism": 3}], "'edges' 1 'mechanism': .* 3;"),
        ({"schema": 1, "edges": EDGES, "sensors": [{}]}, "'sensors' 1 'name'"),
        ([{"source": "a", "target": "a"}], "'a'"),
        ([EDGES[0], EDGES[0]], "'a'.*'b'"),
    ],
)
def test_broken_files_are_refused_with_the_reason(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        Prior.load(write(tmp_path, content))


def test_optional_fields_may_be_missing_and_provenance_may_hold_numbers(tmp_path):
    prior = Prior.load(write(tmp_path, {"schema": 1, "edges": EDGES, "provenance": {"votes": 5}, "sensors": None}))
    assert prior.provenance == {"votes": "5"}
    assert prior.sensors == ()
