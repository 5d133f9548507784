"""The report, as written, and in a real, headless Chromium, opened from a file."""

from __future__ import annotations

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.helpers.hostile import LONG, QUOTES, SCRIPT
from tests.reporting.test_tables import column, html_tables
from tsadbench.errors import DataError, MissingExtraError, UsageError
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.reporting.report import write_report
from tsadbench.results.trial_result import TrialResult


def test_the_tables_are_the_leaderboards(reported_store):
    text = reported_store.file.read_text(encoding="utf-8")
    frames = Leaderboard.of_store(reported_store.store, reported_store.store.records()).frames()
    shown = html_tables(text)
    assert len(shown) == len(frames) == 4, "two splits of two data sets"
    for cells, frame in zip(shown, frames.values(), strict=True):
        assert column(cells, "detector") == list(frame["detector"])
        values = [float(value) for value in column(cells, "AUROC", "data-order")]
        assert values == pytest.approx(list(frame["auroc_mean"]), abs=0.005)


def test_without_the_data_the_tables_stay_and_the_reason_is_given(reported_store, tmp_path):
    def gone(name):
        raise DataError(f"no files of {name} <here>")

    text = write_report(reported_store.store, gone, tmp_path).read_text(encoding="utf-8")
    assert "no files of plant &lt;here&gt;" in text
    assert len(html_tables(text)) == 4
    assert 'class="recording"' not in text


def test_without_the_extra_the_comparison_is_missing_and_says_so(reported_store, tmp_path, monkeypatch):
    def fewer(*_, **__):
        raise MissingExtraError("comparing three", "stats")

    monkeypatch.setattr("tsadbench.reporting.report.compare", fewer)
    text = write_report(reported_store.store, reported_store.data.__getitem__, tmp_path).read_text(encoding="utf-8")
    assert "tsadbench[stats]" in text


def test_only_named_detectors_have_curves_and_recordings(reported_store, tmp_path):
    load = reported_store.data.__getitem__
    text = write_report(reported_store.store, load, tmp_path, labels=["t2", "max-z"]).read_text(encoding="utf-8")
    chosen = re.findall(r'<select class="who">(.*?)</select>', text)
    assert [re.findall(r">([^<]+)</option>", one) for one in chosen] == [["t2", "max-z"]] * 2
    with pytest.raises(UsageError, match="t3"):
        write_report(reported_store.store, load, tmp_path, labels=["t3"])


def test_mean_ranks_are_shown_over_all_data_sets_of_the_store(reported_store, tmp_path):
    names = [*reported_store.data]
    for chosen in (names, names[:1]):
        text = write_report(reported_store.store, reported_store.data.__getitem__, tmp_path, datasets=chosen)
        assert ('id="ranks-' in text.read_text(encoding="utf-8")) == (len(chosen) > 1)


@pytest.mark.browser
class TestInABrowser:
    def test_hostile_names_are_shown_and_the_page_fits_a_phone(self, open_page, hostile_store, hostile, tmp_path):
        page = write_report(hostile_store, lambda name: hostile, tmp_path)
        opened = open_page(page, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
        opened.page.locator(".recording .main-svg").first.wait_for()
        assert opened.page.evaluate("() => document.documentElement.scrollWidth") <= 390
        shown = opened.page.locator(".tsb-table").first.locator("td.name").all_text_contents()
        for name in (SCRIPT, QUOTES, LONG.strip()):
            assert any(name in text for text in shown)
        assert SCRIPT in opened.page.locator("details").last.text_content()
        assert opened.page.locator("img").count() == 0
        assert opened.complaints == []
        assert opened.requests == [opened.url]

    def test_a_click_sorts_and_a_search_keeps_rows(self, open_page, reported_store):
        opened = open_page(reported_store.file)
        table = opened.page.locator(".tsb-table").first
        head = table.get_by_role("columnheader", name="AUROC")
        place = table.locator("thead th").all_text_contents().index("AUROC")

        def values() -> list[float]:
            found = table.locator(f"tbody tr td:nth-child({place + 1})")
            return [float(one) for one in found.evaluate_all("(all) => all.map((one) => one.dataset.order)")]

        before = values()
        for ascending in (True, False):
            head.click()
            expect(head).to_have_attribute("aria-sort", "ascending" if ascending else "descending")
            assert values() == sorted(before, reverse=not ascending)
        assert opened.complaints == []

    def test_the_recording_shows_the_stored_scores_of_the_chosen_detector(self, open_page, reported_store):
        opened = open_page(reported_store.file)
        place = opened.page.locator(".recording").first
        place.locator(".main-svg").first.wait_for()
        place.locator(".which").select_option(label="run 1")
        place.locator(".who").select_option(label="isolation-forest")
        shown = place.locator(".plot").evaluate(
            "(plot) => plot._fullData.filter((one) => one.name === 'score' && one.visible).map((one) => [...one.y])"
        )
        records = reported_store.store.records()
        record = next(one for one in records if (one.dataset, one.label) == ("plant", "isolation-forest"))
        stored = TrialResult(record, reported_store.store, reported_store.data["plant"]).recordings["run 1"]
        assert len(shown) == 1
        np.testing.assert_allclose(shown[0], stored.scores, rtol=1e-6)
        assert opened.complaints == []

    def test_on_paper_it_is_light_and_within_the_sheet(self, open_page, reported_store):
        opened = open_page(reported_store.file, color_scheme="dark", viewport={"width": 720, "height": 1000})
        opened.page.locator(".recording .main-svg").first.wait_for()
        colour = "() => getComputedStyle(document.body).backgroundColor"
        assert opened.page.evaluate(colour) != "rgb(255, 255, 255)"
        opened.page.emulate_media(media="print")
        assert opened.page.evaluate(colour) == "rgb(255, 255, 255)"
        assert opened.page.locator(".dt-search:visible").count() == 0
        figures = opened.page.locator("figure:visible, .plot:visible").all()
        assert figures
        for figure in figures:
            box = figure.bounding_box()
            assert box["x"] + box["width"] <= 720
        assert len(opened.page.pdf(format="A4")) > 100_000
        assert opened.complaints == []
