from __future__ import annotations

import re

import tsadbench as package
from tests.helpers.packages import write_package
from tsadbench.registry import entries


def test_list_names_all_that_is_registered(tsadbench):
    done = tsadbench("list")
    assert done.code == 0
    for name in ("dprgm", "t2-q", "nearest-neighbour", "strict", "published", "skab"):
        assert f"  {name} " in done.out


def test_info_tells_parameters_with_defaults_and_meaning_traits_and_paper(tsadbench):
    done = tsadbench("info", "dprgm")
    assert done.code == 0
    for text in ("window=30", "horizon=10", "look_ahead", "family", "graph", "paper"):
        assert text in done.out
    for kind, text in (("strict", "q=0.001"), ("published", "paper"), ("skab", "water pump")):
        assert text in tsadbench("info", kind).out
    assert tsadbench("info", "strict").out.endswith("Version of its rules\n  2\n")


def test_info_of_a_detector_tells_paper_equations_defaults_size_and_cost(tsadbench):
    out = tsadbench("info", "lstm-ae").out
    headings = [line for line in out.splitlines() if line and not line.startswith(" ")]
    wanted = ["Parameters", "Equations", "Differences", "Defaults", "Paper", "References", "Traits"]
    assert [heading for heading in headings if heading in wanted] == wanted
    assert "\nPaper\n  Malhotra et al., arXiv 1607.00148, 2016\n" in out
    for table in ("skab", "tep"):
        assert re.search(rf"^  {table} strict +fit [\d.]+ CPU s, score [\d.]+ CPU s, peak memory \d+ MiB$", out, re.M)


def test_info_leaves_out_what_there_is_not(tsadbench, tiny_plugin):
    out = tsadbench("info", "distance").out
    for heading in ("Equations", "Paper", "References", "Cost"):
        assert f"\n{heading}" not in out
    assert "\nTraits\n" in out


def test_info_of_a_detector_without_its_extra_is_one_line(tsadbench, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("from tsadbench.base import extra\nwith extra('mine', 'deep'): import no_such_package\n")
    done = tsadbench("info", f"{file}:Mine")
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert "pip install 'tsadbench[deep]'" in done.err


def test_list_by_kind_groups_detectors_with_their_papers(tsadbench):
    lines = tsadbench("list", "--kind").out.splitlines()
    groups: dict[str, list[str]] = {}
    for line in lines:
        if line.startswith("  "):
            list(groups.values())[-1].append(line)
        else:
            groups[line] = []
    of = {key.partition(":")[0]: [line.split()[0] for line in group] for key, group in groups.items()}
    assert {"t2", "t2-q", "mset"} <= set(of["Statistics and process monitoring"])
    assert {"gdn", "dprgm"} <= set(of["Graphs"])
    assert list(of)[-1] == "Floors"
    assert {"max-z", "untrained"} <= set(of["Floors"])
    listed = [name for names in of.values() for name in names]
    assert sorted(listed) == sorted(entry.name for entry in entries("detectors"))
    assert any(re.fullmatch(r"  gdn +Deng and Hooi, AAAI 2021", line) for line in lines)
    years = [re.findall(r"(?:19|20)\d\d", line)[-1:] for line in next(iter(groups.values()))]
    known = [year for year in years if year]
    assert known == sorted(known)
    assert years == [*known, []]  # this project's own detector has no paper, and comes last


def test_list_by_kind_names_a_family_of_its_own_and_what_cannot_be_loaded(tsadbench, tmp_path, monkeypatch):
    module = (
        "import numpy as np\n"
        "from tsadbench import Detector, Traits\n"
        "class Mine(Detector):\n"
        "    'Mine, in a line.'\n"
        "    traits = Traits(family='spectral')\n"
        "    def _fit(self, recordings): pass\n"
        "    def _score(self, recording): return np.zeros(recording.n_rows)\n"
    )
    points = "[tsadbench.detectors]\nmine = mine_plugin:Mine\nabsent = mine_plugin:Absent\n"
    write_package(tmp_path, "mine_plugin", points, module)
    monkeypatch.syspath_prepend(tmp_path)
    out = tsadbench("list", "--kind").out
    assert re.search(r"^spectral\n  mine +Mine, in a line\.$", out, re.M)
    assert re.search(r"^Cannot be loaded\n  absent +.*Absent.*$", out, re.M)


def test_list_takes_one_of_its_options(tsadbench):
    done = tsadbench("list", "--kind", "--family", "graph")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "expected one of --kind, --load and --family" in done.err


def test_info_tells_of_all_that_has_a_name(tsadbench):
    """`skab` is a data set and a protocol."""
    out = tsadbench("info", "skab").out
    assert "train_rows=400" in out
    assert "water pump" in out


def test_info_tells_what_a_data_set_contains(tsadbench):
    out = tsadbench("info", "pumploop").out
    for text in (
        "test      81 recordings, 52,394 rows",
        "licence   MIT",
        "version   1",
        "prior     16 edges",
        "audit     ",
    ):
        assert f"  {text}" in out


def test_info_tells_of_the_data_set_and_of_no_other(tsadbench):
    out = tsadbench("info", "swat").out
    assert out.startswith("Return SWaT, a water treatment testbed")
    assert "Its folder holds the workbooks" in out
    assert "WADI" not in out


def test_info_of_a_data_set_without_its_files_says_where_they_are(tsadbench, tmp_path, monkeypatch):
    monkeypatch.setenv("TSADBENCH_DATA", str(tmp_path))
    monkeypatch.setenv("TSADBENCH_TEP_URL", "http://127.0.0.1:1")  # nothing is to be downloaded
    out = tsadbench("info", "tep").out
    assert f"tsadbench data fetch tep --data {tmp_path}" in out
    assert "University of Illinois (free use with notice), published at https://github.com/camaramm/" in out


def test_info_tells_which_floors_runs_add_beside_one(tsadbench):
    assert "max-z[mean=10]" in tsadbench("info", "max-z").out
    assert "runs add" not in tsadbench("info", "t2").out


def test_every_parameter_of_everything_that_ships_has_its_meaning():
    from tsadbench.registry import entries, load_detector, load_protocol
    from tsadbench.utils.parameters import parameters_of

    for entry in entries("detectors"):
        if entry.package == "tsadbench":
            assert [p.name for p in parameters_of(load_detector(entry.name)) if not p.meaning] == [], entry.name
    for entry in entries("protocols"):
        assert [p.name for p in parameters_of(load_protocol(entry.name)) if not p.meaning] == [], entry.name


def test_unknown_names_offer_the_nearest(tsadbench):
    done = tsadbench("info", "dprmg")
    assert (done.code, "did you mean 'dprgm'" in done.err) == (2, True)


def test_version(tsadbench):
    assert tsadbench("--version").out.strip() == package.__version__
