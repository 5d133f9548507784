"""What the networks' trials cost, before and now: ``python docs/performance/measure.py``.

Each detector's trial (see trial.py beside this file) runs in processes of its own with one thread: on the version of
this repository's history that ``--before`` names, and on the working tree. Both are measured in CPU seconds, and in
units of a reference loop that ran in the same process, so that another load or clock rate of the machine cancels out.

``--overhead`` measures what a trial costs beside its detector instead (overhead.py), and ``--overhead --write`` writes
overhead.json and the second table of the page.

``--epochs 1`` measures one epoch of training instead of all (`make bench`). ``--write`` runs whole trials, counts
their operations, profiles them, and writes trials.json and the table of docs/performance.md; what trials.json holds
already for the detectors that are not named stays. ``--table`` writes the table from trials.json alone.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, TypedDict, cast

from rich.console import Console
from rich.table import Table

from tsadbench.leaderboard.ranking import Summary
from tsadbench.utils.markdown import fill_blocks, table_lines

ROOT = Path(__file__).parents[2]
TRIAL = Path(__file__).parent / "trial.py"
OVERHEAD = Path(__file__).parent / "overhead.py"
MEASURED = Path(__file__).parent / "trials.json"
MEASURED_OVERHEAD = Path(__file__).parent / "overhead.json"
PAGE = ROOT / "docs" / "performance.md"
# The last version before the networks were made faster.
BEFORE = "51ef0b2"
# The last version whose leaderboards the same rules judged: `published` in its version 1.
SAME_RULES = "dcc9942"
NETWORKS = (
    "dprgm", "mtad-gat", "mscred", "grelen", "vanilla-lstm", "lstm-ae", "lstm-vae", "conv-ae", "vanilla-ae", "gdn"
)  # fmt: skip
METRICS = {"auroc": "AUROC", "auprc": "AUPRC", "bf_f1": "BF-F1", "mcc": "MCC"}
KINDS = ("products", "element-wise", "copies", "reductions", "random", "optimiser", "other")


class Cost(TypedDict):
    """CPU seconds of a trial's parts and of the reference loop, the rate of a large product, and the epochs taken."""

    seconds: dict[str, float]
    unit: float
    product_rate: float
    epochs: int | None


class Work(TypedDict, total=False):
    """What was measured of one detector's trial."""

    before: Cost
    now: Cost
    operations: int
    shares: dict[str, float]
    others: dict[str, float]


# What overhead.py prints, by how the trials were run and by version.
Overheads: TypeAlias = Mapping[str, Mapping[str, Mapping[str, float]]]


