"""What docs/results.md says about all tables together, and its figures: from the committed tables and records alone.

A pair is a network with its default parameters and a data set, under `strict`, split overall. A row without a bound on
training steps is preferred, as in the ranking of the suite `all`.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from tables import ROOT, rows

import tsadbench
from tsadbench.analysis.audit.findings import shipped_findings, summary
from tsadbench.analysis.stored import common_name
from tsadbench.api import SUITES, number, page, style
from tsadbench.execution.record import read_records
from tsadbench.reporting.figures import mean_ranks
from tsadbench.reporting.figures.style import BLUE, GREY, GRID, INK, VERMILLION

DATASETS = SUITES["all"].datasets
LEVEL = 0.02  # AUPRC up to this far from the best one-liner counts as level with it
RISK, FAR_OFF = 1e-3, 1e-2  # the risk at which `strict` sets thresholds, and ten times that
ADJUSTED = ("random", "max-z", "t2", "dprgm", "usad", "omnianomaly", "tranad", "anomaly-transformer", "timesnet")
KINDS = {"network": (BLUE, "o"), "no network": (VERMILLION, "D"), "one-liner": (GREY, "s")}


@cache
def ranking() -> pd.DataFrame:
    """Return the ranking over all data sets."""
    return pd.read_csv(ROOT / "leaderboards/suites/all/rank.csv")


@cache
def cells() -> pd.DataFrame:
    """Return a line for each row of the ranking and data set, NaN where it has no result.

    ``gap`` is its AUPRC minus that of the best one-liner, ``fixed`` minus that of the one with the best mean rank, and
    ``alarms`` the share of the normal test rows that it flags.
    """
    lines = []
    for dataset in DATASETS:
        table, floors = rows(f"{dataset}/strict/overall"), ranking().query("floor")[f"{dataset}_value"]
        for one in ranking().to_dict("records"):
            about = {"detector": one["detector"], "dataset": dataset, "floor": one["floor"], "steps": False}
            about["complete"] = one["complete"]
            if one[f"{dataset}_status"] == "ok":
                row = table[one[f"{dataset}_label"]]
                about |= {"gap": one[f"{dataset}_value"] - floors.max(), "std": row.auprc_std, "fit": row.fit_seconds}
                about["fixed"] = one[f"{dataset}_value"] - floors.iloc[0]
                about |= {"seeds": len(row.seeds), "bounded": common_name(row.detector) != row.detector}
                about["alarms"] = np.mean([false_alarms(record) for record in row.records])
                about["steps"] = any("steps" in part.facts for record in row.records for part in record.training)
            lines.append(about)
    frame = pd.DataFrame(lines)
    trained = frame.groupby("detector")["steps"].transform("any")
    kind = np.select([frame["floor"], trained], ["one-liner", "network"], "no network")
    pair = trained & ~frame["floor"] & ~frame["detector"].str.contains("[", regex=False)
    # One ignores the data; rows without a rank would give some data sets more weight.
    left_out = (frame["detector"] == "all-positive") | ~frame["complete"]
    alarms = frame["alarms"].mask(left_out)
    return frame.assign(kind=kind, pair=pair, alarms=alarms)


def false_alarms(record: tsadbench.Record) -> float:
    """Return the share of the normal rows that a trial flags. Machines count equally, as they are equally long."""
    judged = record.splits["overall"]
    parts = pd.DataFrame([*judged.entities.values()] or [judged.metrics], dtype=float)
    flagged = (parts["flagged"] * (1 - parts["precision"].fillna(0))).mean()
    return float(flagged / (1 - judged.n_anomalous / judged.n_rows))


@cache
def adjusted() -> pd.DataFrame:
    """Return the best F1 on SMD with point adjustment and without, means over machines; without bounds in labels."""
    lines = (ROOT / "docs/studies/faithful.jsonl").read_text(encoding="utf-8").splitlines()
    frame = pd.DataFrame(one for one in map(json.loads, lines) if one["dataset"] == "smd" and one["part"] == "servers")
    tp, fp, fn = np.array(frame["best"].to_list()).T
    frame = frame.assign(**{"with": 2 * tp / (2 * tp + fp + fn), "without": frame["honest"].str["bf_f1"]})
    means = frame.groupby(["label", "floor"])[["with", "without"]].mean().reset_index("floor")
    return means.rename(common_name).sort_values("with", ascending=False)


def percent(share: float) -> str:
    """Return a share with two digits, ``2.3 %``."""
    return f"{100 * share:.0f} %" if share >= 0.1 or not share else f"{100 * share:.2g} %".replace("0.", ".", 1)


@cache
def facts() -> dict[str, str]:
    """Return the values in the page's sentences, by name."""
    complete, every, flagged = ranking().query("complete"), cells().query("pair"), cells().dropna(subset="alarms")
    found, first = every.dropna(subset="gap"), complete.iloc[0]
    of_first = cells()[cells()["detector"] == first["detector"]]
    above = found[found["gap"] > LEVEL].sort_values("gap", ascending=False)
    networks = complete[complete["detector"].isin(every["detector"])]["detector"]
    unranked = every["detector"].nunique() - len(networks)
    ranks, values = (ranking().filter([f"{name}_{what}" for name in DATASETS]) for what in ("rank", "value"))
    ranks = ranks.loc[complete.index]
    by_dataset = flagged.groupby("dataset")["alarms"].median().sort_values()
    graphs = tsadbench.Leaderboard.from_records(read_records(ROOT / "docs/prior-sensitivity.jsonl"), ["overall"]).frame
    graphs = graphs[graphs["dataset"] == "skab"].set_index("detector")["auprc_mean"]
    of_prior = graphs.filter(regex=r"^dprgm(\[prior=\w+\])?$").item()  # a label may name the data set's own prior
    paper = ROOT / "leaderboards/paper"
    # Two of ours may stand beside one printed row: the first has the default parameters.
    ours = [pd.read_csv(file).drop_duplicates(["method", "split", "metric"]) for file in paper.glob("table*.csv")]
    printed = pd.concat(ours).dropna(subset="paper_mean")
    firm = [(ranks.sum(axis=1) - ranks[name]).idxmin() == first.name for name in ranks]
    flawed = [summary(shipped_findings(name)) != "no fault found" for name in DATASETS]
    beaten = adjusted().query("not floor")["with"] <= adjusted()["with"]["max-z"]
    far, missing, bounded = flagged["alarms"] > FAR_OFF, len(every) - len(found), found["bounded"].sum()
    taus = values.corr("kendall").to_numpy()[np.triu_indices(len(DATASETS), 1)]
    skab = {label: row.auprc_mean for label, row in rows("skab/strict/overall").items()}
    wide = [value - skab[label.partition("[")[0]] for label, value in skab.items() if "[size=paper" in label]
    shares = {"firm": firm, "flawed": flawed, "beaten": beaten, "far": far}
    shares["agree"] = printed["verdict"] == "within 2 sd"
    shares |= {"first ahead": of_first["gap"] > 0, "first above": of_first["gap"] > LEVEL}
    shares |= {"first ahead fixed": of_first["fixed"] > 0, "first above fixed": of_first["fixed"] > LEVEL}
    counts = {
        "sets": len(DATASETS), "pairs": len(found), "ahead": (found["gap"] > 0).sum(), "above": len(above),
        "level": (found["gap"].abs() <= LEVEL).sum(), "below": (found["gap"] < -LEVEL).sum(),
        "ahead fixed": (found["fixed"] > 0).sum(), "above fixed": (found["fixed"] > LEVEL).sum(),
        "wide": len(wide), "wider": sum(one > LEVEL for one in wide), "narrower": sum(one < -LEVEL for one in wide),
        "several": (found["seeds"] > 1).sum(), "rows": len(complete),
        "far below fixed": (found["fixed"] < -LEVEL).sum(), "one-liners": ranking()["floor"].sum(),
        "overlapping": (complete["rank_low"] <= first["rank_high"]).sum() - 1,
    }  # fmt: skip
    return {name: f"{sum(of)} of {len(of)}" for name, of in shares.items()} | {
        **{name: f"{value}" for name, value in counts.items()},
        "best": f"`{first['detector']}` ({cells().groupby('detector')['kind'].first()[first['detector']]})",
        "network": f"`{networks.iloc[0]}`, number {1 + complete.index.get_loc(networks.index[0])} of {len(complete)}",
        "names": ", ".join(f"`{one.detector}` on {one.dataset}" for one in above.itertuples()) or "none",
        "floor": f"`{ranking().query('floor')['detector'].iloc[0]}`",
        "missing": f"Pairs without a row: {missing} (networks without a rank: {unranked})." if missing else "",
        "bounded": f"Pairs whose training was cut short (`max_steps`): {bounded}." if bounded else "",
        "spread": number(found["std"].median(), 3),
        "tau": number(float(np.median(taus)), 2),
        "alarms": percent(flagged["alarms"].median()),
        "first alarms": percent(of_first["alarms"].median()),
        "span": " to ".join(f"{percent(by_dataset[name])} on {name}" for name in by_dataset.index[[0, -1]]),
        "prior": number(np.ceil(1000 * (graphs - of_prior).abs().max()) / 1000, 3),
        "unadjusted": number(adjusted()["without"]["random"], 2),
        "adjusted": number(adjusted()["with"]["random"], 2),
    }


