"""A real browser, and what a page in it asked for or complained of."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

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
        self.viewport = context.get("viewport", {"width": 1280, "height": 900})
        self.context = browser.new_context(**{"viewport": self.viewport, **context})
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda one: one.url.startswith("blob:") or self.requests.append(one.url))
        self.url = file.resolve().as_uri()
        self.page.goto(self.url)

    def see(self, section: str) -> None:
        """Scroll to a section and wait until its figure is drawn: a figure out of sight is drawn when it is seen."""
        self.page.locator(f"#{section}").scroll_into_view_if_needed()
        self.page.wait_for_function(
            "(name) => !(name in FIGURES) || (inView.has(name) && !stale.has(name))", arg=section
        )
