from __future__ import annotations

from tests.helpers.detectors import load_detector
from tsadbench.registry import entries, load_protocol, package_of
from tsadbench.utils.parameters import parameters_of


def test_list_names_all_that_is_registered(tsadbench):
    done = tsadbench("list")
    assert done.code == 0
    names = [entry.name for kind in ("detectors", "floors", "protocols", "datasets") for entry in entries(kind)]
    assert {"dprgm", "t2-q", "nearest-neighbour", "strict", "published", "skab"} <= {*names}
    assert [name for name in names if f"  {name} " not in done.out] == []


def test_info_shows_parameters_traits_paper_equations_and_defaults(tsadbench):
    out = tsadbench("info", "lstm-ae").out
    headings = [line for line in out.splitlines() if line and not line.startswith(" ")]
    wanted = ["Parameters", "Equations", "Differences", "Defaults", "Paper", "References", "Traits"]
    assert [heading for heading in headings if heading in wanted] == wanted
    assert "\nPaper\n  Malhotra et al., arXiv 1607.00148\n" in out
    assert "  look_ahead " in out
    plain = tsadbench("info", "max-z").out
    assert "max-z[mean=10]" in plain
    assert "\nPaper" not in plain
    assert "horizon=10" in tsadbench("info", "dprgm").out


def test_info_shows_a_protocol_and_a_data_set_of_the_same_name(tsadbench):
    out = tsadbench("info", "skab").out
    assert "train_rows=400" in out
    assert "water pump" in out
    assert tsadbench("info", "strict").out.endswith("Version of its rules\n  2\n")


def test_info_shows_what_a_data_set_contains(tsadbench):
    out = tsadbench("info", "pumploop").out
    for text in ("test      81 recordings, 52,394 rows", "licence   MIT", "prior     16 edges", "audit     "):
        assert f"  {text}" in out


def test_info_of_a_data_set_without_its_files_says_where_they_are(tsadbench, tmp_path, monkeypatch):
    monkeypatch.setenv("TSADBENCH_DATA", str(tmp_path))
    monkeypatch.setenv("TSADBENCH_TEP_URL", "http://127.0.0.1:1")  # nothing is to be downloaded
    assert f"tsadbench data fetch tep --data {tmp_path}" in tsadbench("info", "tep").out
    swat = tsadbench("info", "swat").out
    assert swat.startswith("A water treatment testbed: 51 sensors")
    assert "iTrust" in swat
    assert "WADI" not in swat


def test_wrong_names_are_one_line(tsadbench, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("from tsadbench.base import extra\nwith extra('mine', 'deep'): import no_such_package\n")
    for name, found in ((f"{file}:Mine", "tsadbench[deep]"), ("dprmg", "dprgm")):
        done = tsadbench("info", name)
        assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
        assert found in done.err


def test_every_parameter_of_everything_that_ships_has_its_meaning():
    for entry in entries("detectors"):
        if package_of(entry) == "tsadbench":
            assert [p.name for p in parameters_of(load_detector(entry.name)) if not p.meaning] == [], entry.name
    for entry in entries("protocols"):
        assert [p.name for p in parameters_of(load_protocol(entry.name)) if not p.meaning] == [], entry.name
