"""A real browser, and stores whose names are as hostile as names can be."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tsadbench import Dataset, Labels, Recording
from tsadbench.base.dataset import LabelledDataset
from tsadbench.execution.plan import make_plan
from tsadbench.execution.run_store import Store
from tsadbench.execution.trial import Outcome, run_trial

SCRIPT = "<script>alert(1)</script>"
QUOTES = "\"'><img src=x onerror=alert(1)>&amp;"
LONG = "a very long name " * 20
SENSORS = (SCRIPT, QUOTES, LONG)
DETECTORS = ("t2", "max-z", "isolation-forest", "sensor-range", "all-positive")
# Chromium asks its maker's servers for news unless it is told not to.
_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium; where it is not here, the tests skip loudly, but never in a CI that could install it."""
    executable = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if executable is None:
        message = "no Chromium here: `make chromium` installs Debian's where it is root; the report was NOT tried"
        if os.environ.get("CI") and os.geteuid() == 0:
            pytest.fail(message)
        pytest.skip(message)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=executable, args=_ARGUMENTS)
        yield started
        started.close()


class Opened:
    """A page in the browser and everything it asked for or complained of."""

    def __init__(self, browser, file: Path, **context) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **context})
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.url = file.resolve().as_uri()
        self.page.goto(self.url)

    def see(self, section: str) -> None:
        """Scroll to a section and wait until its figure is drawn: a figure out of sight is drawn when it is seen."""
        self.page.locator(f"#{section}").scroll_into_view_if_needed()
        self.page.wait_for_function(
            "(name) => !(name in FIGURES) || (inView.has(name) && !stale.has(name))", arg=section
        )


@pytest.fixture
def open_page(browser):
    opened: list[Opened] = []

    def call(file: Path, **context) -> Opened:
        opened.append(Opened(browser, file, **context))
        return opened[-1]

    yield call
    for one in opened:
        one.context.close()


def hostile_data() -> LabelledDataset:
    """Recordings, sensors and splits with hostile names: one is too short to count, one split holds one class."""
    rng = np.random.default_rng(0)

    def recording(name: str, n_rows: int, shift: float = 0.0) -> Recording:
        values = rng.normal(size=(n_rows, len(SENSORS)))
        values[100:140, 0] += shift
        return Recording(name, values, SENSORS, time=np.arange(n_rows, dtype=float))

    fault = np.zeros(200, dtype=bool)
    fault[100:140] = True
    splits = {
        "overall": (SCRIPT, QUOTES, LONG, "short"),
        "one class": (QUOTES,),
        "no rows": ("short",),
        SCRIPT: (SCRIPT, LONG),
    }
    labels = {SCRIPT: fault, QUOTES: np.zeros(200, dtype=bool), LONG: fault.copy(), "short": np.zeros(20, dtype=bool)}
    dataset = Dataset(
        name="hostile",
        train=(recording("normal", 600),),
        test=(
            recording(SCRIPT, 200, shift=9.0),
            recording(QUOTES, 200),
            recording(LONG, 200, shift=9.0),
            recording("short", 20),
        ),
        splits=splits,
        notes=(SCRIPT,),
    )
    return LabelledDataset(dataset, Labels(labels, splits))


@pytest.fixture(scope="session")
def hostile() -> LabelledDataset:
    return hostile_data()


@pytest.fixture(scope="session")
def hostile_store(tmp_path_factory, hostile) -> Store:
    """Five detectors with contributions where they offer them; labels are hostile, one trial failed."""
    store = Store.create(tmp_path_factory.mktemp("hostile") / "runs")
    plan = make_plan(list(DETECTORS), dataset=hostile, floors=False, seeds=2, contributions=True)
    names = {"t2": SCRIPT, "max-z": QUOTES, "isolation-forest": LONG}
    for trial in plan.trials:
        outcome = run_trial(trial, plan)
        assert outcome.record.status == "ok"
        store.add(
            replace(
                outcome, record=replace(outcome.record, label=names.get(trial.contender.name, trial.contender.label))
            )
        )
    failed = replace(
        outcome.record, trial="f" * 24, label="broken", status="error", reason=SCRIPT, splits={}, thresholds=()
    )
    store.add(Outcome(failed, {}, log="log"))
    return store