def export(version: str, folder: Path) -> Path:
    """Write a version's files into a folder and return it."""
    archive = subprocess.run(["git", "archive", version], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode != 0:
        raise SystemExit(
            f"--before {version}: expected a version in this repository's history; git says: "
            f"{archive.stderr.decode().strip()}; fetch the whole history first (git fetch --unshallow)"
        )
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder


def measure(tree: Path, detector: str, what: str, epochs: int | None) -> dict[str, object]:
    """Run trial.py with a tree's packages and return what it prints."""
    return run(tree, TRIAL, detector, what, *([] if epochs is None else [str(epochs)]))


def run(tree: Path, script: Path, *words: str) -> dict[str, object]:
    """Run a script with a tree's packages in a process with one thread, and return the JSON object that it prints."""
    packages = os.pathsep.join(str(tree / part) for part in ("", "detectors", "protocols"))
    environment = os.environ | {"PYTHONPATH": packages, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(script), *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed in {tree}:\n{done.stderr}")
    return cast("dict[str, object]", json.loads(done.stdout.splitlines()[-1]))


def seconds(cost: Cost) -> float:
    """Return the CPU seconds of a whole trial."""
    return sum(cost["seconds"].values())


def units(cost: Cost) -> float:
    """Return the CPU time of a whole trial in reference loops."""
    return seconds(cost) / cost["unit"]


def floor(work: Work) -> float:
    """Return the seconds that the trial's products would take at the rate of a large product."""
    return work["operations"] / work["now"]["product_rate"]


def measured_costs(detector: str, before: Path, epochs: int | None) -> Work:
    """Return a trial's cost in both trees, one after the other."""
    return Work(
        before=cast("Cost", measure(before, detector, "cost", epochs)),
        now=cast("Cost", measure(ROOT, detector, "cost", epochs)),
    )


def measured_arithmetic(detector: str, epochs: int) -> Work:
    """Return how many operations a whole trial of so many epochs takes, and where its time goes.

    Operations are counted in trials of one epoch and of two, whose difference is what each further epoch takes.
    """
    one, two = (cast("int", measure(ROOT, detector, "products", n)["operations"]) for n in (1, 2))
    operations = one + (epochs - 1) * (two - one)
    profile = measure(ROOT, detector, "profile", 2)
    return Work(
        operations=operations,
        shares=cast("dict[str, float]", profile["shares"]),
        others=cast("dict[str, float]", profile["others"]),
    )


def table(works: Mapping[str, Work]) -> list[str]:
    """Return the Markdown lines of the table of whole trials."""
    header = [
        "Detector",
        "Products",
        "Floor",
        "Before",
        "Now",
        "Epochs",
        "Now / before",
        "Now / floor",
        "Where the time goes now",
    ]
    rows = []
    for name, work in works.items():
        shares = sorted(((work["shares"].get(kind, 0.0), kind) for kind in KINDS), reverse=True)
        rows.append(
            [
                f"`{name}`",
                f"{work['operations'] / 1e12:.2f} TFLOP",
                f"{floor(work):.1f} s",
                f"{seconds(work['before']):.1f} s",
                f"{seconds(work['now']):.1f} s",
                f"{work['before']['epochs']} → {work['now']['epochs']}",
                f"{units(work['now']) / units(work['before']):.2f}",
                f"{seconds(work['now']) / floor(work):.1f}",
                ", ".join(f"{kind} {share:.0%}" for share, kind in shares if share >= 0.05),
            ]
        )
    return table_lines(header, rows)


def overhead_table(overheads: Overheads) -> list[str]:
    """Return the Markdown lines of the table of what trials cost beside their detector."""
    header = ["Trials run by", "Version", "Trials a second", "Wall-clock time", "CPU time", "of it this process"]
    rows = []
    for how, versions in overheads.items():
        where = f"a cluster of {how.partition(':')[2]} local workers" if ":" in how else f"`--jobs {how}`"
        for version, cost in versions.items():
            times = [f"{cost[name]:.0f} ms" for name in ("wall_ms", "cpu_ms", "own_cpu_ms")]
            rows.append([where, version, f"{cost['per_second']:.1f}", *times])
    return table_lines(header, rows)


def published_rows(csv_text: str) -> dict[str, dict[str, str]]:
    """Return the rows of a leaderboard's CSV by label."""
    return {row["detector"]: row for row in csv.DictReader(csv_text.splitlines())}


def quality_table(before: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the Markdown lines that set each network's metrics over its seeds, before, beside those of now.

    The last column is the largest difference of the means among the metrics, in standard deviations of the seeds (the
    larger of the two).
    """
    header = ["Detector", "Seeds", *METRICS.values(), "Largest difference"]
    rows = []
    for name in (name for name in NETWORKS if name in before and name in now):
        cells, differences = [], []
        for metric in METRICS:
            both = [
                Summary(float(row[f"{metric}_mean"]), float(row[f"{metric}_std"])) for row in (before[name], now[name])
            ]
            cells.append(" → ".join(summary.text() for summary in both))
            spread = max(summary.std or 0.0 for summary in both)
            differences.append((abs(both[1].mean - both[0].mean) / spread, METRICS[metric]))
        largest, metric = max(differences)
        rows.append([f"`{name}`", now[name]["seeds"], *cells, f"{largest:.1f} std ({metric})"])
    return table_lines(header, rows)


def quality_lines(version: str) -> list[str]:
    """Return the table of metrics under `published`: those committed in a version beside those in `SAME_RULES`."""
    table = "leaderboards/skab/published/overall.csv"
    before, now = (
        subprocess.run(["git", "show", f"{commit}:{table}"], cwd=ROOT, capture_output=True, text=True, check=True)
        for commit in (version, SAME_RULES)
    )
    return quality_table(published_rows(before.stdout), published_rows(now.stdout))


def core_minutes(records: str) -> tuple[int, float]:
    """Return how many trials a file of records holds, and the CPU minutes of their fits and scoring.

    Variants that shared a fit count it once.
    """
    trials = [json.loads(line) for line in records.splitlines()]
    fits = {
        (trial["seed"], min([trial["label"], *trial["manifest"].get("fit_shared_with", [])])): trial for trial in trials
    }
    fitting = sum(trial["fit_cpu_seconds"] or 0.0 for trial in fits.values())
    return len(trials), (fitting + sum(trial["score_cpu_seconds"] or 0.0 for trial in trials)) / 60


def evening_lines() -> list[str]:
    """Return the table of what the committed leaderboards cost."""
    header = ["Leaderboard", "Trials", "Core minutes"]
    rows, total = [], 0.0
    for file in sorted((ROOT / "leaderboards").rglob("records.jsonl")):
        n_trials, minutes = core_minutes(file.read_text(encoding="utf-8"))
        total += minutes
        rows.append([file.parent.relative_to(ROOT / "leaderboards").as_posix(), str(n_trials), f"{minutes:.0f}"])
    return table_lines(header, [*rows, ["all", "", f"{total:.0f}"]])


def write_page(version: str) -> None:
    """Write the page's tables from what was measured and from the committed leaderboards, beside those of a version."""
    blocks: Mapping[str, Callable[[], list[str]]] = {
        "trials": lambda: table(json.loads(MEASURED.read_text(encoding="utf-8"))),
        "overhead": lambda: overhead_table(json.loads(MEASURED_OVERHEAD.read_text(encoding="utf-8"))),
        "quality": lambda: quality_lines(version),
        "evening": evening_lines,
    }
    text = fill_blocks(PAGE.read_text(encoding="utf-8"), lambda name: blocks[name]())
    PAGE.write_text(text, encoding="utf-8")


def measured_overheads(before: Path) -> Overheads:
    """Return what trials cost beside their detector, run in three ways, in both trees."""
    trees = {"before": before, "now": ROOT}
    return {
        how: {version: cast("Mapping[str, float]", run(tree, OVERHEAD, how, "100")) for version, tree in trees.items()}
        for how in ("1", "2", "local:2")
    }


def print_costs(works: Mapping[str, Work], epochs: int | None) -> None:
    """Print both costs in units of the reference loop, and their ratio."""
    what = "whole trials" if epochs is None else f"trials with {epochs} training epoch{'s' if epochs > 1 else ''}"
    shown = Table(title=f"CPU time of {what}, in reference loops (and seconds)")
    for column in ("Detector", "Before", "Now", "Now / before"):
        shown.add_column(column, justify="left" if column == "Detector" else "right")
    for name, work in works.items():
        both = [f"{units(cost):,.1f} ({seconds(cost):.1f})" for cost in (work["before"], work["now"])]
        shown.add_row(name, *both, f"{units(work['now']) / units(work['before']):.2f}")
    Console().print(shown)


def arguments(texts: Sequence[str] | None) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("detectors", nargs="*", metavar="DETECTOR", help=f"default: {', '.join(NETWORKS)}")
    parser.add_argument("--before", default=BEFORE, help=f"the version to compare with (default: {BEFORE})")
    parser.add_argument("--overhead", action="store_true", help="what a trial costs beside its detector")
    parser.add_argument("--epochs", type=int, help="train for so many epochs (default: the detector's own number)")
    parser.add_argument("--write", action="store_true", help="whole trials, written to trials.json and the page")
    parser.add_argument("--table", action="store_true", help="write the page's tables from what was measured")
    asked = parser.parse_args(texts)
    if asked.write and asked.epochs is not None:
        parser.error("--write: expected whole trials, found --epochs; leave one of them out")
    if asked.epochs is not None and asked.epochs < 1:
        parser.error(f"--epochs: expected a number of at least 1, found {asked.epochs}")
    return asked


def compare_networks(detectors: Sequence[str], version: str, epochs: int | None, *, write: bool) -> None:
    """Measure trials of networks in both trees and print them; ``write`` also keeps them, each as it ends."""
    works: dict[str, Work] = json.loads(MEASURED.read_text(encoding="utf-8")) if write and MEASURED.exists() else {}
    measured: dict[str, Work] = {}
    with tempfile.TemporaryDirectory() as folder:
        before = export(version, Path(folder))
        for detector in detectors:
            work = measured[detector] = measured_costs(detector, before, epochs)
            if write:
                works[detector] = work | measured_arithmetic(detector, work["now"]["epochs"] or 1)
                ordered = sorted(works, key=lambda name: NETWORKS.index(name) if name in NETWORKS else len(NETWORKS))
                MEASURED.write_text(
                    json.dumps({name: works[name] for name in ordered}, indent=1) + "\n", encoding="utf-8"
                )
    print_costs(measured, epochs)


def compare_overheads(version: str, *, write: bool) -> None:
    """Measure what trials cost beside their detector in both trees and print it; ``write`` also keeps it."""
    with tempfile.TemporaryDirectory() as folder:
        overheads = measured_overheads(export(version, Path(folder)))
    print("\n".join(overhead_table(overheads)))
    if write:
        MEASURED_OVERHEAD.write_text(json.dumps(overheads, indent=1) + "\n", encoding="utf-8")


def main(texts: Sequence[str] | None = None) -> None:
    """Measure and print, or write, what the command line asks for."""
    asked = arguments(texts)
    if asked.overhead:
        compare_overheads(asked.before, write=asked.write)
    elif not asked.table:
        compare_networks(asked.detectors or NETWORKS, asked.before, asked.epochs, write=asked.write)
    if asked.write or asked.table:
        write_page(asked.before)


if __name__ == "__main__":
    main()
