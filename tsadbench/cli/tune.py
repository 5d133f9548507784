"""``tsadbench tune``: parameters chosen without labels."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from tsadbench.cli.ending import Listing
from tsadbench.cli.live import interruptible, progress_bar
from tsadbench.cli.options import (
    AllowChangedDataOption,
    DataOption,
    MemoryOption,
    RequireSealOption,
    SeedsOption,
    ThreadsOption,
    TimeoutOption,
    detector_option,
)
from tsadbench.errors import UsageError


class Objective(StrEnum):
    """What a point of the search is measured by."""

    injection = "injection"
    heldout = "heldout"


app = typer.Typer(cls=Listing, help="Choose a detector's parameters without labels.")

_Folds: TypeAlias = Annotated[
    int, typer.Option("--folds", help="Blocks of each training recording; each is held out once.")
]
_Jobs: TypeAlias = Annotated[
    int, typer.Option("--jobs", help="Points to evaluate at the same time, each in a process of its own.")
]
_Out: TypeAlias = Annotated[Path, typer.Option("--out", help="Folder of the studies and their results.")]


@app.callback(invoke_without_command=True)
def tune(
    context: typer.Context,
    detector: Annotated[str | None, detector_option] = None,
    dataset: Annotated[str, typer.Option(help="Name of the data set, or a card.")] = "skab",
    trials: Annotated[int, typer.Option(help="Points of the study, those of earlier runs included.")] = 30,
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            metavar="NAME.KEY=RANGE",
            help="What to search of a parameter: LOW:HIGH, LOW:HIGH:log or A|B|...; may be repeated, and wins over "
            "what the detector declares.",
        ),
    ] = None,
    objective: Annotated[
        Objective,
        typer.Option(
            help="injection: find faults injected into held-out training rows. heldout: forecast or reconstruct "
            "held-out training rows."
        ),
    ] = Objective.injection,
    folds: _Folds = 3,
    seed: Annotated[int, typer.Option(help="Seed of the detector, the faults and the search.")] = 0,
    jobs: _Jobs = 1,
    threads: ThreadsOption = 1,
    timeout: TimeoutOption = None,
    memory: MemoryOption = None,
    require_seal: RequireSealOption = False,
    prune: Annotated[bool, typer.Option("--prune/--no-prune", help="Whether to stop points that do badly.")] = True,
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where to keep the study: sqlite:///FILE, postgresql://..., mysql://..., or journal:FILE on a disk "
            "that machines share; the same command on several machines works on one study (default: a file below "
            "--out).",
        ),
    ] = None,
    data: DataOption = None,
    allow_changed_data: AllowChangedDataOption = False,
    out: _Out = Path("tuning"),
) -> None:
    """Search a detector's parameters on training recordings alone, and write the best point as a configuration.

    Parameters set in the detector's brackets are not searched. The search knows the training recordings and nothing
    else: test recordings and labels are dropped before it begins. The same command continues the study. Exit code 1 if
    no point is complete.
    """
    if context.invoked_subcommand is not None:
        return
    from tsadbench.cli.actions.tune import PointProgress, show
    from tsadbench.execution.plan import make_plan
    from tsadbench.execution.request import RunRequest
    from tsadbench.tuning.storage import storage_of
    from tsadbench.tuning.study import run_study
    from tsadbench.tuning.task import Settings, make_task
    from tsadbench.tuning.tuned_file import write_tuned

    if detector is None:
        raise UsageError("--detector is missing: which detector is to be tuned? `tsadbench list` names them")
    settings = Settings(
        objective=objective.value,
        trials=trials,
        folds=folds,
        seed=seed,
        jobs=jobs,
        threads=threads,
        timeout=timeout,
        memory_mib=memory,
        require_seal=require_seal,
        prune=prune,
        ranges=tuple(ranges or ()),
    )
    request = RunRequest(
        detectors=[detector],
        datasets=[dataset],
        seeds=1,
        floors=False,
        require_seal=require_seal,
        data=data,
        allow_changed_data=allow_changed_data,
    )
    with progress_bar(f"Reading {dataset}"):
        # The plan gets no name here: it holds test recordings and labels, which are to be gone when the search begins.
        task = make_task(make_plan(request, judged=False), settings)
    url = storage_of(task, out, storage)
    typer.echo(f"study {task.study}: {', '.join(task.space)}", err=True)
    with (
        interruptible("completed points are kept; run the same command to continue"),
        PointProgress(task) as observer,
    ):
        result = run_study(task, url, observer)
    show(task, result)
    if result.best is None:
        raise typer.Exit(1)
    typer.echo(f"{write_tuned(task, result, out)}: use it with tsadbench run --config", err=True)


@app.command()
def report(
    detector: Annotated[
        list[str] | None,
        typer.Option("--detector", "-d", help="A detector; may be repeated (default: four cheap ones)."),
    ] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(help="A data set; may be repeated (default: skab, tep and pumploop).")
    ] = None,
    objective: Annotated[
        list[Objective] | None,
        typer.Option(help="An objective; may be repeated (default: all that a detector offers)."),
    ] = None,
    trials: Annotated[int, typer.Option(help="Points of each study.")] = 20,
    folds: _Folds = 3,
    seeds: SeedsOption = 5,
    jobs: _Jobs = 1,
    data: DataOption = None,
    out: _Out = Path("tuning"),
    runs: Annotated[Path, typer.Option(help="Run store of the runs on the test recordings.")] = Path("tuning-runs"),
    write: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the page to this file instead of standard output.")
    ] = None,
) -> None:
    """Tune several detectors on several data sets, and compare the defaults, the tuned and an oracle's choice.

    Studies and runs are kept: the same command continues them.
    """
    from tsadbench.base.dataset import DataOptions
    from tsadbench.cli.actions.tune import PointProgress
    from tsadbench.datasets.loading import load_dataset
    from tsadbench.execution.run_store import Store
    from tsadbench.execution.runner import run_plan
    from tsadbench.studies.tuning.comparison import DATASETS, DETECTORS, compare
    from tsadbench.studies.tuning.page import page
    from tsadbench.tuning.task import Settings
    from tsadbench.utils.atomic_files import require_not_read, require_writable, write_file

    if write is not None:
        require_not_read(write, map(Path, dataset or ()))
        require_writable(write)
    settings = Settings(trials=trials, folds=folds, jobs=jobs)
    store = Store.create(runs)
    comparisons = []
    with interruptible(f"completed work is kept in {out} and {runs}; run the same command to continue"):
        for dataset_name in dataset or DATASETS:
            loaded = load_dataset(dataset_name)(DataOptions(directory=data))
            comparisons += [
                compare(
                    detector_name,
                    loaded,
                    settings,
                    seeds=seeds,
                    out=out,
                    run=lambda plan: run_plan(plan, store, jobs=jobs),
                    watch=PointProgress,
                    objectives=[name.value for name in objective or Objective],
                )
                for detector_name in detector or DETECTORS
            ]
    text = page(comparisons, " ".join(["tsadbench", *sys.argv[1:]]))
    if write is None:
        typer.echo(text, nl=False)
    else:
        typer.echo(write_file(write, text), err=True)
