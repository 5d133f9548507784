"""Run what the committed tables lack: ``make leaderboards [DATA="tep smd"]``.

A trial is done if a table's records hold it with status ok, from the current code and a sealed box; each record is
added when its trial ends. So the tables can be made in several sessions, on an idle machine: two trials at a time,
one thread each, in sealed boxes, without a bound on training steps. The first pass runs the numbers of seeds in
`TABLES`, rows that are missing first. The second adds two seeds where a row's AUPRC is
near that of the best floor or of its neighbours among the ten best. Scores are in runs/NAME.

``strict``, ``published`` and ``skab`` are protocols on SKAB; the other tables are under `strict`. ``pyod`` and
``quick`` have separate folders and do not ship; ``quick`` has short runs of slow detectors for ``make regress``.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from tsadbench.analysis.stored import common_name
from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.datasets.loading import SUITES, load_dataset
from tsadbench.execution.identity import code_of, identity
from tsadbench.execution.plan import Plan, Trial, make_plan
from tsadbench.execution.record import RECORDS, Record, committed_records
from tsadbench.execution.request import RunRequest
from tsadbench.execution.runner import Observer, run_plan
from tsadbench.execution.store import Store
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.frame import trial_key
from tsadbench.utils.files import write_file

HERE = Path(__file__).parent
# One seed cannot distinguish rows whose AUPRC differs by less than NEAR.
NEAR, N_BEST, N_SEEDS = 0.02, 10, 3

CLASSICS = ["pca", "dynamic-pca", "cva", "arima", "ocsvm", "svdd", "lof"]
STATISTICS = ["multiview", "multiview[adaptive=on]", "t2", "t2[mean=10]", "t2[mean=10,shrinkage=on]", "t2-q", "mset",
              "isolation-forest", *CLASSICS]  # fmt: skip
# Networks that the paper names but does not compare with.
NAMED = ["anomaly-transformer", "catch", "deep-svdd", "dvgcrn", "ganf", "gcad", "lstm-ndt", "omnianomaly", "thoc",
         "timesnet", "tranad", "usad"]  # fmt: skip
# `untrained` is a floor that `run` does not add by itself: it needs the extra deep.
NETWORKS = ["untrained", "dprgm", "dprgm[node_weights=off]", "gdn", "conv-ae", "vanilla-ae", "vanilla-lstm", "lstm-ae",
            "lstm-vae", *NAMED, "mscred", "mtad-gat", "grelen"]  # fmt: skip
# Published variants: GDN's quirk, schedules in which the second decoder collapses, another statistic.
PUBLISHED = ["gdn[quirks=on]", "usad[least_weight=0]", "tranad[least_weight=0]", "grelen[statistic=deviation]"]
WIDE = [f"{name}[size=paper]" for name in (
    "anomaly-transformer", "catch", "dvgcrn", "gcad", "grelen", "lstm-vae", "mscred", "mtad-gat", "omnianomaly",
    "thoc", "timesnet", "usad",
)]  # fmt: skip
PYOD = [f"pyod:{name}" for name in (
    "ABOD", "CBLOF", "COPOD", "ECOD", "GMM", "HBOS", "HDBSCAN", "IForest", "INNE", "KDE", "KNN", "KNN[window=10]",
    "LODA", "LOF", "LOF[window=10]", "MCD", "OCSVM", "PCA", "QMCD", "Sampling",
)]  # fmt: skip
PYOD_NETWORKS = [f"pyod:{name}" for name in ("AutoEncoder", "DeepSVDD", "LUNAR", "SO_GAAL")]
SKLEARN = [f"sklearn:{name}" for name in (
    "EllipticEnvelope", "IsolationForest", "LocalOutlierFactor", "OneClassSVM", "SGDOneClassSVM",
)]  # fmt: skip


class Table(NamedTuple):
    """A table: labels by their number of seeds in the first pass. Deterministic detectors run once."""

    rows: Mapping[int, Sequence[str]]
    dataset: str = "skab"
    protocol: str = "strict"
    folder: Path = HERE
    floors: bool = True
    closer: bool = False  # whether rows that are near others get more seeds


_EVERYTHING = [*NETWORKS, *STATISTICS]
TABLES = {
    "strict": Table({5: [*_EVERYTHING, *PUBLISHED], 1: WIDE}),
    "published": Table({5: [*_EVERYTHING, *PUBLISHED]}, protocol="published"),
    "skab": Table({5: STATISTICS, 1: [*NETWORKS, *PUBLISHED]}, protocol="skab"),
    "pyod": Table({5: [*PYOD, *SKLEARN], 1: PYOD_NETWORKS}, folder=HERE / "pyod"),
    "quick": Table(  # twenty training steps: only checks that scores stay the same
        {2: [*(f"{one}[max_steps=20]" for one in NAMED), *CLASSICS]}, "pumploop", folder=HERE / "quick", floors=False
    ),
    **{name: Table({1: _EVERYTHING}, name, closer=True) for name in SUITES["all"].datasets if name != "skab"},
}


def main() -> None:
    """Run the first pass of each table, then the second."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(TABLES)} (default: all but quick)")
    parser.add_argument("--jobs", type=int, default=2, help="trials at a time")
    parser.add_argument("--only", nargs="*", default=(), metavar="LABEL", help="run these rows alone, without floors")
    options = parser.parse_args()
    chosen = {name: TABLES[name] for name in options.tables or [one for one in TABLES if one != "quick"]}
    only = set(options.only)
    for name, table in chosen.items():
        data = load_dataset(table.dataset)(DataOptions())
        for n_seeds, labels in table.rows.items():
            run(name, table, data, [one for one in labels if not only or one in only], n_seeds, options.jobs, not only)
        if table.closer:
            run(name, table, data, [one for one in close(table) if not only or one in only], N_SEEDS, options.jobs)


