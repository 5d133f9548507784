"""docs/tuning.md: written from comparisons, never by hand."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from tsadbench.leaderboard.ranking import Summary
from tsadbench.registry import entries, load_detector
from tsadbench.studies.tuning.comparison import TuningComparison
from tsadbench.tuning.faults import KINDS, SLOT
from tsadbench.tuning.objective import Objective
from tsadbench.utils.markdown import number, table_lines

_METRICS = {"auroc": "AUROC", "auprc": "AUPRC", "prac_f1": "Prac-F1"}
# Differences of means in AUPRC up to this are called none.
_NO_DIFFERENCE = 0.005


def page(comparisons: Sequence[TuningComparison], command: str) -> str:
    """Return the page in Markdown.

    Parameters
    ----------
    comparisons
        In the order of their data sets.
    command
        What wrote it.
    """
    return "\n".join(_lines(comparisons, command)) + "\n"


def _lines(comparisons: Sequence[TuningComparison], command: str) -> Iterator[str]:
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
    yield from _method()
    yield ""
    yield "## The planted faults"
    yield ""
    yield (
        f"One fault in each {SLOT} rows, in one sensor that varies, at a place, of a length and a size that are drawn; "
        f"every point of a study meets the same ones. Sizes are in standard deviations of the sensor over the rows "
        f"trained on."
    )
    yield ""
    rows = []
    for kind in KINDS:
        size = "" if kind.size is None else f"{kind.size[0]:g} to {kind.size[1]:g}"
        rows.append([kind.name, kind.meaning, f"{kind.rows[0]} to {kind.rows[1]}", size])
    yield from table_lines(["kind", "what it does", "rows", "size"], rows)


def _method() -> Iterator[str]:
    yield "## How it is done"
    yield ""
    yield (
        "`tsadbench tune --detector NAME --dataset D --trials N` searches with the recordings which the protocol "
        "`strict` trains on, and nothing else: no test recording, no training row that recurs in one, no label. "
        "Detectors are fitted and measured in boxes; one that opens a file of the data is invalid. Each recording is "
        "cut into blocks; a fold holds one block of each out, and between it and the rows trained on lies a gap as "
        "wide as the longest window of the search. Optuna (TPE) proposes points, the defaults first. A point is given "
        "up whose mean so far is worse than the median of five or more complete ones'. A point that fails or takes "
        "too long is counted and told; the study goes on."
    )
    yield ""
    yield (
        "* `heldout`: the detector's own loss on the held-out blocks. Only losses that measure the same thing can "
        "be compared: a parameter that changes what is forecast or given back (a horizon, a reconstructed window),"
        " or the score alone (`alpha`, `smoothing`), is not searched. A forecaster's window is: every point is "
        "measured on the same forecast rows. What gives rows back best need not find faults best."
    )
    yield (
        "* `injection`: faults of six kinds are planted into the held-out blocks; the mean over kinds and folds of"
        " the AUPRC with which the scores find them. It searches everything that the detector declares. It finds "
        "what finds *these* faults."
    )
    yield ""
    yield (
        "What the brackets of `NAME[key=value]` set is not searched. The same command goes on with the study, "
        "which is a SQLite file below `--out`; with `--storage URL` (a database, or `journal:FILE` on a shared "
        "disk) several machines work on one. The best point is written as a TOML file that `tsadbench run "
        "--config` takes; records of runs made with it carry its hash and the study's provenance."
    )
    yield ""
    rows = []
    for entry in entries("detectors"):
        cls = load_detector(entry.name)
        space = cls.search_space()
        if space and entry.package == "tsadbench":
            alone = {key for key, one in space.items() if one.alters_loss or key in cls.traits.scoring_parameters}
            alone = alone if cls.offers_held_out_loss() else set(space)
            both = [f"`{key}`" for key in space if key not in alone]
            rows.append([entry.name, ", ".join(both), ", ".join(f"`{key}`" for key in space if key in alone)])
    yield from table_lines(["detector", "searched by both", "by `injection` alone"], rows)


def _table(comparisons: Sequence[TuningComparison]) -> list[str]:
    header = ["detector", "parameters by", "objective: defaults, best", "agreement", *_METRICS.values(), "Δ AUPRC"]
    rows = []
    for one in comparisons:
        rows.append(_row(one, "defaults", one.default, "", ""))
        for objective, study in one.studies.items():
            best, defaults = study.result.best, study.result.at(study.task.defaults)
            values = [point.value for point in (defaults, best) if point is not None and point.value is not None]
            agreement = "" if study.agreement is None else _signed(study.agreement, 2)
            rows.append(_row(one, objective, study.label, ", ".join(f"{value:.4g}" for value in values), agreement))
        rows.append(_row(one, "*oracle, of test labels*", one.oracle, f"{one.n_points} points", ""))
    return table_lines(header, rows)


def _row(one: TuningComparison, by: str, label: str, objective: str, agreement: str) -> list[str]:
    cells = [f"`{label}`", by, objective, agreement]
    cells += [Summary.of(one.values(label, metric)).text() for metric in _METRICS]
    cells.append("" if by == "defaults" else _signed(one.mean(label) - one.mean(one.default), 4))
    return cells


def _signed(value: float, decimals: int) -> str:
    # No difference has no minus.
    return number(round(value, decimals) + 0.0, decimals, signed=True)


def _reading(comparisons: Sequence[TuningComparison]) -> Iterator[str]:
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
        agreement = f"; median agreement {_signed(statistics.median(known), 2)}" if known else ""
        yield (
            f"- `{objective}`: of {len(tuned)} cases better than the defaults in {better}, worse in {worse}, no "
            f"difference in {len(tuned) - better - worse}; on average {_signed(statistics.fmean(gains), 4)}, "
            f"where the oracle has {_signed(ceiling, 4)}{agreement}."
        )
