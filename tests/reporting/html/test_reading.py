"""What a reader does with the page, in a real Chromium: on a desktop, on a phone, on paper."""

from __future__ import annotations

import csv
import re
import unicodedata
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qs, urlencode

import numpy as np
import pytest
from pypdf import PdfReader
from scipy.stats import rankdata

from tests.helpers.reported import START
from tsadbench.analysis.events import recording_events
from tsadbench.analysis.significance.compare import compare
from tsadbench.analysis.significance.rank import rank
from tsadbench.results.trial_result import TrialResult

pytestmark = pytest.mark.browser

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
SECTIONS = ("heat", "significance", "ranks", "seeds", "speed", "curves", "recording", "pair", "densities", "thresholds")


@pytest.fixture
def desktop(open_page, reported_store):
    opened = open_page(reported_store.file)
    yield opened
    assert opened.complaints == []
    assert [url for url in opened.requests if not url.startswith(("file:", "blob:"))] == []


@pytest.fixture
def phone(open_page, reported_store):
    opened = open_page(reported_store.file, **PHONE)
    yield opened
    assert opened.complaints == []
    assert [url for url in opened.requests if not url.startswith(("file:", "blob:"))] == []


def results(reported, label: str) -> list[TrialResult]:
    records = [one for one in reported.store.records() if (one.dataset, one.label) == ("plant", label)]
    return [TrialResult(one, reported.store, reported.data["plant"]) for one in records]


def names(opened) -> list[str]:
    return opened.page.locator("#table tbody th[scope=row]").evaluate_all("(all) => all.map((one) => one.title)")


def checkbox(opened, name: str):
    return opened.page.get_by_role("checkbox", name=name, exact=True)


def heads(opened) -> list[str]:
    return [" ".join(text.split()) for text in opened.page.locator("#table thead th").all_inner_texts()]


def choice(opened) -> dict[str, list[str]]:
    return parse_qs(opened.page.evaluate("() => location.hash").removeprefix("#"), keep_blank_values=True)


def box_of(opened, selector: str) -> dict[str, float]:
    return opened.page.locator(selector).bounding_box()


class TestHover:
    def test_a_box_beside_the_point_says_clock_time_row_label_and_every_value(self, desktop, reported_store):
        desktop.see("recording")
        area = desktop.page.locator("#recording-chart .nsewdrag").first.bounding_box()
        for share in (0.25, 0.48, 0.9):
            x, y = area["x"] + share * area["width"], area["y"] + 10
            desktop.page.mouse.move(x, y)
            box = desktop.page.locator(".readout").first
            title = box.locator("strong").inner_text()
            clock, row = re.fullmatch(r"(\S+), row (\d+)", title).groups()
            assert abs(int(row) - share * 239) < 1
            assert clock == datetime.fromtimestamp(START + int(row), UTC).isoformat().removesuffix("+00:00")
            said = dict(zip(box.locator("dt").all_inner_texts(), box.locator("dd").all_inner_texts(), strict=True))
            assert said["label"] == ("anomalous" if 100 <= int(row) < 140 else "normal")
            one = results(reported_store, "t2")[0].recordings["run 0"]
            assert said["t2"].startswith(f"{one.scores[int(row)]:.2f}"[:3])
            assert ("flagged" in said["t2"]) == bool(one.flagged[int(row)])
            assert float(said["flow"]) == pytest.approx(one.recording.values[int(row), 0], abs=0.01)
            place = box.bounding_box()
            assert place["x"] > x + 10 or place["x"] + place["width"] < x - 10
            assert place["x"] >= 0
            assert place["x"] + place["width"] <= 1280
            ground = box.evaluate("(one) => [getComputedStyle(one).backgroundColor, getComputedStyle(one).opacity]")
            assert ground == ["rgb(255, 255, 255)", "1"]

    def test_without_a_clock_it_says_the_row_and_the_keyboard_moves_it(self, desktop):
        desktop.page.locator("#recording-choice").select_option(label="clockless")
        desktop.see("recording")
        desktop.page.locator("#recording-chart").focus()
        for _ in range(3):
            desktop.page.keyboard.press(".")
        assert desktop.page.locator(".readout strong").first.inner_text() == "row 2"
        desktop.page.keyboard.press(",")
        assert desktop.page.locator("#spoken").inner_text().startswith("row 1")
        desktop.page.keyboard.press("Escape")
        assert desktop.page.locator(".readout").first.is_hidden()

    def test_of_neighbouring_rows_drawn_together_it_says_all_rows_and_both_values(self, desktop):
        said = desktop.page.evaluate(
            """() => {
                const pack = (list) => btoa(String.fromCharCode(...new Uint8Array(Float32Array.from(list).buffer)));
                const one = { clock: null, timed: true, rows: pack([0, 3, 4, 7]), time: pack([0, 30, 40, 70]) };
                const values = Float32Array.from([1, 5, 2, NaN]);
                return [whenAt(one, 1), valueAt(one, values, 1), whenAt(one, 2), valueAt(one, values, 2)];
            }"""
        )
        assert said == ["30 s after the first row, rows 0 to 3", "1 to 5", "40 s after the first row, rows 4 to 7", "2"]

    def test_other_charts_have_opaque_labels_and_no_button_sends_a_chart_away(self, desktop):
        for section in ("seeds", "recording"):
            desktop.see(section)
        assert desktop.page.evaluate("() => byId('seed-chart').layout.hoverlabel.bgcolor") == "#ffffff"
        titles = desktop.page.locator(".modebar-btn").evaluate_all("(all) => all.map((one) => one.dataset.title)")
        assert "Zoom in" in titles
        assert not [title for title in titles if "hare" in title or "loud" in title]

    def test_a_touch_shows_it_within_the_phone(self, phone):
        phone.see("recording")
        area = phone.page.locator("#recording-chart .nsewdrag").first.bounding_box()
        for share in (0.2, 0.8):
            x = area["x"] + share * area["width"]
            phone.page.touchscreen.tap(x, area["y"] + 10)
            place = phone.page.locator(".readout").first.bounding_box()
            assert place["x"] >= 0
            assert place["x"] + place["width"] <= 390
            assert place["x"] > x or place["x"] + place["width"] < x


