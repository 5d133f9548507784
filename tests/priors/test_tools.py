"""`tsadbench prior show|diff|validate|perturb`, votes in priors, and reading what a prior is worth."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from tsadbench.base.prior import Edge, Prior, Sensor
from tsadbench.errors import DataError, UsageError
from tsadbench.priors.perturb import difference, perturbed
from tsadbench.registry import load_detector

NAMES = tuple("abcdef")
PRIOR = Prior(tuple(Edge(a, b) for a, b in ("ab", "bc", "cd", "de", "ef", "fa", "ac", "bd")), origin="x")


def pairs(prior: Prior) -> set[tuple[str, str]]:
    return {(edge.source, edge.target) for edge in prior.edges}


class TestPerturbed:
    @given(
        st.floats(0, 0.9), st.floats(0, 2), st.floats(0, 1), st.integers(0, 2**32 - 1)
    )  # fmt: skip
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
        turned = difference(PRIOR, perturbed(PRIOR, NAMES, reverse=0.5))
        assert len(turned.reversed) == len(turned.only_first) == len(turned.only_second) == 4
        assert perturbed(PRIOR, NAMES).edges == PRIOR.edges

    @pytest.mark.parametrize(
        ("shares", "message"),
        [
            ({"drop": 1.0}, "no edge would be left"),
            ({"drop": 1.5}, "--drop must be a share"),
            ({"reverse": -0.1}, "--reverse must be a share"),
            ({"add": 9.0}, "at most 22 more edges"),
            ({"add": -1.0}, "must not be negative"),
            ({"add": float("nan")}, "--add must be a finite number"),
            ({"drop": 0.1, "seed": -1}, "--seed must not be negative, found -1"),
        ],
    )
    def test_wrong_shares(self, shares, message):
        with pytest.raises(UsageError, match=message):
            perturbed(PRIOR, NAMES, **shares)


def test_difference_by_hand():
    other = Prior((Edge("a", "b"), Edge("c", "b"), Edge("f", "e"), Edge("d", "a")))
    first = Prior((Edge("a", "b"), Edge("b", "c"), Edge("e", "f")))
    found = difference(first, other)
    assert found.both == (("a", "b"),)
    assert found.only_first == (("b", "c"), ("e", "f"))
    assert found.only_second == (("c", "b"), ("d", "a"), ("f", "e"))
    assert found.reversed == found.only_first
    assert found.jaccard == 1 / 6


class TestVotes:
    PRIOR = Prior((Edge("a", "b", votes=0.6), Edge("b", "c")), sensors=(Sensor("a", "flow", "pump"),))

    def test_matrix_and_votes(self):
        assert self.PRIOR.matrix(("a", "b", "c")).tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
        assert self.PRIOR.votes(("a", "b", "c")).tolist() == [[0, 0.6, 0], [0, 0, 1], [0, 0, 0]]

    def test_comes_back_from_its_file(self, tmp_path):
        (tmp_path / "p.json").write_text(self.PRIOR.to_json())
        found = Prior.load(tmp_path / "p.json")
        assert found.edges == self.PRIOR.edges
        assert found.sensors == self.PRIOR.sensors

    def test_votes_are_part_of_what_determines_a_trial(self):
        without = Prior(tuple(replace(edge, votes=None) for edge in self.PRIOR.edges))
        assert without.content_hash != self.PRIOR.content_hash

    @pytest.mark.parametrize("votes", [0, 1.2, -1, "many", True])
    def test_wrong_votes(self, tmp_path, votes):
        (tmp_path / "p.json").write_text(json.dumps([{"source": "a", "target": "b", "votes": votes}]))
        with pytest.raises(DataError, match="votes"):
            Prior.load(tmp_path / "p.json")

    def test_dprgm_weighs_edges_by_them(self):
        rng = np.random.default_rng(0)
        from tsadbench import Recording

        recording = Recording("r", rng.normal(size=(120, 3)), ("a", "b", "c"))
        dprgm = load_detector("dprgm")
        small = {"hidden_size": 4, "embedding_size": 2, "epochs": 1, "min_steps": 1, "prior": self.PRIOR}
        plain = dprgm(**small).fit([recording])
        voted = dprgm(edge_votes=True, **small).fit([recording])
        np.testing.assert_allclose(voted.adjacency_, plain.adjacency_ * self.PRIOR.votes(("a", "b", "c")))
        with pytest.raises(UsageError, match="edge_votes weighs edges by the votes"):
            dprgm(edge_votes=True, prior=Prior((Edge("a", "b"),))).check(("a", "b", "c"))
        with pytest.raises(UsageError, match="edge_votes weighs edges by the votes"):
            dprgm(edge_votes=True, graph="none").check(("a", "b", "c"))


class TestCommands:
    def test_show(self, tsadbench, tmp_path):
        found = tsadbench("prior", "show", "tep", "--figure", tmp_path / "tep.svg")
        assert found.code == 0, found.err
        assert "feed:\n  XMV(1) -> XMEAS(2)\n      The valve" in found.out
        assert found.out.count(" -> ") == 87
        text = (tmp_path / "tep.svg").read_text()
        assert all(name in text for name in ("XMEAS(1)", "XMV(11)", "reactor"))

    def test_diff(self, tsadbench, tmp_path):
        assert tsadbench("prior", "perturb", "skab", "--drop", "0.5", "--out", tmp_path / "half.json").code == 0
        found = tsadbench("prior", "diff", "skab", tmp_path / "half.json")
        assert found.code == 0
        assert sum(line.startswith("- ") for line in found.out.splitlines()) == 10
        assert "9 in both, 10 in the first alone, 0 in the second alone; Jaccard 0.474" in found.err

    def test_validate(self, tsadbench, tmp_path):
        found = tsadbench("prior", "validate", "pumploop", "--dataset", "pumploop")
        assert found.code == 0
        assert "16 edges between 8 of the 8 sensors of pumploop" in found.out
        (tmp_path / "p.json").write_text('[{"source": "Voltage", "target": "Humidity"}]')
        wrong = tsadbench("prior", "validate", tmp_path / "p.json", "--dataset", "pumploop")
        assert wrong.code == 2
        assert "names sensors that the data do not have: ['Humidity']" in wrong.err

    def test_priors_of_data_sets(self, tsadbench, tmp_path, monkeypatch):
        """That of `cranfield` ships, that of `causrca` lies among its files."""
        assert "PT312" in tsadbench("prior", "show", "cranfield").out
        monkeypatch.setenv("TSADBENCH_DATA", str(tmp_path))
        found = tsadbench("prior", "show", "causrca")
        assert (found.code, "tsadbench data fetch causrca" in found.err) == (2, True)

    @pytest.mark.skipif(
        not Path(os.environ.get("TSADBENCH_DATA", "nowhere"), "asd").is_dir(), reason="needs asd (TSADBENCH_DATA)"
    )
    def test_a_data_set_without_a_prior(self, tsadbench):
        found = tsadbench("prior", "show", "asd")
        assert (found.code, "asd: the data set has no prior" in found.err) == (2, True)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["show", "nothing"], "expected a prior's file or one of ['cranfield', 'pumploop', 'skab', 'tep']"),
            (["show", "skab", "--figure", "x.gif"], "expected a name that ends in .svg"),
            (["perturb", "skab", "--drop", "1", "--out", "x.json"], "no edge would be left"),
        ],
    )
    def test_wrong_usage(self, tsadbench, arguments, message):
        found = tsadbench("prior", *arguments)
        assert found.code == 2
        assert message in found.err
