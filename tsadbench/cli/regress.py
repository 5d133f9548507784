"""``tsadbench regress``: run a chosen set again, and fail where a cell left its tolerance."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tsadbench.execution.record import Record
    from tsadbench.leaderboard.regression import Baseline, Cell


class Chosen(StrEnum):
    """Which of the baseline's rows are run again."""

    quick = "quick"
    full = "full"


def regress(
    baseline: Annotated[
        Path, typer.Option(metavar="DIR", help="Committed leaderboards: what `tsadbench run --write DIR` has written.")
    ],
    chosen: Annotated[
        Chosen, typer.Option("--set", help="quick: detectors whose trials took at most 5 CPU seconds; full: all.")
    ] = Chosen.quick,
    detector: Annotated[list[str] | None, typer.Option(help="Only this detector or label. Repeat for several.")] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(help="Only this data set: a name, or a card that has the name. Repeat.")
    ] = None,
    protocol: Annotated[list[str] | None, typer.Option(help="Only this protocol. Repeat for several.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Fewer seeds than the baseline has.")] = None,
    jobs: Annotated[int, typer.Option(help="Trials at a time.")] = 1,
    data: Annotated[Path | None, typer.Option(help="Folder that holds the data sets' folders (skab/, ...).")] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write JUnit XML as well.")] = None,
    summary: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append a summary in Markdown: $GITHUB_STEP_SUMMARY.")
    ] = None,
) -> None:
    """Run detectors of committed leaderboards again; exit code 1 where a cell left its tolerance.

    A deterministic detector's metrics may move by 1e-6. A stochastic one's mean may move by three standard errors of
    the difference between the two means, plus .001.
    """
    from tsadbench.errors import UsageError
    from tsadbench.leaderboard.regression import read_baselines, to_junit, to_markdown
    from tsadbench.utils.atomic_files import append_text, require_writable, write_file

    for file in (junit, summary):
        if file is not None:
            require_writable(file)
    cells: list[Cell] = []
    cards = _cards(dataset or [])
    names = [cards.get(name, name) for name in dataset or []]
    for one in read_baselines(baseline):
        if (names and one.dataset not in names) or (protocol and one.protocol not in protocol):
            continue
        selected = _selected(one.quick() if chosen is Chosen.quick else one, detector)
        if selected.records:
            path = next((path for path, name in cards.items() if name == one.dataset), one.dataset)
            cells += _compared(selected, path, seeds, jobs, data)
    if not cells:
        raise UsageError(f"--baseline {baseline}: nothing there fits --set, --detector, --dataset and --protocol")
    text = to_markdown(cells)
    sys.stdout.write(text)
    if junit is not None:
        write_file(junit, to_junit(cells))
    if summary is not None:
        append_text(summary, text)
    if not all(cell.holds for cell in cells):
        raise typer.Exit(1)


def _cards(datasets: list[str]) -> dict[str, str]:
    """Return the names of those data sets that are given as cards, by the cards' paths."""
    from tsadbench.base.dataset import DataOptions
    from tsadbench.datasets.loading import CARD_ENDING, load_dataset

    return {one: load_dataset(one)(DataOptions()).dataset.name for one in datasets if one.endswith(CARD_ENDING)}


def _selected(baseline: Baseline, detectors: list[str] | None) -> Baseline:
    from tsadbench.leaderboard.regression import Baseline

    records = tuple(
        one for one in baseline.records if not detectors or one.label in detectors or one.detector in detectors
    )
    return Baseline(baseline.dataset, baseline.protocol, records)


def _compared(baseline: Baseline, dataset: str, seeds: int | None, jobs: int, data: Path | None) -> tuple[Cell, ...]:
    from tsadbench.cli.progress import watching
    from tsadbench.execution.plan import make_plan
    from tsadbench.execution.request import RunRequest
    from tsadbench.execution.runner import run_plan
    from tsadbench.leaderboard.regression import compare
    from tsadbench.utils.parameters import parse_label

    protocol = parse_label(baseline.protocol)
    labels = list(dict.fromkeys(record.label for record in baseline.records))
    found: list[Record] = []
    # Rows of one table may have run with different numbers of threads and seeds.
    for threads in sorted({record.threads for record in baseline.records}):
        of_threads = [
            label
            for label in labels
            if any(record.label == label and record.threads == threads for record in baseline.records)
        ]
        request = RunRequest(
            detectors=list(of_threads),
            datasets=[dataset],
            protocols=[protocol.target],
            settings=[f"{protocol.target}.{key}={value}" for key, value in protocol.arguments.items()],
            seeds=min(seeds or baseline.seeds, baseline.seeds),
            threads=threads,
            jobs=jobs,
            floors=False,
            data=data,
            contributions=False,
        )
        plan = make_plan(request)
        with watching(len(plan.trials)) as observer:
            found += run_plan(plan, None, observer, jobs=jobs)
    return compare(baseline, found)
