"""Boards in Python show, compare and report what the commands do."""

from __future__ import annotations

import gc
import json
import re

import pytest

import tsadbench as package
from tests.helpers.data import make_data
from tsadbench import UsageError

pytestmark = pytest.mark.usefixtures("tiny_plugin")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("boards")


@pytest.fixture
def board(folder):
    """A run of two detectors; the second call finds its trials in the store."""
    detectors = ["distance", "noisy", "max-z"]
    options = {"seeds": [1, 2], "floors": False, "out": folder / "runs", "progress": False}
    return package.run(detectors, make_data(), **options)


def test_print_shows_the_tables_in_the_width_of_the_terminal_and_repr_is_short(board, monkeypatch):
    for width in (80, 140):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = str(board).splitlines()
        assert max(map(len, lines)) <= width
        for label in ("distance", "noisy"):
            assert any(f" {label} " in line for line in lines)
        for split in ("overall", "f", "g"):
            assert any(line.startswith(f"small, split {split}, protocol strict") for line in lines)
        assert "\x1b" not in str(board)
    assert len(repr(board).splitlines()) == 1
    assert str(package.Leaderboard.from_records([])) == "no rows"


def test_a_store_is_read_as_the_command_reads_it(board, folder, tsadbench):
    for runs in (folder / "runs", str(folder / "runs")):
        assert package.load_board(runs).to_json() == board.to_json()
    done = tsadbench("leaderboard", folder / "runs", "--format", "json", "--split", "f")
    chosen = package.load_board(folder / "runs", splits="f", protocol="strict", dataset="small")
    assert json.loads(chosen.to_json()) == json.loads(done.out)
    assert {*chosen.frame["split"]} == {"f"}


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"runs": "nowhere"}, "runs: nowhere"),
        ({"dataset": "smal"}, "dataset: .*'smal'"),
        ({"dataset": 3}, "dataset: .*3"),
        ({"protocol": "published"}, "protocol: .*'published'"),
        ({"splits": "h"}, "splits: .*'h'"),
    ],
)
def test_a_wrong_argument_of_load_board_is_named(board, folder, arguments, name):
    with pytest.raises(UsageError, match=f"^{name}"):
        package.load_board(**{"runs": folder / "runs", **arguments})


def test_a_board_compares_as_the_function_does(board, folder, tmp_path):
    data = make_data()
    compared = board.compare("distance", "noisy", metric="auroc", independent=True)
    reference = package.compare(folder / "runs", ["distance", "noisy"], metric="auroc", independent=True, dataset=data)
    assert compared.to_json() == reference.to_json()
    assert compared.to_frame().equals(reference.to_frame())
    assert "distance" in str(compared)
    # A store does not hold the data: pass them by name, card or as an object.
    loaded = package.load_board(folder / "runs", dataset=data)
    loaded = loaded.compare("distance", "noisy", metric="auroc", independent=True)
    assert loaded.to_json() == compared.to_json()
    for labels, arguments, name in [
        (("distance", "noisy"), {"dataset": "skab"}, "skab"),
        (("distance", "noisy"), {"metric": "auc"}, "auc"),
        (("distanc", "noisy"), {}, "distanc"),
        ((["distance", "noisy"],), {}, "labels"),
    ]:
        with pytest.raises(UsageError, match=name):
            board.compare(*labels, **arguments)
    with pytest.raises(UsageError, match=r"^dataset: .*'small'"):
        package.load_board(folder / "runs").compare("distance", "noisy")


def test_a_report_is_written_into_a_folder(board, tmp_path):
    pytest.importorskip("plotly")
    file = board.report(tmp_path / "page", detectors="distance")
    assert file == tmp_path / "page" / "index.html"
    page = file.read_text(encoding="utf-8")
    (chosen,) = set(re.findall(r'<select class="who">(.*?)</select>', page))
    assert re.findall(r">([^<]+)</option>", chosen) == ["distance"]
    assert "<html" in page
    with pytest.raises(UsageError, match="^path"):
        board.report(file)


def test_a_board_keeps_its_scores_as_long_as_it_lives():
    board = package.run(["distance", "noisy"], make_data(), seeds=1, floors=False)
    assert len(board.compare("distance", "noisy", metric="auroc", independent=True).to_frame()) == 1
    figure = board.plot("roc", detectors=["distance"])
    assert any(axes.get_xlabel() for axes in figure.axes)
    folder = board.store.path
    assert folder.is_dir()
    del board
    gc.collect()
    assert not folder.exists()


def test_the_checks_of_a_detector_can_be_run_from_python(tmp_path):
    results = package.check("distance", out=tmp_path / "runs")
    assert {one.status for one in results} == {"pass", "skip"}
    assert "distance" in next((tmp_path / "runs").glob("checks/*.json")).read_text()
    with pytest.raises(UsageError, match="^out: "):
        package.check("distance", only=["repeat"], out=tmp_path)
