"""What a threshold from training costs: ``python docs/studies/thresholds.py [--run]`` writes the page beside it.

``--run`` first runs the detectors that fit in seconds, and the floors, on all data sets under `strict`, into
runs/thresholds: trials that are there are not run again. The page judges the stored scores of that folder.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import tsadbench
from tsadbench.api import load_protocol, select, table_lines

PAGE = Path(__file__).with_suffix(".md")
STORE = "runs/thresholds"
DATASETS = ("skab", "tep", "pumploop", "cranfield", "gecco2018", "causrca", "asd", "smd")
DETECTORS = ["multiview", "t2", "t2[mean=10]", "t2[mean=10,shrinkage=on]", "t2-q", "pca", "cva", "dynamic-pca", "mset",
             "isolation-forest", "ocsvm"]  # fmt: skip
N_BEST = 10
RULES = {"PoT": load_protocol("strict")(), "DSPOT": load_protocol("strict")(**{"threshold": "dspot"})}
HEAD = """\
# What a threshold from training costs

A threshold is set on training scores, by Peaks-over-Threshold at q = .001: one normal row in a thousand should be
flagged. Where a plant has moved since, most normal rows are. DSPOT holds scores against their recent mean instead, and
takes the first 60 rows of each recording for normal ([protocol](../protocol.md#thresholds)). Below, of each data set's
ten best rows by AUPRC among the detectors that fit in seconds and the floors (`strict`, split overall): MCC, and the
share of the normal rows that is flagged. *Best* is the threshold with the highest MCC on the test labels, which no user
can know.

DSPOT repairs SKAB, where it takes nearly all false alarms away. It loses where faults fill much of a recording, because
the mean then follows them (cranfield, causrca, smd), and with scores that are 0 for most rows (`sensor-range`), which
have no logarithm. Neither rule comes near the best threshold where a plant has moved.
"""


def best_mcc(scores: np.ndarray, anomalous: np.ndarray) -> float:
    """Return the highest MCC over all thresholds."""
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)
    tp = np.cumsum(anomalous[order])[last].astype(float)
    fp = last + 1 - tp
    fn, tn = anomalous.sum() - tp, (~anomalous).sum() - fp
    with np.errstate(invalid="ignore", divide="ignore"):
        mcc = (tp * tn - fp * fn) / np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    return float(np.nanmax(mcc, initial=0.0))


def measured(result: Any) -> dict[str, float]:
    """Return a trial's MCC and share of flagged normal rows under each rule, and the best MCC (means over fits)."""
    labels = result.data.labels
    whole = tsadbench.Labels(labels.rows, {"overall": labels.splits["overall"]})
    found: dict[str, float] = {}
    for name, protocol in RULES.items():
        found[f"{name} MCC"] = protocol.judge(result.scored, whole).splits["overall"].metrics["mcc"] or 0.0
        flagged = [rows for fit in result.scored for rows in _normal_flags(result, fit, protocol)]
        found[f"{name} false alarms"] = float(np.concatenate(flagged).mean())
    by_fit: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for one in result.recordings.values():
        by_fit.setdefault(one.episode, []).append((one.scores[one.evaluated], one.anomalous[one.evaluated]))
    pooled = [[np.concatenate(parts) for parts in zip(*of_fit, strict=True)] for of_fit in by_fit.values()]
    best = [best_mcc(scores, truth) for scores, truth in pooled if truth.any() and not truth.all()]
    return found | {"best MCC*": float(np.mean(best))}


def _normal_flags(result: Any, fit: tsadbench.Scored, protocol: tsadbench.Protocol) -> Iterator[np.ndarray]:
    """Yield which evaluated normal rows of each recording are flagged."""
    truth, limits = result.data.labels.rows, protocol.limits(fit, protocol.find_threshold(fit))
    for place in protocol.places(fit.episode, {name: len(rows) for name, rows in truth.items()}):
        rows = slice(place.start, place.start + len(truth[place.recording]))
        above = fit.test[place.scored][rows] > limits[place.scored][rows]
        yield above[place.evaluated][~truth[place.recording][place.evaluated]]


def table(dataset: str) -> pd.DataFrame:
    """Return the ten best rows of a data set."""
    rows = tsadbench.load_board(STORE, dataset=dataset, splits="overall").to_frame()
    rows = rows[rows["status"] == "ok"].nlargest(N_BEST, "auprc_mean")
    found = []
    for label in rows["detector"]:
        (result,) = select(STORE, dataset=dataset, detectors=[label]).results(one_each=True)
        found.append({"detector": label, **measured(result)})
    return pd.DataFrame(found)


def page() -> str:
    """Return the page."""
    tables = {dataset: table(dataset) for dataset in DATASETS}
    every = pd.concat(tables, names=["data set"]).reset_index(level=0)
    means = every.drop(columns="detector").groupby("data set", sort=False).mean().reset_index()
    lines = [HEAD, "## Means over the ten rows", "", *_lines(means)]
    for dataset, one in tables.items():
        lines += ["", f"## {dataset}", "", *_lines(one)]
    return "\n".join([*lines, "", "Made by `docs/studies/thresholds.py`.", ""])


def _lines(frame: pd.DataFrame) -> list[str]:
    return table_lines(
        [*frame], [[one if isinstance(one, str) else f"{one:.3f}" for one in row] for row in frame.values]
    )


if __name__ == "__main__":
    if "--run" in sys.argv:
        for name in DATASETS:
            tsadbench.run(DETECTORS, dataset=name, seeds=1, out=STORE)
    PAGE.write_text(page())
