"""Audit data sets: ``python docs/audits/write.py [NAME...]``; without names, all of them (``make audits``).

Writes NAME.md and NAME.svg next to this file, the findings that ship with the package, and their list in README.md.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tsadbench.analysis.audit import MARKS, Audit, audit
from tsadbench.analysis.audit.findings import SHIPPED, shipped_findings, summary
from tsadbench.base.dataset import DataOptions
from tsadbench.datasets.loading import load_dataset, suite_named
from tsadbench.leaderboard.render import BLOCK, plain
from tsadbench.reporting.figures.audit import draw_audit

FOLDER = Path(__file__).parent


def main(names: list[str]) -> None:
    """Write the pages of these data sets, and the list of findings in README.md."""
    content = json.loads(SHIPPED.read_bytes())
    for name in names:
        data = load_dataset(name)(DataOptions())
        found = audit(data)
        (FOLDER / f"{name}.md").write_text(page_of(found), encoding="utf-8")
        draw_audit(data, found, FOLDER / f"{name}.svg")
        rows = [finding.as_row() for finding in found.findings]
        content["datasets"][name] = {"version": found.version, "findings": rows}
        SHIPPED.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(name)
    suite = suite_named("all").datasets
    lines = [f"* {plain(f'{name}: {summary(shipped_findings(name))}')}" for name in suite]
    page = FOLDER / "README.md"
    text = BLOCK.sub(lambda block: "\n".join([block[1], *lines, ""]), page.read_text(encoding="utf-8"))
    page.write_text(text, encoding="utf-8")


def page_of(found: Audit) -> str:
    """Return the page of a data set: the sentences of faults and notes, and the names of the good checks."""
    verdicts = [
        f"- {MARKS[one.grade]} **{one.about}**: {plain(one.sentence)}" for one in found.findings if one.grade != "good"
    ]
    good = ", ".join(one.about for one in found.findings if one.grade == "good")
    name = found.dataset
    return f"""# Audit of {name}

{chr(10).join([*verdicts, f"- {MARKS['good']} {good}."])}

{MARKS["fault"]} fault, {MARKS["note"]} note, {MARKS["good"]} good ([what each check means](README.md)).
`tsadbench data audit {name} --full` prints every sentence and the tables behind it.
[{name}](../systems/{name}.md) describes the data set.

![Events, predictors of the label and shift of {name}]({name}.svg)
"""


if __name__ == "__main__":
    main(sys.argv[1:] or list(suite_named("all").datasets))
