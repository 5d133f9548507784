"""The site in a real, headless Chromium, opened from files: no server, no other host."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest
from playwright.sync_api import expect

from tests.helpers.plant import wait_until
from tests.reporting.site.conftest import DATASET, QUOTES, SCRIPT
from tsadbench.utils.shipped_tables import LEADERBOARDS

pytestmark = pytest.mark.browser

SKAB = "data=skab"
# What is wider than a phone and does not lie in a box that scrolls.
_WIDE = """() => [...document.querySelectorAll("main *, header *, nav *")].filter((each) => {
    const { right, width } = each.getBoundingClientRect();
    const { position } = getComputedStyle(each);
    return !each.closest(".scroll, pre, .prose") && right > 391 && width > 0 && position !== "absolute";
}).map((each) => each.outerHTML.slice(0, 80))"""


def labels(opened, block: int = 0) -> list[str]:
    """Return the names in a block of the table: the detectors, the floors, what failed."""
    names = opened.page.locator("#table tbody").nth(block).locator("th[scope=row] .name").all_inner_texts()
    return [re.sub(r"^(\W+ )+", "", name) for name in names]


def cells(opened, heading: str) -> list[str]:
    heads = [text.strip() for text in opened.page.locator("#table thead th").all_inner_texts()]
    place = next(i for i, text in enumerate(heads) if text.startswith(heading))
    rows = opened.page.locator("#table tbody").first.locator("tr").all()
    return [row.locator("th, td").nth(place).inner_text() for row in rows]


def see(opened, section: str) -> None:
    opened.page.locator(f"#{section}").scroll_into_view_if_needed()


def committed(split: str = "overall") -> dict[str, dict[str, str]]:
    with (LEADERBOARDS / "skab" / "strict" / f"{split}.csv").open(encoding="utf-8") as stream:
        return {row["detector"]: row for row in csv.DictReader(stream)}


def test_the_first_page_ranks_over_the_suite_with_intervals_and_asks_no_other_host(opened, site):
    one = opened()
    assert one.page.locator("#dataset").input_value() == "suite all 1"
    ranks = [text.split("\n") for text in cells(one, "Mean rank")]
    values = [float(lines[0]) for lines in ranks if "on" not in lines[0]]
    assert values == sorted(values)
    standings = json.loads((LEADERBOARDS / "suites" / "all" / "rank.json").read_text(encoding="utf-8"))["standings"]
    complete = [one for one in standings if one["complete"]]
    assert len(values) == sum(not one["floor"] for one in complete)
    (first, *_) = labels(one)
    best = next(standing["mean_rank"] for standing in complete if standing["label"] == first)
    found = [float(text) for text in re.findall(r"[\d.]+", " ".join(ranks[0]))]
    assert found == pytest.approx([best["value"], best["low"], best["high"]], abs=0.006)
    assert re.search(r"on \d of \d+$", ranks[-1][0])
    see(one, "ranks")
    expect(one.page.locator("#ranks-chart .interval")).to_have_count(len(complete))
    assert one.requests
    assert all(address.startswith(f"file://{site}/") for address in one.requests)
    assert one.complaints == []


def test_data_set_protocol_and_split_are_chosen_and_their_rows_loaded_when_needed(opened):
    one = opened()
    assert not [address for address in one.requests if "/skab-strict-2/" in address]
    one.page.locator("#dataset").select_option("skab")
    expect(one.page.locator("#table caption")).to_contain_text("skab, protocol strict 2, split overall")
    one.page.locator("#split").select_option("valve2")
    expect(one.page.locator("#table caption")).to_contain_text("split valve2")
    assert [address.rpartition("data/")[2] for address in one.requests if "/skab-strict-2/" in address] == [
        "skab-strict-2/table.js",
        "skab-strict-2/overall.js",
        "skab-strict-2/valve2.js",
    ]
    rows = committed("valve2")
    assert cells(one, "AUPRC")[0].startswith(f"{float(rows[labels(one)[0]]['auprc_mean']):.4f}".lstrip("0"))
    one.page.locator("#protocol").select_option(label="published 2")
    expect(one.page.locator("#table caption")).to_contain_text("protocol published 2, split overall")
    assert one.complaints == []


def test_rows_are_sorted_by_any_column_and_floors_are_folded(opened):
    one = opened(state=SKAB)
    rows = committed()
    shown = labels(one)
    assert shown == sorted(shown, key=lambda label: -float(rows[label]["auprc_mean"]))
    folded = labels(one, 1)
    one.page.get_by_label("all floors").check()
    assert set(folded) < set(labels(one, 1))
    one.page.get_by_role("button", name="Fit (s)").click()
    assert labels(one) == sorted(shown, key=lambda label: float(rows[label]["fit_seconds"]))
    one.page.get_by_role("button", name="Fit (s)").click()
    assert labels(one) == sorted(shown, key=lambda label: -float(rows[label]["fit_seconds"]))


def test_filters_keep_the_rows_that_they_name(opened):
    one = opened(state=SKAB)
    rows = committed()
    everything = labels(one)
    one.page.get_by_label("Graphs").uncheck()
    assert labels(one) == [label for label in everything if rows[label]["family"] != "graph"]
    one.page.get_by_role("button", name="Remove filters").click()
    one.page.locator("#filter-ahead").select_option("0")
    causal = [label for label in everything if rows[label]["look_ahead"] == "0"]
    assert labels(one) == causal
    assert 0 < len(causal) < len(everything)
    assert one.page.locator("#found").inner_text().startswith(f"{len(causal) + len(labels(one, 1))} rows match")
    one.page.locator("#filter-seal").select_option("guarded")
    assert set(labels(one)) <= {label for label in causal if rows[label]["seal"] == "guarded"}
    one.page.get_by_role("button", name="Remove filters").click()
    one.page.locator("#filter-trust").select_option("reported")
    assert labels(one) == []
    one.page.locator("#filter-trust").select_option("rerun")
    one.page.locator("#filter-pretrained").select_option("no")
    assert labels(one) == everything
    assert one.complaints == []


def test_an_address_restores_what_was_shown_and_the_way_back_undoes_it(opened):
    one = opened(state=SKAB)
    one.page.locator("#split").select_option("valve1")
    expect(one.page.locator("#table caption")).to_contain_text("split valve1")
    one.page.get_by_label("Graphs").uncheck()
    one.page.get_by_role("button", name="AUROC").click()
    one.page.locator("#search").fill("a")
    shown, address = labels(one), one.page.url
    for part in ("data=skab", "split=valve1", "sort=-auroc", "search=a"):
        assert part in address
    other = opened(state=address.partition("#")[2])
    expect(other.page.locator("#table caption")).to_contain_text("split valve1")
    assert labels(other) == shown
    assert not other.page.get_by_label("Graphs").is_checked()
    one.page.go_back()
    expect(one.page.get_by_label("Graphs")).not_to_be_checked()
    one.page.go_back()
    expect(one.page.get_by_label("Graphs")).to_be_checked()
    expect(one.page.locator("#table caption")).to_contain_text("split valve1")
    assert one.complaints == other.complaints == []


def test_an_address_that_names_what_is_not_there_shows_a_usual_page(opened):
    one = opened(state="data=nothing&protocol=x&split=y&sort=-z&kind=a&trust=b&recording=c&at=d&heat=e")
    assert one.page.locator("#dataset").input_value() == "suite all 1"
    assert len(labels(one)) > 20
    assert one.complaints == []


def test_throughput_stands_against_quality_and_points_lead_to_pages(opened):
    one = opened(state=SKAB)
    see(one, "speed")
    n_rows = sum(len(labels(one, block)) for block in (0, 1)) + one.page.evaluate(
        "() => table().rows.filter((row) => row.folded).length"
    )
    for chart in ("#speed-fit", "#speed-rows"):
        expect(one.page.locator(f"{chart} .mark")).to_have_count(n_rows)
    titles = one.page.locator("#speed-fit title").all_text_contents()
    rows = committed()
    assert any(
        text.startswith(f"t2: AUPRC {float(rows['t2']['auprc_mean']):.4f}".replace("0.", ".")) for text in titles
    )
    front = one.page.evaluate("() => table().fronts.auprc.fit_seconds")
    assert one.page.locator("#speed-fit .named").count() <= len(front)
    one.page.locator("#speed-fit a[aria-label^='t2: ']").focus()
    one.page.keyboard.press("Enter")
    expect(one.page.locator("h1")).to_have_text("t2")


def test_recordings_by_detectors_lead_to_a_recording(opened):
    one = opened(state=SKAB)
    see(one, "heat")
    heads = one.page.locator("#heat-table thead th")
    expect(heads.first).to_have_text("Recording")
    assert one.page.locator("#heat-table tbody tr").count() == 34
    one.page.locator("#heat-table tbody button", has_text="valve2/1").click()
    expect(one.page.locator("#recording-lead")).to_contain_text("valve2/1: 1,033 evaluated rows")
    values = [float(text.split()[-3]) for text in one.page.locator("#recording-chart title").all_text_contents()]
    assert values == sorted(values, reverse=True)
    assert len(values) == heads.count() - 1
    assert "recording=valve2%2F1" in one.page.url
    again = opened(state=one.page.url.partition("#")[2])
    expect(again.page.locator("#recording-lead")).to_contain_text("valve2/1")
    assert one.complaints == again.complaints == []


@pytest.mark.parametrize("section", ["speed", "seeds", "heat", "recording"])
def test_an_address_leads_to_its_section_though_figures_above_it_load_their_data_first(opened, section):
    one = opened(state=f"{SKAB}&protocol=strict&at={section}")
    if section in ("heat", "recording"):
        expect(one.page.locator("#heat-table tbody tr")).to_have_count(34)
    below = f"document.querySelector('#{section} h2').getBoundingClientRect().top - byId('bar').offsetHeight"
    at_the_end = "scrollY + innerHeight > document.documentElement.scrollHeight - 2"
    wait_until(lambda: 0 <= one.page.evaluate(below) < (400 if one.page.evaluate(at_the_end) else 40), 20)
    assert one.complaints == []


def test_seeds_are_dots(opened):
    one = opened(state=SKAB)
    see(one, "seeds")
    seeds = one.page.evaluate("() => rowsInSight().reduce((sum, row) => sum + row.seeds.length, 0)")
    expect(one.page.locator("#seeds-chart .dot")).to_have_count(seeds)


def test_the_csv_holds_the_rows_in_sight(opened):
    one = opened(state=f"{SKAB}&search=t2")
    with one.page.expect_download() as download:
        one.page.get_by_role("button", name="Download as CSV").click()
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text(encoding="utf-8"))))
    assert [row["detector"] for row in rows] == labels(one)
    assert {"auprc_mean", "kind", "trust", "seal"} <= set(rows[0])


def test_a_detector_s_page_shows_its_rows_everywhere(opened):
    one = opened("detectors/t2.html")
    assert sorted(set(cells(one, "Data set"))) == ["gecco2018", "skab"]
    assert len(labels(one)) == 6
    one.page.locator("#filter-split").select_option("every")
    assert len(labels(one)) == 22
    one.page.locator("#filter-dataset").select_option("gecco2018")
    assert len(labels(one)) == 6
    again = opened("detectors/t2.html", one.page.url.partition("#")[2])
    assert len(labels(again)) == 6
    one.page.locator("#table tbody tr").first.get_by_role("link", name="overall").click()
    expect(one.page.locator("#table caption")).to_contain_text("gecco2018, protocol strict 2, split overall")
    assert labels(one) == ["t2[mean=10]"] or "t2" in labels(one)
    assert one.complaints == again.complaints == []


def test_pages_of_data_sets_and_protocols_show_their_tables(opened):
    one = opened("datasets/skab.html")
    assert one.page.locator("#dataset option").all_inner_texts() == ["skab"]
    assert one.page.locator("#protocol option").all_inner_texts() == ["strict 2", "published 2"]
    other = opened("protocols/strict.html")
    assert other.page.locator("#dataset option").all_inner_texts() == ["skab", "gecco2018"]
    assert one.complaints == other.complaints == []


@pytest.mark.parametrize("page", ["index.html", "detectors/t2.html", "datasets/skab.html", "protocols/strict.html"])
def test_on_a_phone_nothing_is_wider_than_the_screen(opened, page):
    one = opened(page, SKAB if page == "index.html" else "", viewport={"width": 390, "height": 800})
    for section in one.page.locator("main > section:visible").all():
        section.scroll_into_view_if_needed()
    assert one.page.evaluate("document.documentElement.scrollWidth") <= 390
    wide = one.page.evaluate(_WIDE)
    assert wide == []


def test_dark_follows_the_system_and_the_button_which_is_remembered(opened):
    def paper(one) -> str:
        return one.page.evaluate("getComputedStyle(document.body).backgroundColor")

    light, dark = opened(), opened(color_scheme="dark")
    assert paper(light) == "rgb(255, 255, 255)"
    assert paper(dark) == "rgb(18, 22, 27)"
    light.page.get_by_role("button", name="Change between light and dark").click()
    assert paper(light) == paper(dark)
    light.page.goto(light.url.replace("index.html", "datasets/skab.html"))
    assert paper(light) == paper(dark)
    see(light, "speed")
    ink = light.page.locator("#speed-fit text").first.evaluate("(each) => getComputedStyle(each).fill")
    assert ink == "rgb(230, 234, 238)"


def test_everything_can_be_reached_and_worked_with_the_keyboard(opened):
    one = opened(state=SKAB)
    one.page.keyboard.press("Tab")
    assert one.page.evaluate("document.activeElement.className") == "skip"
    reached = []
    for _ in range(60):
        one.page.keyboard.press("Tab")
        found = one.page.evaluate("document.activeElement.id || document.activeElement.textContent.trim().slice(0, 30)")
        outline = one.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", found
        reached.append(found)
        if found.startswith("AUPRC"):
            break
    for wanted in (
        "theme",
        "Detectors",
        "dataset",
        "protocol",
        "split",
        "search",
        "csv",
        "filter-trust",
        "filter-ahead",
    ):
        assert wanted in reached
    one.page.keyboard.press("Enter")
    rows = committed()
    assert labels(one) == sorted(labels(one), key=lambda label: float(rows[label]["auprc_mean"]))
    assert one.page.evaluate("document.activeElement.textContent").startswith("AUPRC")


def test_on_paper_everything_is_light_and_unfolded_and_choices_are_gone(opened):
    one = opened(state=SKAB, color_scheme="dark")
    see(one, "heat")
    expect(one.page.locator("#heat-table tbody tr").first).to_be_visible()
    one.page.emulate_media(media="print")
    one.page.wait_for_function("() => 'paper' in document.documentElement.dataset")
    assert one.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for gone in ("#bar", "#filter-choice", ".menu .pages", "#theme"):
        assert not one.page.locator(gone).is_visible()
    assert one.page.locator("#speed-fit .mark").count() > 0
    assert len(one.page.pdf(prefer_css_page_size=True)) > 20_000
    one.page.emulate_media(media="screen")
    one.page.wait_for_function("() => document.documentElement.dataset.theme === 'dark'")


def test_scores_of_a_recording_are_drawn_for_the_chosen_detectors_and_a_link_restores_them(opened, scored_site):
    def lanes(one) -> list[str]:
        return one.page.locator("#lanes .figure .named").all_text_contents()

    one = opened(folder=scored_site)
    see(one, "heat")
    expect(one.page.locator("#heat-table tbody tr").first).to_be_visible()
    one.see("recording")
    expect(one.page.locator("#lanes svg")).to_have_count(3)
    usual = lanes(one)
    assert set(usual) < {"t2", "pca", "max-z", "all-positive"}
    ids = one.page.locator("#recording-choice option").all_inner_texts()
    faulty = one.page.evaluate("() => board().recordings.findLastIndex((each) => each.n_anomalous > 0)")
    one.page.locator("#recording-choice").select_option(str(faulty))
    expect(one.page.locator("#series-lead")).to_contain_text(f"{ids[faulty]}: ")
    expect(one.page.locator("#lanes .truth").first).to_be_visible()
    for mark in ("score", "threshold", "uncounted"):
        assert one.page.locator(f"#lanes .{mark}").count() >= 3, mark
    expect(one.page.locator("#precision-recall .curve")).to_have_count(3)
    # Only what is looked at is loaded.
    assert len([address for address in one.requests if "/scores/" in address]) == 2

    one.page.locator("#series-choice summary").focus()
    one.page.keyboard.press("Enter")
    one.page.keyboard.press("Tab")
    assert one.page.evaluate("document.activeElement.closest('#scored') !== null")
    first = one.page.evaluate("document.activeElement.parentElement.title")
    one.page.keyboard.press("Space")
    expect(one.page.locator("#lanes svg")).to_have_count(2)
    assert lanes(one) == [label for label in usual if label != first]
    assert one.page.evaluate("document.activeElement.parentElement.title") == first
    one.page.get_by_role("checkbox", name="all-positive").check()
    expect(one.page.locator("#lanes svg")).to_have_count(3)
    one.page.locator("#series-axis").select_option("close")
    shown = lanes(one)

    again = opened(folder=scored_site, state=one.page.url.partition("#")[2])
    see(again, "recording")
    expect(again.page.locator("#lanes svg")).to_have_count(3)
    assert lanes(again) == shown != usual
    assert again.page.locator("#recording-choice").input_value() == str(faulty)
    assert again.page.locator("#series-axis").input_value() == "close"
    again.page.locator("#lanes").focus()
    again.page.keyboard.press("End")
    last = again.page.evaluate("() => drawnSeries.found.n_rows - 1")
    expect(again.page.locator("#series-at")).to_contain_text(f"row {last}: {shown[0]} ")
    one.page.go_back()
    expect(one.page.locator("#series-axis")).to_have_value("wide")
    assert one.complaints == again.complaints == []


def test_scores_fit_a_phone_and_paper(opened, scored_site):
    one = opened(folder=scored_site, viewport={"width": 390, "height": 800})
    see(one, "recording")
    expect(one.page.locator("#lanes svg")).to_have_count(3)
    assert one.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert one.page.evaluate(_WIDE) == []
    # What a site that was made without the data set has.
    without = "{ anomalous: null, evaluated: null, timed: false, clock: null }"
    one.page.evaluate(f"() => {{ Object.assign(drawnSeries.found, {without}); drawSeries(); }}")
    expect(one.page.locator("#series-note")).to_contain_text("Labels and times are neither in the tables nor in")
    expect(one.page.locator("#lanes .truth")).to_have_count(0)
    one.page.emulate_media(media="print")
    one.page.wait_for_function("() => document.querySelector('#lanes svg').getBoundingClientRect().width > 900")
    assert not one.page.locator("#series-choice").is_visible()


def test_hostile_names_are_shown_and_not_obeyed(opened, hostile_site):
    one = opened(folder=hostile_site)
    for section in ("speed", "seeds", "heat", "recording"):
        see(one, section)
    expect(one.page.locator("#heat-table tbody tr").first).to_be_visible()
    assert {SCRIPT, QUOTES, "../../../cva"} <= set(labels(one))
    assert DATASET in one.page.locator("#table caption").inner_text()
    for page in hostile_site.rglob("*.html"):
        one.page.goto(page.as_uri())
        assert one.page.evaluate("window.hit") is None
        assert one.page.locator("img").count() == 0
    assert one.complaints == []
    assert all(address.startswith(f"file://{hostile_site}/") for address in one.requests)


def test_pages_weigh_less_than_half_a_megabyte(opened, site):
    for page, state in (
        ("index.html", ""),
        ("index.html", SKAB),
        ("detectors/dprgm.html", ""),
        ("datasets/skab.html", ""),
    ):
        one = opened(page, state)
        files = {address.removeprefix("file://").partition("#")[0] for address in one.requests}
        assert sum((site / file).stat().st_size for file in files if file.startswith("/")) < 500_000, page
