"""Diagnostics beside a leaderboard's rows: from Python, on the command line, in every format."""

from __future__ import annotations

import csv
import io
import json
import statistics

import pytest
from rich.console import Console

from tests.helpers.flags import ANOMALOUS, FLAGGED, make_dataset
from tests.helpers.plans import make_plan
from tsadbench import DataError, Leaderboard, UsageError
from tsadbench.analysis.diagnostics import DIAGNOSTICS, GROUPS, groups_of, of_result, with_diagnostics
from tsadbench.execution.run_store import Store
from tsadbench.execution.runner import run_plan
from tsadbench.leaderboard.cells import grids, legend
from tsadbench.leaderboard.terminal import terminal
from tsadbench.results.trial_result import TrialResult

ROOT_CAUSE = [one.name for one in DIAGNOSTICS if one.group == "root-cause"]
OPERATIONAL = [one.name for one in DIAGNOSTICS if one.group == "operational"]


@pytest.fixture
def data():
    return make_dataset()


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A store with three trials on pumploop."""
    folder = tmp_path_factory.mktemp("made") / "runs"
    plan = make_plan(
        ["tests.helpers.tiny:Distance", "tests.helpers.tiny:Noisy"], dataset="pumploop", floors=False, seeds=2
    )
    assert {record.status for record in run_plan(plan, Store.create(folder), jobs=2)} == {"ok"}
    return folder


@pytest.fixture
def board(add, store, data):
    """Two seeds of one detector, another that failed, and diagnostics of all groups."""
    records = [add(data, seed=0), add(data, ANOMALOUS, seed=1), add(data, label="broken", status="error")]
    return with_diagnostics(Leaderboard.from_records(records), store, lambda _: data, GROUPS, vus_buffer=3)


def test_they_are_means_and_deviations_over_seeds(board, store, data):
    row = next(row for row in board.rows if row.split == "a")
    each = [of_result(TrialResult(record, store, data), "a", GROUPS, vus_buffer=3) for record in row.records]
    for name in (one.name for one in DIAGNOSTICS):
        values = [getattr(one, name) for one in each]
        if name in ROOT_CAUSE:  # the events' sensors are not known
            assert values == [None, None]
            assert row.diagnostics[name].mean is None
            continue
        assert row.diagnostics[name].mean == pytest.approx(statistics.fmean(values))
        assert row.diagnostics[name].std == pytest.approx(statistics.stdev(values))
    assert row.diagnostics["delay_rows"].mean == (3 + 2) / 2
    assert row.diagnostics["false_alarms_per_hour"].mean == pytest.approx((3 / 7 * 60 + 0) / 2)


def test_what_is_undefined_for_a_seed_is_undefined(board):
    row = next(row for row in board.rows if row.split == "b")
    assert row.diagnostics["delay_rows"].mean is None


def test_metrics_and_order_stay_as_they_are_and_failures_have_none(board):
    plain = Leaderboard.from_records([record for row in board.rows for record in row.records])
    assert [(row.split, row.label, row.metrics) for row in board.rows] == [
        (row.split, row.label, row.metrics) for row in plain.rows
    ]
    assert not any(row.diagnostics for row in board.rows if not row.ok)
    assert not any(row.diagnostics for row in plain.rows)
    assert "†" not in plain.to_markdown()


def test_rows_that_ship_with_the_package_have_none(add, store, data):
    here, elsewhere = add(data), add(data, label="shipped")
    store.remove(elsewhere.trial)
    found = with_diagnostics(Leaderboard.from_records([here], stored=[elsewhere]), store, lambda _: data, GROUPS)
    assert {row.label: bool(row.diagnostics) for row in found.rows} == {"mine": True, "shipped": False}


def test_json_has_them_under_a_key_of_their_own(board):
    rows = json.loads(board.to_json())["rows"]
    assert [list(row["diagnostics"]) for row in rows if row["status"] == "ok"] == [
        [one.name for one in DIAGNOSTICS]
    ] * 4
    assert set(rows[0]["diagnostics"]["found"]) == {"mean", "std"}
    assert not any("diagnostics" in row for row in rows if row["status"] != "ok")
    assert not any("found" in row["metrics"] for row in rows)


def test_csv_has_them_after_all_other_columns(board):
    plain = Leaderboard.from_records([record for row in board.rows for record in row.records])
    for line, shorter in zip(board.to_csv().splitlines(), plain.to_csv().splitlines(), strict=True):
        assert line.startswith(f"{shorter},")
    columns = board.to_csv().splitlines()[0].split(",")
    assert columns[columns.index("peak_memory_mib") + 1] == "diagnostic_found_mean"
    assert columns[-1] == "diagnostic_chance_at_5_std"
    assert columns[-13] == "diagnostic_affiliation_f1_std"
    table = list(csv.DictReader(io.StringIO(board.to_csv())))
    assert float(table[0]["diagnostic_found_mean"]) == pytest.approx((2 / 3 + 1) / 2)
    assert table[-1]["diagnostic_found_mean"] == ""


def test_tables_have_them_last_marked_and_without_a_place(board):
    overall = grids(board.rows)[0]
    after = overall.header[overall.header.index("seeds") + 1 :]
    assert after == (
        "Fit, s", "Rows/s", "MiB",
        "Found†", "Already on†", "Delay, s†", "False alarms/h†", "In false alarm†", "VUS-PR†",
        "Aff-P†", "Aff-R†", "Aff-F1†",
    )  # fmt: skip
    (cells,) = overall.detectors
    shown = dict(zip(overall.header, cells, strict=True))
    assert shown["Found†"].text == ".8333(.2357)"
    assert shown["Delay, s†"].text == "780.0(848.5)"
    assert shown["Rows/s"].text == "35"
    (row,) = (row for row in board.rows if row.split == "overall" and row.ok)
    assert (row.diagnostics["rows_per_second"].mean, row.rows_per_second) == (35.0, 35.0)
    assert {cell.rank for cell in cells[-12:]} == {0}
    assert "it takes no part in the ranking" in legend(board.rows)
    text = board.to_markdown()
    assert "| Aff-F1† |" in text
    assert "hand, protocol strict[warm_up=2]: events: 3 on overall, 1 on a, 2 on b, 0 on c" in text
    assert "hand, protocol strict[warm_up=2]: VUS-PR is over buffers of 0 to 3 rows" in text


def test_where_there_is_no_time_tables_count_rows(add, store):
    data = make_dataset(timeless=("a", "b", "c"))
    plain = Leaderboard.from_records([add(data)])
    (grid, *_) = grids(with_diagnostics(plain, store, lambda _: data, ["operational"]).rows)
    assert grid.header[-5:] == (
        "Found†", "Already on†", "Delay, rows†", "False alarms/1000 rows†", "In false alarm†",
    )  # fmt: skip


def test_scored_rows_that_an_older_record_did_not_count_are_counted_in_its_scores(add, store, data):
    plain = Leaderboard.from_records([add(data, counted=False)])
    assert {row.rows_per_second for row in plain.rows} == {None}
    found = with_diagnostics(plain, store, lambda _: data, ["operational"])
    assert {row.rows_per_second for row in found.rows} == {35.0}


def test_the_legend_explains_only_what_is_shown(add, store, data):
    plain = Leaderboard.from_records([add(data)])
    found = with_diagnostics(plain, store, lambda _: data, ["vus"])
    assert "In false alarm" not in legend(found.rows)
    assert "† diagnostic" in legend(found.rows)
    assert "†" not in legend(plain.rows)


@pytest.mark.parametrize(("width", "n_tables"), [(400, 1), (200, 2), (120, 3)])
def test_a_terminal_too_narrow_for_all_columns_shows_them_in_tables_of_their_own(board, width, n_tables):
    console = Console(width=width, file=io.StringIO())
    board = Leaderboard([row for row in board.rows if row.split == "overall"])
    tables = terminal(board.rows, width)
    for table in tables:
        console.print(table)
    text = console.file.getvalue()
    assert len(tables) == n_tables
    assert all(len(line.rstrip()) <= width for line in text.splitlines())
    # A terminal has the share of anomalous rows in the title, and so what all rows have in common.
    in_title = {"Anomalous", "look-ahead", "coverage", "seeds"}
    header = [name for name in grids(board.rows)[0].header if name not in in_title]
    for name in (*header, "% anomalous", "hand, split overall, protocol strict[warm_up=2]", "780.0(848.5)"):
        assert name in text
    assert text.count("mine") == n_tables


@pytest.mark.parametrize(
    ("wanted", "groups"),
    [
        ([], ()),
        (["all"], GROUPS),
        (["vus", "operational"], ("operational", "vus")),
        (["affiliation, vus"], ("vus", "affiliation")),
        (["all,vus"], GROUPS),
    ],
)
def test_groups(wanted, groups):
    assert groups_of(wanted) == groups


@pytest.mark.parametrize("wanted", ["vsu", "", "vus,,all", "ALL "])
def test_unknown_groups_are_refused(wanted):
    with pytest.raises(UsageError, match="no group of diagnostics"):
        groups_of([wanted])


def test_other_data_are_refused(add, store, data):
    board = Leaderboard.from_records([add(data)])
    with pytest.raises(DataError, match="the data here are not those it was made with"):
        with_diagnostics(board, store, lambda _: make_dataset(timeless=("a",)), ["operational"])


class TestCommandLine:
    def test_groups_repeat_or_are_parted_by_commas_and_change_nothing_else(self, runs, tsadbench):
        plain = tsadbench("leaderboard", runs, "--split", "valve2", "--format", "json")
        wanted = ["--diagnostics", "operational", "--diagnostics", "affiliation,vus,root-cause"]
        found = tsadbench("leaderboard", runs, "--split", "valve2", "--format", "json", *wanted)
        assert (found.code, found.err) == (0, "")
        rows = json.loads(found.out)["rows"]
        names = [list(row.pop("diagnostics")) for row in rows]
        assert names == [[one.name for one in DIAGNOSTICS]] * 2
        assert rows == json.loads(plain.out)["rows"]

    def test_the_buffer_is_taken_and_told(self, runs, tsadbench):
        text = tsadbench("leaderboard", runs, "--diagnostics", "vus", "--vus-buffer", "7").out
        assert "VUS-PR†" in text
        assert "Found†" not in text
        assert "buffers of 0 to 7 rows" in text

    def test_written_tables_have_them_with_their_notes(self, runs, tsadbench, tmp_path):
        assert tsadbench("leaderboard", runs, "--diagnostics", "vus", "--write", tmp_path).code == 0
        text = (tmp_path / "pumploop/strict/overall.md").read_text()
        assert "VUS-PR†" in text
        assert "VUS-PR is over buffers of 0 to 100 rows" in text

    def test_run_takes_the_same_options(self, runs, tsadbench):
        arguments = [
            "-d",
            "tests.helpers.tiny:Distance",
            "--dataset",
            "pumploop",
            "--no-floors",
            "--split",
            "overall",
            "--format",
            "json",
        ]
        done = tsadbench("run", *arguments, "--out", runs, "--diagnostics", "operational")
        assert done.code == 0
        (row,) = json.loads(done.out)["rows"]
        assert list(row["diagnostics"]) == OPERATIONAL
        assert 0 < row["diagnostics"]["found"]["mean"] <= 1

    @pytest.mark.parametrize("command", ["leaderboard", "run"])
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--diagnostics", "operation"], "no group of diagnostics 'operation'; did you mean 'operational'"),
            (["--diagnostics", "vus", "--vus-buffer", "-1"], "integer of at least 0 rows, found -1"),
            (["--vus-buffer", "5"], "--vus-buffer has an effect only with"),
            (
                ["--diagnostics", "operational", "--vus-buffer", "5"],
                "--vus-buffer has an effect only with",
            ),
        ],
    )
    def test_wrong_options_are_one_line_and_exit_code_2(self, runs, tsadbench, tmp_path, command, options, message):
        start = (
            ["leaderboard", runs]
            if command == "leaderboard"
            else ["run", "-d", "tests.helpers.tiny:Distance", "--out", tmp_path / "new"]
        )
        done = tsadbench(*start, *options)
        assert (done.code, done.out) == (2, "")
        assert message in done.err
        assert len(done.err.splitlines()) == 1

    def test_without_the_data_it_says_so(self, add, folder, data, tsadbench):
        add(data, FLAGGED)
        assert tsadbench("leaderboard", folder).code == 0
        done = tsadbench("leaderboard", folder, "--diagnostics", "operational")
        assert (done.code, done.out) == (2, "")
        assert "data set 'hand' is not available (--data DIR, or --dataset CARD for one of your own)" in done.err

    def test_scores_that_cannot_be_read_are_one_line(self, add, folder, store, tsadbench, tmp_path, runs):
        record = Store.open(runs).records()[0]
        broken = tmp_path / "broken"
        Store.create(broken)
        (broken / record.trial).mkdir()
        (broken / record.trial / "record.json").write_text(record.to_json())
        done = tsadbench("leaderboard", broken, "--diagnostics", "operational")
        assert done.code == 1
        assert record.label in done.out, "the table is shown without diagnostics"
        (line,) = (line for line in done.err.splitlines() if "scores.npz: cannot be read" in line)
        assert line.startswith("broken: ")
