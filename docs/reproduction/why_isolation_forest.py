"""Isolation forest: its scores saturate, so that a threshold a little higher or lower flags another half of the rows.

Run: TSADBENCH_DATA=... python docs/reproduction/why_isolation_forest.py > docs/reproduction/why_isolation_forest.txt
"""

import tsadbench

METRICS = ("precision", "recall", "prac_f1", "mcc", "auroc", "auprc", "bf_f1")

print("isolation-forest, overall, 5 seeds".ljust(40) + " ".join(f"{name:>9}" for name in METRICS))
for level, q in ((0.98, 1e-3), (0.98, 2e-3), (0.98, 5e-4), (0.98, 2e-4), (0.98, 1e-4), (0.95, 1e-3), (0.9, 1e-3)):
    board = tsadbench.run(
        "isolation-forest",
        protocol="published",
        splits=["overall"],
        settings=[f"published.level={level}", f"published.q={q}"],
        floors=False,
    )
    (row,) = board.rows
    values = [row.metrics[name].mean for name in METRICS]
    recalls = sorted(record.splits["overall"].metrics["recall"] for record in row.records)
    print(
        f"initial level {level:.2f}, risk {q:.0e}".ljust(40)
        + " ".join(f"{value:9.4f}" for value in values)
        + f"   recall of the seeds {recalls[0]:.3f} to {recalls[-1]:.3f}",
        flush=True,
    )
print("paper, ISF                                 0.3452    0.5272    0.4077   -0.0086    0.5105    0.3494    0.5316")
