"""The calibration report: the risk q of stored trials' thresholds against the share of normal rows that exceed them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from tsadbench.analysis.calibration.clusters import FEWEST_CLUSTERS, FlaggedNormal, cross_fitted, rate_interval
from tsadbench.base.dataset import LabelledDataset
from tsadbench.errors import DataError, TsadbenchError
from tsadbench.execution.record import Record
from tsadbench.execution.run_store import Store
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.results.judging import Judge
from tsadbench.results.trial_result import TrialResult, readable_result
from tsadbench.utils.grouping import grouped
from tsadbench.utils.markdown import number, plain, plain_table
from tsadbench.utils.parameters import JsonValue
from tsadbench.utils.progress import progress
from tsadbench.utils.text import csv_text

SCHEMA = 1
# A tail that is fitted to fewer says little about its quantiles.
FEWEST_EXCESSES = 30
# The parameters of a generalised Pareto tail and its level need more.
_FEWEST_ROWS = 100

_LEGEND = (
    "observed: the share of normal rows above the threshold that the other nine tenths of them set, over the tenths, "
    "mean over seeds. rows: held-out ones were not trained on; the detector has seen those called training, and may "
    "flag other normal rows more often. 90 %: the interval of the rate, by clusters of flagged rows; fewer than "
    f"{FEWEST_CLUSTERS} clusters are too few to tell. excesses: scores behind the fitted tail, the fewest of any fit."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialCalibration:
    """How often normal rows exceed the thresholds of one trial.

    Parameters
    ----------
    seed
        The trial's.
    calibration
        Which normal rows set the threshold.
    q
        Risk of the thresholds.
    flagged
        The rows that are flagged if a threshold is found without their tenth; all fits together.
    n_fits, excesses, n_few
        Number of fits; excesses of the one with the fewest; number of fits with fewer than 30.
    """

    seed: int
    calibration: Literal["training", "held-out", "partly held-out"]
    q: float
    flagged: FlaggedNormal
    n_fits: int
    excesses: int
    n_few: int


@dataclass(frozen=True, slots=True)
class CalibrationRow:
    """A detector on one data set under one protocol.

    Parameters
    ----------
    record
        Of one of its trials: they have all but seeds in common.
    trials
        One a seed, at least one. Seeds score the same rows: a row's interval is that of their mean.
    """

    record: Record
    trials: tuple[TrialCalibration, ...]

    @property
    def share(self) -> float:
        """Share of flagged rows."""
        return float(np.mean([one.flagged.share for one in self.trials]))

    @property
    def clusters(self) -> float:
        """Number of clusters of flagged rows."""
        return float(np.mean([len(one.flagged.sizes) for one in self.trials]))

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 90 % interval of the rate; None if there are too few clusters."""
        if self.clusters < FEWEST_CLUSTERS:
            return None
        worth = float(np.mean([one.flagged.worth for one in self.trials]))
        return rate_interval(self.share, worth, self.trials[0].flagged.n_rows)

    @property
    def verdict(self) -> str:
        """Where the interval lies: "as set", "above q", "below q"; or "too few" clusters."""
        if self.interval is None:
            return "too few"
        low, high = self.interval
        q = self.trials[0].q
        return "above q" if low > q else "below q" if high < q else "as set"

    @property
    def excesses(self) -> int:
        """The excesses of the fit with the fewest."""
        return min(one.excesses for one in self.trials)

    def to_json(self) -> dict[str, JsonValue]:
        """Return the row and its trials as JSON knows them."""
        first = self.trials[0]
        low, high = self.interval or (None, None)
        return {
            "dataset": self.record.dataset,
            "protocol": self.record.protocol,
            "protocol_version": self.record.protocol_version,
            "detector": self.record.label,
            "floor": self.record.floor,
            "seeds": [one.seed for one in self.trials],
            "calibration": first.calibration,
            "fits": first.n_fits,
            "rows": first.flagged.n_rows,
            "q": first.q,
            "observed": self.share,
            "low": low,
            "high": high,
            "clusters": self.clusters,
            "verdict": self.verdict,
            "excesses": self.excesses,
            "fits_with_few_excesses": max(one.n_few for one in self.trials),
        }


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """The rows of a store, and which detectors have none.

    Parameters
    ----------
    rows
        By data set and protocol, then as the leaderboard ranks them.
    left_out
        Which detectors have none, and why.
    """

    rows: tuple[CalibrationRow, ...]
    left_out: tuple[str, ...] = ()
    legend: str = _LEGEND

    def tables(self) -> Iterator[tuple[str, list[str], list[list[str]]]]:
        """Yield title, header and cells of a table for each data set and protocol."""
        header = ["detector", "rows", "fits", "q", "observed", "90 %", "clusters", "verdict", "excesses"]
        for (dataset, rules), rows in grouped(self.rows, lambda row: (row.record.dataset, row.record.rules)).items():
            yield f"{dataset}, protocol {rules}: false alarms on normal rows", header, [_cells(row) for row in rows]

    def to_markdown(self) -> str:
        """Return the tables, the legend and the notes as Markdown."""
        parts = [
            line
            for title, header, rows in self.tables()
            for line in (f"### {plain(title)}", "", *plain_table(header, rows), "")
        ]
        return "\n".join([*parts, self.legend, "", *(f"- {plain(line)}" for line in self.left_out), ""])

    def to_json(self) -> str:
        """Return the rows with their trials as one JSON object."""
        rows = [{**row.to_json(), "trials": [_trial_json(one) for one in row.trials]} for row in self.rows]
        return f"{json.dumps({'schema': SCHEMA, 'rows': rows, 'left_out': list(self.left_out)}, indent=1)}\n"

    def to_csv(self) -> str:
        """Return one line a row, in full precision."""
        frame = pd.DataFrame.from_records([{**row.to_json(), "seeds": len(row.trials)} for row in self.rows])
        return csv_text(frame)