def run(
    name: str, table: Table, data: LabelledDataset, labels: Sequence[str], n_seeds: int, jobs: int, floors: bool = False
) -> None:
    """Run the trials that the committed records lack, those of missing rows first."""
    request = RunRequest(
        detectors=list(labels),
        datasets=[data],
        protocols=[table.protocol],
        seeds=n_seeds,
        floors=table.floors and floors,
        contributions=False,
        require_seal=True,
        jobs=jobs,
    )
    plan = make_plan(request)
    there = committed_records(table.folder, data.dataset.name, plan.protocol_label)
    done = {(one.trial, one.judging) for one in there if one.status == "ok" and one.seal == "sealed"}
    known = {one.label for one in there}
    lacking = [one for one in plan.trials if _names(one, plan) not in done]
    lacking.sort(key=lambda one: one.contender.label in known)
    print(f"{name}: {len(plan.trials) - len(lacking)} of {len(plan.trials)} trials are done", flush=True)
    store = Store.create(Path("runs", name))
    run_plan(replace(plan, trials=tuple(lacking)), store, Committing(table.folder), jobs=jobs)


def close(table: Table) -> list[str]:
    """Return the detectors whose AUPRC is near the best floor's, or a neighbour's among the best."""
    records = committed_records(table.folder, table.dataset, table.protocol)
    rows = Leaderboard.from_records(records, ["overall"]).frame.query("ok")  # best first
    best = rows["auprc_mean"].head(N_BEST)
    beside = best[(best.diff().abs() < NEAR) | (best.diff(-1).abs() < NEAR)].index
    near = rows.index.isin(beside) | (rows["to_floor"].abs() < NEAR)
    return rows.loc[near & ~rows["floor"], "detector"].tolist()


class Committing(Observer):
    """Commits each finished trial, and removes the records that it replaces."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def finished(self, _: Trial, record: Record) -> None:
        """Write the table's records."""
        there = committed_records(self.folder, record.dataset, record.protocol)
        others = [one for one in there if trial_key(one) != trial_key(record) and not _replaces(record, one)]
        lines = [f"{one.to_json(indent=None)}\n" for one in sorted([*others, record], key=trial_key)]
        write_file(self.folder / record.dataset / record.protocol / RECORDS, "".join(lines))
        seconds = (record.fit_seconds or 0.0) + (record.score_seconds or 0.0)
        print(f"{record.dataset} {record.label} {record.seed}: {record.status} ({seconds:.0f} s)", flush=True)

    kept = finished  # a trial of the run store that an earlier session could not commit


def _replaces(record: Record, older: Record) -> bool:
    """Whether a record replaces an older one: of the same label and other code, or of a run with ``max_steps``."""
    if record.label == older.label:
        return code_of(record.manifest) != code_of(older.manifest)
    return record.label == common_name(older.label)


def _names(trial: Trial, plan: Plan) -> tuple[str, str]:
    found = identity(trial, plan)
    return found.trial, found.judging


if __name__ == "__main__":
    main()
