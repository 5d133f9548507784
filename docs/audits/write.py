"""Audit data sets: ``python docs/audits/write.py [NAME...]``; without names, all of them (``make pages``).

Writes NAME.md and NAME.svg beside this file, the findings that ship with the package, and their list in README.md.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tsadbench.analysis.audit import audit
from tsadbench.analysis.audit.findings import shipped_note, write_shipped
from tsadbench.base.dataset import DataOptions
from tsadbench.datasets.loading import load_dataset
from tsadbench.datasets.suites import suite_named
from tsadbench.leaderboard.formatting import fill_blocks, plain
from tsadbench.reporting.figures.audit import draw_audit

FOLDER = Path(__file__).parent


def main(names: list[str]) -> None:
    """Write the pages of these data sets, and what was found into README.md."""
    for name in names:
        start = time.monotonic()
        data = load_dataset(name)(DataOptions())
        found = audit(data)
        (FOLDER / f"{name}.md").write_text(found.text("markdown"), encoding="utf-8")
        draw_audit(data, found, FOLDER / f"{name}.svg")
        write_shipped({name: (data.dataset.version, found.findings)})
        print(f"{name}: {time.monotonic() - start:.0f} s")
    page = FOLDER / "README.md"
    page.write_text(fill_blocks(page.read_text(encoding="utf-8"), lambda _: found_in_all()), encoding="utf-8")


def found_in_all() -> list[str]:
    """Return a line for each data set of the suite ``all``."""
    notes = map(shipped_note, suite_named("all").datasets)
    return [f"* {plain(note.partition(' (docs')[0])}" for note in notes]


if __name__ == "__main__":
    main(sys.argv[1:] or list(suite_named("all").datasets))
