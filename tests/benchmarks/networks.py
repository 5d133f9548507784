"""Compares trials of two versions: ``python -m tests.benchmarks.networks BEFORE NOW [--write]``.

BEFORE and NOW are run stores of the same trials of SKAB under `strict`, one made by each version; run both at the same
time, a core each, so that the same load is on both. One table has their CPU seconds, the other one compares NOW's
metrics with those of the committed leaderboard. ``--write`` puts the first into docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tsadbench.leaderboard.render import BLOCK, table_lines

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "performance.md"
COMMITTED = ROOT / "leaderboards" / "skab" / "strict" / "records.jsonl"
METRICS = ("auprc", "auroc", "mcc")
# The means of two versions agree within so many pooled standard deviations, or within this difference.
DEVIATIONS, DIFFERENCE = 2.0, 0.01


def trials(texts: Iterable[str]) -> dict[str, list[Mapping[str, Any]]]:
    """Return each detector's trials that are ok."""
    found = defaultdict(list)
    for text in texts:
        record = json.loads(text)
        if record["status"] == "ok":
            found[record["label"]].append(record)
    return dict(found)


def of_store(store: Path) -> dict[str, list[Mapping[str, Any]]]:
    """Return each detector's trials in a run store."""
    return trials(file.read_text(encoding="utf-8") for file in sorted(store.glob("records/*.json")))


def cpu_seconds(records: Sequence[Mapping[str, Any]]) -> float:
    """Return the mean CPU seconds of a trial's fit and scores."""
    return statistics.fmean(one["fit_cpu_seconds"] + one["score_cpu_seconds"] for one in records)


def seconds(before: Mapping[str, Sequence[Any]], now: Mapping[str, Sequence[Any]]) -> Iterator[list[str]]:
    """Yield a row for each detector: CPU seconds of the seeds that both versions have."""
    for label in sorted(before.keys() & now.keys()):
        seeds = {one["seed"] for one in before[label]} & {one["seed"] for one in now[label]}
        old, new = (cpu_seconds([one for one in found[label] if one["seed"] in seeds]) for found in (before, now))
        yield [f"`{label}`", f"{old:.1f} s", f"{new:.1f} s", f"{new / old:.2f}"]


def moments(records: Sequence[Mapping[str, Any]], metric: str) -> tuple[float, float]:
    """Return the mean and, ddof 1, the standard deviation over seeds; 0 for one seed."""
    values = [one["splits"]["overall"]["metrics"][metric] for one in records]
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0


def results(committed: Mapping[str, Sequence[Any]], now: Mapping[str, Sequence[Any]]) -> Iterator[list[str]]:
    """Yield a row for each detector: its metrics, committed and now, and those that do not agree."""
    for label in sorted(committed.keys() & now.keys()):
        cells, outside = [], []
        for metric in METRICS:
            (mean, std), (new, new_std) = moments(committed[label], metric), moments(now[label], metric)
            pooled = math.sqrt((std**2 + new_std**2) / 2)
            cells.append(f"{mean:.4f}({std:.4f}) → {new:.4f}({new_std:.4f})")
            if abs(new - mean) > max(DIFFERENCE, DEVIATIONS * pooled):
                outside.append(f"{metric.upper()} by {new - mean:+.4f}")
        yield [f"`{label}`", f"{len(committed[label])}, {len(now[label])}", *cells, ", ".join(outside) or "-"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare, print, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("now", type=Path)
    parser.add_argument("--write", action="store_true", help="put the seconds into docs/performance.md")
    given = parser.parse_args(arguments)
    before, now = of_store(given.before), of_store(given.now)
    committed = trials(COMMITTED.read_text(encoding="utf-8").splitlines())
    header = ["Detector", "Seeds", *(metric.upper() for metric in METRICS), "Outside"]
    blocks = {
        "networks": table_lines(["Detector", "Before", "Now", "Now / before"], seconds(before, now)),
        "results": table_lines(header, results(committed, now)),
    }
    for lines in blocks.values():
        print(*lines, "", sep="\n")
    if given.write:
        page = PAGE.read_text(encoding="utf-8")
        filled = BLOCK.sub(lambda one: "\n".join([one[1], *blocks[one[2]], ""]) if one[2] in blocks else one[0], page)
        PAGE.write_text(filled, encoding="utf-8")


if __name__ == "__main__":
    main()
