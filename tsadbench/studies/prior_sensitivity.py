"""What a prior is worth: a detector under the prior, under worse ones, and under graphs that need none."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from scipy.stats import t as student

from tsadbench.base.dataset import Dataset, LabelledDataset
from tsadbench.base.detector import Detector
from tsadbench.errors import UsageError
from tsadbench.execution.plan import Plan, make_plan
from tsadbench.execution.record import Record
from tsadbench.execution.request import RunRequest
from tsadbench.priors.perturb import perturbed
from tsadbench.registry import load_detector
from tsadbench.utils.markdown import table_lines

DATASETS = ("skab", "pumploop")
DETECTOR = "dprgm"
METRICS = {"auroc": "AUROC", "auprc": "AUPRC"}
_SHARE = 0.5
# By kind: what the page calls it, and the shares of edges to drop, invent and reverse.
_PERTURBED = {
    "drop": ("half of its edges left out", _SHARE, 0.0, 0.0),
    "add": ("half as many invented", 0.0, _SHARE, 0.0),
    "reverse": ("half turned round", 0.0, 0.0, _SHARE),
}
_THE_PRIOR = "the prior"


@dataclass(frozen=True, slots=True, eq=False)
class PriorSensitivity:
    """A detector's trials on one data set under several graphs.

    Parameters
    ----------
    dataset
        The data set.
    records
        By the name of the graph, the data set's prior first: one per seed.
    """

    dataset: Dataset
    records: Mapping[str, Sequence[Record]]


def measure(
    data: LabelledDataset, *, seeds: int, run: Callable[[Plan], Sequence[Record]], detector: str = DETECTOR
) -> PriorSensitivity:
    """Run a detector under each graph, with the protocol ``strict``.

    Parameters
    ----------
    data
        A data set with a prior.
    seeds
        Number of seeds.
    run
        Runs a plan, such as ``partial(run_plan, store=store)``.
    detector
        Its name or reference.

    Raises
    ------
    UsageError
        If the data set has no prior, or the detector takes none.
    """
    graphs = variants(data.dataset, detector)
    plan = make_plan(
        RunRequest(detectors=list(graphs.values()), datasets=[data], seeds=seeds, floors=False, contributions=False)
    )
    # The plan knows what to call a detector; it keeps the order.
    labels = list(dict.fromkeys(trial.contender.label for trial in plan.trials))
    records = run(plan)
    return PriorSensitivity(
        data.dataset,
        {
            name: [record for record in records if record.label == label]
            for name, label in zip(graphs, labels, strict=True)
        },
    )


def variants(dataset: Dataset, detector: str = DETECTOR) -> dict[str, Detector]:
    """Return the detector by the name of its graph: under the data set's prior, first, and under all others.

    Graphs that need no prior are taken if the detector has the parameters ``graph`` and ``edge_weights``.

    Raises
    ------
    UsageError
        If the data set has no prior, or the detector takes none.
    """
    prior = dataset.prior
    if prior is None:
        raise UsageError(f"data set {dataset.name!r} has no prior: there is nothing to be sensitive to")
    cls = load_detector(detector)
    parameters = set(cls._get_param_names())
    if "prior" not in parameters:
        raise UsageError(f"{detector} takes no prior; choose a detector with a parameter 'prior'")
    build = cast("Callable[..., Detector]", cls)
    own = replace(prior, origin=dataset.name)
    graphs = {_THE_PRIOR: build(prior=own)}
    for kind, (meaning, drop, add, reverse) in _PERTURBED.items():
        worse = perturbed(prior, dataset.sensors, drop=drop, add=add, reverse=reverse)
        worse = replace(worse, origin=f"{dataset.name} {kind} {_SHARE}", provenance=prior.provenance)
        graphs[f"the prior, {meaning}"] = build(prior=worse)
    if {"graph", "edge_weights"} <= parameters:
        graphs |= {
            "as many edges, drawn": build(prior=own, graph="random"),
            "no graph": build(graph="none"),
            "every pair, weighted by correlation": build(graph="correlation"),
            "every pair, unweighted": build(graph="complete", edge_weights=False),
        }
    return graphs


def page(results: Sequence[PriorSensitivity], command: str, detector: str = DETECTOR) -> str:
    """Return the page: for each data set a table with means, intervals, and differences to the prior by seed."""
    title = "DPR-GM" if detector == DETECTOR else f"`{detector}`"
    lines = [
        "# What the prior is worth",
        "",
        f"Written by `{command}`, not by hand. {title} under protocol `strict`, split overall: mean over seeds with "
        "the 95 % interval of the mean (Student's t). *Against the prior* is the mean difference by seed with its 95 % "
        "interval: where that holds 0, these seeds tell nothing. Perturbed priors are one draw each "
        "(`tsadbench prior perturb`, seed 0).",
    ]
    for result in results:
        values = {
            name: {metric: _by_seed(records, metric) for metric in METRICS} for name, records in result.records.items()
        }
        lines += ["", f"## {result.dataset.name}", "", *_table(values), "", _reading(result.dataset, values)]
    return "\n".join(lines) + "\n"


# By graph, metric and seed.
_Values = Mapping[str, Mapping[str, Mapping[int, float]]]


def _by_seed(records: Sequence[Record], metric: str) -> dict[int, float]:
    values = {record.seed: record.splits["overall"].metrics[metric] for record in records if record.status == "ok"}
    return {seed: value for seed, value in values.items() if value is not None}


def _table(values: _Values) -> list[str]:
    header = ["graph", "seeds", *METRICS.values(), *(f"{title} against the prior" for title in METRICS.values())]
    rows = []
    for name, by_metric in values.items():
        means = [_interval(list(by_metric[metric].values())) for metric in METRICS]
        against = [
            "" if name == _THE_PRIOR else _interval(_differences(values, name, metric), sign="+") for metric in METRICS
        ]
        rows.append([name, str(len(by_metric["auroc"])), *means, *against])
    return table_lines(header, rows)


def _reading(dataset: Dataset, values: _Values) -> str:
    """Return a sentence on which graphs differ from the prior, as far as these seeds can tell."""
    better: list[str] = []
    worse: list[str] = []
    undecided: list[str] = []
    for name in values:
        if name != _THE_PRIOR:
            low, high = _bounds(_differences(values, name, "auprc"))
            (better if low > 0 else worse if high < 0 else undecided).append(name)
    verdicts = {"better than the prior": better, "worse": worse, "not to be told from it": undecided}
    parts = [f"{verdict}: {'; '.join(names)}" for verdict, names in verdicts.items() if names]
    edges = len(dataset.prior.edges) if dataset.prior else 0
    return f"By AUPRC, against a prior of {edges} edges between {len(dataset.sensors)} sensors: {'. '.join(parts)}."


def _differences(values: _Values, name: str, metric: str) -> list[float]:
    reference = values[_THE_PRIOR][metric]
    return [value - reference[seed] for seed, value in values[name][metric].items() if seed in reference]


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
