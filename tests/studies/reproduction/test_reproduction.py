"""The paper's tables beside ours: verdicts by hand, and the committed pages traced to the committed records."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from tests.helpers.records import record
from tsadbench import Leaderboard
from tsadbench.execution.record import Record
from tsadbench.leaderboard.ranking import Summary
from tsadbench.registry import load_detector
from tsadbench.studies.reproduction.comparison import Cell, beside_paper, pooled, to_csv, to_markdown
from tsadbench.studies.reproduction.explanations import explanation_of, explanations
from tsadbench.studies.reproduction.page import page, unexplained
from tsadbench.studies.reproduction.paper import TABLES, contradictions, labels, published
from tsadbench.studies.reproduction.reading import above_floors, best_floors, flags_everything, rank_changes
from tsadbench.studies.reproduction.repository import repository_page, repository_rows
from tsadbench.studies.reproduction.write import write
from tsadbench.utils.parameters import parse_label

ROOT = Path(__file__).parents[3]
PAPER = ROOT / "leaderboards" / "paper"


def board(*records: Record) -> dict:
    return {(row.label, row.split): row for row in Leaderboard.from_records(records).rows}


@pytest.mark.parametrize(
    ("ours", "paper", "verdict"),
    [
        (Summary(0.73, 0.01), Summary(0.70, 0.02), "within 2 sd"),  # pooled .0158, twice that .0316
        (Summary(0.74, 0.01), Summary(0.70, 0.02), "off"),
        (Summary(0.719, None), Summary(0.70, None), "within .02"),
        (Summary(0.721, None), Summary(0.70, None), "off"),
        (Summary(0.679, 0.001), Summary(0.70, 0.001), "off"),
        (Summary(0.34804, 0.0), Summary(0.3480, 0.0), "within 2 sd"),  # the paper rounds to four decimals
        (Summary(0.70, 0.2), None, None),
        (None, Summary(0.70, 0.2), None),
        (Summary(None, None), Summary(0.70, 0.2), None),
    ],
)
def test_verdicts(ours, paper, verdict):
    assert Cell("auroc", ours, paper).verdict == verdict


def test_the_pooled_deviation():
    assert pooled(Summary(0.0, 0.3), Summary(0.0, 0.4)) == pytest.approx((0.25 / 2) ** 0.5)
    assert pooled(Summary(0.0, None), Summary(0.0, 0.4)) == pytest.approx(0.4 / 2**0.5)


def test_the_papers_tables_have_their_size():
    assert [(table.number, len(published(table.key))) for table in TABLES] == [
        (2, 96), (3, 77), (4, 12), (5, 12), (None, 12),
    ]  # fmt: skip
    assert published("graph_comparison")["DPR-GM", "overall", "auroc"] == Summary(0.7256, 0.0058)
    assert published("broader_comparison")["T-squared", "overall", "auroc"] == Summary(0.6737, None)


def test_every_published_row_has_one_of_ours_and_every_one_of_ours_can_be_run():
    for table in TABLES:
        assert {name for name, _, _ in published(table.key)} == {m.name for m in table.methods if m.name}
    for label in labels():
        request = parse_label(label)
        assert load_detector(request.target)


def test_the_paper_contradicts_itself_on_its_own_method():
    found = dict(contradictions())
    assert [(table.number, mean) for table, mean in found["auroc"]] == [
        (2, 0.7256), (3, 0.7256), (4, 0.7261), (5, 0.7261), (None, 0.7259),
    ]  # fmt: skip


def test_a_table_shows_ours_the_papers_difference_and_verdict():
    (table,) = [one for one in TABLES if one.number == 4]
    rows = board(
        *(record("dprgm", seed, auroc=value, auprc=0.9) for seed, value in enumerate((0.72, 0.73))),
        record("dprgm[backbone=gcn]", status="error"),
    )
    compared = beside_paper(table, rows)
    text = to_markdown(table, compared)
    assert "| overall | SAGE | `dprgm` |" in text
    assert ".7250(.0071) [.7261(.0115)] -.0011 =" in text
    assert ".9000(.0000) [.7188(.0168)] +.1812 ✗" in text
    assert "| overall | GCN | `dprgm[backbone=gcn]` | not run | not run | not run |" in text
    lines = list(csv.DictReader(io.StringIO(to_csv(compared))))
    (sage,) = [line for line in lines if line["method"] == "SAGE" and line["metric"] == "auroc"]
    assert float(sage["ours_mean"]) == pytest.approx(0.725)
    assert (sage["paper_mean"], sage["seeds"], sage["verdict"]) == ("0.7261", "2", "within 2 sd")
    (missing,) = [line for line in lines if line["method"] == "GT" and line["metric"] == "auroc"]
    assert (missing["ours_mean"], missing["verdict"]) == ("", "")


def test_what_flags_everything_and_what_beats_the_floors():
    rows = board(
        record("a", flagged=1.0, auroc=0.9, auprc=0.4),
        record("b", flagged=0.99, auroc=0.6, auprc=0.7),
        record("max-z", floor=True, flagged=1.0, auroc=0.7, auprc=0.6, mcc=0.6),
    )
    assert flags_everything(rows, "overall", ["a", "b"]) == ["a"]
    assert best_floors(rows, "overall") == {
        "auroc": ("max-z", 0.7), "auprc": ("max-z", 0.6), "mcc": ("max-z", 0.6),
    }  # fmt: skip
    assert "| `a` | **yes** | no | no |" in above_floors(rows, "overall", ["a", "b"])
    assert "| `b` | no | **yes** | no |" in above_floors(rows, "overall", ["a", "b"])


def test_ranks_under_both_protocols():
    first = board(record("a", auprc=0.9), record("b", auprc=0.8), record("c", auprc=0.7), record("d", auprc=0.1))
    second = board(record("a", auprc=0.7), record("b", auprc=0.8), record("c", auprc=0.6))
    found = rank_changes(first, second, "overall", ["a", "b", "c", "d"])
    assert found is not None
    table, tau = found
    assert tau == pytest.approx(1 / 3)
    assert "| `a` | 1 | 2 | .9000 | .7000 |" in table
    assert "`d`" not in table
    assert rank_changes(first, {}, "overall", ["a", "b"]) is None


def test_a_page_without_any_row_says_so_everywhere():
    text = page({}, {}, "not run")
    assert "not run" in text
    assert "no rows yet" in text
    assert "not there yet" in text
    assert unexplained({}) == []


def test_a_row_that_is_off_and_unexplained_is_named():
    rows = board(record("dprgm", auroc=0.99))
    assert ("dprgm" in unexplained(rows)) == (explanation_of("dprgm") is None)


@pytest.mark.parametrize("one", explanations(), ids=lambda one: one.labels[0])
def test_an_explanations_figure_stands_in_its_scripts_committed_output(one):
    script = ROOT / one.script
    assert script.is_file()
    printed = script.with_suffix(".txt").read_text()
    for line in one.printed.splitlines():
        assert line in printed.splitlines(), line
    assert set(one.labels) <= set(labels())


def test_the_repositorys_leaderboard_stands_beside_ours():
    ours = {"f1": 0.75, "far": 0.4, "mar": 0.2}
    rows = board(record("t2", **ours), record("dprgm", **ours), record("all-positive", floor=True, f1=0.698))
    text = repository_page(rows)
    assert "| `t2` | .66 | .7500 | .1921 | .4000 | .4260 | .2000 | .5000 |" in text
    assert "| `dprgm` | - | .7500 |" in text
    assert "Flagging every row has F1 .6980" in text
    assert {row["detector"] for row in repository_rows()} <= set(labels())


def committed_records() -> list[Record]:
    lines = (PAPER / "records.jsonl").read_text().splitlines()
    return [Record.from_json(line, "committed") for line in lines]


def test_the_committed_pages_and_tables_come_from_the_committed_records(tmp_path):
    (tmp_path / "docs" / "reproduction").mkdir(parents=True)
    printed = "reproduction/operating_points.txt"
    (tmp_path / "docs" / printed).write_text((ROOT / "docs" / printed).read_text())
    written, missing = write(committed_records(), tmp_path / "docs", tmp_path / "tables")
    assert missing == [], "every row that is off is explained"
    compared = 0
    for file in written:
        where = ROOT / "docs" if file.is_relative_to(tmp_path / "docs") else PAPER
        place = where / file.relative_to(tmp_path / ("docs" if where != PAPER else "tables"))
        assert place.is_file()
        if file.suffix in (".md", ".csv", ".jsonl"):
            assert file.read_text() == place.read_text(), place
            compared += 1
    assert compared >= 2 * len(TABLES) + 2


def test_the_committed_records_are_all_there_is_and_all_ok():
    records = committed_records()
    assert {record.label for record in records} >= set(labels())
    assert {record.status for record in records} == {"ok"}
    for label in labels():
        seeds = sorted(record.seed for record in records if record.label == label)
        assert seeds in ([0], [0, 1, 2, 3, 4]), label


def test_the_command_line_writes_what_there_is(skab_directory, monkeypatch, tsadbench, tmp_path):
    monkeypatch.setenv("TSADBENCH_DATA", str(skab_directory))
    done = tsadbench(
        "reproduce",
        "--no-run",
        "--docs",
        tmp_path / "docs",
        "--tables",
        tmp_path / "tables",
        "--out",
        tmp_path / "runs",
    )
    assert done.code == 0
    assert "no rows yet" in (tmp_path / "docs" / "reproduction.md").read_text()
    assert (tmp_path / "docs" / "reproduction" / "table2_graph_comparison.svg").read_text().startswith("<?xml")


def test_a_wrong_number_of_jobs_is_refused(tsadbench, tmp_path):
    done = tsadbench("reproduce", "--jobs", "0", "--out", tmp_path / "runs")
    assert done.code == 2
    assert "jobs: expected a number greater than or equal to 1, found 0" in done.err
