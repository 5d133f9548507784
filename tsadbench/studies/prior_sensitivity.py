"""What a prior is worth: a detector under the prior, under worse ones, and under graphs that need none."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from scipy.stats import t as student

from tsadbench.base.dataset import Dataset
from tsadbench.base.detector import Detector
from tsadbench.base.prior import Prior
from tsadbench.errors import UsageError
from tsadbench.execution.record import Record
from tsadbench.priors.perturb import perturbed
from tsadbench.registry import load_detector
from tsadbench.utils.markdown import table_lines

METRICS = {"auroc": "AUROC", "auprc": "AUPRC"}
PERTURBED = {"drop": "half of its edges left out", "add": "half as many invented", "reverse": "half turned round"}
_SHARE = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """One graph.

    Parameters
    ----------
    name
        What the page calls it.
    detector
        DPR-GM with this graph.
    """

    name: str
    detector: Detector


def variants(dataset: Dataset, detector: str = "dprgm") -> list[Variant]:
    """Return the detector under the data set's prior, first, and under all others.

    Raises
    ------
    UsageError
        If the data set has no prior, or the detector takes none.
    """
    prior = dataset.prior
    if prior is None:
        raise UsageError(f"data set {dataset.name!r} has no prior: there is nothing to be sensitive to")
    cls = load_detector(detector)
    if "prior" not in cls._get_param_names() or "graph" not in cls._get_param_names():
        raise UsageError(f"{detector} takes no prior and graph")
    build = cast("Callable[..., Detector]", cls)
    found = [Variant("the prior", build(prior=_named(prior, dataset.name)))]
    for kind, name in PERTURBED.items():
        worse = _half_as_good(prior, dataset.sensors, kind)
        found.append(Variant(f"the prior, {name}", build(prior=_named(worse, f"{dataset.name} {kind} {_SHARE}"))))
    found.append(Variant("as many edges, drawn", build(prior=_named(prior, dataset.name), graph="random")))
    found.append(Variant("no graph", build(graph="none")))
    found.append(Variant("every pair, weighted by correlation", build(graph="correlation")))
    found.append(Variant("every pair, unweighted", build(graph="complete", edge_weights=False)))
    return found


def _half_as_good(prior: Prior, sensors: Sequence[str], kind: str) -> Prior:
    if kind == "drop":
        return perturbed(prior, sensors, drop=_SHARE)
    return perturbed(prior, sensors, add=_SHARE) if kind == "add" else perturbed(prior, sensors, reverse=_SHARE)


def _named(prior: Prior, name: str) -> Prior:
    return Prior(prior.edges, origin=name, provenance=prior.provenance, sensors=prior.sensors)


def page(tables: Mapping[str, tuple[Dataset, Sequence[Variant], Sequence[Record]]], command: str) -> str:
    """Return the page: for each data set a table with means, intervals, and differences to the prior by seed."""
    lines = [
        "# What the prior is worth",
        "",
        f"Written by `{command}`, not by hand. DPR-GM under protocol `strict`, split overall: mean over seeds with the "
        "95 % interval of the mean (Student's t). *Against the prior* is the mean difference by seed with its 95 % "
        "interval: where that holds 0, these seeds tell nothing. Perturbed priors are one draw each "
        "(`tsadbench prior perturb`, seed 0).",
    ]
    for name, (dataset, graphs, records) in tables.items():
        lines += ["", f"## {name}", "", *_table(graphs, records), "", _reading(dataset, graphs, records)]
    return "\n".join(lines) + "\n"


def _table(graphs: Sequence[Variant], records: Sequence[Record]) -> list[str]:
    titles = list(METRICS.values())
    header = [
        "graph",
        "seeds",
        *(title for title in titles),
        *(f"{title} against the prior" for title in titles),
    ]
    rows = []
    reference = _by_seed(graphs[0], records)
    for graph in graphs:
        values = _by_seed(graph, records)
        cells = [graph.name, str(len(values["auroc"]))]
        cells += [_interval(list(values[metric].values())) for metric in METRICS]
        for metric in METRICS:
            cells.append("" if graph is graphs[0] else _interval(_differences(values, reference, metric), sign="+"))
        rows.append(cells)
    return table_lines(header, rows)


def _reading(dataset: Dataset, graphs: Sequence[Variant], records: Sequence[Record]) -> str:
    """Say in a sentence which graphs differ from the prior, as far as these seeds can tell."""
    reference = _by_seed(graphs[0], records)
    better: list[str] = []
    worse: list[str] = []
    open_: list[str] = []
    for graph in graphs[1:]:
        low, high = _bounds(_differences(_by_seed(graph, records), reference, "auprc"))
        (better if low > 0 else worse if high < 0 else open_).append(graph.name)
    parts = []
    for names, what in ((better, "better than the prior"), (worse, "worse"), (open_, "not to be told from it")):
        if names:
            parts.append(f"{what}: {'; '.join(names)}")
    edges = len(dataset.prior.edges) if dataset.prior else 0
    return f"By AUPRC, against a prior of {edges} edges between {len(dataset.sensors)} sensors: {'. '.join(parts)}."


def _by_seed(graph: Variant, records: Sequence[Record]) -> dict[str, dict[int, float]]:
    label = label_of(graph)
    found: dict[str, dict[int, float]] = {metric: {} for metric in METRICS}
    for record in records:
        if record.label == label and record.status == "ok":
            for metric in METRICS:
                value = record.splits["overall"].metrics[metric]
                if value is not None:
                    found[metric][record.seed] = value
    return found


def label_of(graph: Variant) -> str:
    """Return the label of a variant's trials."""
    from tsadbench.utils.parameters import format_label

    arguments = {key: value for key, value in graph.detector.get_params(deep=False).items() if key != "seed"}
    return format_label("dprgm", type(graph.detector), arguments)


def _differences(
    values: Mapping[str, Mapping[int, float]], reference: Mapping[str, Mapping[int, float]], metric: str
) -> list[float]:
    return [value - reference[metric][seed] for seed, value in values[metric].items() if seed in reference[metric]]


def _bounds(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean."""
    if len(values) < 2:
        return -math.inf, math.inf
    half = float(student.ppf(0.975, len(values) - 1)) * statistics.stdev(values) / math.sqrt(len(values))
    mean = statistics.mean(values)
    return mean - half, mean + half


def _interval(values: Sequence[float], sign: str = "") -> str:
    if not values:
        return "-"
    low, high = _bounds(values)
    return f"{statistics.mean(values):{sign}.4f} [{low:{sign}.4f}, {high:{sign}.4f}]"
