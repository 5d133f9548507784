"""The first command of a new user: SKAB where it can be had, simulated data where it cannot, and never unawares."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.packages import write_package
from tsadbench.cli import quickstart


@pytest.fixture(autouse=True)
def cheap(monkeypatch):
    monkeypatch.setattr(quickstart, "DETECTORS", ("t2", "t2-q"))


@pytest.fixture(scope="module")
def simulated(tmp_path_factory) -> Path:
    """A run store for the simulated data: what one test has run there, the next one need not."""
    return tmp_path_factory.mktemp("simulated") / "runs"


@pytest.mark.training
def test_on_skab(skab_directory, monkeypatch, tsadbench, tmp_path):
    monkeypatch.setenv("TSADBENCH_DATA", str(skab_directory))
    done = tsadbench("quickstart", "--out", tmp_path / "runs")
    assert done.code == 0
    assert "skab, split overall" in done.out
    for row in ("t2", "t2-q", "sensor-range[mean=10]", "all-positive"):
        assert f" {row} " in done.out
    assert "What next" in done.err
    assert "pumploop" not in done.out + done.err
    assert "--against published " in done.err


@pytest.mark.training
def test_without_skab_and_without_network_on_simulated_data_and_says_so(monkeypatch, tsadbench, tmp_path, simulated):
    monkeypatch.delenv("TSADBENCH_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TSADBENCH_SKAB_URL", "http://127.0.0.1:9")
    done = tsadbench("quickstart", "--out", simulated)
    assert done.code == 0
    assert "pumploop, split overall" in done.out
    assert "skab" not in done.out
    assert "simulated data, not SKAB" in done.err
    assert "--dataset pumploop --against strict " in done.err


def test_a_detector_whose_packages_are_missing_is_left_out_and_named(monkeypatch, tsadbench, tmp_path, simulated):
    code = "from tsadbench.base import extra\nwith extra('deep-one', 'deep'): import no_such_package\n"
    write_package(tmp_path / "site", "deep_plugin", "[tsadbench.detectors]\ndeep-one = deep_plugin:Deep\n", code)
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setattr(quickstart, "DETECTORS", ("deep-one", "t2"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TSADBENCH_SKAB_URL", "http://127.0.0.1:9")
    monkeypatch.delenv("TSADBENCH_DATA", raising=False)
    done = tsadbench("quickstart", "--out", simulated)
    assert done.code == 0
    assert " t2 " in done.out
    assert "deep-one" not in done.out
    assert "left out: deep-one needs packages that are not installed: run  pip install 'tsadbench[deep]'" in done.err


def test_a_wrong_folder_is_named(tsadbench, tmp_path):
    (tmp_path / "file").write_text("")
    done = tsadbench("quickstart", "--out", tmp_path / "file" / "runs")
    assert done.code == 2
