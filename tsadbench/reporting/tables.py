"""A leaderboard table as the report and the site show it: cells, order, remarks, and its finding in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import TypedDict

import jinja2
import pandas as pd
from markupsafe import Markup

from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.formatting import number
from tsadbench.reporting.figures.trials import TITLES

ENVIRONMENT = jinja2.Environment(
    loader=jinja2.PackageLoader("tsadbench.reporting"), autoescape=True, trim_blocks=True, lstrip_blocks=True
)
_METRICS = ("auprc", "auroc", "mcc", "prac_f1", "f1", "far", "flagged")
# What a table says of a row only if rows differ in it.
_SEALS = {"guarded": "guarded, not sealed"}


class Cell(TypedDict):
    """Text of a cell, what it is sorted by (None: last), its class and where it leads to."""

    text: str
    value: float | str | None
    kind: str
    link: str


def frame_of(board: Leaderboard) -> pd.DataFrame:
    """Return a board's rows as its data frame, with the columns ``floor`` and ``rules``; undefined numbers are NaN."""
    frame = board.to_frame()
    frame["floor"] = [row.floor for row in board.rows]
    frame["rules"] = [row.rules for row in board.rows]
    numbers = [str(name) for name in frame if str(name).endswith(("_mean", "_std"))]
    numbers += ["coverage", "look_ahead", "fit_seconds", "rows_per_second", "peak_memory_mib"]
    return frame.assign(**{name: pd.to_numeric(frame[name], errors="coerce") for name in numbers})


def ranked(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a table, the best AUPRC first, failed ones last, with the column ``margin``.

    The margin is the distance to the best floor; NaN without one.
    """
    key = "auprc_mean" if "auprc_mean" in rows else next(str(name) for name in rows if str(name).endswith("_mean"))
    ok = rows["status"] == "ok"
    best = rows.loc[rows["floor"] & ok, key].max()
    shown = rows.assign(margin=(rows[key] - best).where(ok), lead=rows[key].where(ok))
    return shown.sort_values("lead", ascending=False, na_position="last", kind="stable")


def finding(rows: pd.DataFrame) -> str:
    """Return in a sentence which row of a table leads, and whether detectors beat the best floor."""
    shown = ranked(rows).dropna(subset=["lead"])
    floors, detectors = shown[shown["floor"]], shown[~shown["floor"]]
    if shown.empty:
        return "No row has a result."
    best = f"{shown['detector'].iloc[0]} has the best AUPRC, {number(float(shown['lead'].iloc[0]), 2)}"
    if floors.empty:
        return f"{best}. No floor was run, so nothing says whether that is much."
    floor = f"{floors['detector'].iloc[0]} ({number(float(floors['lead'].iloc[0]), 2)})"
    n = int((detectors["margin"] > 0).sum())
    if detectors.empty:
        return f"{best}. Only floors were run."
    if not n:
        first = f"{detectors['detector'].iloc[0]}, {number(float(detectors['lead'].iloc[0]), 2)}"
        return f"No detector beats the best one-liner, {floor}, in AUPRC; the best detector is {first}."
    beaten = "1 detector beats" if n == 1 else f"{n} detectors beat"
    return f"{best}. {beaten} the best one-liner, {floor}; {len(detectors) - n} do not."


def source(*names: str) -> Markup:
    """Return style sheets or scripts of this package, one after the other."""
    folder = files(__package__) / "templates"
    return Markup("\n".join((folder / name).read_text(encoding="utf-8") for name in names))


def html_table(rows: pd.DataFrame, caption: str, links: Mapping[str, str] | None = None) -> Markup:
    """Return a table of the rows of one split, sortable by the page's script; a name may lead to a page."""
    shown = ranked(rows)
    metrics = [name for name in _METRICS if f"{name}_mean" in shown]
    if "far" in metrics:
        metrics.remove("flagged")
    titles = [TITLES[name] for name in metrics]
    head = ["#", "detector", titles[0], "vs. floor", *titles[1:], "fit, s", "remarks"]
    body, place = [], 0
    best = {name: shown.loc[shown["status"] == "ok", f"{name}_mean"].max() for name in ("auprc", "auroc", "mcc")}
    best = {name: value for name, value in best.items() if name in metrics}
    remarks = _remarks(shown)
    for remark, (_, row) in zip(remarks, shown.iterrows(), strict=True):
        ok = row["status"] == "ok"
        place += int(ok)
        label = str(row["detector"])
        first, *rest = [_metric(row, name, ok=ok, best=best.get(name)) for name in metrics]
        margin = float(row["margin"])
        sign = "" if pd.isna(margin) else "up" if margin > 0 else "down"
        cells = [
            cell(str(place) if ok else "", place if ok else None, "rank"),
            cell(label, label.lower(), "name", (links or {}).get(label, "")),
            first,
            cell("" if pd.isna(margin) else number(margin, 2, signed=True), margin, sign),
            *rest,
            cell(_seconds(row["fit_seconds"]) if ok else "-", row["fit_seconds"], "cost"),
            cell(remark, remark, "remarks"),
        ]
        body.append({"floor": bool(row["floor"]), "causal": not row["look_ahead"] > 0, "cells": cells})
    return table_html(head, body, caption)


def table_html(head: Sequence[str], body: Iterable[Mapping[str, object]], caption: str) -> Markup:
    """Return a sortable table; a row has ``cells`` (`cell`), ``floor`` and ``causal``."""
    module = ENVIRONMENT.get_template("table.html.j2").module
    return Markup(module.table(head, list(body), caption))  # type: ignore[attr-defined]


def cell(text: str, value: float | str | None = None, kind: str = "", link: str = "") -> Cell:
    """Return a cell."""
    if isinstance(value, float) and pd.isna(value):
        value = None
    return {"text": text, "value": text if value is None and not kind else value, "kind": kind, "link": link}


def _seconds(value: float) -> str:
    return "-" if pd.isna(value) else f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}" if value >= 0.05 else "<.1"


def _metric(row: pd.Series[float], name: str, *, ok: bool, best: float | None) -> Cell:
    mean, std = float(row[f"{name}_mean"]), float(row[f"{name}_std"])
    if not ok or pd.isna(mean):
        return cell("-", None, "number")
    decimals = 2 if pd.isna(std) or std >= 0.005 else 3
    if name in ("flagged", "far"):
        return cell(f"{mean:.0%}", mean, "number")
    spread = "" if pd.isna(std) else f" ± {number(std, decimals)}"
    return cell(f"{number(mean, decimals)}{spread}", mean, "number best" if mean == best else "number")


def _remarks(rows: pd.DataFrame) -> list[str]:
    """Return what readers must know of each row, in words; of the seal only if rows differ in it."""
    found = []
    for _, row in rows.iterrows():
        marks = str(row.get("replay", "") or "")
        parts = [
            "floor" if row["floor"] else "",
            f"failed: {row['status']}" if row["status"] != "ok" else "",
            f"look-ahead {row['look_ahead']:g}" if row["look_ahead"] > 0 else "",
            f"scored {row['coverage']:.0%} of the rows" if row["coverage"] < 1 else "",
            "unranked: depends on the recording's start" if "unforgetting" in marks else "",
            "fails a check" if row.get("checked") == "fail" else "",
            f"pretrained on {row['pretrained_on']}" if row.get("pretrained_on") else "",
            _SEALS.get(str(row.get("seal")), "") if rows["seal"].nunique() > 1 else "",
        ]
        found.append("; ".join(part for part in parts if part))
    return found
