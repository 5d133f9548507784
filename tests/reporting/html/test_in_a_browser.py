"""The page in a real, headless Chromium, opened from a file."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from matplotlib.image import imread

from tests.helpers.hostile import LONG, QUOTES, SCRIPT
from tests.helpers.machines import made_machines
from tsadbench.execution.run_store import Store
from tsadbench.reporting.html.build import write_report

pytestmark = pytest.mark.browser

FIGURES = ("seeds", "speed", "curves", "recording", "pair", "densities", "thresholds")


@pytest.fixture(scope="module")
def page_file(hostile_store, hostile, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    return write_report(hostile_store, lambda name: hostile, folder)


@pytest.fixture
def opened(open_page, page_file):
    return open_page(page_file)


def colours(png: bytes) -> int:
    """Return how many colours a screenshot has: a blank figure has one, its axes alone a few."""
    return len(np.unique((imread(io.BytesIO(png))[..., :3] * 255).astype(int).reshape(-1, 3), axis=0))


def column(opened, heading: str) -> list[str]:
    """Return a column of the first block of the leaderboard."""
    heads = [text.strip() for text in opened.page.locator("#table thead th").all_inner_texts()]
    place = next(i for i, text in enumerate(heads) if text.startswith(heading))
    return [
        row.locator("th, td").nth(place).inner_text()
        for row in opened.page.locator("#table tbody").first.locator("tr").all()
    ]


def test_every_figure_is_drawn_without_a_request_or_a_complaint(opened):
    for section in FIGURES:
        opened.see(section)
        for chart in opened.page.locator(f"#{section} .chart").all():
            if chart.locator("svg").count():
                assert colours(chart.screenshot()) > 20, section
        assert opened.page.locator(f"#{section} .main-svg").count() > 0, section
    opened.see("trials")
    assert opened.complaints == []
    assert opened.requests == [opened.url]


def test_hostile_names_are_shown_as_they_are(opened):
    names = opened.page.locator("#table tbody th[scope=row]").all_inner_texts()
    for name in (SCRIPT, QUOTES):
        assert any(name in text for text in names)
    assert any(LONG.strip() in text for text in names)
    assert SCRIPT in opened.page.locator("#recording-choice").inner_text()
    assert opened.page.locator("#sensors label").first.text_content() == SCRIPT
    assert opened.page.locator("img").count() == 0
    assert SCRIPT in opened.page.locator("#table .failed").inner_text()
    opened.see("recording")
    drawn = opened.page.locator("#recording-chart .annotation-text").all_text_contents()
    assert SCRIPT in drawn
    assert opened.complaints == []


def test_auprc_by_other_labels_stands_in_a_table_with_ranks_and_who_changes_places(opened):
    opened.see("labels")
    moved = opened.page.evaluate("() => board().labels.moved")
    heads = opened.page.locator("#labels-table thead th").all_inner_texts()
    assert [text.strip() for text in heads] == ["Detector", *(one["change"] for one in moved)]
    rows = opened.page.locator("#labels-table tbody tr").all()
    shown = [row.locator("td").all_text_contents() for row in rows]
    assert {cells[0] for cells in shown} == set(moved[0]["auprc"])
    assert any(cells[0] == QUOTES for cells in shown)
    ranks = [moved[0]["rank"][cells[0]] for cells in shown]
    assert ranks == sorted(ranks)
    for label, *cells in shown:
        for one, text in zip(moved, cells, strict=True):
            assert text == f"{one['auprc'][label]:.4f} ({one['rank'][label]})".replace("0.", ".", 1)
    places = opened.page.locator("#labels-places").inner_text()
    for one in moved[1:]:
        assert (one["change"] in places) == bool(one["change_places"])
    assert opened.complaints == []


def test_the_calibration_stands_below_the_thresholds(opened):
    opened.see("thresholds")
    found = opened.page.evaluate("() => board().calibration")
    rows = opened.page.locator("#calibration-table tbody tr").all()
    assert [row.locator("td").all_text_contents() for row in rows] == found["rows"]
    assert opened.page.locator("#calibration-table th").all_text_contents() == found["header"]
    assert opened.page.locator("#calibration-legend").text_content() == found["legend"]
    assert "too few" in found["rows"][0]
    assert opened.complaints == []


def test_the_table_sorts_by_mouse_and_by_keyboard(opened):
    first = [float(text.split("(")[0].rstrip("↓\n")) for text in column(opened, "AUPRC")]
    assert first == sorted(first, reverse=True)
    assert len(first) == 2
    head = opened.page.get_by_role("button", name=re.compile("^Recall"))
    head.click()
    recalls = column(opened, "Recall")
    assert recalls == sorted(recalls, reverse=True)
    assert opened.page.locator("th[aria-sort='descending']").inner_text().strip() == "Recall"
    opened.page.keyboard.press("Enter")
    assert opened.page.locator("th[aria-sort='ascending']").inner_text().strip() == "Recall"
    assert column(opened, "Recall") == sorted(recalls)
    assert opened.page.locator("#table tbody").nth(1).inner_text().startswith("Floors")


def test_only_the_best_floor_in_each_metric_is_in_sight_until_all_are_asked_for(opened):
    floors = opened.page.locator("#table tbody").nth(1).locator("tr")
    heads = opened.page.locator("#table thead th").all_inner_texts()

    def values(place: int) -> list[str]:
        return [row.locator("th, td").nth(place).inner_text().rstrip("↓") for row in floors.all()[1:]]

    folded = {head: values(place) for place, head in enumerate(heads)}
    assert "the best in each metric of 3" in floors.first.inner_text()
    opened.page.get_by_label("all floors").check()
    assert floors.first.inner_text() == "Floors: what one-liners get"
    unfolded = {head: values(place) for place, head in enumerate(heads)}
    assert 1 <= len(folded["Detector"]) < len(unfolded["Detector"]) == 3
    for head in ("AUROC", "AUPRC", "MCC", "Precision", "Recall", "Prac-F1", "BF-F1*"):
        assert max(map(float, folded[head])) == max(map(float, unfolded[head])), head


def test_floors_can_be_ranked_among_the_detectors_and_costs_be_shown(opened):
    opened.page.get_by_label("rank floors among the detectors").check()
    opened.page.get_by_label("all floors").check()
    assert len(column(opened, "AUPRC")) == 5
    opened.page.locator("#column-choice summary").click()
    opened.page.get_by_label("cost").check()
    for title in ("Fit (s)", "Rows/s", "Memory (MiB)", "Score (s)", "CPU (s)"):
        assert all(re.fullmatch(r"[\d.,e+-]+", text) for text in column(opened, title)), title
    opened.page.get_by_role("button", name="Rows/s").click()
    speeds = [float(text.replace(",", "")) for text in column(opened, "Rows/s")]
    assert speeds == sorted(speeds, reverse=True)
    opened.page.get_by_label("throughput").uncheck()
    assert "Rows/s" not in opened.page.locator("#table thead").inner_text()


def test_quality_stands_against_speed_and_the_metric_can_be_chosen(opened):
    opened.see("speed")
    traces = "(id) => byId(id).data.map((one) => [one.name, [...one.x], [...one.y]])"
    for place in ("speed-fit", "speed-rows"):
        (detectors, floors, front) = opened.page.evaluate(traces, place)
        assert (detectors[0], floors[0], front[0]) == ("detectors", "floors", "front")
        assert (len(detectors[1]), len(floors[1])) == (2, 3)
        assert all(seconds > 0 for seconds in (*detectors[1], *floors[1]))
        assert set(zip(front[1], front[2], strict=True)) <= {
            point for _, xs, ys in (detectors, floors) for point in zip(xs, ys, strict=True)
        }
        assert front[1] == sorted(front[1])
        assert opened.page.evaluate("(id) => byId(id).layout.xaxis.type", place) == "log"
    before = opened.page.evaluate(traces, "speed-fit")
    opened.page.locator("#speed-metric").select_option("recall")
    opened.see("speed")
    after = opened.page.evaluate(traces, "speed-fit")
    assert after[0][1] == before[0][1]
    assert after[0][2] != before[0][2]
    assert opened.complaints == []


def test_time_zooms_by_buttons_keys_and_mouse(opened):
    opened.see("recording")
    width = "() => { const [a, b] = byId('recording-chart').layout.xaxis.range.map(Number); return b - a; }"
    whole = opened.page.evaluate(width)
    opened.page.locator("[data-move=in]").click()
    assert opened.page.evaluate(width) == pytest.approx(whole / 2)
    opened.page.locator("#recording-chart").focus()
    opened.page.keyboard.press("+")
    assert opened.page.evaluate(width) == pytest.approx(whole / 4)
    opened.page.keyboard.press("0")
    assert opened.page.evaluate(width) == pytest.approx(199, rel=0.02)
    box = opened.page.locator("#recording-chart .nsewdrag").first.bounding_box()
    opened.page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 10)
    opened.page.mouse.down()
    opened.page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 10, steps=5)
    opened.page.mouse.up()
    assert opened.page.evaluate(width) == pytest.approx(0.2 * 199, rel=0.2)
    assert opened.complaints == []


def test_recordings_detectors_and_sensors_can_be_chosen(opened):
    opened.see("recording")
    opened.page.get_by_role("button", name="Next").click()
    opened.see("recording")
    assert QUOTES in opened.page.locator("#recording-lead").inner_text()
    opened.page.locator("#recording-choice").select_option(label="short")
    opened.see("recording")
    assert "20 rows" in opened.page.locator("#recording-lead").inner_text()
    assert opened.page.get_by_role("button", name="Next").is_disabled()
    lanes = opened.page.locator("#recording-chart .annotation-text")
    before = lanes.count()
    opened.page.locator("#detectors input").first.uncheck()
    opened.see("recording")
    assert lanes.count() < before
    opened.page.locator("#map-choice").select_option(index=1)
    opened.see("recording")
    assert "contributions to" in " ".join(lanes.all_text_contents())
    assert opened.complaints == []


def test_a_split_with_one_class_and_one_without_rows(opened):
    for split, lead in (("one class", "one class of rows only"), ("no rows", "one class of rows only")):
        opened.page.locator("#split").select_option(split)
        opened.see("curves")
        assert lead in opened.page.locator("#curves-lead").inner_text()
        for section in FIGURES:
            opened.see(section)
    assert "0 rows" in opened.page.locator("#table caption").inner_text()
    assert opened.complaints == []


def test_dark_and_light(open_page, page_file):
    ground = "() => getComputedStyle(document.body).backgroundColor"
    dark = open_page(page_file, color_scheme="dark")
    assert dark.page.evaluate(ground) == "rgb(18, 22, 27)"
    dark.page.get_by_role("button", name="Change between light and dark").click()
    assert dark.page.evaluate(ground) == "rgb(255, 255, 255)"
    assert dark.complaints == []


def test_on_a_phone_nothing_hangs_over_the_edge(open_page, page_file):
    phone = open_page(page_file, viewport={"width": 390, "height": 844}, device_scale_factor=2, has_touch=True)
    for section in FIGURES:
        phone.see(section)
    assert phone.page.evaluate("() => document.documentElement.scrollWidth") <= 390
    assert phone.complaints == []


def test_everything_can_be_reached_by_keyboard_and_has_a_name(opened):
    nameless = """() => [...document.querySelectorAll('button, select, input, [tabindex="0"]')].filter(
        (one) => one.checkVisibility() && !(one.labels && one.labels.length) && !one.innerText.trim()
            && !one.getAttribute('aria-label')).map((one) => one.outerHTML.slice(0, 90))"""
    for section in FIGURES:
        opened.see(section)
    assert opened.page.evaluate(nameless) == []
    opened.page.keyboard.press("Tab")
    assert opened.page.evaluate("() => document.activeElement.className") in {"skip", "", "modebar-btn"}
    assert opened.page.locator("html[lang=en]").count() == 1


def test_a_store_of_failures_is_a_page_too(open_page, hostile_store, hostile, tmp_path):
    store = Store.create(tmp_path / "runs")
    failed = next(record for record in hostile_store.records() if record.status == "error")
    from tsadbench.execution.trial import Outcome

    store.add(Outcome(failed, {}))
    opened = open_page(write_report(store, lambda name: hostile, tmp_path / "page"))
    assert "error in 1 of 1 trials: <script>" in opened.page.locator("#table .failed").inner_text()
    assert opened.page.locator("#curves").is_hidden()
    opened.see("trials")
    assert opened.complaints == []


def test_without_the_data_the_tables_say_so(open_page, hostile_store, tmp_path):
    from tsadbench.errors import DataError

    def gone(name: str):
        raise DataError("the folder is empty")

    opened = open_page(write_report(hostile_store, gone, tmp_path))
    assert "No curves and series: the folder is empty" in opened.page.locator("#notes").inner_text()
    assert opened.page.locator("#recording").is_hidden()
    assert opened.page.locator("#table tbody tr").count() > 4
    assert opened.complaints == []


def test_a_data_set_with_entities_shows_means_their_spread_and_each_entitys_number(open_page, tmp_path):
    made = made_machines(tmp_path, "t2")
    opened = open_page(write_report(made.store, lambda _: made.data, tmp_path / "report"))
    assert "mean over 3 entities, one model each" in opened.page.locator("#table caption").inner_text()
    spread = opened.page.locator("#table td.metric .spread[title*=entity]").first
    assert re.fullmatch(r"±\d?\.\d\d", spread.inner_text())
    assert re.search(r"alpha [\d.]+, beta [\d.]+, gamma", spread.get_attribute("title"))
    opened.see("curves")
    assert "curves and crosses are means over the entities" in opened.page.locator("#curves-lead").inner_text()
    assert opened.complaints == []
