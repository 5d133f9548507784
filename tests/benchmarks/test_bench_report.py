"""How long a report takes to make and to open."""

from __future__ import annotations

import pytest

from tests.helpers.large_store import large_store
from tsadbench.reporting.html.build import write_report


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    return *large_store(folder), folder


def test_making_a_report_of_14_detectors_by_34_recordings(benchmark, made):
    store, data, folder = made
    benchmark.pedantic(write_report, (store, lambda name: data, folder), rounds=3)


def test_opening_a_report_of_14_detectors_by_34_recordings(benchmark, made, browser):
    store, data, folder = made
    file = write_report(store, lambda name: data, folder)
    page = browser.new_page()

    def open_it() -> None:
        page.goto(file.resolve().as_uri())
        page.wait_for_selector("#table tbody tr")

    benchmark.pedantic(open_it, rounds=5, warmup_rounds=1)