def finding() -> list[str]:
    """Return the main finding as a wrapped paragraph."""
    found = facts()
    said = (
        f"Of {found['rows']} detectors and one-liners, {found['best']} has the best mean rank by AUPRC over "
        f"{found['sets']} data sets. A one-liner (a floor in the tables) is a rule such as a range check or the "
        f"distance to the nearest normal row. In {found['ahead']} of {found['pairs']} pairs of a network and a data "
        f"set, the network is above the one-liner that turns out to be the best there; in {found['ahead fixed']} it is "
        f"above {found['floor']}, the one-liner with the best mean rank. Thresholds are meant to flag {percent(RISK)} "
        f"of the normal rows; in the median over detectors and data sets they flag {found['alarms']}."
    )
    return textwrap.wrap(said, 120, break_on_hyphens=False)


def ranking_list() -> list[str]:
    """Return the best row of each of the first four detectors of the ranking: its ranks, and its cost."""
    ranked, by_detector = ranking().query("complete and not floor"), cells().groupby("detector")
    slowest, kinds = by_detector["fit"].max(), by_detector["kind"].first()
    names, lines = ranked["detector"].str.partition("[")[0], []
    for one in ranked[~names.duplicated()].head(4).to_dict("records"):
        label, won = one["detector"], sum(one[f"{dataset}_beats_floors"] for dataset in DATASETS)
        lines.append(
            f"1. `{label}` ({kinds[label]}): mean rank {one['rank']:.1f} (90 % interval {one['rank_low']:.1f} to "
            f"{one['rank_high']:.1f}), above the best one-liner on {won:.0f} of {len(DATASETS)}, fit up to "
            f"{slowest[label]:.1f} s."
        )
    return lines


