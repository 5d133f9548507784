"""A report with names instead of labels, chosen columns and another order."""

from __future__ import annotations

import csv
import re

import pytest

from tests.helpers.hostile import BRACKETS, LONG, QUOTES, SCRIPT
from tsadbench.analysis.significance.compare import compare
from tsadbench.errors import UsageError
from tsadbench.leaderboard.presentation import Presentation
from tsadbench.reporting.html.build import report_content, write_report

# Chromium draws every page here: `make test-long`.
pytestmark = pytest.mark.long

TAGS = "Hotelling <b>T2</b><img src=x onerror=alert(1)>"
NAMES = {"t2": TAGS, "max-z": "__proto__", "isolation-forest": "zz `forest` [a](javascript:alert(1))"}
# The labels by themselves, not as a part of other words.
LABELS = re.compile(rf"(?<![\w-])({'|'.join(NAMES)})(?![\w-])")
PRESENTATION = Presentation(NAMES, columns=("auprc", "found", "recall"), order="label")


@pytest.fixture(scope="module")
def file(reported_store, tmp_path_factory):
    folder = tmp_path_factory.mktemp("named")
    return write_report(reported_store.store, reported_store.data.__getitem__, folder, presentation=PRESENTATION)


@pytest.fixture
def opened(open_page, file):
    page = open_page(file)
    yield page
    assert page.complaints == []
    assert page.page.locator("img").count() == 0


def labels(opened) -> list[str]:
    return opened.page.locator("#table tbody th[scope=row]").evaluate_all("(all) => all.map((one) => one.title)")


