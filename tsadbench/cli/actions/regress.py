"""Run the trials of committed leaderboards again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tsadbench.base.dataset import DataOptions
from tsadbench.cli.actions.run import run_watched
from tsadbench.datasets.loading import CARD_ENDING, load_dataset
from tsadbench.errors import UsageError
from tsadbench.execution.plan import make_plan
from tsadbench.execution.record import Record
from tsadbench.execution.request import RunRequest
from tsadbench.leaderboard.regression import Baseline, Cell, compared_cells, read_baselines
from tsadbench.utils.parameters import parse_label


def run_again(
    folder: Path,
    *,
    quick: bool,
    detectors: Sequence[str],
    datasets: Sequence[str],
    protocols: Sequence[str],
    seeds: int | None,
    jobs: int,
    directory: Path | None,
) -> list[Cell]:
    """Run baselines again and return every cell of theirs, compared.

    Parameters
    ----------
    folder
        Committed leaderboards.
    quick
        Whether to leave out detectors whose trials are expensive.
    detectors, datasets, protocols
        Names to restrict the run to, if any; a data set may be named by its card.
    seeds
        At most so many seeds; None for as many as the baseline has.
    jobs
        Trials at the same time.
    directory
        The folder that contains the data sets' folders.

    Raises
    ------
    UsageError
        If nothing fits the restrictions.
    """
    cards = {card: load_dataset(card)(DataOptions()).dataset.name for card in datasets if card.endswith(CARD_ENDING)}
    names = [cards.get(name, name) for name in datasets]
    cells: list[Cell] = []
    for baseline in read_baselines(folder):
        if (names and baseline.dataset not in names) or (protocols and baseline.protocol not in protocols):
            continue
        chosen = baseline.quick() if quick else baseline
        if detectors:
            fits = (record for record in chosen.records if {record.label, record.detector} & {*detectors})
            chosen = replace(chosen, records=tuple(fits))
        if chosen.records:
            dataset = next((card for card, name in cards.items() if name == chosen.dataset), chosen.dataset)
            cells += _compared(chosen, dataset, seeds, jobs, directory)
    if not cells:
        raise UsageError(f"--baseline {folder}: nothing there fits --set, --detector, --dataset and --protocol")
    return cells


def _compared(
    baseline: Baseline, dataset: str, seeds: int | None, jobs: int, directory: Path | None
) -> tuple[Cell, ...]:
    protocol = parse_label(baseline.protocol)
    records: list[Record] = []
    # Rows of one table may have run with different numbers of threads and seeds.
    for threads in sorted({record.threads for record in baseline.records}):
        request = RunRequest(
            detectors=list(dict.fromkeys(record.label for record in baseline.records if record.threads == threads)),
            datasets=[dataset],
            protocols=[protocol.target],
            settings=[f"{protocol.target}.{key}={value}" for key, value in protocol.arguments.items()],
            jobs=jobs,
            seeds=min(seeds or baseline.seeds, baseline.seeds),
            threads=threads,
            floors=False,
            data=directory,
            contributions=False,
        )
        records += run_watched([make_plan(request)], None, jobs=jobs)[0][0]
    return compared_cells(baseline, records)