@pytest.mark.parametrize("width", [1280, 700, 390])
def test_a_click_in_the_bar_leads_to_a_heading_that_stays_in_sight(open_page, reported_store, width):
    opened = open_page(reported_store.file, viewport={"width": width, "height": 844})
    for section in ("thresholds", "ranks", "pair"):
        opened.page.locator(f"#sections a[data-section={section}]").click()
        opened.page.wait_for_timeout(400)
        heading = box_of(opened, f"#h-{section}")
        bar = box_of(opened, "#bar")
        covered = bar["y"] + bar["height"] if width > 640 else 0
        assert covered <= heading["y"] <= covered + 60, section
        assert opened.page.evaluate("() => document.activeElement.id") == f"h-{section}"
        assert opened.page.locator("#sections a[aria-current]").get_attribute("data-section") == section
    assert opened.complaints == []


def test_the_head_of_a_long_table_stays_when_it_is_scrolled(desktop):
    desktop.page.set_viewport_size({"width": 1280, "height": 420})
    table = desktop.page.locator("#heat-table")
    table.scroll_into_view_if_needed()
    before = box_of(desktop, "#heat-table thead th:first-child")
    assert table.evaluate("(one) => { one.scrollTop = 1000; return one.scrollTop; }") > 10
    assert box_of(desktop, "#heat-table thead th:first-child")["y"] == pytest.approx(before["y"], abs=1)


def test_the_operating_columns_are_in_sight(desktop):
    wanted = {"Flagged", "False alarms/h", "Delay, s", "Coverage", "Threshold", "Found"}
    edges = {
        " ".join(head.inner_text().split()): head.bounding_box()
        for head in desktop.page.locator("#table thead th").all()
    }
    assert wanted <= edges.keys()
    for name in wanted:
        assert edges[name]["x"] + edges[name]["width"] <= 1280 - 20, name


def test_the_threshold_column_holds_the_stored_ones(desktop, reported_store):
    place = heads(desktop).index("Threshold")
    row = desktop.page.locator("#table tbody tr", has=desktop.page.locator("th[title=isolation-forest]"))
    low, high = sorted(one.record.thresholds[0].threshold.value for one in results(reported_store, "isolation-forest"))
    low_text, high_text = row.locator("th, td").nth(place).inner_text().split("\nto ")
    assert (float(low_text), float(high_text)) == pytest.approx((low, high), abs=1e-3)


