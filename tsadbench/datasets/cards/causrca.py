"""causRCA, a CNC vertical lathe: what its card cannot say, the experts' graph and the sessions."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.base.prior import Edge, Prior
from tsadbench.datasets.cards.published import load_published
from tsadbench.datasets.location import place
from tsadbench.errors import DataError

_EDGES = "expert_graph/all_edges.csv"
# Each of these pairs of experiments has a run that is a copy of one of the other's, but for the variable to blame.
_ONE_SESSION = (("probe/exp_1", "probe/exp_6"), ("probe/exp_2_3", "probe/exp_7"))


def load(options: DataOptions) -> LabelledDataset:
    """Return causRCA: 170 recordings of real production train, 100 runs of 19 experiments with faults are tested.

    A DataNotFoundError if the files are not on this machine and cannot be downloaded. A DataError if a file is
    malformed, or well-formed but different from the published one.
    """
    dataset, labels = load_published(Path(__file__).with_name("causrca.toml"), options)
    prior = read_graph(place("causrca", options.directory) / _EDGES, dataset.sensors)
    # The runs of an experiment, coolant/exp_22/run_1 and so on, repeat it; real recordings have no such parts.
    joined = {experiment: " and ".join(pair) for pair in _ONE_SESSION for experiment in pair}
    experiments = {recording.id: recording.id.partition("/run_")[0] for recording in (*dataset.train, *dataset.test)}
    sessions = {name: joined.get(experiment, experiment) for name, experiment in experiments.items()}
    return LabelledDataset(replace(dataset, prior=prior, sessions=sessions), labels)


def read_graph(path: Path, sensors: Sequence[str]) -> Prior:
    """Return the experts' couplings between these sensors; two that are named twice count once.

    A DataError if it cannot be read, lacks a column, or has no coupling between these sensors.
    """
    edges: dict[tuple[str, str], Edge] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file, strict=True):
                pair = row["source_label"], row["target_label"]
                if set(pair) <= set(sensors):
                    edges.setdefault(pair, Edge(*pair, mechanism=" ".join(row["comment"].split())))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read ({error}); fetch the file again") from error
    except (KeyError, AttributeError) as error:
        raise DataError(
            f"{path}: expected the columns source_label, target_label and comment in each line ({error}); fetch the "
            "file again"
        ) from error
    return Prior(tuple(edges.values()), "causrca", {"source": f"the experts' graph of the data set, {_EDGES}"})
