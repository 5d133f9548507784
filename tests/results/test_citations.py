"""BibTeX of what a table holds: valid entries, stable keys, nothing in them that no reference says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import tsadbench as package
from tests.helpers.committed import commit, made
from tsadbench.datasets.tep import CITATION
from tsadbench.registry import entries, load_detector
from tsadbench.results.citations import citation_of, citations
from tsadbench.utils.bibtex import bibliography, of_dataset, of_detector
from tsadbench.utils.docstrings import sections

DETECTORS = [entry.name for entry in entries("detectors") if entry.package.replace("_", "-").startswith("tsadbench")]
DATASETS = [entry.name for entry in entries("datasets") if entry.package.replace("_", "-").startswith("tsadbench")]
FIELDS = {
    "author", "title", "year", "howpublished", "journal", "volume", "number", "pages", "doi", "eprint",
    "archiveprefix", "note",
}  # fmt: skip


def parsed(text: str) -> dict[str, dict[str, str]]:
    """Return the entries of a BibTeX file by key, by a strict grammar: balanced braces, one field a line."""
    found: dict[str, dict[str, str]] = {}
    for block in text.strip().split("\n\n"):
        first, *lines, last = block.splitlines()
        kind, key = re.fullmatch(r"@(article|misc)\{([a-z0-9-]+),", first).groups()
        assert last == "}"
        assert key not in found
        fields = {}
        for line in lines:
            name, value = re.fullmatch(r"  ([a-z]+) = \{(.*)\},", line).groups()
            depth = 0
            for character in value:
                depth += {"{": 1, "}": -1}.get(character, 0)
                assert depth >= 0, line
            assert depth == 0, line
            assert not re.search(r"(?<!\\)[&%#_$]", value), line
            assert name in FIELDS
            assert name not in fields
            fields[name] = value
        assert fields["title"]
        assert kind != "article" or {"author", "title", "journal", "year"} <= fields.keys()
        assert kind == "article" or {"howpublished", "note", "eprint"} & fields.keys()
        found[key] = fields
    return found


@pytest.fixture(scope="module")
def everything() -> dict[str, dict[str, str]]:
    text, unknown = citations(DATASETS, DETECTORS)
    assert unknown == []
    return parsed(text)


def test_every_detector_and_data_set_has_an_entry(everything):
    assert len(DETECTORS) > 40
    assert len(DATASETS) >= 10
    for name in DETECTORS:
        cls = load_detector(name)
        (key,) = parsed(bibliography([of_detector(name, cls.traits.paper, cls.__doc__ or "")]))
        assert key in everything, name
    for name in DATASETS:
        (key,) = parsed(bibliography([of_dataset(name, citation_of(name))]))
        assert key in everything, name
    assert "tsadbench" in everything


def test_nothing_is_in_an_entry_that_the_reference_does_not_say():
    for name in DETECTORS:
        cls = load_detector(name)
        source = " ".join([cls.traits.paper, " ".join(sections(cls.__doc__ or "").get("References", "").split())])
        (fields,) = parsed(bibliography([of_detector(name, cls.traits.paper, cls.__doc__ or "")])).values()
        if "author" not in fields:
            continue
        for author in fields["author"].split(" and "):
            assert author == "others" or author in source, name
        for field in ("title", "year", "journal", "volume", "number", "howpublished", "eprint"):
            assert fields.get(field, "").strip("{}") in source, (name, field)
    for name in DATASETS:
        source = " ".join(citation_of(name).split())
        (fields,) = parsed(bibliography([of_dataset(name, citation_of(name))])).values()
        for field in ("year", "journal", "volume", "number", "howpublished", "doi"):
            assert fields.get(field, "").replace("\\", "") in source, (name, field)
        for author in fields.get("author", "").split(" and "):
            assert author in source, name


def test_references_in_words_are_taken_apart(everything):
    assert everything["deng2021graph"] == {
        "author": "A. Deng and B. Hooi",
        "title": "{Graph neural network-based anomaly detection in multivariate time series}",
        "year": "2021",
        "howpublished": "AAAI",
        "eprint": "2106.06947",
        "archiveprefix": "arXiv",
    }
    downs = everything["downs1993plant"]
    assert (downs["journal"], downs["volume"], downs["number"], downs["pages"]) == (
        "Computers and Chemical Engineering", "17", "3", "245--255",
    )  # fmt: skip
    assert everything["katser2020skoltech"]["doi"] == "10.34740/KAGGLE/DSV/1693952"
    assert citation_of("tep") == CITATION
    # Few references are not understood: of the detectors that name a publication only the paper's own.
    assert {key for key, fields in everything.items() if "author" not in fields} & set(DETECTORS) <= {
        name for name in DETECTORS if load_detector(name).traits.floor or name == "dprgm"
    }


def test_what_a_detector_and_a_data_set_have_in_common_is_cited_once(everything):
    text, _ = citations(["smd"], ["omnianomaly", "omnianomaly[max_steps=9]"])
    assert sorted(parsed(text)) == ["su2019robust", "tsadbench"]


def test_different_publications_never_share_a_key():
    docstrings = (f"X.\n\nReferences\n----------\nA. Deng, Graphs {end}, AAAI 2021." for end in ("one", "two"))
    text = bibliography([of_detector("x", "Deng", docstring) for docstring in docstrings])
    assert list(parsed(text)) == ["deng2021graphs", "deng2021graphsb"]


def test_a_card_and_a_detector_that_are_unknown_are_named(tmp_path, tsadbench):
    text, unknown = citations(["my-plant"], ["mine.py:Mine", "pyod:KNN[window=3]"])
    assert unknown == ["my-plant", "mine.py:Mine", "pyod:KNN"]
    assert list(parsed(text)) == ["tsadbench"]


def test_the_version_is_that_of_the_package(everything):
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert everything["tsadbench"]["note"] == f"Version {package.__version__}"
    assert project["version"] == package.__version__


def test_rank_cites_what_its_tables_hold(tmp_path, tsadbench):
    tables = commit(
        tmp_path / "tables", [*made("smd", {"t2": 0.9, "max-z": 0.5}), *made("tep", {"t2": 0.9, "max-z": 0.4})]
    )
    done = tsadbench("rank", tables, "--cite")
    assert done.code == 0, done.err
    assert sorted(parsed(done.out)) == [
        "downs1993plant",
        "hotelling1947multivariate",
        "max-z",
        "su2019robust",
        "tsadbench",
    ]
    assert sorted(parsed(tsadbench("rank", tables, "-d", "t2", "--dataset", "tep", "--cite").out)) == [
        "downs1993plant", "hotelling1947multivariate", "tsadbench",
    ]  # fmt: skip