class TestSearchAndColumns:
    def test_a_search_keeps_matching_rows_columns_of_the_heat_map_and_choices(self, desktop):
        assert len(names(desktop)) > 2
        desktop.page.get_by_label("Search").fill("FOREST isol")
        assert names(desktop) == ["isolation-forest"]
        assert "1 row matches" in desktop.page.locator("#found").inner_text()
        assert desktop.page.locator("#detectors label").all_inner_texts() == ["isolation-forest"]
        desktop.see("heat")
        assert desktop.page.locator("#heat-table thead th").all_inner_texts() == ["Recording", "isolation-forest"]
        desktop.page.get_by_label("Search").fill("<img")
        assert names(desktop) == []
        assert desktop.page.locator("#heat-table").inner_text() == "No detector with figures matches the search."

    def test_columns_are_chosen_one_by_one_and_by_group(self, desktop):
        assert "Score (s)" not in heads(desktop)
        desktop.page.locator("#column-choice summary").click()
        checkbox(desktop, "MCC").uncheck()
        assert "MCC" not in heads(desktop)
        assert checkbox(desktop, "quality").evaluate("(one) => one.indeterminate")
        assert desktop.page.evaluate("() => document.activeElement.labels[0].innerText") == "MCC"
        checkbox(desktop, "cost").check()
        assert {"Score (s)", "CPU (s)"} <= {*heads(desktop)}
        checkbox(desktop, "quality").uncheck()
        assert not {"AUROC", "AUPRC", "MCC", "Recall"} & {*heads(desktop)}
        assert {"Detector", "Flagged"} <= {*heads(desktop)}

    def test_the_csv_holds_exactly_the_rows_and_columns_in_sight(self, desktop, reported_store, tmp_path):
        checkbox(desktop, "all floors").check()
        desktop.page.locator("#column-choice summary").click()
        for group in ("in operation", "throughput", "trials"):
            checkbox(desktop, group).uncheck()
        desktop.page.get_by_role("button", name=re.compile("^Recall")).click()
        desktop.page.get_by_label("Search").fill("t")
        with desktop.page.expect_download() as started:
            desktop.page.get_by_role("button", name="Download as CSV").click()
        assert started.value.suggested_filename == "tsadbench-plant-strict-2-overall.csv"
        started.value.save_as(tmp_path / "shown.csv")
        with (tmp_path / "shown.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert [row["detector"] for row in rows] == names(desktop) != []
        metrics = ("precision", "recall", "prac_f1", "mcc", "auroc", "auprc", "bf_f1")
        columns = [f"{name}_{part}" for name in metrics for part in ("mean", "std")]
        assert list(rows[0]) == ["detector", "status", *columns]
        for row in rows:
            of_seeds = [
                one.record.splits["overall"].metrics["recall"] for one in results(reported_store, row["detector"])
            ]
            assert float(row["recall_mean"]) == pytest.approx(np.mean(of_seeds), rel=1e-12)
            assert (row["recall_std"] == "") == (len(of_seeds) == 1)

    def test_a_hostile_name_is_no_formula_in_the_csv(self, open_page, hostile_store, hostile, tmp_path):
        fields = ["=1+1", "-1", "a,b", 'say "x"', "two\nlines", None, -1.5]
        from tsadbench.reporting.html.build import write_report

        opened = open_page(write_report(hostile_store, lambda _: hostile, tmp_path / "page"))
        found = opened.page.evaluate("(all) => all.map(csvField).join(',')", fields)
        (line,) = csv.reader([found], strict=True) if "\n" not in found else [next(csv.reader(found.splitlines(True)))]
        assert line == ["'=1+1", "'-1", "a,b", 'say "x"', "two\nlines", "", "-1.5"]
        rows = list(csv.DictReader(opened.page.evaluate("() => csvOfTable()").splitlines(keepends=True)))
        shown = opened.page.evaluate("() => blocks().flatMap((one) => one.rows.map((row) => row.label))")
        assert [row["detector"].removeprefix("'") for row in rows] == shown
        assert {row["status"] for row in rows} == {"ok", "error"}


class TestAddress:
    def test_a_reload_restores_every_choice(self, desktop):
        page = desktop.page
        page.locator("#board").select_option(label="mill, strict 2")
        page.locator("#split").select_option("some")
        page.get_by_role("button", name=re.compile("^Recall")).click()
        page.locator("#column-choice summary").click()
        checkbox(desktop, "MCC").uncheck()
        page.get_by_label("Search").fill("t2")
        page.locator("#detectors label", has_text="t2").locator("input").uncheck()
        page.locator("#recording-choice").select_option(label="run 4")
        page.locator("#heat-metric").select_option("mcc")
        page.locator("#pair-first").select_option("isolation-forest")
        page.locator("#pair-second").select_option("sensor-range")
        page.locator("#pair-scale").select_option("threshold")
        page.locator("#sections a[data-section=pair]").click()
        wanted = {
            "board": ["mill, strict 2"], "split": ["some"], "sort": ["-recall"], "search": ["t2"],
            "recording": ["run 4"], "heat": ["mcc"], "first": ["isolation-forest"], "second": ["sensor-range"],
            "scale": ["threshold"], "at": ["pair"],
        }  # fmt: skip
        held = choice(desktop)
        assert {key: held.get(key) for key in wanted} == wanted
        assert "mcc" in held["hide"]
        assert "t2" not in held["detector"]
        state = """() => [shown.board, shown.split, sorting.column, sorting.descending, shown.query,
            [...shown.hidden].sort(), [...shown.detectors].sort(), shown.recording, shown.heat, shown.first,
            shown.second, shown.scale]"""
        before, rows, columns = page.evaluate(state), names(desktop), heads(desktop)
        page.reload()
        assert page.evaluate(state) == before
        assert (names(desktop), heads(desktop)) == (rows, columns)
        assert page.get_by_label("Search").input_value() == "t2"
        assert page.locator("#recording-choice option:checked").inner_text() == "run 4"
        assert page.locator("#pair-scale").input_value() == "threshold"
        assert page.locator("#board option:checked").inner_text() == "mill, strict 2"
        assert abs(box_of(desktop, "#h-pair")["y"] - box_of(desktop, "#bar")["height"]) < 60
        assert choice(desktop) == held

    def test_the_way_back_undoes_one_choice_at_a_time(self, desktop):
        page = desktop.page
        page.get_by_role("button", name=re.compile("^Recall")).click()
        page.locator("#recording-choice").select_option(label="run 4")
        page.get_by_role("button", name="Next").click()
        assert page.locator("#recording-choice option:checked").inner_text() == "run 5"
        page.go_back()
        assert page.locator("#recording-choice option:checked").inner_text() == "run 4"
        page.go_back()
        assert page.locator("#recording-choice option:checked").inner_text() == "run 0"
        assert page.locator("th[aria-sort]").inner_text().startswith("Recall")
        page.go_back()
        assert page.locator("th[aria-sort]").inner_text().startswith("AUPRC")
        assert choice(desktop) == {}
        page.go_forward()
        assert page.locator("th[aria-sort]").inner_text().startswith("Recall")

    @pytest.mark.parametrize(
        "address",
        [
            "%",
            "%%%=%E0%A4%A",
            "=".join(["board"] * 5000),
            "__proto__=1&constructor=x&board=__proto__&split=__proto__&sort=__proto__&heat=constructor&metric=toString",
            urlencode({
                "board": "<img src=x onerror=alert(1)>", "split": "nowhere", "sort": "-<script>", "hide": "label",
                "search": "<img src=x onerror=alert(1)>", "detector": "<svg onload=alert(1)>", "recording": "-1",
                "first": "none", "second": "", "scale": "javascript:alert(1)", "at": "content", "floors": "7",
            }),
            "at=javascript:alert(1)",
            "content",
        ],
    )  # fmt: skip
    def test_an_address_that_names_nothing_of_the_page_changes_nothing_else(self, desktop, address):
        page = desktop.page
        usual = names(desktop), heads(desktop)
        page.goto(f"{desktop.url}#{address}")
        page.reload()
        page.get_by_label("Search").fill("")
        assert (names(desktop), heads(desktop)) == usual
        assert page.locator("img, svg[onload]").count() == 0
        assert page.evaluate("() => [shown.scale, shown.split, sorting.column]") == ["rank", "overall", "auprc"]
        desktop.see("pair")


class TestHeatMap:
    def test_its_cells_are_the_metric_of_each_recording_by_itself_over_seeds(self, desktop, reported_store):
        desktop.see("heat")
        for metric in ("auroc", "events_found"):
            desktop.page.locator("#heat-metric").select_option(metric)
            desktop.see("heat")
            labels = desktop.page.locator("#heat-table thead th").all_inner_texts()[1:]
            assert {*labels} == {"t2", "isolation-forest", "max-z", "sensor-range", "random"}
            cells = {
                row.locator("th").inner_text(): dict(zip(labels, row.locator("td").all_inner_texts(), strict=True))
                for row in desktop.page.locator("#heat-table tbody tr").all()
            }
            for label in labels:
                of_seeds = results(reported_store, label)
                for name in cells:
                    if name == "calm":
                        assert cells[name][label] == "\u2013"
                        continue
                    if metric == "auroc":
                        expected = np.mean([one.judged[name].metrics[metric] for one in of_seeds])
                    else:
                        expected = np.mean([one.found for one in recording_events(of_seeds[0].recordings[name])])
                    assert float(cells[name][label]) == pytest.approx(expected, abs=6e-3 if metric != "auroc" else 6e-4)

    @pytest.mark.parametrize("where", ["desktop", "phone"])
    def test_a_click_leads_to_the_recording_with_the_detector(self, request, where):
        opened = request.getfixturevalue(where)
        opened.see("heat")
        opened.page.locator("#detectors label", has_text="isolation-forest").locator("input").uncheck()
        row = opened.page.locator("#heat-table tbody tr", has_text="run 6")
        row.locator("td[data-detector=isolation-forest]").click()
        assert opened.page.locator("#recording-choice option:checked").inner_text() == "run 6"
        assert opened.page.locator("#detectors label", has_text="isolation-forest").locator("input").is_checked()
        assert opened.page.evaluate("() => document.activeElement.id") == "h-recording"
        opened.page.go_back()
        assert opened.page.locator("#recording-choice option:checked").inner_text() == "run 0"
        opened.see("heat")
        opened.page.locator("#heat-table").get_by_role("button", name="run 2").focus()
        opened.page.keyboard.press("Enter")
        assert opened.page.locator("#recording-choice option:checked").inner_text() == "run 2"


class TestTwoDetectors:
    def test_events_flags_and_ranks_are_the_stored_ones(self, desktop, reported_store):
        desktop.page.locator("#pair-first").select_option("t2")
        desktop.page.locator("#pair-second").select_option("isolation-forest")
        desktop.page.locator("#pair-recording").select_option(label="run 5")
        desktop.see("pair")
        (first, second) = (
            results(reported_store, label)[0].recordings["run 5"] for label in ("t2", "isolation-forest")
        )
        assert [one.found for one in recording_events(first)] != [one.found for one in recording_events(second)]
        cells = desktop.page.locator("#pair-table tbody tr").first.locator("th, td").all_inner_texts()
        start = datetime.fromtimestamp(START + 5 * 86400 + 100, UTC).isoformat().removesuffix("+00:00")
        assert cells[0].startswith(start)
        assert (cells[1].startswith("found"), cells[2], cells[3]) == (True, "missed", "only t2")
        lead = desktop.page.locator("#pair-lead")
        assert lead.inner_text() == "run 5: t2 against isolation-forest. Only t2 finds its event."
        traces = desktop.page.evaluate("() => byId('pair-chart').data.map((one) => [[...one.x], [...one.y]])")
        ranks = [(rankdata(one.scores) - 0.5) / len(one.scores) for one in (first, second)]
        np.testing.assert_allclose(traces[0][1], ranks[0], atol=1e-2)
        np.testing.assert_allclose(traces[2][1], np.subtract(*ranks), atol=2e-2)
        flags = [one.flagged & one.evaluated for one in (first, second)]
        for (x, _), expected in zip(
            traces[3:6], (flags[0] & ~flags[1], flags[1] & ~flags[0], flags[0] & flags[1]), strict=True
        ):
            drawn = np.zeros(len(expected), dtype=bool)
            for low, high in zip(x[::3], x[1::3], strict=False):
                if high is not None:
                    drawn[int(low) : int(high)] = True
            np.testing.assert_array_equal(drawn, expected)

    def test_scores_as_multiples_of_the_thresholds_put_both_thresholds_at_one(self, desktop, reported_store):
        desktop.page.locator("#pair-first").select_option("t2")
        desktop.page.locator("#pair-second").select_option("max-z")
        desktop.page.locator("#pair-scale").select_option("threshold")
        desktop.see("pair")
        one = results(reported_store, "t2")[0].recordings["run 0"]
        drawn = desktop.page.evaluate("() => [...byId('pair-chart').data[0].y]")
        np.testing.assert_allclose(np.sinh(drawn), one.scores / one.threshold, rtol=1e-3)
        line = desktop.page.evaluate("() => byId('pair-chart').data.at(-1).y")
        assert np.sinh(line) == pytest.approx([1.0, 1.0])

    def test_spans_are_cut_and_joined_like_sets_of_rows(self, desktop):
        rng = np.random.default_rng(0)
        for _ in range(30):
            masks = rng.random((2, 40)) < 0.5
            spans = [
                [[int(a), int(b)] for a, b in np.flatnonzero(np.diff(np.r_[False, mask, False])).reshape(-1, 2)]
                for mask in masks
            ]
            both, only = desktop.page.evaluate("([a, b]) => [common(a, b), without(a, b)]", spans)
            for found, expected in ((both, masks[0] & masks[1]), (only, masks[0] & ~masks[1])):
                covered = np.zeros(40, dtype=bool)
                for low, high in found:
                    covered[low:high] = True
                np.testing.assert_array_equal(covered, expected)


class TestStatistics:
    def test_significance_is_what_compare_says(self, desktop, reported_store):
        labels = desktop.page.evaluate("() => board().significance.tables[0].rows.map((row) => row[0])")
        found = compare(reported_store.store, labels, dataset=reported_store.data["plant"], split="overall")
        text = desktop.page.locator("#significance").inner_text()
        assert "8 sessions" in found.title
        for sentence in (found.title, *found.inference.conclusions, *found.notes):
            assert sentence in text
        for _, header, rows in found.tables():
            table = desktop.page.locator("#significance table", has_text=header[1]).filter(has_text=header[-1]).first
            assert [row.locator("th, td").all_inner_texts() for row in table.locator("tbody tr").all()] == rows

    def test_ranks_over_the_data_sets_are_what_rank_says(self, desktop, reported_store):
        (found,) = rank([reported_store.store]).over_all
        title, header, rows = found.table
        table = desktop.page.locator("#ranks table")
        assert desktop.page.locator("#ranks h3").inner_text() == title
        assert table.locator("thead th").all_inner_texts() == header
        assert [row.locator("th, td").all_inner_texts() for row in table.locator("tbody tr").all()] == rows


class TestPhone:
    def test_nothing_is_cut_and_tables_scroll_in_their_own_box(self, phone):
        for section in SECTIONS:
            if section in ("significance", "ranks"):
                phone.page.locator(f"#{section}").scroll_into_view_if_needed()
            else:
                phone.see(section)
            assert phone.page.evaluate("() => document.documentElement.scrollWidth") <= 390, section
        inside = """() => [...document.querySelectorAll('main *')].filter((one) => one.checkVisibility()
            && !one.closest('.scroll, svg, .unseen, .readout, select, pre') && one.getBoundingClientRect().right > 391)
            .map((one) => one.outerHTML.slice(0, 80))"""
        assert phone.page.evaluate(inside) == []
        table = phone.page.locator("#leaderboard .scroll")
        assert table.evaluate("(one) => one.scrollWidth > one.clientWidth")
        first = phone.page.locator("#table tbody th[scope=row]").first
        before = first.bounding_box()["x"]
        table.evaluate("(one) => { one.scrollLeft = 5000; }")
        assert first.bounding_box()["x"] == pytest.approx(before, abs=1)
        last = phone.page.locator("#table thead th").last.bounding_box()
        assert last["x"] + last["width"] <= 390
        assert phone.page.locator(".modebar-btn:visible").count() == 0

    def test_search_choices_and_the_address_work_there_too(self, phone):
        phone.page.get_by_label("Search").fill("forest")
        assert names(phone) == ["isolation-forest"]
        phone.page.locator("#column-choice summary").click()
        checkbox(phone, "MCC").uncheck()
        phone.page.locator("#pair-second").select_option("random")
        phone.page.reload()
        assert names(phone) == ["isolation-forest"]
        assert "MCC" not in heads(phone)
        assert phone.page.locator("#pair-second").input_value() == "random"
        with phone.page.expect_download() as started:
            phone.page.get_by_role("button", name="Download as CSV").click()
        header, row = Path(started.value.path()).read_text(encoding="utf-8").splitlines()
        assert "mcc" not in header
        assert row.startswith("isolation-forest,ok,")


class TestPaper:
    def test_everything_is_drawn_expanded_light_and_within_the_sheet(self, open_page, reported_store):
        opened = open_page(reported_store.file, color_scheme="dark")
        opened.page.emulate_media(media="print")
        opened.page.wait_for_function("() => 'paper' in document.documentElement.dataset")
        assert opened.page.evaluate("() => document.documentElement.dataset.theme") == "light"
        for section in SECTIONS:
            assert opened.page.locator(f"#{section}").is_visible(), section
        for chart in opened.page.locator(".chart:visible").all():
            box = chart.bounding_box()
            assert box["height"] <= 660
            assert box["x"] + box["width"] <= 1041
            assert chart.evaluate("(one) => getComputedStyle(one).breakInside") == "avoid"
            if chart.locator("svg").count():
                assert chart.locator("svg.main-svg").first.bounding_box()["width"] <= box["width"] + 1
        wide = """() => [...document.querySelectorAll('main th, main td')].filter((one) => one.checkVisibility()
            && one.getBoundingClientRect().right > 1041).map((one) => one.innerText)"""
        assert opened.page.evaluate(wide) == []
        assert opened.page.locator("#threshold-table").is_visible()
        assert opened.page.locator("#search, nav, #heat-metric, #theme").locator("visible=true").count() == 0
        opened.page.emulate_media(media="screen")
        opened.page.wait_for_function("() => !('paper' in document.documentElement.dataset)")
        assert opened.page.evaluate("() => document.documentElement.dataset.theme") == "dark"
        assert opened.page.locator("#threshold-table").is_hidden()
        assert opened.page.locator("#search").is_visible()
        assert opened.complaints == []

    def test_a_printed_page_holds_every_section_column_and_row(self, open_page, reported_store, tmp_path):
        opened = open_page(reported_store.file)
        opened.page.pdf(path=tmp_path / "report.pdf", prefer_css_page_size=True)
        sheets = PdfReader(tmp_path / "report.pdf").pages
        assert {one.mediabox.width > one.mediabox.height for one in sheets} == {True}
        text = " ".join(unicodedata.normalize("NFKC", "\n".join(one.extract_text() for one in sheets)).split())
        for title in opened.page.locator("main h2:visible").all_inner_texts():
            assert title in text
        for words in ("Memory", "Threshold", "isolation-forest", "sensor-range", "Found by", "clockless", "End point"):
            assert words in text, words
        assert not opened.page.evaluate("() => 'paper' in document.documentElement.dataset")

    def test_a_wide_heat_map_is_printed_in_parts(self, open_page, reported_store):
        opened = open_page(reported_store.file)
        opened.page.evaluate(
            """() => {
                const [first] = board().detectors;
                for (let i = 0; i < 40; i += 1) board().detectors.push({ ...first, label: `copy ${i}` });
            }"""
        )
        opened.page.emulate_media(media="print")
        opened.page.wait_for_function("() => 'paper' in document.documentElement.dataset")
        parts = opened.page.locator("#heat-table table").all()
        shown = [text for one in parts for text in one.locator("thead th").all_inner_texts()[1:]]
        assert len(parts) == 3
        assert len(shown) == len({*shown}) == 45
        for one in parts:
            box = one.bounding_box()
            assert box["x"] + box["width"] <= 1041
