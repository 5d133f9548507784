"""Four networks whose ranking is the paper's and whose threshold is not: what is left of the gap at the paper's recall.

Of each trial of `make reproduce`, the threshold is moved to where the recall is the paper's. The share of training
scores above it says how the paper's threshold must lie among the training scores.

Run: TSADBENCH_DATA=... python docs/reproduction/why_thresholds.py > docs/reproduction/why_thresholds.txt
"""

from pathlib import Path

import numpy as np
from material import HORIZON, WINDOW, anomalous
from sklearn.metrics import f1_score, matthews_corrcoef, precision_score, recall_score

import tsadbench
from tsadbench.execution.run_store import Store
from tsadbench.studies.reproduction.paper import published

RUNS = Path(__file__).parents[2] / "runs" / "published"
NETWORKS = {
    "conv-ae": "Conv-AE",
    "vanilla-ae": "Vanilla AE",
    "vanilla-lstm": "Vanilla LSTM",
    "lstm-ae": "LSTM-AE",
    "lstm-vae": "LSTM-VAE",
}
METRICS = {
    "precision": precision_score,
    "recall": recall_score,
    "prac_f1": f1_score,
    "mcc": matthews_corrcoef,
}
EVALUATED = slice(WINDOW, len(anomalous) - HORIZON + 1)


def line(name: str, flags: list[np.ndarray], above: list[float]) -> None:
    """Print the metrics of flagged rows, and the share of training scores above the threshold, mean over seeds."""
    truth = anomalous[EVALUATED]
    values = [np.mean([metric(truth, flagged) for flagged in flags]) for metric in METRICS.values()]
    print(f"{name:44}" + " ".join(f"{value:9.4f}" for value in values) + f" {np.mean(above):9.4f}", flush=True)


board = tsadbench.run(list(NETWORKS), protocol="published", splits=["overall"], floors=False, out=RUNS)
store = Store.open(RUNS)
print("overall, 5 seeds".ljust(44) + " ".join(f"{name:>9}" for name in METRICS) + "  training scores above")
for row in board.rows:
    found = published("broader_comparison")
    paper = {metric: found[NETWORKS[row.label], "overall", metric].mean for metric in METRICS}
    own: list[np.ndarray] = []
    moved: list[np.ndarray] = []
    above_own: list[float] = []
    above_moved: list[float] = []
    for record in row.records:
        scores = store.scores(record.trial)
        test, train = scores["test/all/test"][EVALUATED], scores["train/all/anomaly-free"]
        train = train[np.isfinite(train)]
        threshold = record.thresholds[0].threshold.value
        own.append(test > threshold)
        above_own.append(float(np.mean(train > threshold)))
        threshold = np.quantile(test[anomalous[EVALUATED]], 1 - paper["recall"])
        moved.append(test > threshold)
        above_moved.append(float(np.mean(train > threshold)))
    line(row.label, own, above_own)
    line(f"{row.label}, at the paper's recall", moved, above_moved)
    values = " ".join(f"{paper[name]:9.4f}" for name in METRICS)
    print(f"{'paper, ' + NETWORKS[row.label]:44}{values}", flush=True)
