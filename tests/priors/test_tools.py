"""`tsadbench prior show|diff|validate|perturb`, and votes in priors."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tsadbench import Prior, UsageError
from tsadbench.base import Edge, Sensor
from tsadbench.errors import DataError
from tsadbench_priors.perturb import jaccard, pairs, perturbed

NAMES = tuple("abcdef")
PRIOR = Prior(tuple(Edge(a, b) for a, b in ("ab", "bc", "cd", "de", "ef", "fa", "ac", "bd")), origin="x")


class TestPerturbed:
    @given(st.floats(0, 0.9), st.floats(0, 2), st.floats(0, 1), st.integers(0, 2**32 - 1))
    def test_counts(self, drop, add, reverse, seed):
        worse = perturbed(PRIOR, NAMES, drop=drop, add=add, reverse=reverse, seed=seed)
        n = len(PRIOR.edges)
        assert len(worse.edges) == n - round(drop * n) + round(add * n)
        assert len(pairs(worse)) == len(worse.edges)
        assert all(edge.source != edge.target for edge in worse.edges)
        assert worse.edges == perturbed(PRIOR, NAMES, drop=drop, add=add, reverse=reverse, seed=seed).edges

    def test_each_alone(self):
        assert pairs(perturbed(PRIOR, NAMES, drop=0.5)) < pairs(PRIOR)
        assert pairs(perturbed(PRIOR, NAMES, add=0.5)) > pairs(PRIOR)
        turned = pairs(perturbed(PRIOR, NAMES, reverse=0.5))
        assert {(b, a) for a, b in turned - pairs(PRIOR)} == pairs(PRIOR) - turned
        assert len(turned - pairs(PRIOR)) == 4

    @pytest.mark.parametrize(
        ("shares", "named"),
        [
            ({"drop": 1.0}, "--drop"),
            ({"reverse": -0.1}, "--reverse"),
            ({"add": 9.0}, "--add"),
            ({"add": float("nan")}, "--add"),
        ],
    )
    def test_wrong_shares(self, shares, named):
        with pytest.raises(UsageError, match=named):
            perturbed(PRIOR, NAMES, **shares)


def test_jaccard_by_hand():
    assert jaccard({("a", "b"), ("b", "c"), ("e", "f")}, {("a", "b"), ("c", "b"), ("f", "e"), ("d", "a")}) == 1 / 6
    assert jaccard(set(), set()) == 1.0


class TestVotes:
    PRIOR = Prior((Edge("a", "b", votes=0.6), Edge("b", "c")), sensors=(Sensor("a", "flow", "pump"),))

    def test_round_trip_through_a_file(self, tmp_path):
        (tmp_path / "p.json").write_text(self.PRIOR.to_json())
        found = Prior.load(tmp_path / "p.json")
        assert (found.edges, found.sensors) == (self.PRIOR.edges, self.PRIOR.sensors)

    def test_votes_are_part_of_the_content_hash(self):
        without = Prior(tuple(replace(edge, votes=None) for edge in self.PRIOR.edges))
        assert without.content_hash != self.PRIOR.content_hash

    @pytest.mark.parametrize("votes", [0, 1.2])
    def test_wrong_votes(self, votes):
        with pytest.raises(DataError, match="votes"):
            Prior((Edge("a", "b", votes=votes),))


class TestCommands:
    def test_show(self, tsadbench):
        found = tsadbench("prior", "show", "tep")
        assert (found.code, found.out.count(" -> ")) == (0, 87)
        assert "feed:\n  XMV(1) -> XMEAS(2)\n      " in found.out

    def test_diff(self, tsadbench, tmp_path):
        assert tsadbench("prior", "perturb", "skab", "--drop", "0.5", "--out", tmp_path / "half.json").code == 0
        found = tsadbench("prior", "diff", "skab", tmp_path / "half.json")
        assert sum(line.startswith("- ") for line in found.out.splitlines()) == 10
        assert "Jaccard 0.474" in found.err  # 9 of 19

    def test_validate(self, tsadbench, tmp_path):
        assert tsadbench("prior", "validate", "pumploop", "--dataset", "pumploop").code == 0
        (tmp_path / "p.json").write_text('[{"source": "Voltage", "target": "Humidity"}]')
        wrong = tsadbench("prior", "validate", tmp_path / "p.json", "--dataset", "pumploop")
        assert (wrong.code, "Humidity" in wrong.err) == (2, True)


def test_a_prior_never_overwrites_its_inputs(tsadbench, tmp_path):
    system, sensors, prior = (tmp_path / name for name in ("system.md", "sensors.txt", "prior.json"))
    system.write_text("A pump.")
    sensors.write_text("a\nb\n")
    prior.write_text('[{"source": "a", "target": "b"}]')
    extract = ("prior", "extract", "--system", system, "--sensors", sensors, "--offline")
    perturb = ("prior", "perturb", prior, "--drop", "0.5")
    for arguments, out in ((extract, system), (extract, sensors), (perturb, prior)):
        before = out.read_bytes()
        done = tsadbench(*arguments, "--out", out)
        assert (done.code, str(out) in done.err) == (2, True), done.err
        assert out.read_bytes() == before
