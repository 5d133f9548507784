"""Makes the screenshots in README.md and docs/report.md from a run store, in Debian's Chromium.

python docs/report/screenshots.py runs/strict [--data DIR]
"""

import argparse
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tsadbench.cli.actions.loading import loader
from tsadbench.execution.run_store import Store
from tsadbench.reporting.html.build import write_report

HERE = Path(__file__).parent
SECTIONS = ("leaderboard", "heat", "recording", "densities")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-sync"]
# A recording of the group in which a threshold can tell normal from anomalous.
RECORDING = "other/10"

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("runs", type=Path)
parser.add_argument("--data", type=Path)
given = parser.parse_args()
with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
    file = write_report(Store.open(given.runs), loader([], given.data), Path(folder))
    browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
    for scheme, sections in (("light", SECTIONS), ("dark", ("curves",))):
        page = browser.new_page(viewport={"width": 1240, "height": 900}, color_scheme=scheme)
        page.goto(file.as_uri())
        page.locator("#chooser").evaluate("(one) => { one.open = false; }")
        page.locator("nav").evaluate("(one) => { one.style.position = 'static'; }")
        page.add_style_tag(content=".scroll { max-height: none !important; }")
        for section in sections:
            if page.locator(f"#{section}").is_hidden():
                continue
            if section == "recording":
                page.locator("#recording-choice").select_option(label=RECORDING)
            page.locator(f"#{section}").scroll_into_view_if_needed()
            page.wait_for_timeout(1500)
            name = section if scheme == "light" else f"{section}-{scheme}"
            page.locator(f"#{section}").screenshot(path=HERE / f"{name}.png")
            print(HERE / f"{name}.png")
    phone = browser.new_page(
        viewport={"width": 390, "height": 844}, device_scale_factor=2, is_mobile=True, has_touch=True
    )
    phone.goto(f"{file.as_uri()}#at=leaderboard")
    phone.wait_for_timeout(500)
    phone.screenshot(path=HERE / "phone.png")
    print(HERE / "phone.png")