@contextmanager
def drawn(name: str, height: float, xlabel: str) -> Iterator[Axes]:
    """Provide the axes of a figure as wide as a phone, with its legend on top, and write it when the block ends."""
    with style(), page(ROOT / f"docs/results/{name}.svg", 4.2, height, salt=name) as figure:
        yield (ax := figure.subplots())
        ax.set_xlabel(xlabel)
        ax.invert_yaxis()
        ax.grid(axis="x")
        figure.legend(loc="outside upper left", ncols=3)


def draw() -> None:
    """Draw the figures."""
    complete = ranking().query("complete")
    with style(), page(ROOT / "docs/results/ranks.svg", 4.2, 0.8 + 0.17 * len(complete), salt="ranks") as figure:
        mean_ranks(complete, figure.subplots())
    with drawn("pairs", 3.4, "AUPRC minus that of the best one-liner") as ax:
        ax.axvspan(-LEVEL, LEVEL, color=GRID, zorder=0)
        strips(ax, cells().query("pair or kind == 'no network'").dropna(subset="gap"), "gap")
    with drawn("false-alarms", 3.4, "share of normal test rows that are flagged") as ax:
        ax.axvline(RISK, color=INK, linewidth=0.8)
        strips(
            ax, cells().dropna(subset="alarms").assign(alarms=lambda frame: frame["alarms"].clip(lower=1e-4)), "alarms"
        )
        ax.set_xscale("log")
        ax.set_xticks([1e-4, 1e-3, 1e-2, 1e-1, 1], ["up to .01 %", "asked: .1 %", "1 %", "10 %", "100 %"])
    with drawn("point-adjustment", 2.6, "best F1 on smd, mean over machines") as ax:
        shown, places = adjusted()[adjusted().index.isin(ADJUSTED)], range(len(ADJUSTED))
        ax.hlines(places, shown["without"], shown["with"], color=GREY, linewidth=1)
        ax.scatter(shown["without"], places, s=18, color=INK, label="every row counts once", zorder=3)
        ax.scatter(shown["with"], places, s=18, color=VERMILLION, marker="D", label="point-adjusted", zorder=3)
        ax.set_yticks(places, shown.index)
        ax.set_xlim(0, 1)


def strips(ax: Axes, frame: pd.DataFrame, column: str) -> None:
    """Draw a dot per line of `cells`: a strip per data set, a colour and marker per kind."""
    shown = [name for name in KINDS if (frame["kind"] == name).any()]
    for place, name in enumerate(shown):
        colour, marker = KINDS[name]
        of_kind = frame[frame["kind"] == name]
        at = of_kind["dataset"].map(DATASETS.index) + 0.24 * (place - (len(shown) - 1) / 2)
        ax.scatter(of_kind[column], at, s=12, color=colour, marker=marker, alpha=0.6, linewidths=0, label=name)
    ax.set_yticks(range(len(DATASETS)), DATASETS)
