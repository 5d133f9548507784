"""What else the rows say: thresholds that flag everything, floors, and ranks under two protocols."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from scipy.stats import kendalltau

from tsadbench.api import table_lines

FLOOR_METRICS = ("auroc", "auprc", "mcc")
# A threshold that flags a larger share of a split's rows flags practically everything.
_EVERYTHING = 0.999


def of_split(frame: pd.DataFrame, split: str, labels: Sequence[str]) -> pd.DataFrame:
    """Return the rows of a `Leaderboard.frame` with these labels on a split that are ok, by label."""
    rows = frame[frame["ok"] & (frame["split"] == split)].set_index("detector", drop=False)
    return rows.loc[[label for label in labels if label in rows.index]]


def flags_everything(frame: pd.DataFrame, split: str, labels: Sequence[str]) -> list[str]:
    """Return the labels whose thresholds flag practically all rows of a split, on average over seeds."""
    rows = of_split(frame, split, labels)
    return rows.index[rows["flagged_mean"] > _EVERYTHING].tolist()


def above_floors(frame: pd.DataFrame, split: str, labels: Sequence[str]) -> str:
    """Return, as Markdown, the detectors that beat the best floor in any of the floor metrics."""
    verdicts = {
        label: ["no" if one in (below or ()) else "**yes**" for one in FLOOR_METRICS]
        for label, below in of_split(frame, split, labels)["below_floor"].items()
    }
    lines = ([f"`{label}`", *cells] for label, cells in verdicts.items() if "**yes**" in cells)
    return "\n".join(table_lines(["detector", "AUROC", "AUPRC", "MCC"], lines))


def best_floors(frame: pd.DataFrame, split: str) -> dict[str, tuple[str, float]]:
    """Return for each floor metric the best floor and its value."""
    floors = of_split(frame, split, frame.loc[frame["floor"] & frame["sound"], "detector"].unique())
    return {one: (floors[f"{one}_mean"].idxmax(), floors[f"{one}_mean"].max()) for one in FLOOR_METRICS}


def rank_agreement(published: pd.DataFrame, strict: pd.DataFrame, split: str, labels: Sequence[str]) -> float:
    """Return Kendall's tau between the orders by AUPRC under both protocols."""
    orders = [of_split(frame, split, labels)["auprc_mean"] for frame in (published, strict)]
    return float(kendalltau(*pd.concat(orders, axis=1, join="inner").to_numpy().T)[0])
