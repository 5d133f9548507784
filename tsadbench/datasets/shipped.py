"""The data sets that are a card in ``cards`` and files that the user downloads or requests.

Each card says where its files come from, which rows train and why, and what was left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd

from tsadbench.base.dataset import Cause, DataOptions, LabelledDataset, Loader
from tsadbench.base.prior import Edge, Prior
from tsadbench.datasets.fetch import Source, find, find_or_download
from tsadbench.datasets.reader import load_card
from tsadbench.errors import DataError

_CARDS = Path(__file__).parent / "cards"
# "760-765:4,5,7": the rows of an event, counted from 0, and its sensors, counted from 1.
_EVENT = re.compile(r"(\d+)-(\d+):(\d+(?:,\d+)*)")
_EDGES = "expert_graph/all_edges.csv"
# Each of these pairs of experiments has a run that is a copy of one of the other's, except for the variable to blame.
_ONE_SESSION = (("probe/exp_1", "probe/exp_6"), ("probe/exp_2_3", "probe/exp_7"))


def load_published(name: str, options: DataOptions, read: Callable[[Path], LabelledDataset]) -> LabelledDataset:
    """Read the published files of a data set from the folder that holds them, downloading them if necessary.

    A DataNotFoundError if the files are not on this machine and cannot be downloaded. A DataError if a file is
    malformed, or well-formed but different from the published one.
    """
    source = Source.load(name)
    folder = find_or_download(source, options.directory)
    try:
        dataset, labels = read(folder)
    except DataError as error:
        raise DataError(f"{error}\n{source.changes(folder)}".rstrip()) from error
    notes = source.notes(folder, allow_changed=options.allow_changed)
    return LabelledDataset(replace(dataset, notes=(*notes, *dataset.notes)), labels)


def _load_card(name: str, folder: Path) -> LabelledDataset:
    return load_card(_CARDS / f"{name}.toml", folder)


def _load_with_causes(name: str, folder: Path, *, last_row: int) -> LabelledDataset:
    """Load one of InterFusion's data sets with the sensors of each event; ``last_row`` is 1 if it is in the event."""
    dataset, labels = _load_card(name, folder)
    causes: dict[str, tuple[Cause, ...]] = {}
    for id_ in labels.rows:
        text = (folder / f"interpretation_label/{dataset.entities[id_]}.txt").read_text(encoding="utf-8")
        causes[id_] = tuple(
            Cause(int(start), int(end) + last_row, tuple(dataset.sensors[int(one) - 1] for one in blamed.split(",")))
            for start, end, blamed in _EVENT.findall(text)
        )
    return LabelledDataset(dataset, replace(labels, causes=causes))


def _load_causrca(name: str, folder: Path) -> LabelledDataset:
    """Load causRCA with what its card cannot say: the experts' graph and the sessions."""
    dataset, labels = _load_card(name, folder)
    edges = pd.read_csv(folder / _EDGES).drop_duplicates(["source_label", "target_label"])
    edges = edges[edges[["source_label", "target_label"]].isin(dataset.sensors).all(axis=1)]
    prior = Prior(
        tuple(
            Edge(source, target, mechanism=" ".join(comment.split()))
            for source, target, comment in edges[["source_label", "target_label", "comment"]].to_numpy()
        ),
        name,
        {"source": f"the experts' graph of the data set, {_EDGES}"},
    )
    # The runs of an experiment, coolant/exp_22/run_1 and so on, repeat it; real recordings have no such parts.
    joined = {experiment: " and ".join(pair) for pair in _ONE_SESSION for experiment in pair}
    experiments = {recording.id: recording.id.partition("/run_")[0] for recording in (*dataset.train, *dataset.test)}
    sessions = {name: joined.get(experiment, experiment) for name, experiment in experiments.items()}
    return LabelledDataset(replace(dataset, prior=prior, sessions=sessions), labels)


def _published(name: str, about: str, read: Callable[[str, Path], LabelledDataset] = _load_card) -> Loader:
    def load_one(options: DataOptions) -> LabelledDataset:
        return load_published(name, options, partial(read, name))

    load_one.__doc__ = about  # what `tsadbench info` prints
    return load_one


def _by_request(name: str, about: str) -> Loader:
    def load_one(options: DataOptions) -> LabelledDataset:
        return _load_card(name, find(name, options.directory))

    load_one.__doc__ = about
    return load_one


load_skab = _published(
    "skab",
    """SKAB 0.9: a water pump's testbed, eight sensors, one row a second; 34 labelled recordings of four sessions.

    The first 9,405 rows are free of anomalies and train. The time stamps show the sessions: ``valve1``, ``valve2``,
    ``other/1-4`` and ``other/5-14``. ``other/5`` shares ten minutes with the training file.
    """,
)
load_cranfield = _published(
    "cranfield", "A three-phase flow facility, 23 sensors, one row a second; six kinds of fault in 16 recordings."
)
load_gecco2018 = _published(
    "gecco2018", "The quality of drinking water, 9 sensors, one row a minute for 193 days, 97 events."
)
load_asd = _published(
    "asd",
    "12 application servers, 19 metrics, one row every five minutes; which metrics each event shows in.",
    partial(_load_with_causes, last_row=1),
)
load_smd = _published(
    "smd",
    "8 of 28 server machines, 38 metrics, one row a minute; which metrics each event shows in.",
    partial(_load_with_causes, last_row=0),
)
load_causrca = _published(
    "causrca",
    "A CNC vertical lathe: 170 recordings of real production train, 100 runs of 19 experiments with faults test.",
    _load_causrca,
)
load_swat = _by_request(
    "swat",
    """A water treatment testbed: 51 sensors and actuators, one row a second, 36 attacks.

    Its folder holds the workbooks ``SWaT_Dataset_Normal_v1`` and ``SWaT_Dataset_Attack_v0``, saved as CSV.
    """,
)
load_wadi = _by_request(
    "wadi",
    """A water distribution testbed (release A2 of 19 November 2019): 123 columns, 15 attacks.

    Its folder holds ``WADI_14days_new.csv`` and ``WADI_attackdataLABLE.csv`` as iTrust sends them.
    """,
)
