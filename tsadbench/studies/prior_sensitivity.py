"""What a prior is worth: a detector under the prior, under worse ones, and under graphs that need none."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from scipy.stats import t as student

from tsadbench.base.dataset import Dataset, LabelledDataset
from tsadbench.errors import UsageError
from tsadbench.execution.plan import Plan, make_plan
from tsadbench.execution.record import Record
from tsadbench.execution.request import RunRequest
from tsadbench.priors.perturb import perturbed
from tsadbench.registry import locate
from tsadbench.sandbox import Construction
from tsadbench.sandbox.describing import describe
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
# Graphs that need no prior, by kind: what the page calls them, and the detector's parameters.
_OTHERS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "random": ("as many edges, drawn", {"graph": "random"}),
    "none": ("no graph", {"graph": "none"}),
    "correlation": ("every pair, weighted by correlation", {"graph": "correlation"}),
    "complete": ("every pair, unweighted", {"graph": "complete", "edge_weights": False}),
}
GRAPHS = (*_PERTURBED, *_OTHERS)
_ERROR = 0.05  # that any interval of a page misses, all of them together


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
    data: LabelledDataset,
    *,
    seeds: int,
    run: Callable[[Plan], Sequence[Record]],
    detector: str = DETECTOR,
    graphs: Sequence[str] = GRAPHS,
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
    graphs
        Beside the prior itself, of `GRAPHS`.

    Raises
    ------
    UsageError
        If the data set has no prior, the detector takes none, or there is no such graph.
    """
    return of_records(data, run(_plan(data, list(variants(data.dataset, detector, graphs).values()), seeds)), detector)


def of_records(data: LabelledDataset, records: Sequence[Record], detector: str = DETECTOR) -> PriorSensitivity:
    """Return the trials among records that `measure` made, by their graph."""
    graphs = variants(data.dataset, detector)
    # The plan knows what to call a detector; it keeps the order.
    labels = list(dict.fromkeys(trial.contender.label for trial in _plan(data, list(graphs.values()), 1).trials))
    by_graph = {
        name: [one for one in records if (one.dataset, one.label) == (data.dataset.name, label)]
        for name, label in zip(graphs, labels, strict=True)
    }
    return PriorSensitivity(data.dataset, {name: found for name, found in by_graph.items() if found})


def _plan(data: LabelledDataset, detectors: Sequence[Construction], seeds: int) -> Plan:
    return make_plan(
        RunRequest(detectors=[*detectors], datasets=[data], seeds=seeds, floors=False, contributions=False)
    )


def variants(dataset: Dataset, detector: str = DETECTOR, graphs: Sequence[str] = GRAPHS) -> dict[str, Construction]:
    """Return the detector by the name of its graph: under the data set's prior, first, and under the others.

    Graphs that need no prior are taken if the detector has the parameters ``graph`` and ``edge_weights``.

    Raises
    ------
    UsageError
        If the data set has no prior, the detector takes none, or there is no such graph.
    """
    prior = dataset.prior
    if prior is None:
        raise UsageError(f"data set {dataset.name!r} has no prior: there is nothing to be sensitive to")
    source = locate(detector)
    parameters = describe(source).defaults.keys()
    if "prior" not in parameters:
        raise UsageError(f"{detector} takes no prior; choose a detector with a parameter 'prior'")
    for name in graphs:
        if name not in GRAPHS:
            raise UsageError(f"expected a graph among {list(GRAPHS)}, found {name!r}")
    own = replace(prior, origin=dataset.name)
    built = {_THE_PRIOR: Construction(source, arguments={"prior": own})}
    for kind, (meaning, drop, add, reverse) in _PERTURBED.items():
        if kind in graphs:
            worse = perturbed(prior, dataset.sensors, drop=drop, add=add, reverse=reverse)
            worse = replace(worse, origin=f"{dataset.name} {kind} {_SHARE}", provenance=prior.provenance)
            built[f"the prior, {meaning}"] = Construction(source, arguments={"prior": worse})
    for kind, (meaning, settings) in _OTHERS.items():
        if kind in graphs and {"graph", "edge_weights"} <= parameters:
            needed = {"prior": own} if kind == "random" else {}
            built[meaning] = Construction(source, arguments={**needed, **settings})
    return built


