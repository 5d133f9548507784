"""A real browser, and what a page in it asked for or complained of."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

# Without some of these, Chromium contacts Google's servers.
_ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="session")
def browser():
    """A running Chromium. Without one, tests are skipped with a message; in a CI that could install it, they fail."""
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
    """A page in the browser, with its requests and complaints (console messages, errors, dialogs)."""

    def __init__(self, browser, file: Path, **context) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **context})
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda one: one.url.startswith("blob:") or self.requests.append(one.url))
        self.url = file.resolve().as_uri()
        self.page.goto(self.url)
