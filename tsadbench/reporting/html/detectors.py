"""What a page holds of the detectors that succeeded: curves, spreads, thresholds, series, graphs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

from tsadbench.analysis.curves import tail_of
from tsadbench.analysis.sensor_graph import offers_sensor_graph, sensor_graph
from tsadbench.base.dataset import LabelledDataset
from tsadbench.base.protocol import EpisodeThreshold, SplitJudgement
from tsadbench.errors import TsadbenchError
from tsadbench.execution.record import Record
from tsadbench.execution.store import Store
from tsadbench.reporting.html import curves, series
from tsadbench.reporting.html.compact import packed
from tsadbench.reporting.html.extent import SEEDS
from tsadbench.results.trial_result import TrialResult, protocol_of, readable_result
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import JsonValue
from tsadbench.utils.progress import progress


def detectors(
    records: Sequence[Record],
    store: Store,
    data: LabelledDataset,
    share: float,
) -> dict[str, JsonValue]:
    """Return what a page holds of the detectors that succeeded; the scores of one trial are in memory at a time.

    Curves are those of the first seeds, everything else is of the first one.
    """
    episodes = tuple(protocol_of(records[0]).episodes(data.dataset))
    of_labels = grouped([one for one in records if one.status == "ok"], lambda one: one.label)
    n_maps = sum(store.has_contributions(of_label[0]) for of_label in of_labels.values())
    recordings = series.Series(data, len(of_labels), n_maps, share)
    found: list[JsonValue] = []
    graphs: list[JsonValue] = []
    for label, of_label in of_labels.items():
        curves_of: dict[str, list[JsonValue]] = {split: [] for split in data.dataset.splits}
        progress(len(found), len(of_labels), f"{records[0].dataset}, {records[0].protocol}: {label}")
        shown: dict[str, JsonValue] | None = None
        judged: list[Mapping[str, SplitJudgement]] = []
        for record in of_label[:SEEDS]:
            result = readable_result(record, store, data, episodes)
            if result is None:
                continue
            for split, of_split in curves_of.items():
                of_split.append(curves.ranking_curves(result, split))
            judged.append(result.judged)
            if shown is None:
                shown = _detector(label, result, curves_of)
                recordings.add(label, result)
                graphs += _graphs(result)
        if shown is not None:
            found.append({**shown, "by_recording": _by_recording(judged, data)})
    return {
        "detectors": found,
        "graphs": graphs,
        "recordings": recordings.content(),
    }


def _detector(label: str, shown: TrialResult, curves_of: Mapping[str, list[JsonValue]]) -> dict[str, JsonValue]:
    return {
        "label": label,
        "floor": shown.record.floor,
        "seed": shown.record.seed,
        "curves": dict(curves_of),
        "densities": {split: curves.densities(shown, split) for split in curves_of},
        "thresholds": [_threshold(shown, fit) for fit in shown.record.thresholds],
    }


def _by_recording(judged: Sequence[Mapping[str, SplitJudgement]], data: LabelledDataset) -> dict[str, JsonValue]:
    """Return the metrics of each test recording by itself, [n_recordings] each: means over seeds, NaN if undefined."""
    names = dict.fromkeys(name for one in judged[0].values() for name in one.metrics)
    ids = [recording.id for recording in data.dataset.test]
    return {
        name: packed(
            [
                math.nan if id_ not in judged[0] else _mean([of_seed[id_].metrics.get(name) for of_seed in judged])
                for id_ in ids
            ]
        )
        for name in names
    }


def _mean(values: Sequence[float | None]) -> float:
    return statistics.fmean(math.nan if value is None else value for value in values)


def _threshold(result: TrialResult, fit: EpisodeThreshold) -> JsonValue:
    names = ("value", "method", "status", "t", "level", "q", "n", "excesses", "gamma", "sigma", "endpoint")
    return {
        "episode": fit.episode,
        **{name: getattr(fit.threshold, name) for name in names},
        "tail": curves.tail(tail_of(result, fit.episode)),
    }


def _graphs(result: TrialResult) -> Iterator[JsonValue]:
    """Yield the graph on which a detector works, if it does, and is registered here."""
    if not offers_sensor_graph(result.record):
        return
    try:
        graph = sensor_graph(result)
    except TsadbenchError:  # its prior is no longer available
        return
    if graph.adjacency is None or graph.node_weights is None:
        return
    yield {
        "label": graph.label,
        "about": f"{graph.title}: derived again from the training rows, as the fit does before it learns.",
        "adjacency": graph.adjacency.tolist(),
        "node_weights": graph.node_weights.tolist(),
        "edges": [
            {"source": edge.source, "target": edge.target, "mechanism": edge.mechanism, "votes": edge.votes}
            for edge in (() if graph.prior is None else graph.prior.edges)
        ],
    }
