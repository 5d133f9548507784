"""What the site's files hold, compared with the committed tables."""

from __future__ import annotations

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.reporting.site.conftest import DATASET, LABELS, QUOTES, SCRIPT
from tsadbench.errors import UsageError
from tsadbench.reporting.site.build import write_site
from tsadbench.reporting.site.names import file_names
from tsadbench.utils.files import LEADERBOARDS


def read(file: Path) -> dict:
    """Return the content of a data file: the second argument of its one call, or what the index declares."""
    text = file.read_text(encoding="utf-8")
    return json.loads(re.fullmatch(r'(?:arrived\(".*?", |const content = )(.*?)\)?;\n', text, re.S)[1])


class Links(HTMLParser):
    """What a page loads, and where it leads."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.leads: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if tag in ("script", "img", "iframe") and "src" in found:
            self.loads.append(found["src"])
        if tag == "link":
            self.loads.append(found["href"])
        if tag == "a":
            self.leads.append(found["href"])

    def handle_data(self, data):
        self.text.append(data)


def links_of(page: Path) -> Links:
    links = Links()
    links.feed(page.read_text(encoding="utf-8"))
    return links


def test_rows_are_those_of_the_committed_csv(site):
    with (LEADERBOARDS / "skab" / "strict" / "valve1.csv").open(encoding="utf-8") as stream:
        committed = {row["detector"]: row for row in csv.DictReader(stream)}
    found = read(site / "data" / "skab-strict-2" / "valve1.js")
    assert [row["label"] for row in found["rows"]] == [label for label in committed if label in LABELS]
    for row in found["rows"]:
        expected = committed[row["label"]]
        for metric, summary in row["metrics"].items():
            assert summary["mean"] == pytest.approx(float(expected[f"{metric}_mean"]), rel=1e-5)
        assert (row["kind"], row["look_ahead"]) == (expected["family"], int(expected["look_ahead"]))
        assert (row["seal"], row["pretrained"]) == (expected["seal"], "")


def test_a_detector_s_page_holds_every_row_it_has(site):
    found = read(site / "data" / "detectors" / "t2.js")["rows"]
    places = {(row["dataset"], row["protocol"], row["split"], row["label"]) for row in found}
    splits = {"skab": ["overall", "valve1", "valve2", "other"], "gecco2018": ["overall", "test", "rest"]}
    tables = [("skab", "strict 2"), ("skab", "published 2"), ("gecco2018", "strict 2")]
    assert places == {
        (name, rules, split, label)
        for name, rules in tables
        for split in splits[name]
        for label in ("t2", "t2[mean=10]")
    }
    assert len(found) == len(places)


def test_where_a_detector_wins_is_what_the_csv_says(site):
    with (LEADERBOARDS / "gecco2018" / "strict" / "overall.csv").open(encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if row["detector"] in LABELS]
    auprc = {row["detector"]: float(row["auprc_mean"]) for row in rows}
    floors = {row["detector"] for row in rows if row["family"] == "floor"}
    # Those that are not compared: they use a leak, or do not forget.
    out = {row["detector"] for row in rows if row["replay"] and "∞" in row["replay"]} | {"gdn[quirks=on]"}
    ranked = sorted((name for name in auprc if name not in floors | out), key=lambda name: -auprc[name])
    best_floor = max(floors, key=auprc.__getitem__)
    page = " ".join(" ".join(links_of(site / "detectors" / "t2.html").text).split())
    above = "above" if auprc["t2"] > auprc[best_floor] else "not above"
    assert f"{ranked.index('t2') + 1} of {len(ranked)}" in page
    assert f"{above} {best_floor} ({auprc['t2'] - auprc[best_floor]:+.4f})".replace("0.", ".") in page


def test_no_page_loads_from_another_host_and_every_link_leads_somewhere(site):
    for page in site.rglob("*.html"):
        links = links_of(page)
        for address in links.loads:
            assert not urlsplit(address).scheme or address == "data:,", (page, address)
        for address in (*links.loads, *links.leads):
            if urlsplit(address).scheme or address.endswith("docs/") or address.startswith("#"):
                continue
            assert (page.parent / urlsplit(address).path).is_file(), (page, address)
    for file in (site / "assets").iterdir():
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text
        assert "https://" not in text


def test_hostile_names_are_text_and_lead_to_no_other_place(hostile_site):
    assert {file.parent.name for file in hostile_site.rglob("*.html")} <= {
        hostile_site.name, "detectors", "datasets", "protocols",
    }  # fmt: skip
    for file in hostile_site.rglob("*.html"):
        links = links_of(file)
        assert not [one for one in links.loads if not one.endswith((".js", ".css", "data:,"))], file
        assert all(re.fullmatch(r"#main|[A-Za-z0-9./_-]+", one) for one in links.leads), file
    for file in (hostile_site / "data").rglob("*.js"):
        assert "<" not in file.read_text(encoding="utf-8"), file
    labels = [row["label"] for row in read(next((hostile_site / "data").glob("*/overall.js")))["rows"]]
    assert {SCRIPT, QUOTES, "../../../cva"} < set(labels)
    assert DATASET in " ".join(links_of(next((hostile_site / "datasets").glob("img*.html"))).text)


def test_file_names_are_safe_and_differ():
    names = ["t2", "T2", "../../etc", "..", "", "a/b\\c", "x" * 300, "index", "con?<>|", "é"]
    found = file_names(names)
    assert len({one.casefold() for one in found.values()}) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", one) and len(one) < 100 for one in found.values())
    assert "index" not in found.values()


def test_a_folder_without_tables_and_one_that_would_be_overwritten_are_refused(tmp_path):
    with pytest.raises(UsageError, match=f"^{tmp_path}: "):
        write_site(tmp_path, tmp_path / "out")
    with pytest.raises(UsageError, match=f"^{tmp_path / 'site'}: "):
        write_site(tmp_path / "site" / "tables", tmp_path / "site")
