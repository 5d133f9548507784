"""Audit data sets anew: ``python docs/audits/write.py [NAME...]``; without names, all of them (``make audits``).

Writes NAME.md and NAME.svg beside this file, and the findings that ship with the package.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tsadbench.analysis.audit import audit
from tsadbench.analysis.audit.findings import write_shipped
from tsadbench.analysis.audit.render import markdown
from tsadbench.base.dataset import DataOptions
from tsadbench.datasets.loading import load_dataset
from tsadbench.reporting.figures.audit import draw_audit

FOLDER = Path(__file__).parent
NAMES = ("skab", "tep", "pumploop")


def main(names: list[str]) -> None:
    """Write the pages of these data sets."""
    for name in names:
        start = time.monotonic()
        data = load_dataset(name)(DataOptions())
        found = audit(data)
        (FOLDER / f"{name}.md").write_text(markdown(found), encoding="utf-8")
        draw_audit(found, FOLDER / f"{name}.svg")
        write_shipped({name: (data.dataset.version, found.findings)})
        print(f"{name}: {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:] or list(NAMES))