def calibration_report(board: Leaderboard, store: Store, load: Callable[[str], LabelledDataset]) -> CalibrationReport:
    """Return the calibration of every detector of a leaderboard; nothing is fitted but thresholds.

    Parameters
    ----------
    board
        The leaderboard; rows that failed or ship with the package are left out.
    store
        Holds its trials.
    load
        Returns the data set of a name.
    """
    rows = {(row.dataset, row.rules, row.label): row for row in board.rows if row.ok and not row.stored}
    judge = Judge(load)
    found, left_out = [], []
    for done, (row_id, row) in enumerate(rows.items()):
        progress(done, len(rows), row.label)
        try:
            data, episodes = judge.data(row.dataset), judge.episodes(row.first)
            results = [readable_result(record, store, data, episodes) for record in row.records]
            whole = [result for result in results if result is not None]
            if len(whole) < len(results):
                left_out.append(f"{', '.join(row_id)}: {len(results) - len(whole)} of its trials are broken")
                continue
            found.append(CalibrationRow(row.first, tuple(map(calibration_of, whole))))
        except TsadbenchError as error:
            left_out.append(f"{', '.join(row_id)}: {error}")
    return CalibrationReport(tuple(found), tuple(left_out))


def calibration_of(result: TrialResult) -> TrialCalibration:
    """Return how often normal rows exceed the thresholds of one trial.

    Raises
    ------
    DataError
        If its threshold is fixed, or too few rows set one of its thresholds.
    """
    record, fits = result.record, []
    for entry in record.thresholds:
        scores = result.calibration_scores(entry.episode)
        if entry.threshold.q is None:
            raise DataError("its threshold is fixed: it sets no rate of false alarms")
        if len(scores) < _FEWEST_ROWS:
            raise DataError(f"{len(scores)} rows set the threshold of {entry.episode}: too few to leave a tenth out")
        fits.append(cross_fitted(scores, result.protocol.threshold_from))
    kinds = {result.calibrated_on(entry.episode) for entry in record.thresholds}
    excesses = [entry.threshold.excesses or 0 for entry in record.thresholds]
    return TrialCalibration(
        seed=record.seed,
        calibration=kinds.pop() if len(kinds) == 1 else "partly held-out",
        q=record.thresholds[0].threshold.q or 0.0,
        flagged=FlaggedNormal(sum(fit.n_rows for fit in fits), tuple(size for fit in fits for size in fit.sizes)),
        n_fits=len(fits),
        excesses=min(excesses),
        n_few=sum(count < FEWEST_EXCESSES for count in excesses),
    )


def _cells(row: CalibrationRow) -> list[str]:
    first, interval = row.trials[0], row.interval
    few = f" (below {FEWEST_EXCESSES})" if row.excesses < FEWEST_EXCESSES else ""
    return [
        row.record.label,
        f"{first.flagged.n_rows:,} {first.calibration}",
        str(first.n_fits),
        number(first.q, 4),
        number(row.share, 4),
        "-" if interval is None else f"{number(interval[0], 4)} to {number(interval[1], 4)}",
        f"{row.clusters:.4g}",
        row.verdict,
        f"{row.excesses}{few}",
    ]


def _trial_json(trial: TrialCalibration) -> dict[str, JsonValue]:
    flagged = trial.flagged
    low, high = (None, None) if flagged.too_few else flagged.interval
    return {
        "seed": trial.seed,
        "flagged": flagged.n_flagged,
        "clusters": len(flagged.sizes),
        "observed": flagged.share,
        "low": low,
        "high": high,
        "excesses": trial.excesses,
    }
