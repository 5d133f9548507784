"""The site in a real, headless Chromium, opened from files: what needs layout, and what a page loads."""

from __future__ import annotations

import csv
import re

import pytest

from tests.helpers.browser import Opened
from tests.reporting.site.conftest import DATASET, QUOTES, SCRIPT
from tsadbench.utils.files import LEADERBOARDS

# Each opens several pages, which takes seconds.
pytestmark = pytest.mark.browser

# What is wider than a phone and does not lie in a box that scrolls.
_WIDE = """() => [...document.querySelectorAll("main *, header *, nav *")].filter((each) => {
    const { right, width } = each.getBoundingClientRect();
    const { position } = getComputedStyle(each);
    return !each.closest(".scroll, pre, .prose") && right > 391 && width > 0 && position !== "absolute";
}).map((each) => each.outerHTML.slice(0, 80))"""


def labels(opened) -> list[str]:
    """Return the detectors in the table."""
    names = opened.page.locator("#table tbody").first.locator("th[scope=row] .name").all_inner_texts()
    return [re.sub(r"^(\W+ )+", "", name) for name in names]


@pytest.fixture
def opened(browser, site):
    """Open a page of the site, with what follows its #."""
    windows = []

    def call(page="index.html", state="", folder=site, **context) -> Opened:
        one = Opened(browser, folder / page, **context)
        windows.append(one)
        if state:
            one.page.goto("about:blank")
            one.page.goto(f"{one.url}#{state}")
        one.page.wait_for_selector("#table tbody tr")
        return one

    yield call
    for one in windows:
        one.context.close()


def test_a_table_is_chosen_loaded_sorted_and_restored_by_its_address(opened, site):
    one = opened()
    assert one.page.locator("#dataset").input_value() == "suite all 1"
    assert not [address for address in one.requests if "/skab-strict-2/" in address]
    one.page.locator("#dataset").select_option("skab")
    one.page.locator("#split").select_option("valve2")
    one.page.wait_for_function("() => document.querySelector('#table caption').innerText.includes('split valve2')")
    with (LEADERBOARDS / "skab" / "strict" / "valve2.csv").open(encoding="utf-8") as stream:
        rows = {row["detector"]: row for row in csv.DictReader(stream)}
    shown = labels(one)
    assert shown == sorted(shown, key=lambda label: -float(rows[label]["auprc_mean"]))
    one.page.get_by_role("button", name="AUROC").click()
    shown = labels(one)
    assert shown == sorted(shown, key=lambda label: -float(rows[label]["auroc_mean"]))
    again = opened(state=one.page.url.partition("#")[2])
    again.page.wait_for_function("() => document.querySelector('#table caption').innerText.includes('split valve2')")
    assert labels(again) == shown
    assert all(address.startswith(f"file://{site}/") for address in one.requests)
    assert one.complaints == again.complaints == []


def test_on_a_phone_nothing_is_wider_than_the_screen(opened):
    for page in ("index.html", "detectors/t2.html", "datasets/skab.html", "protocols/strict.html"):
        one = opened(page, "data=skab" if page == "index.html" else "", viewport={"width": 390, "height": 800})
        for section in one.page.locator("main > section:visible").all():
            section.scroll_into_view_if_needed()
        assert one.page.evaluate("document.documentElement.scrollWidth") <= 390, page
        assert one.page.evaluate(_WIDE) == [], page


def test_scores_of_a_recording_are_drawn_and_only_what_is_looked_at_is_loaded(opened, scored_site):
    one = opened(folder=scored_site)
    one.page.locator("#heat").scroll_into_view_if_needed()
    one.page.wait_for_selector("#heat-table tbody tr")
    one.see("recording")
    one.page.wait_for_selector("#lanes svg")
    assert one.page.locator("#lanes svg").count() == 3
    faulty = one.page.evaluate("() => board().recordings.findLastIndex((each) => each.n_anomalous > 0)")
    one.page.locator("#recording-choice").select_option(str(faulty))
    one.page.wait_for_selector("#lanes .truth")
    for mark in ("score", "threshold", "uncounted"):
        assert one.page.locator(f"#lanes .{mark}").count() >= 3, mark
    assert one.page.locator("#precision-recall .curve").count() == 3
    assert len([address for address in one.requests if "/scores/" in address]) == 2
    assert one.complaints == []


def test_hostile_names_are_shown_and_not_obeyed(opened, hostile_site):
    one = opened(folder=hostile_site)
    for section in ("speed", "seeds", "heat", "recording"):
        one.page.locator(f"#{section}").scroll_into_view_if_needed()
    one.page.wait_for_selector("#heat-table tbody tr")
    assert {SCRIPT, QUOTES, "../../../cva"} <= set(labels(one))
    assert DATASET in one.page.locator("#table caption").inner_text()
    for page in hostile_site.rglob("*.html"):
        one.page.goto(page.as_uri())
        assert one.page.evaluate("window.hit") is None
        assert one.page.locator("img").count() == 0
    assert one.complaints == []
    assert all(address.startswith(f"file://{hostile_site}/") for address in one.requests)
