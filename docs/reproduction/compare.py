"""What the other scripts print: variants of a detector under `published`, overall, mean over seeds.

A store beside the scripts keeps the trials, so that a script that is run again prints at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import tsadbench

_RUNS = Path(__file__).parents[2] / "runs" / "explanations"
_METRICS = ("precision", "recall", "prac_f1", "mcc", "auroc", "auprc", "bf_f1")


def compare(variants: Sequence[str], seeds: int, split: str = "overall") -> None:
    """Run the variants and print their metrics on a split."""
    board = tsadbench.run(variants, protocol="published", splits=[split], seeds=seeds, floors=False, out=_RUNS)
    print(f"{split}, {seeds} seeds".ljust(44) + " ".join(f"{name:>9}" for name in _METRICS))
    by_label = {row.label: row for row in board.rows}
    for label in variants:
        row = by_label[label]
        values = [row.metrics[name].mean for name in _METRICS]
        print(f"{label:44}" + " ".join(f"{value:9.4f}" for value in values), flush=True)
