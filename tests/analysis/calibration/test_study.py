"""The study that decides which rows set the threshold under `strict`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.scripts import load_script
from tsadbench.utils.markdown import fill_blocks
from tsadbench_protocols.strict import Strict

STUDY = load_script(Path(__file__).parents[3] / "docs" / "studies" / "calibration.py")


def record(detector: str, calibration: str, flagged: int, *, held_out: bool = True) -> dict[str, object]:
    """Return a record of 1,000 unseen rows."""
    return {
        "dataset": "plant",
        "tenth": 10,
        "detector": detector,
        "floor": False,
        "calibration": calibration,
        "held_out": held_out and calibration == "held-out",
        "unseen_rows": 1000,
        "clusters": [1] * flagged,
    }


def pairs(*flagged: tuple[int, int]) -> list[dict[str, object]]:
    """Return the records of detectors that flag so many rows with a threshold of each arm."""
    return [
        record(f"d{number}", arm, count)
        for number, counts in enumerate(flagged)
        for arm, count in zip(STUDY.ARMS, counts, strict=True)
    ]


def test_the_default_of_strict_is_the_one_that_the_records_decide():
    *_, sentence = STUDY.decision(STUDY.read())
    assert sentence == f"The default of `strict` is `calibration={vars(Strict())['calibration']}`."


def test_the_page_is_made_of_its_records():
    page = STUDY.PAGE.read_text(encoding="utf-8")
    assert fill_blocks(page, STUDY.block) == page


def share(dataset: str, detector: str, calibration: str) -> float:
    """Return the share of all unseen rows above the threshold."""
    wanted = dataset, detector, calibration
    records = [one for one in STUDY.read() if (one["dataset"], one["detector"], one["calibration"]) == wanted]
    return sum(sum(one["clusters"]) for one in records) / sum(one["unseen_rows"] for one in records)


def test_what_the_page_says_in_words_is_what_the_records_say():
    """That shares rise with most detectors, which thresholds flag most rows on tep, and how many rows set a tail."""
    detectors = dict.fromkeys(one["detector"] for one in STUDY.read())
    for dataset in ("skab", "pumploop"):
        rising = [share(dataset, name, "held-out") > share(dataset, name, "training") for name in detectors]
        assert sum(rising) > len(rising) / 2
    assert {name for name in detectors if share("tep", name, "training") > 0.5} == {"ridge", "t2"}
    t2 = {(one["dataset"], one["tenth"], one["calibration"]): one for one in STUDY.read() if one["detector"] == "t2"}
    for dataset in ("skab", "pumploop"):
        assert t2[dataset, 10, "training"]["n"] == pytest.approx(7800, rel=0.01)
        assert t2[dataset, 10, "held-out"]["n"] == pytest.approx(1500, rel=0.03)
        assert t2[dataset, 10, "held-out"]["excesses"] == pytest.approx(30, abs=1)


@pytest.mark.parametrize(
    ("flagged", "chosen"),
    [
        (((0, 9), (0, 9), (99, 9)), "training"),  # with nothing flagged, a rate of one row in 1,000 is q itself
        (((9, 0), (9, 0), (9, 99)), "held-out"),
        (((9, 9),), "training"),
    ],
)
def test_the_median_over_pairs_decides_and_a_tie_keeps_all_rows_for_training(flagged, chosen):
    assert STUDY.decision(pairs(*flagged))[-1] == f"The default of `strict` is `calibration={chosen}`."


def test_pairs_without_held_out_rows_do_not_count():
    fallen_back = [record("t2", arm, 900, held_out=False) for arm in STUDY.ARMS]
    assert STUDY.counting([*fallen_back, *pairs((0, 9))]) == pairs((0, 9))


def test_the_distance_is_in_decades():
    assert STUDY.distance(record("t2", "training", 0)) == pytest.approx(0.0)
    assert STUDY.distance(record("t2", "training", 99)) == pytest.approx(2.0)
