"""Run the detectors of the committed leaderboards and write their records: ``make leaderboards [DATA="tep smd"]``.

Each table goes on where it was interrupted; its run store is runs/NAME. Two fits at a time, one thread each.
``strict``, ``published`` and ``skab`` are protocols on SKAB; the other tables are under `strict`. ``pyod`` and
``quick`` lie in folders of their own: no table that ships holds them, and ``quick`` is what ``make regress`` runs of
slow detectors.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
PROGRAM = [sys.executable, "-m", "tsadbench"]
# What a committed table accepts: one thread, in boxes that the kernel seals.
FITS = ["--threads", "1", "--require-seal"]

CLASSICS = ["pca", "dynamic-pca", "cva", "arima", "ocsvm", "lof"]
STATISTICS = ["multiview", "multiview[adaptive=on]", "t2", "t2[mean=10]", "t2[mean=10,shrinkage=on]", "t2-q", "mset",
              "isolation-forest", *CLASSICS]  # fmt: skip
# `untrained` is a floor that `run` does not add by itself: it needs the extra deep.
NETWORKS = ["untrained", "dprgm", "dprgm[node_weights=off]", "gdn", "conv-ae", "vanilla-ae", "vanilla-lstm", "lstm-ae",
            "lstm-vae"]  # fmt: skip
SLOW = ["grelen", "mtad-gat", "mscred"]  # if there are many sensors
# GDN's published quirk is only of interest beside the paper's tables.
OF_THE_PAPER = [*NETWORKS, "gdn[quirks=on]", *SLOW]
# Those that the paper names without comparing with them: fewer seeds.
NAMED = ["anomaly-transformer", "catch", "deep-svdd", "dvgcrn", "ganf", "gcad", "lstm-ndt", "omnianomaly", "thoc",
         "timesnet", "tranad", "usad"]  # fmt: skip
# The published schedules, in which the second decoder collapses: beside the paper's tables.
SCHEDULES = ["tranad[least_weight=0]", "usad[least_weight=0]"]
PYOD = [f"pyod:{name}" for name in (
    "ABOD", "CBLOF", "COPOD", "ECOD", "GMM", "HBOS", "HDBSCAN", "IForest", "INNE", "KDE", "KNN", "KNN[window=10]",
    "LODA", "LOF", "LOF[window=10]", "MCD", "OCSVM", "PCA", "QMCD", "Sampling",
)]  # fmt: skip
PYOD_NETWORKS = [f"pyod:{name}" for name in ("AutoEncoder", "DeepSVDD", "LUNAR", "SO_GAAL")]
SKLEARN = [f"sklearn:{name}" for name in (
    "EllipticEnvelope", "IsolationForest", "LocalOutlierFactor", "OneClassSVM", "SGDOneClassSVM",
)]  # fmt: skip


class Table(NamedTuple):
    """A data set under `strict`: seeds, seeds of slow networks, bounds on steps (labels say so), splits to write."""

    seeds: int
    slow_seeds: int = 1
    steps: int | None = None
    slow_steps: int | None = None
    splits: tuple[str, ...] = ("overall",)


# The committed table of smd lacks mscred: its scores alone take twenty minutes.
TABLES = {
    "tep": Table(2, splits=("overall", "detectable")),
    "pumploop": Table(3, slow_seeds=2),
    "cranfield": Table(2),
    "gecco2018": Table(1),
    "causrca": Table(1, steps=1000, slow_steps=100),
    "asd": Table(1, steps=200, slow_steps=100),
    "smd": Table(1, steps=200, slow_steps=100),
}
NAMED_SEEDS = {"strict": 3, "published": 2}


def run(detectors: Sequence[str], store: str, seeds: int, *more: str, floors: bool = False) -> None:
    """Run detectors into a store."""
    chosen = [word for name in detectors for word in ("--detector", name)]
    options = [*FITS, *([] if floors else ["--no-floors"]), *more]
    command = [*PROGRAM, "run", *chosen, "--seeds", str(seeds), *options, "--format", "csv", "--out", f"runs/{store}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def write(store: str, folder: str = "", splits: Sequence[str] = ()) -> None:
    """Put the store's trials into the committed records."""
    chosen = [word for split in splits for word in ("--split", split)]
    subprocess.run([*PROGRAM, "leaderboard", f"runs/{store}", *chosen, "--write", str(HERE / folder)], check=True)


def bounded(names: Sequence[str], steps: int | None) -> list[str]:
    """Return options that bound the training steps of networks."""
    trained = sorted({name.partition("[")[0] for name in names} - {"untrained"})
    return [] if steps is None else [word for name in trained for word in ("--set", f"{name}.max_steps={steps}")]


def make(name: str) -> None:
    """Make one table."""
    if name in NAMED_SEEDS:
        run([*OF_THE_PAPER, *STATISTICS], name, 5, "--protocol", name, floors=True)
        run([*NAMED, *SCHEDULES], name, NAMED_SEEDS[name], "--protocol", name)
        write(name)
    elif name == "skab":  # 34 fits a trial: networks with one seed, the slowest held to 150 steps a fit
        others = [one for one in (*OF_THE_PAPER, *NAMED) if one not in ("grelen", "mtad-gat")]
        run([*others, "grelen[max_steps=150]", "mtad-gat[max_steps=150]"], name, 1, "--protocol", name)
        run(STATISTICS, name, 5, "--protocol", name, floors=True)
        write(name)
    elif name == "pyod":  # PyOD's networks take minutes a seed and have one
        run(PYOD_NETWORKS, name, 1)
        run([*PYOD, *SKLEARN], name, 5, floors=True)
        write(name, "pyod", ["overall"])
    elif name == "quick":  # twenty steps of training: that the scores stay the same is the point
        run([*(f"{one}[max_steps=20]" for one in NAMED), *CLASSICS], name, 2, "--dataset", "pumploop")
        write(name, "quick", ["overall"])
    else:
        table = TABLES[name]
        data = ("--dataset", name)
        slow = SLOW if table.slow_steps is None else [f"{one}[max_steps={table.slow_steps}]" for one in SLOW]
        slow = [*slow[:2], "mscred[max_steps=100]"] if name == "tep" else slow
        run([*NETWORKS, *STATISTICS], name, table.seeds, *data, *bounded(NETWORKS, table.steps), floors=True)
        run(slow, name, table.slow_seeds, *data)
        run(NAMED, name, 1, *data, *bounded(NAMED, table.steps))
        write(name, splits=table.splits)


if __name__ == "__main__":
    for chosen_name in sys.argv[1:] or ["strict", "skab", "published", *TABLES]:
        make(chosen_name)
