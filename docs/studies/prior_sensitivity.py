"""What a prior is worth to DPR-GM: ``python docs/studies/prior_sensitivity.py`` writes docs/prior-sensitivity.md.

The page comes from the records next to it (prior-sensitivity.jsonl). With ``--run FOLDER`` the missing trials are run
first and kept in that run store, and their records replace the committed ones.
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
from collections.abc import Sequence
from pathlib import Path

from scipy.stats import t as student

import tsadbench
from tsadbench.api import load_prior, table_lines

PAGE = Path(__file__).parents[1] / "prior-sensitivity.md"
RECORDS = PAGE.with_suffix(".jsonl")
DATASETS = ("skab", "pumploop")
PRIOR = "dprgm"
GRAPHS = {
    PRIOR: "the prior",
    "dprgm[graph=random]": "as many random edges",
    "dprgm[graph=none]": "no graph",
    "dprgm[edge_weights=off,graph=complete]": "every pair (unweighted)",
}
_PRIOR = re.compile(r",?prior=\w+")  # a label may name the data set's own prior
METRICS = {"auroc": "AUROC", "auprc": "AUPRC"}
N_COMPARISONS = len(METRICS) * len(DATASETS) * (len(GRAPHS) - 1)
# Family-wise error rate of the intervals against the prior (Bonferroni).
LEVEL = 1 - 0.05 / N_COMPARISONS
HEAD = f"""\
# What the prior is worth

`docs/studies/prior_sensitivity.py` writes this page from [every trial's record]({RECORDS.name}). DPR-GM under `strict`,
split overall: means over seeds with 95 % intervals (Student's t). *Against the prior* is the mean difference by seed.
The page makes {N_COMPARISONS} such comparisons, so each has an interval of {LEVEL:.2%} (Bonferroni). An interval that
contains 0 does not prove equality. The intervals concern the seeds on one data set, not another plant.
"""


def bounds(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Return the interval of the mean at a level (Student's t)."""
    half = float(student.ppf((1 + level) / 2, len(values) - 1)) * statistics.stdev(values) / math.sqrt(len(values))
    return statistics.mean(values) - half, statistics.mean(values) + half


def interval(values: Sequence[float], level: float = 0.95, sign: str = "") -> str:
    """Return the mean with its interval as text."""
    low, high = bounds(values, level)
    return f"{statistics.mean(values):{sign}.4f} [{low:{sign}.4f}, {high:{sign}.4f}]"


def section(dataset: str, records: Sequence[tsadbench.Record]) -> list[str]:
    """Return the lines about one data set."""
    values = {
        (label, metric): {
            one.seed: one.splits["overall"].metrics[metric]
            for one in records
            if one.dataset == dataset and _PRIOR.sub("", one.label).replace("[]", "") == label
        }
        for label in GRAPHS
        for metric in METRICS
    }
    apart = {key: [value - values[PRIOR, key[1]][seed] for seed, value in of.items()] for key, of in values.items()}
    rows = []
    for label, name in GRAPHS.items():
        means = [interval(list(values[label, metric].values())) for metric in METRICS]
        against = [interval(apart[label, metric], LEVEL, "+") if label != PRIOR else "" for metric in METRICS]
        rows.append([name, str(len(values[label, "auroc"])), *means, *against])
    verdicts: dict[str, list[str]] = {"better than the prior": [], "worse": [], "not distinguishable": []}
    for label, name in GRAPHS.items():
        if label != PRIOR:
            low, high = bounds(apart[label, "auprc"], LEVEL)
            verdict = "better than the prior" if low > 0 else "worse" if high < 0 else "not distinguishable"
            verdicts[verdict].append(name)
    told = ". ".join(f"By AUPRC, {verdict}: {', '.join(names)}" for verdict, names in verdicts.items() if names)
    prior = load_prior(dataset)
    header = ["graph", "seeds", *METRICS.values(), *(f"{title} against the prior" for title in METRICS.values())]
    reading = f"The prior has {len(prior.edges)} edges between {len(prior.sensors)} sensors. {told}."
    return ["", f"## {dataset}", "", *table_lines(header, rows), "", reading]


def main() -> None:
    """Run missing trials if ``--run`` is given, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, metavar="FOLDER", help="run store: run what it lacks")
    arguments = parser.parse_args()
    if arguments.run is not None:
        board = tsadbench.run([*GRAPHS], DATASETS, seeds=5, floors=False, out=arguments.run)
        RECORDS.write_text("".join(f"{record.to_json(None)}\n" for record in board.records), encoding="utf-8")
    lines = RECORDS.read_text(encoding="utf-8").splitlines()
    records = [tsadbench.Record.from_json(line, RECORDS.name) for line in lines]
    text = HEAD + "\n".join(line for name in DATASETS for line in section(name, records)) + "\n"
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
