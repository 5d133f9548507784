"""docs/tuning.md: written from comparisons, never by hand."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from tsadbench.tuning.comparison import Comparison
from tsadbench.tuning.faults import KINDS, SLOT
from tsadbench.tuning.objective import Objective

_METRICS = {"auroc": "AUROC", "auprc": "AUPRC", "prac_f1": "Prac-F1"}
# Differences of means in AUPRC up to this are called none.
_NO_DIFFERENCE = 0.005


def page(comparisons: Sequence[Comparison], command: str) -> str:
    """Return the page in Markdown.

    Parameters
    ----------
    comparisons
        In the order of their data sets.
    command
        What wrote it.
    """
    return "\n".join(_lines(comparisons, command)) + "\n"


def _lines(comparisons: Sequence[Comparison], command: str) -> Iterator[str]:
    settings = next(iter(comparisons[0].studies.values())).task.settings
    yield "# Does tuning without labels help?"
    yield ""
    yield (
        f"Written by `{command}`, not by hand. For each detector and data set `tsadbench tune` searched "
        f"{settings.trials} points by each objective that the detector offers, in {settings.folds} folds, on training "
        f"recordings alone; then the protocol `strict` ran the defaults and the winners (mean(std) over seeds, split "
        f"overall)."
    )
    yield ""
    yield (
        "The **oracle** is a reference that nobody has: every point of the studies was run on the test recordings, and "
        "the best by test AUPRC, the defaults and the winners among them, was taken. Its row is an upper bound of what "
        "these studies could have found, and no result. *Agreement* is Spearman's correlation, over a study's complete "
        "points, between the objective and the test AUPRC: 1 where the objective ranks points as the labels do, 0 "
        "where it tells nothing of them."
    )
    yield ""
    yield from _reading(comparisons)
    for dataset in dict.fromkeys(one.dataset for one in comparisons):
        yield ""
        yield f"## {dataset}"
        yield ""
        yield from _table([one for one in comparisons if one.dataset == dataset])
    yield ""
    yield "## The planted faults"
    yield ""
    yield (
        f"One fault in each {SLOT} rows, in one sensor that varies, at a place, of a length and a size that are drawn; "
        f"every point of a study meets the same ones. Sizes are in standard deviations of the sensor over the rows "
        f"trained on."
    )
    yield ""
    yield "| kind | what it does | rows | size |"
    yield "| --- | --- | --- | --- |"
    for kind in KINDS:
        size = "" if kind.size is None else f"{kind.size[0]:g} to {kind.size[1]:g}"
        yield f"| {kind.name} | {kind.meaning} | {kind.rows[0]} to {kind.rows[1]} | {size} |"


def _table(comparisons: Sequence[Comparison]) -> Iterator[str]:
    header = ["detector", "parameters by", "objective: defaults, best", "agreement", *_METRICS.values(), "Δ AUPRC"]
    yield f"| {' | '.join(header)} |"
    yield f"|{' --- |' * len(header)}"
    for one in comparisons:
        yield _row(one, "defaults", one.default, "", "")
        for objective, study in one.studies.items():
            best, defaults = study.outcome.best, study.outcome.at(study.task.defaults)
            values = [point.value for point in (defaults, best) if point is not None and point.value is not None]
            agreement = "" if study.agreement is None else f"{study.agreement:+.2f}"
            yield _row(one, objective, study.label, ", ".join(f"{value:.4g}" for value in values), agreement)
        yield _row(one, "*oracle, of test labels*", one.oracle, f"{one.n_points} points", "")


def _row(one: Comparison, by: str, label: str, objective: str, agreement: str) -> str:
    cells = [f"`{label}`", by, objective, agreement]
    cells += [_mean_and_std(one.values(label, metric)) for metric in _METRICS]
    cells.append("" if by == "defaults" else f"{one.mean(label) - one.mean(one.default):+.4f}")
    return f"| {' | '.join(cells)} |"


def _mean_and_std(values: Sequence[float]) -> str:
    spread = f"({statistics.stdev(values):.4f})" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.4f}{spread}"


def _reading(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Say in numbers, for each objective, how often it helped and how much of the oracle's gain it had."""
    yield f"By test AUPRC, differences of means up to {_NO_DIFFERENCE} counted as none:"
    yield ""
    objectives: dict[Objective, None] = {}
    for one in comparisons:
        objectives |= dict.fromkeys(one.studies)
    for objective in objectives:
        tuned = [one for one in comparisons if objective in one.studies]
        gains = [one.mean(one.studies[objective].label) - one.mean(one.default) for one in tuned]
        better = sum(gain > _NO_DIFFERENCE for gain in gains)
        worse = sum(gain < -_NO_DIFFERENCE for gain in gains)
        ceiling = statistics.fmean(one.mean(one.oracle) - one.mean(one.default) for one in tuned)
        agreements = [one.studies[objective].agreement for one in tuned]
        known = [value for value in agreements if value is not None]
        agreement = f"; agreement {statistics.median(known):+.2f} in the middle" if known else ""
        yield (
            f"- `{objective}`: of {len(tuned)} cases better than the defaults in {better}, worse in {worse}, no "
            f"difference in {len(tuned) - better - worse}; on average {statistics.fmean(gains):+.4f}, where the oracle "
            f"has {ceiling:+.4f}{agreement}."
        )
