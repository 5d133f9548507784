"""The report in a real, headless Chromium, opened from a file: what needs layout."""

from __future__ import annotations

import csv
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.helpers.hostile import LONG, QUOTES, SCRIPT
from tests.helpers.reported import START
from tsadbench.reporting.html.build import write_report
from tsadbench.results.trial_result import TrialResult

# Each starts a window and lays out figures, which takes seconds.
pytestmark = pytest.mark.browser

FIGURES = ("seeds", "speed", "curves", "recording", "pair", "densities", "thresholds")


def names(opened) -> list[str]:
    return opened.page.locator("#table tbody th[scope=row]").evaluate_all("(all) => all.map((one) => one.title)")


def heads(opened) -> list[str]:
    return [" ".join(text.split()) for text in opened.page.locator("#table thead th").all_inner_texts()]


def test_hostile_names_are_shown_and_every_figure_fits_a_phone(open_page, hostile_store, hostile, tmp_path):
    page = write_report(hostile_store, lambda name: hostile, tmp_path)
    opened = open_page(page, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    for section in FIGURES:
        opened.see(section)
        assert opened.page.locator(f"#{section} .main-svg").count() > 0, section
    assert opened.page.evaluate("() => document.documentElement.scrollWidth") <= 390
    shown = opened.page.locator("#table tbody th[scope=row]").all_inner_texts()
    for name in (SCRIPT, QUOTES, LONG.strip()):
        assert any(name in text for text in shown)
    assert SCRIPT in opened.page.locator("#table .failed").inner_text()
    assert opened.page.locator("img").count() == 0
    assert opened.complaints == []
    assert opened.requests == [opened.url]


def test_the_box_beside_the_pointer_says_the_stored_values(open_page, reported_store):
    opened = open_page(reported_store.file)
    opened.see("recording")
    area = opened.page.locator("#recording-chart .nsewdrag").first.bounding_box()
    x = area["x"] + 0.48 * area["width"]
    opened.page.mouse.move(x, area["y"] + 10)
    box = opened.page.locator(".readout").first
    clock, row = re.fullmatch(r"(\S+), row (\d+)", box.locator("strong").inner_text()).groups()
    assert int(row) == pytest.approx(0.48 * 239, abs=1)
    assert clock == datetime.fromtimestamp(START + int(row), UTC).isoformat().removesuffix("+00:00")
    said = dict(zip(box.locator("dt").all_inner_texts(), box.locator("dd").all_inner_texts(), strict=True))
    record = next(one for one in reported_store.store.records() if (one.dataset, one.label) == ("plant", "t2"))
    one = TrialResult(record, reported_store.store, reported_store.data["plant"]).recordings["run 0"]
    assert said["label"] == "anomalous"
    assert said["t2"].startswith(f"{one.scores[int(row)]:.2f}"[:3])
    assert ("flagged" in said["t2"]) == bool(one.flagged[int(row)])
    assert float(said["flow"]) == pytest.approx(one.recording.values[int(row), 0], abs=0.01)
    place = box.bounding_box()
    assert place["x"] > x or place["x"] + place["width"] < x
    assert place["x"] >= 0
    assert opened.complaints == []


def test_an_address_restores_the_table_and_the_csv_holds_what_is_in_sight(open_page, reported_store):
    opened = open_page(reported_store.file)
    opened.page.get_by_role("button", name=re.compile("^Recall")).click()
    opened.page.locator("#column-choice summary").click()
    opened.page.get_by_role("checkbox", name="MCC", exact=True).uncheck()
    opened.page.get_by_label("Search").fill("t")
    rows, columns = names(opened), heads(opened)
    assert "MCC" not in columns
    assert all("t" in name for name in rows)
    opened.page.reload()
    assert (names(opened), heads(opened)) == (rows, columns)
    with opened.page.expect_download() as started:
        opened.page.get_by_role("button", name="Download as CSV").click()
    with Path(started.value.path()).open(newline="", encoding="utf-8") as file:
        held = list(csv.DictReader(file))
    assert [row["detector"] for row in held] == rows
    assert "mcc_mean" not in held[0]
    recalls = [float(row["recall_mean"]) for row in held]
    n_detectors = opened.page.locator("#table tbody").first.locator("tr").count()
    assert recalls[:n_detectors] == sorted(recalls[:n_detectors], reverse=True)
    assert opened.complaints == []


def test_on_paper_everything_is_drawn_light_and_within_the_sheet(open_page, reported_store):
    opened = open_page(reported_store.file, color_scheme="dark")
    opened.page.emulate_media(media="print")
    opened.page.wait_for_function("() => 'paper' in document.documentElement.dataset")
    assert opened.page.evaluate("() => document.documentElement.dataset.theme") == "light"
    for section in (*FIGURES, "heat", "significance", "ranks"):
        assert opened.page.locator(f"#{section}").is_visible(), section
    for chart in opened.page.locator(".chart:visible").all():
        box = chart.bounding_box()
        assert box["x"] + box["width"] <= 1041
    assert opened.page.locator("#search, nav, #heat-metric, #theme").locator("visible=true").count() == 0
    assert opened.complaints == []
