"""How long the leaderboard site takes to make, how soon its pages are painted, and how much they weigh."""

from __future__ import annotations

from pathlib import Path

import pytest

from tsadbench.reporting.site.build import write_site
from tsadbench.utils.shipped_tables import LEADERBOARDS

# The heaviest of each kind: one row an entity makes asd's table the largest.
PAGES = (
    "index.html",
    "index.html#data=skab",
    "index.html#data=asd",
    "detectors/t2.html",
    "datasets/skab.html",
    "protocols/strict.html",
)
_PAINTED = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("site")


def test_making_the_site_of_the_committed_tables(benchmark, folder):
    made = benchmark.pedantic(write_site, (LEADERBOARDS, folder), rounds=1)
    benchmark.extra_info |= {"pages": len(made.pages), "megabytes": round(made.n_bytes / 1e6, 1)}


@pytest.mark.parametrize("page", PAGES)
def test_opening_a_page_of_the_committed_tables(benchmark, folder, browser, page):
    if not (folder / "index.html").is_file():
        write_site(LEADERBOARDS, folder)
    name, _, state = page.partition("#")
    address = (folder / name).as_uri() + (f"#{state}" if state else "")
    tab = browser.new_page()
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    painted: list[float] = []

    def open_it() -> None:
        tab.goto("about:blank")
        asked.clear()
        tab.goto(address)
        tab.wait_for_selector("#table tbody tr")
        painted.append(tab.wait_for_function(_PAINTED).json_value())

    benchmark.pedantic(open_it, rounds=5, warmup_rounds=1)
    files = {one.removeprefix(f"{folder.as_uri()}/").partition("#")[0] for one in asked if one.startswith("file:")}
    weight = sum((folder / one).stat().st_size for one in files)
    benchmark.extra_info |= {"first paint, ms": round(min(painted)), "kilobytes": round(weight / 1000)}
    print(f"\n{page}: first paint after {min(painted):.0f} ms, {weight / 1000:.0f} kB in {len(files)} files")
    assert weight < 500_000
    tab.close()