def page(results: Sequence[PriorSensitivity], command: str, records: str, detector: str = DETECTOR) -> str:
    """Return the page: for each data set a table with means, intervals, and differences to the prior by seed.

    Parameters
    ----------
    results
        One for each data set.
    command
        Writes the page.
    records
        The file of the trials' records, as the page links it.
    detector
        Whose trials they are.
    """
    title = "DPR-GM" if detector == DETECTOR else f"`{detector}`"
    n_differences = len(METRICS) * sum(len(result.records) - 1 for result in results)
    level = 1 - _ERROR / max(n_differences, 1)
    lines = [
        "# What the prior is worth",
        "",
        f"Written by `{command}`, not by hand, with [every trial's record]({records}). {title} under protocol "
        "`strict`, split overall: mean over seeds with the 95 % interval of the mean (Student's t). *Against the "
        f"prior* is the mean difference by seed. The page makes {n_differences} such comparisons, so each has an "
        f"interval of {level:.2%} (Bonferroni): that any of them misses has a chance of 5 % at most. Where it holds 0, "
        "these seeds tell nothing, which is no proof of equality. The intervals are about seeds on this one data set; "
        "they say nothing about another plant. Perturbed priors are one draw each (`tsadbench prior perturb`, seed 0).",
    ]
    for result in results:
        values = {
            name: {metric: _by_seed(trials, metric) for metric in METRICS} for name, trials in result.records.items()
        }
        lines += ["", f"## {result.dataset.name}", "", *_table(values, level), ""]
        lines.append(_reading(result.dataset, values, level))
    return "\n".join(lines) + "\n"


# By graph, metric and seed.
_Values = Mapping[str, Mapping[str, Mapping[int, float]]]


def _by_seed(records: Sequence[Record], metric: str) -> dict[int, float]:
    values = {record.seed: record.splits["overall"].metrics[metric] for record in records if record.status == "ok"}
    return {seed: value for seed, value in values.items() if value is not None}


def _table(values: _Values, level: float) -> list[str]:
    header = ["graph", "seeds", *METRICS.values(), *(f"{title} against the prior" for title in METRICS.values())]
    rows = []
    for name, by_metric in values.items():
        means = [_interval(list(by_metric[metric].values())) for metric in METRICS]
        against = [_interval(_differences(values, name, metric), level, sign="+") for metric in METRICS]
        if name == _THE_PRIOR:
            against = [""] * len(METRICS)
        rows.append([name, str(len(by_metric["auroc"])), *means, *against])
    return table_lines(header, rows)


def _reading(dataset: Dataset, values: _Values, level: float) -> str:
    """Return a sentence on which graphs differ from the prior, as far as these seeds can tell."""
    better: list[str] = []
    worse: list[str] = []
    undecided: list[str] = []
    for name in values:
        if name != _THE_PRIOR:
            low, high = _bounds(_differences(values, name, "auprc"), level)
            (better if low > 0 else worse if high < 0 else undecided).append(name)
    verdicts = {"better than the prior": better, "worse": worse, "not to be told from it": undecided}
    parts = [f"{verdict}: {'; '.join(names)}" for verdict, names in verdicts.items() if names]
    edges = len(dataset.prior.edges) if dataset.prior else 0
    return f"By AUPRC, against a prior of {edges} edges between {len(dataset.sensors)} sensors: {'. '.join(parts)}."


def _differences(values: _Values, name: str, metric: str) -> list[float]:
    reference = values[_THE_PRIOR][metric]
    return [value - reference[seed] for seed, value in values[name][metric].items() if seed in reference]


def _bounds(values: Sequence[float], level: float) -> tuple[float, float]:
    """Return the interval of the mean at a level."""
    if len(values) < 2:
        return -math.inf, math.inf
    half = float(student.ppf((1 + level) / 2, len(values) - 1)) * statistics.stdev(values) / math.sqrt(len(values))
    mean = statistics.mean(values)
    return mean - half, mean + half


def _interval(values: Sequence[float], level: float = 0.95, sign: str = "") -> str:
    if not values:
        return "-"
    low, high = _bounds(values, level)
    return f"{statistics.mean(values):{sign}.4f} [{low:{sign}.4f}, {high:{sign}.4f}]"
