"""How `multiview` was chosen, and what came of it: ``python docs/studies/multiview.py planted``, ``labels``, ``page``.

``planted`` plants faults in held-out training rows of all eight data sets and writes multiview-planted.csv: no label is
read. ``labels`` runs the detector and its variants on the test rows, into runs/multiview, and writes multiview.csv.
``page`` writes the tables of docs/studies/multiview.md from these two files and the committed tables. The page has the
rule, which was committed before the first run of the other two.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import average_precision_score

import tsadbench
from tsadbench.api import load_dataset, load_protocol, table_lines
from tsadbench_detectors.multiview import VIEWS, MultiView
from tsadbench_detectors.t2 import T2

HERE = Path(__file__).parent
DATASETS = ("skab", "tep", "pumploop", "cranfield", "gecco2018", "causrca", "asd", "smd")
WITHOUT = {view: "+".join(one for one in VIEWS if one != view) for view in VIEWS}
CANDIDATES: dict[str, Callable[[], tsadbench.Detector]] = {
    "multiview": MultiView,
    **{f"without {view}": partial(MultiView, views=views) for view, views in WITHOUT.items()},
    "rows alone": partial(MultiView, mean=1),
    "t2[mean=10]": partial(T2, mean=10),
}
LABELLED = [
    "multiview",
    *(f"multiview[views={views}]" for views in WITHOUT.values()),
    *("multiview[mean=1]", "multiview[mean=30]", "t2", "t2[mean=10]", "t2[mean=10,shrinkage=on]", "cva", "mset"),
    "nearest-neighbour[mean=10]",
]
TABLES = "<!-- the tables below are written by docs/studies/multiview.py -->\n"
# The most rows to fit, and to plant faults in: the study takes minutes.
MOST_FITTED, MOST_PLANTED = 20_000, 10_000
N_FAULTS = 8


def shifted(rows: np.ndarray, where: slice, rng: np.random.Generator, deviation: np.ndarray) -> None:
    """Move three sensors by 1 to 4 of their training deviations."""
    some = rng.choice(rows.shape[1], min(3, rows.shape[1]), replace=False)
    rows[where, some] += deviation[some] * rng.uniform(1, 4, len(some)) * rng.choice([-1, 1], len(some))


def uncoupled(rows: np.ndarray, where: slice, rng: np.random.Generator, deviation: np.ndarray) -> None:  # noqa: ARG001
    """Give two sensors the values of another time."""
    some = rng.choice(rows.shape[1], min(2, rows.shape[1]), replace=False)
    rows[where, some] = np.roll(rows, len(rows) // 2, axis=0)[where, some]


def noisy(rows: np.ndarray, where: slice, rng: np.random.Generator, deviation: np.ndarray) -> None:
    """Add noise of 1 to 3 training deviations to two sensors."""
    some = rng.choice(rows.shape[1], min(2, rows.shape[1]), replace=False)
    noise = rng.normal(size=(where.stop - where.start, len(some)))
    rows[where, some] += noise * deviation[some] * rng.uniform(1, 3, len(some))


FAULTS = {"shift": shifted, "coupling": uncoupled, "noise": noisy}


def parts(name: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield rows to fit and later rows to plant faults in, of each entity's training recordings."""
    dataset = load_dataset(name).dataset
    for episode in load_protocol("strict")().episodes(dataset):
        values = np.concatenate([one.values for one in episode.train])
        later = min(len(values) // 5, MOST_PLANTED)
        yield values[:-later][-MOST_FITTED:], values[-later:]


def planted() -> pd.DataFrame:
    """Return the AUPRC of each candidate on each kind of planted fault, by data set: means over entities."""
    found = []
    for name in DATASETS:
        for number, (fitted, later) in enumerate(parts(name)):
            detectors = {label: make().fit(fitted) for label, make in CANDIDATES.items()}
            for kind, plant in FAULTS.items():
                rng, rows, truth = np.random.default_rng([number, len(kind)]), later.copy(), np.zeros(len(later), bool)
                for start in rng.choice(len(rows) * 19 // 20, N_FAULTS, replace=False).tolist():
                    where = slice(start, start + 1 + int(rng.integers(len(rows) // 100, len(rows) // 20)))
                    plant(rows, where, rng, fitted.std(axis=0))
                    truth[where] = True
                for label, one in detectors.items():
                    found.append((name, label, kind, average_precision_score(truth, one.score(rows))))
        print(name, file=sys.stderr)
    frame = pd.DataFrame(found, columns=["dataset", "detector", "fault", "auprc"])
    return frame.groupby(["detector", "fault", "dataset"], sort=False)["auprc"].mean().unstack("dataset")


def labels() -> pd.DataFrame:
    """Return AUPRC, MCC and false alarms of the chosen detector, its variants and others on the test rows."""
    for name in DATASETS:
        tsadbench.run(LABELLED, dataset=name, seeds=1, floors=False, out="runs/multiview")
    rows = tsadbench.load_board("runs/multiview").to_frame()
    rows = rows[rows["split"] == "overall"].set_index(["dataset", "detector"])
    return rows[["auprc_mean", "mcc_mean", "far"]].rename(columns=lambda one: one.removesuffix("_mean"))


def committed(dataset: str, detector: str) -> float:
    """Return the AUPRC of a detector in a committed table, whatever bounds its label has; NaN if it has no row."""
    rows = pd.read_csv(HERE.parents[1] / f"leaderboards/{dataset}/strict/overall.csv")
    of_detector = rows[rows["detector"].str.partition("[")[0] == detector]
    return float(of_detector["auprc_mean"].iloc[0]) if len(of_detector) else np.nan


def page() -> None:
    """Write the page's tables."""
    planted_on = pd.read_csv(HERE / "multiview-planted.csv", index_col=[0, 1]).mean(axis=1).unstack("fault")
    found = pd.read_csv(HERE / "multiview.csv", index_col=["detector", "dataset"])
    lines = ["### Planted faults: AUPRC, means over eight data sets", "", *_lines(planted_on)]
    of_sets = found["auprc"].unstack("dataset")[[*DATASETS]].loc[LABELLED]
    of_sets.loc["lstm-ndt"] = {name: committed(name, "lstm-ndt") for name in DATASETS}
    lines += ["", "### Test rows: AUPRC", "", *_lines(of_sets)]
    means = found.groupby("detector").mean().loc[LABELLED]
    lines += ["", "### Test rows: means (false alarms over the six data sets with one model)", "", *_lines(means)]
    head, _, _ = (HERE / "multiview.md").read_text().partition(TABLES)
    (HERE / "multiview.md").write_text(head + TABLES + "\n" + "\n".join(lines) + "\n")


def _lines(frame: pd.DataFrame) -> list[str]:
    rows = [[str(name), *("-" if np.isnan(one) else f"{one:.3f}" for one in row)] for name, *row in frame.itertuples()]
    return table_lines([str(frame.index.name), *map(str, frame)], rows)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["planted"]:
            planted().to_csv(HERE / "multiview-planted.csv", float_format="%.4f")
        case ["labels"]:
            labels().to_csv(HERE / "multiview.csv", float_format="%.4f")
        case ["page"]:
            page()
        case _:
            sys.exit(__doc__)
