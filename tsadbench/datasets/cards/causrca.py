"""causRCA, a CNC vertical lathe: what its card cannot say, the experts' graph and the sessions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd

from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.base.prior import Edge, Prior
from tsadbench.datasets.cards.published import load_published
from tsadbench.datasets.fetch import place

_EDGES = "expert_graph/all_edges.csv"
# Each of these pairs of experiments has a run that is a copy of one of the other's, but for the variable to blame.
_ONE_SESSION = (("probe/exp_1", "probe/exp_6"), ("probe/exp_2_3", "probe/exp_7"))


def load(options: DataOptions) -> LabelledDataset:
    """Return causRCA: 170 recordings of real production train, 100 runs of 19 experiments with faults are tested."""
    dataset, labels = load_published(Path(__file__).with_name("causrca.toml"), options)
    edges = pd.read_csv(place("causrca", options.directory) / _EDGES)
    edges = edges[edges["source_label"].isin(dataset.sensors) & edges["target_label"].isin(dataset.sensors)]
    edges = edges.drop_duplicates(["source_label", "target_label"])
    prior = Prior(
        tuple(
            Edge(source, target, mechanism=" ".join(comment.split()))
            for source, target, comment in edges[["source_label", "target_label", "comment"]].to_numpy()
        ),
        "causrca",
        {"source": f"the experts' graph of the data set, {_EDGES}"},
    )
    # The runs of an experiment, coolant/exp_22/run_1 and so on, repeat it; real recordings have no such parts.
    joined = {experiment: " and ".join(pair) for pair in _ONE_SESSION for experiment in pair}
    experiments = {recording.id: recording.id.partition("/run_")[0] for recording in (*dataset.train, *dataset.test)}
    sessions = {name: joined.get(experiment, experiment) for name, experiment in experiments.items()}
    return LabelledDataset(replace(dataset, prior=prior, sessions=sessions), labels)
