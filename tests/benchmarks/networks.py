"""Compares trials of two versions: ``python -m tests.benchmarks.networks BEFORE NOW [--write]``.

BEFORE and NOW are run stores of the same trials of SKAB under `strict`, one from each version. Run both versions at the
same time, on one core each, so that both have the same load. One table has the CPU seconds, the other compares NOW's
metrics with the committed leaderboard. ``--write`` puts the first into docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from tests.benchmarks.main_job import show
from tsadbench.leaderboard.render import table_lines

COMMITTED = Path(__file__).parents[2] / "leaderboards" / "skab" / "strict" / "records.jsonl"
METRICS = ("auprc", "auroc", "mcc")
# Two versions agree if their means differ by at most this many pooled standard deviations, or by at most DIFFERENCE.
DEVIATIONS, DIFFERENCE = 2.0, 0.01


def trials(texts: Iterable[str]) -> pd.DataFrame:
    """Return the successful trials: label, seed, CPU seconds and metrics."""
    found = [one for one in map(json.loads, texts) if one["status"] == "ok"]
    about = [{"seconds": one["fit_cpu_seconds"] + one["score_cpu_seconds"], **one} for one in found]
    metrics = [{name: one["splits"]["overall"]["metrics"][name] for name in METRICS} for one in found]
    return pd.DataFrame(about)[["label", "seed", "seconds"]].join(pd.DataFrame(metrics))


def seconds(before: pd.DataFrame, now: pd.DataFrame) -> Iterator[list[str]]:
    """Yield a row for each detector: CPU seconds of the seeds that both versions have."""
    both = before.merge(now, on=["label", "seed"]).groupby("label")[["seconds_x", "seconds_y"]].mean()
    for label, old, new in both.itertuples():
        yield [f"`{label}`", f"{old:.1f} s", f"{new:.1f} s", f"{new / old:.2f}"]


def results(committed: pd.DataFrame, now: pd.DataFrame) -> Iterator[list[str]]:
    """Yield a row for each detector: its metrics, committed and now, and which of them disagree."""
    for label in sorted({*committed["label"]} & {*now["label"]}):
        old, new = (frame.loc[frame["label"] == label, [*METRICS]] for frame in (committed, now))
        moments = pd.concat([old.mean(), old.std().fillna(0.0), new.mean(), new.std().fillna(0.0)], axis=1)
        cells = [f"{a:.4f}({b:.4f}) → {c:.4f}({d:.4f})" for _, a, b, c, d in moments.itertuples()]
        moved, pooled = moments[2] - moments[0], np.sqrt((moments[1] ** 2 + moments[3] ** 2) / 2)
        outside = moved[moved.abs() > np.maximum(DIFFERENCE, DEVIATIONS * pooled)]
        said = ", ".join(f"{str(name).upper()} by {by:+.4f}" for name, by in outside.items())
        yield [f"`{label}`", f"{len(old)}, {len(new)}", *cells, said or "-"]


def main() -> None:
    """Compare, print, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stores", type=Path, nargs=2, metavar="STORE", help="BEFORE and NOW")
    parser.add_argument("--write", action="store_true", help="put the seconds into docs/performance.md")
    given = parser.parse_args()
    before, now = (trials(file.read_text() for file in sorted(one.glob("records/*.json"))) for one in given.stores)
    committed = trials(COMMITTED.read_text(encoding="utf-8").splitlines())
    header = ["Detector", "Seeds", *(metric.upper() for metric in METRICS), "Outside"]
    blocks = {
        "networks": table_lines(["Detector", "Before", "Now", "Now / before"], seconds(before, now)),
        "results": table_lines(header, results(committed, now)),
    }
    show(blocks, write=given.write)


if __name__ == "__main__":
    main()
