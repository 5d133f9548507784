from __future__ import annotations

import tsadbench as package


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
