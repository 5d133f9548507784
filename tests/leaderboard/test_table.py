"""Ranks, places, remarks and what terminals show: tables that can be worked out by hand."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from tests.helpers.records import record
from tsadbench import Leaderboard
from tsadbench.base.protocol import SplitJudgement
from tsadbench.base.replay import Replay
from tsadbench.leaderboard.frame import places
from tsadbench.leaderboard.render import Table, render
from tsadbench.leaderboard.table import in_sight, sentence

FORGETFUL = Replay(copy="same process", rows=240, correlation=0.42)


def covered(one, share):
    return replace(one, splits={name: replace(judged, coverage=share) for name, judged in one.splits.items()})


def frame_of(*records, **options):
    return Leaderboard.from_records(records, **options).frame.set_index("detector")


def words_of(*records, **options):
    frame = Leaderboard.from_records(records, **options).frame
    return dict(zip(frame["detector"], frame["remarks"], strict=True))


def test_ranks_count_floors_and_skip_rows_that_may_not_be_ranked():
    frame = frame_of(
        replace(record("leaky", auprc=0.99), leaky="test rows"),
        covered(record("silent", auprc=0.98), 0.9996),
        replace(record("counts", auprc=0.97), replay=FORGETFUL),
        record("a", auprc=0.8),
        record("tie", auprc=0.8),
        record("f", floor=True, auprc=0.5),
        record("b", auprc=0.4),
        record("bad", status="error"),
    )
    assert frame["rank"].dropna().to_dict() == {"a": 1, "tie": 1, "f": 3, "b": 4}
    assert list(frame.index) == ["leaky", "silent", "counts", "a", "tie", "f", "b", "bad"]
    assert frame["to_floor"]["b"] == pytest.approx(-0.1)
    assert list(frame.index[frame["sound"]]) == ["a", "tie", "f", "b"]


def test_a_row_alone_has_no_rank():
    assert frame_of(record("x"))["rank"].isna().all()
    assert frame_of(record("x"), record("y", status="error"))["rank"].isna().all()


def test_a_detector_is_above_the_floors_if_it_beats_each_in_every_metric():
    frame = frame_of(
        record("all", auroc=0.9, auprc=0.9, mcc=0.9),
        record("tie", auroc=0.7, auprc=0.9, mcc=0.9),
        record("undefined", auroc=0.9, auprc=0.9, mcc=None),
        record("f", floor=True, auroc=0.7, auprc=0.2, mcc=0.5),
    )
    assert frame["above_floor"].to_dict() == {"all": True, "tie": False, "undefined": False, "f": False}


def test_no_detector_has_a_place_in_a_metric_in_which_a_floor_is_as_good():
    frame = Leaderboard.from_records(
        [
            record("a", auroc=0.7, auprc=0.9, prac_f1=0.8, mcc=0.4),
            record("b", auroc=0.6, auprc=0.8, prac_f1=0.7, mcc=0.3),
            covered(record("c", auroc=0.99, auprc=0.99, prac_f1=0.99, mcc=0.99), 0.5),
            record("f", floor=True, auroc=0.7, auprc=0.85, prac_f1=0.95, mcc=0.0),
        ]
    ).frame
    found = {
        name: dict(zip(frame["detector"], places(frame, name, "higher"), strict=True))
        for name in ("auroc", "auprc", "prac_f1", "mcc")
    }
    none = dict.fromkeys("abcf", 0)
    assert found == {"auroc": none, "auprc": {**none, "a": 1}, "prac_f1": none, "mcc": {**none, "a": 1, "b": 2}}


@settings(deadline=None, max_examples=12)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=6), st.data())
def test_a_row_that_loses_scores_never_gains_a_rank_or_a_place(values, data):
    records = [record(f"d{i}", auprc=value) for i, value in enumerate(values)]
    lost = data.draw(st.integers(0, len(values) - 1))
    worse = [covered(one, 0.5) if i == lost else one for i, one in enumerate(records)]
    before, after = frame_of(*records), frame_of(*worse)
    assert np.isnan(after["rank"][f"d{lost}"])
    assert places(after.reset_index(), "auprc", "higher")[list(after.index).index(f"d{lost}")] == 0
    others = [name for name in before.index if name != f"d{lost}" and not np.isnan(after["rank"][name])]
    assert all(after["rank"][name] <= before["rank"][name] for name in others)


def test_remarks_appear_only_where_rows_differ():
    sealed, guarded = replace(record("s"), seal="sealed"), replace(record("g"), seal="guarded")
    assert words_of(sealed, replace(record("t"), seal="sealed")) == {"s": [], "t": []}
    assert words_of(guarded, record("h")) == {"g": [], "h": []}
    assert words_of(sealed, guarded) == {"s": [], "g": ["guarded"]}
    assert words_of(record("a"), replace(record("b"), look_ahead=0)) == {"a": ["look-ahead 9"], "b": []}
    assert words_of(record("x", 0), record("x", 1, status="timeout"))["x"] == ["1 of 2 seeds failed: timeout"]
    leaky = replace(record("x"), leaky="test rows", replay=FORGETFUL)
    assert len(words_of(leaky, record("y"))["x"]) == 1
    departing = ("narrower than published", "schedule differs")
    assert words_of(replace(record("x"), differs=departing), record("y")) == {"x": [*departing], "y": []}
    floors = words_of(record("f", floor=True, auprc=0.4), record("h", floor=True, auprc=0.3))
    assert floors == {"f": ["best floor"], "h": ["floor"]}


def test_rows_without_evaluated_rows_are_complete():
    nothing = SplitJudgement(dict.fromkeys(("auroc", "auprc", "prac_f1")), 0, 0, 0.0)
    assert frame_of(replace(record("x"), splits={"overall": nothing}))["complete"].all()


def test_false_alarms_are_the_flagged_normal_rows():
    # 100 rows, 35 anomalous: 20 flagged, 0.4 * 35 = 14 of them correctly.
    frame = frame_of(record("x", flagged=0.2, recall=0.4), record("y", far=0.3), record("z"))
    assert frame["far"]["x"] == pytest.approx(6 / 65)
    assert frame["far"]["y"] == 0.3
    assert np.isnan(frame["far"]["z"])
    normal = SplitJudgement({"flagged": 0.05, "recall": None}, 100, 0, 1.0)
    assert frame_of(replace(record("n"), splits={"overall": normal}))["far"]["n"] == pytest.approx(0.05)


def test_a_spread_that_two_decimals_would_hide_has_three():
    def auprc(*values):
        (table,) = Leaderboard.from_records([record("x", i, auprc=one) for i, one in enumerate(values)]).shown()
        return table.frame["AUPRC"][0]

    assert auprc(0.70, 0.72) == ".71 ± .01"
    assert auprc(0.700, 0.702) == ".701 ± .001"
    assert auprc(0.7) == ".70"


@pytest.fixture
def many() -> Leaderboard:
    values = {"auroc": 0.5, "mcc": 0.1, "prac_f1": 0.3, "flagged": 0.2, "recall": 0.4}
    trials = [record(f"detector{i:03d}", seed, auprc=0.9 - i / 1000, **values) for i in range(80) for seed in (0, 1)]
    return Leaderboard.from_records([*trials, record("floor", floor=True, auprc=0.1, auroc=0.1, mcc=0.0)])


@pytest.mark.parametrize("width", [80, 100, 200])
def test_a_terminal_truncates_no_number_and_keeps_the_floor_metrics(many, width):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    many.print(console)
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    (header,) = (line for line in lines if "AUPRC" in line and "AUROC" in line)
    assert "MCC" in header
    assert ("fit, s" in header) == (width > 80)
    assert "…" not in console.file.getvalue()
    below = lines[max(i for i, line in enumerate(lines) if re.match(r" *\d+ ", line)) + 1 :]
    assert len([line for line in below if line.strip()]) <= 4


def test_a_narrow_terminal_breaks_names_only_after_punctuation():
    label = "anomaly-transformer[max_steps=150,top_k=3]"
    values = [record(label, seed, auprc=0.7 + seed / 50, auroc=0.5 + seed / 50, mcc=0.1 + seed / 50) for seed in (0, 1)]
    board = Leaderboard.from_records([*values, replace(record("x"), leaky="test rows")])
    text = render(board.shown(), width=80).partition("remarks")[2]
    assert [word for word in re.findall(r"[a-z_]+=?\d*[-,\[\]]", text) if word[:-1] in label] == [
        "anomaly-", "transformer[", "max_steps=150,", "top_k=3]",
    ]  # fmt: skip


def test_among_stored_rows_the_users_row_its_neighbours_and_the_floors_are_shown(many):
    mine = [record("mine", auprc=0.8505)]
    stored = [one for records in many.frame["records"] for one in records]
    (table,) = Leaderboard.from_records(mine, stored=stored).frames().values()
    assert list(table["detector"].iloc[in_sight(table, {"mine"})]) == [
        "detector048", "detector049", "mine", "detector050", "detector051", "floor",
    ]  # fmt: skip
    assert len(in_sight(table, ())) == 50
    assert sentence(table).startswith(f"mine has rank 51 of {len(table)},")
    assert sentence(many.frame).startswith("detector000 ")  # no row is the user's own


def test_every_form_has_the_best_in_bold_and_its_texts_literally():
    board = Leaderboard.from_records([record("a_b", auprc=0.8), record("b%", auprc=0.7), record("<i>", status="error")])
    for form, bold in (("markdown", "**.80**"), ("latex", r"\textbf{.80}")):
        assert bold in board.to(form)
    assert r"a\_b" in board.to_latex()
    assert r"b\%" in board.to_latex()
    assert "<i>" not in board.to_markdown()


def test_columns_that_do_not_fit_are_left_out_in_their_order():
    (table,) = Leaderboard.from_records([record("x"), record("y")]).shown()
    text = render([Table("t", table.frame, numeric=table.numeric, expendable=["F1", "AUROC"])], width=34)
    assert "F1" not in text
    assert "AUPRC" in text
