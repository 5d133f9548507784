"""The page of a tuning study: written from comparisons, never by hand."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from importlib.resources import files

from tsadbench.leaderboard.ranking import Summary
from tsadbench.registry import entries
from tsadbench.sandbox.describing import describe
from tsadbench.studies.tuning.comparison import TuningComparison
from tsadbench.tuning.faults import KINDS, SLOT
from tsadbench.utils.grouping import grouped
from tsadbench.utils.markdown import number, table_lines

_METRICS = {"auroc": "AUROC", "auprc": "AUPRC", "prac_f1": "Prac-F1"}
# Differences of means in AUPRC up to this count as none.
_NO_DIFFERENCE = 0.005


def page(comparisons: Sequence[TuningComparison], command: str) -> str:
    """Return the page in Markdown.

    Parameters
    ----------
    comparisons
        One per detector and data set, in the order of the data sets.
    command
        The command that writes it.
    """
    settings = next(iter(comparisons[0].studies.values())).task.settings
    by_dataset = grouped(comparisons, lambda comparison: comparison.dataset)
    results = _template("page.md").format(
        command=command,
        trials=settings.trials,
        folds=settings.folds,
        no_difference=_NO_DIFFERENCE,
        reading="\n".join(_reading(comparisons)),
        tables="\n\n".join(f"## {dataset}\n\n{_table(group)}" for dataset, group in by_dataset.items()),
    )
    return f"{results}\n{method()}"


def method() -> str:
    """Return the part that holds without results, in Markdown: how the search goes, and which faults it plants."""
    return _template("method.md").format(searched=_searched(), slot=SLOT, faults=_faults())


def _template(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _searched() -> str:
    """Return a table of the parameters that each shipped detector declares for the search."""
    rows = []
    for entry in entries("detectors"):
        detector = describe(entry.name)
        space = detector.search_space
        if space and entry.package == "tsadbench":
            alone = {
                key
                for key, values in space.items()
                if values.alters_loss or key in detector.traits.scoring_parameters or not detector.offers_held_out_loss
            }
            both = ", ".join(f"`{key}`" for key in space if key not in alone)
            rows.append([entry.name, both, ", ".join(f"`{key}`" for key in space if key in alone)])
    return "\n".join(table_lines(["detector", "searched by both", "by `injection` alone"], rows))


def _faults() -> str:
    rows = []
    for kind in KINDS:
        size = "" if kind.size is None else f"{kind.size[0]:g} to {kind.size[1]:g}"
        rows.append([kind.name, kind.meaning, f"{kind.rows[0]} to {kind.rows[1]}", size])
    return "\n".join(table_lines(["kind", "what it does", "rows", "size"], rows))


def _table(comparisons: Sequence[TuningComparison]) -> str:
    header = ["detector", "parameters by", "objective: defaults, best", "agreement", *_METRICS.values(), "Δ AUPRC"]
    rows = []
    for comparison in comparisons:
        rows.append(_row(comparison, "defaults", comparison.default, "", ""))
        for objective, study in comparison.studies.items():
            points = (study.result.at(study.task.defaults), study.result.best)
            values = [f"{point.value:.4g}" for point in points if point is not None]
            agreement = "" if study.agreement is None else _signed(study.agreement, 2)
            rows.append(_row(comparison, objective, study.label, ", ".join(values), agreement))
        oracle = _row(comparison, "*oracle, of test labels*", comparison.oracle, f"{comparison.n_points} points", "")
        rows.append(oracle)
    return "\n".join(table_lines(header, rows))


def _row(comparison: TuningComparison, by: str, label: str, objective: str, agreement: str) -> list[str]:
    metrics = (Summary.of(comparison.values(label, metric)).text() for metric in _METRICS)
    gain = "" if by == "defaults" else _signed(comparison.gain(label), 4)
    return [f"`{label}`", by, objective, agreement, *metrics, gain]


def _signed(value: float, decimals: int) -> str:
    # Adding 0.0 turns -0.0 into 0.0: no difference has no minus.
    return number(round(value, decimals) + 0.0, decimals, signed=True)


def _reading(comparisons: Sequence[TuningComparison]) -> Iterator[str]:
    """Yield for each objective how often it helped, and how much of the oracle's gain it reached."""
    for objective in dict.fromkeys(objective for comparison in comparisons for objective in comparison.studies):
        tuned = [comparison for comparison in comparisons if objective in comparison.studies]
        gains = [comparison.gain(comparison.studies[objective].label) for comparison in tuned]
        better = sum(gain > _NO_DIFFERENCE for gain in gains)
        worse = sum(gain < -_NO_DIFFERENCE for gain in gains)
        ceiling = statistics.fmean(comparison.gain(comparison.oracle) for comparison in tuned)
        agreements = [comparison.studies[objective].agreement for comparison in tuned]
        defined = [value for value in agreements if value is not None]
        agreement = f"; median agreement {_signed(statistics.median(defined), 2)}" if defined else ""
        yield (
            f"- `{objective}`: of {len(tuned)} cases better than the defaults in {better}, worse in {worse}, no "
            f"difference in {len(tuned) - better - worse}; on average {_signed(statistics.fmean(gains), 4)}, "
            f"where the oracle has {_signed(ceiling, 4)}{agreement}."
        )
