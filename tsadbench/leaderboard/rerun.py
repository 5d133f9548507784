"""Runs the trials of committed leaderboards again and compares every cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tsadbench.base.dataset import DataOptions
from tsadbench.datasets.loading import CARD_ENDING, load_dataset
from tsadbench.errors import UsageError
from tsadbench.execution.plan import Plan, make_plan
from tsadbench.execution.record import Record
from tsadbench.execution.request import RunRequest
from tsadbench.leaderboard.regression import Baseline, Cell, compared_cells, lost_seals, read_baselines
from tsadbench.results.trial_result import protocol_of
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import parse_label


def run_again(
    folder: Path,
    *,
    run: Callable[[Plan], Sequence[Record]],
    quick: bool = False,
    detectors: Sequence[str] = (),
    datasets: Sequence[str] = (),
    protocols: Sequence[str] = (),
    seeds: int | None = None,
    directory: Path | None = None,
    tell: Callable[[str], object] = lambda _: None,
) -> list[Cell]:
    """Run baselines again and return every cell of theirs, compared.

    A UsageError if nothing fits the restrictions, or another version of a protocol judged a baseline.
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
            records = _records(chosen, dataset, run, seeds, directory)
            cells += compared_cells(chosen, records)
            for note in lost_seals(chosen, records):
                tell(note)
    if not cells:
        raise UsageError(f"--baseline {folder}: nothing there fits --set, --detector, --dataset and --protocol")
    return cells


def _check_version(baseline: Baseline) -> None:
    record = baseline.records[0]
    version = protocol_of(record).version
    if record.protocol_version != version:
        raise UsageError(
            f"--baseline: the tables of {record.dataset} are of protocol {record.rules}, and version "
            f"{version} is installed: numbers of two versions are not compared. Make the tables again "
            "(`tsadbench run --write`), or choose others by --dataset and --protocol"
        )


def _records(
    baseline: Baseline,
    dataset: str,
    run: Callable[[Plan], Sequence[Record]],
    seeds: int | None,
    directory: Path | None,
) -> list[Record]:
    protocol = parse_label(baseline.protocol)
    records: list[Record] = []
    # Rows of one table may have run with different numbers of threads and seeds; the mean of more seeds differs.
    rows = grouped(baseline.records, lambda record: (record.label, record.threads))
    n_seeds = {row: 1 + max(record.seed for record in trials) for row, trials in rows.items()}
    for (threads, n_of_rows), alike in sorted(grouped(rows, lambda row: (row[1], n_seeds[row])).items()):
        request = RunRequest(
            detectors=[label for label, _ in alike],
            datasets=[dataset],
            protocols=[protocol.target],
            settings={f"{protocol.target}.{key}": value for key, value in protocol.arguments.items()},
            seeds=min(seeds or n_of_rows, n_of_rows),
            threads=threads,
            floors=False,
            data=directory,
            contributions=False,
        )
        _check_version(baseline)
        plan = make_plan(request)
        if plan.data.dataset.version != baseline.records[0].dataset_version:
            raise UsageError(
                f"--baseline: the tables of {baseline.dataset} are of version {baseline.records[0].dataset_version} of "
                f"the data set, and version {plan.data.dataset.version} is installed: make them again"
            )
        records += run(plan)
    return records