@pytest.mark.browser
class TestPage:
    def test_every_section_shows_the_names_and_none_of_the_labels(self, opened):
        sections = opened.page.evaluate("() => sections().map((one) => one.id)")
        assert {"leaderboard", "heat", "significance", "ranks", "curves", "pair", "labels", "trials"} <= {*sections}
        opened.page.evaluate("() => document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        for section in sections:
            opened.see(section)
            # The manifests are the trials' own records.
            text = opened.page.locator(f"#{section}").evaluate(
                "(one) => { const copy = one.cloneNode(true);"
                " copy.querySelectorAll('pre, style').forEach((each) => each.remove()); return copy.textContent; }"
            )
            if (
                section == "speed"
            ):  # names stand beside the rows of the front alone: which these are is a matter of time
                text += opened.page.evaluate("() => byId('speed-fit').data[0].hovertext.join()").replace("&lt;", "<")
                text = text.replace("&gt;", ">")
            assert "Hotelling <b>T2</b>" in text or "Hotelling <b>T…" in text, section
            for label in NAMES:
                text = text.replace(f" is {label}", "")
            assert LABELS.findall(text) == [], section
        assert f"Names: {TAGS} is t2" in opened.page.locator("#notes").inner_text()

    def test_the_pointer_says_the_names(self, opened):
        opened.see("recording")
        area = opened.page.locator("#recording-chart .nsewdrag").first.bounding_box()
        opened.page.mouse.move(area["x"] + 0.5 * area["width"], area["y"] + 10)
        terms = opened.page.locator("#recording .readout dt").all_inner_texts()
        assert {"Hotelling <b>T2</b><img src=x onerror=a…", "__proto__"} <= {*terms}
        assert "t2" not in terms

    def test_rows_stand_by_their_names_with_all_their_marks_and_floors_below(self, opened, reported_store):
        opened.page.get_by_label("all floors").check()
        (content, _) = reported_store.content["boards"]
        rows = {row["label"]: row for row in content["tables"][0]["rows"]}
        assert labels(opened) == ["t2", "isolation-forest", "max-z", "random", "sensor-range"]
        shown = opened.page.locator("#table tbody th[scope=row]").all_inner_texts()
        for label, text in zip(labels(opened), shown, strict=True):
            assert text == " ".join([*rows[label]["marks"], NAMES.get(label, label)])
        assert any(row["marks"] for row in rows.values())
        assert content["tables"][0]["rows"] == opened.page.evaluate("() => content.boards[0].tables[0].rows")

    def test_the_asked_columns_stand_first_and_the_others_can_be_shown(self, opened):
        heads = "() => [...byId('table').tHead.rows[0].cells].map((one) => one.innerText.replace('↕', '').trim())"
        assert [text.rstrip(" ↑↓") for text in opened.page.evaluate(heads)] == ["Detector", "AUPRC", "Found", "Recall"]
        opened.page.locator("#column-choice summary").click()
        opened.page.get_by_role("checkbox", name="MCC", exact=True).check()
        assert opened.page.evaluate(heads)[-1] == "MCC"

    def test_the_csv_has_both_and_the_search_finds_both(self, opened):
        rows = list(csv.DictReader(opened.page.evaluate("() => csvOfTable()").splitlines(keepends=True)))
        assert list(rows[0])[:3] == ["detector", "alias", "status"]
        assert {row["detector"]: row["alias"] for row in rows}["t2"] == TAGS
        for text in ("hotelling", "T2"):
            opened.page.get_by_label("Search").fill(text)
            assert labels(opened) == ["t2"], text

    def test_an_address_holds_labels_and_the_order(self, opened):
        assert opened.page.evaluate("() => location.hash") == ""
        opened.page.locator("#detectors label", has_text="Hotelling").locator("input").uncheck()
        held = opened.page.evaluate("() => new URLSearchParams(location.hash.slice(1)).getAll('detector')")
        assert {"max-z", "isolation-forest"} & {*held}
        assert not {"t2", *NAMES.values()} & {*held}
        opened.page.get_by_role("button", name=re.compile("^AUPRC")).click()
        before = labels(opened)
        opened.page.reload()
        assert labels(opened) == before
        assert not opened.page.locator("#detectors label", has_text="Hotelling").locator("input").is_checked()


@pytest.mark.browser
def test_the_named_detectors_lead_in_their_order(open_page, reported_store, tmp_path):
    asked = ["isolation-forest", "t2"]
    presentation = Presentation(order="given")
    load = reported_store.data.__getitem__
    opened = open_page(
        write_report(reported_store.store, load, tmp_path, labels=asked[::-1], presentation=presentation)
    )
    assert labels(opened)[:2] == asked[::-1]
    opened.page.get_by_role("button", name=re.compile("^AUROC")).click()
    opened.page.go_back()
    assert labels(opened)[:2] == asked[::-1]
    opened.see("heat")
    assert opened.page.locator("#heat-table thead th").all_inner_texts() == ["Recording", *asked[::-1]]
    assert opened.complaints == []


def test_the_columns_of_the_page_are_those_that_can_be_asked_for(reported_store):
    load = reported_store.data.__getitem__
    for key in ("anomalous", "aurocc"):
        with pytest.raises(UsageError, match=f"there is no column '{key}'"):
            report_content(reported_store.store, load, presentation=Presentation(columns=(key,)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--alias", "t3=x"], "there is no row 't3'; did you mean 't2'"),
        (["--alias", "t2=max-z"], "t2 cannot be called 'max-z': another row has this label"),
        (["--alias", "t2=x", "--alias", "max-z=x"], "both be called 'x'"),
        (["--columns", "aurocc"], "there is no column 'aurocc'; did you mean 'auroc'"),
        (["--order", "given"], "name the detectors"),
        (["--detector", "t2[a"], "expected NAME or NAME[key=value"),
    ],
)
def test_wrong_options(tsadbench, reported_store, tmp_path, options, message):
    done = tsadbench("report", reported_store.store.path, "--out", tmp_path / "page", *options)
    assert (done.code, done.out) == (2, "")
    assert message in " ".join(done.err.split())
    assert not (tmp_path / "page").exists()


def test_labels_that_cannot_be_taken_apart_are_compared_too(hostile_store, hostile):
    asked = [SCRIPT, QUOTES, LONG, BRACKETS]
    (board,) = report_content(hostile_store, lambda _: hostile, asked)["boards"]
    (table, *_) = board["significance"]["tables"]
    assert {row[0] for row in table["rows"]} == {*asked}
    with pytest.raises(UsageError, match=r"found 'odd.* twice"):
        compare(hostile_store, [BRACKETS, SCRIPT, BRACKETS], dataset=hostile)
