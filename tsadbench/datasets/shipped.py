"""The data sets that are a card in ``cards`` and files that the user downloads or requests.

Each card says where its files come from, which rows train and why, and what was left out.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd

from tsadbench.base.dataset import Cause, DataOptions, LabelledDataset, Loader
from tsadbench.base.prior import Edge, Prior
from tsadbench.datasets.fetch import BY_REQUEST, Source, find, find_or_download, how_to_get
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
    changed, note = source.changed(folder), ""
    if changed:
        differ = f"{'differs' if len(changed) == 1 else 'differ'} from the published ones: {', '.join(changed)}."
        note = f"{len(changed)} of {name.upper()}'s {len(source.sha256)} files {differ}"
    try:
        dataset, labels = read(folder)
    except DataError as error:
        raise DataError(f"{error}\n{note}".rstrip()) from error
    if changed and not options.allow_changed:
        raise DataError(f"{folder}: {note} Continue with --allow-changed-data, or {how_to_get(name, folder)}")
    return LabelledDataset(replace(dataset, notes=(*([note] if note else []), *dataset.notes)), labels)


def _load_card(name: str, folder: Path) -> LabelledDataset:
    return load_card(_CARDS / f"{name}.toml", folder)


def _load_servers(name: str, folder: Path, *, last_row: int) -> LabelledDataset:
    """Load one of InterFusion's data sets with the sensors of each event; ``last_row`` is 1 if it is in the event."""
    dataset, labels = _load_card(name, folder)
    texts = {
        id_: (folder / f"interpretation_label/{dataset.entities[id_]}.txt").read_text(encoding="utf-8")
        for id_ in labels.rows
    }
    causes = {
        id_: tuple(
            Cause(int(start), int(end) + last_row, tuple(dataset.sensors[int(one) - 1] for one in blamed.split(",")))
            for start, end, blamed in _EVENT.findall(text)
        )
        for id_, text in texts.items()
    }
    return LabelledDataset(dataset, replace(labels, causes=causes))


def _load_causrca(name: str, folder: Path) -> LabelledDataset:
    """Load causRCA with what its card cannot say: the experts' graph and the sessions."""
    dataset, labels = _load_card(name, folder)
    graph = pd.read_csv(folder / _EDGES).drop_duplicates(["source_label", "target_label"])
    graph = graph[graph[["source_label", "target_label"]].isin(dataset.sensors).all(axis=1)]
    edges = tuple(
        Edge(source, target, mechanism=" ".join(comment.split()))
        for source, target, comment in graph[["source_label", "target_label", "comment"]].to_numpy()
    )
    prior = Prior(edges, name, {"source": f"the experts' graph of the data set, {_EDGES}"})
    # The runs of an experiment, coolant/exp_22/run_1 and so on, repeat it; real recordings have no such parts.
    joined = {experiment: " and ".join(pair) for pair in _ONE_SESSION for experiment in pair}
    experiments = {recording.id: recording.id.partition("/run_")[0] for recording in (*dataset.train, *dataset.test)}
    sessions = {id_: joined.get(experiment, experiment) for id_, experiment in experiments.items()}
    return LabelledDataset(replace(dataset, prior=prior, sessions=sessions), labels)


_READ: Mapping[str, Callable[[str, Path], LabelledDataset]] = {
    "asd": partial(_load_servers, last_row=1),
    "smd": partial(_load_servers, last_row=0),
    "causrca": _load_causrca,
}


def _loader(name: str, about: str) -> Loader:
    def load_one(options: DataOptions) -> LabelledDataset:
        read = _READ.get(name, _load_card)
        if name in BY_REQUEST:
            return read(name, find(name, options.directory))
        return load_published(name, options, partial(read, name))

    load_one.__doc__ = about  # what `tsadbench info` prints
    return load_one


_ABOUT = tomllib.loads((Path(__file__).parent / "shipped.about.toml").read_text(encoding="utf-8"))
load_skab, load_cranfield, load_gecco2018, load_asd, load_smd, load_causrca, load_swat, load_wadi = (
    _loader(name, _ABOUT[name]) for name in ("skab", "cranfield", "gecco2018", "asd", "smd", "causrca", "swat", "wadi")
)
