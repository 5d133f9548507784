"""``tsadbench tune``: parameters chosen without labels."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.progress import Progress

    from tsadbench.tuning.study_result import Point, StudyObserver, StudyResult
    from tsadbench.tuning.task import Task

app = typer.Typer(help="Choose a detector's parameters without labels.")


class ObjectiveName(StrEnum):
    """What a point of the search is measured by."""

    injection = "injection"
    heldout = "heldout"


_Out = Annotated[Path, typer.Option(help="Folder of the studies and of what they come to.")]
_Data = Annotated[Path | None, typer.Option(help="Folder that holds the data sets' folders (skab/, ...).")]
_Jobs = Annotated[int, typer.Option(help="Points at a time, each in a process of its own.")]


@app.callback(invoke_without_command=True)
def tune(
    context: typer.Context,
    detector: Annotated[
        str | None,
        typer.Option(
            "--detector",
            "-d",
            help="NAME, NAME[key=value,...], package.module:Class or path/file.py:Class. What the brackets set is not "
            "searched.",
        ),
    ] = None,
    dataset: Annotated[str, typer.Option(help="Name of the data set, or a card.")] = "skab",
    trials: Annotated[int, typer.Option(help="Points that the study is to hold, those of earlier runs included.")] = 30,
    objective: Annotated[
        ObjectiveName,
        typer.Option(
            help="injection: find faults planted into held-out training rows. heldout: forecast or give back held-out "
            "training rows."
        ),
    ] = ObjectiveName.injection,
    folds: Annotated[int, typer.Option(help="Blocks of each training recording; each is held out once.")] = 3,
    seed: Annotated[int, typer.Option(help="Of the detector, the faults and the search.")] = 0,
    jobs: _Jobs = 1,
    threads: Annotated[int, typer.Option(help="Threads of a detector's libraries.")] = 1,
    timeout: Annotated[float | None, typer.Option(help="Seconds that one point may take.")] = None,
    memory: Annotated[float | None, typer.Option(help="MiB that one point's process may hold.")] = None,
    prune: Annotated[
        bool, typer.Option("--prune/--no-prune", help="Whether points that do badly are given up.")
    ] = True,
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where the study is kept: sqlite:///FILE, postgresql://..., mysql://..., or journal:FILE on a disk "
            "that machines share; the same command on several of them works on one study. By default a file below "
            "--out.",
        ),
    ] = None,
    data: _Data = None,
    allow_changed_data: Annotated[
        bool, typer.Option("--allow-changed-data", help="Go on where files differ from the published ones.")
    ] = False,
    out: _Out = Path("tuning"),
) -> None:
    """Search a detector's parameters on training recordings alone, and write the best point as a configuration.

    The search knows the training recordings and nothing else: test recordings and labels are dropped before it begins.
    The same command resumes the study. Exit code 1 if no point is complete.
    """
    if context.invoked_subcommand is not None:
        return
    from tsadbench.cli.data import progress_bar
    from tsadbench.errors import UsageError
    from tsadbench.execution.plan import make_plan
    from tsadbench.execution.request import RunRequest
    from tsadbench.tuning.storage import storage_of
    from tsadbench.tuning.study import run_study
    from tsadbench.tuning.task import Settings, make_task
    from tsadbench.tuning.tuned_file import write_tuned

    if detector is None:
        raise UsageError("--detector is missing: which detector is to be tuned? tsadbench list  names them")
    settings = Settings(
        objective=objective.value,
        trials=trials,
        folds=folds,
        seed=seed,
        jobs=jobs,
        threads=threads,
        timeout=timeout,
        memory_mib=memory,
        prune=prune,
    )
    request = RunRequest(
        detectors=[detector],
        datasets=[dataset],
        seeds=1,
        floors=False,
        data=data,
        allow_changed_data=allow_changed_data,
    )
    with progress_bar(f"Reading {dataset}"):
        # The plan gets no name here: it holds test recordings and labels, which are to be gone when the search begins.
        task = make_task(make_plan(request), settings)
    url = storage_of(task, out, storage)
    print(f"study {task.study}: {', '.join(task.space)}", file=sys.stderr)
    try:
        with _watching(task) as observer:
            found = run_study(task, url, observer)
    except KeyboardInterrupt:
        print("interrupted: the points that had ended are kept; the same command goes on from there", file=sys.stderr)
        raise typer.Exit(130) from None
    _show(task, found)
    if found.best is None:
        raise typer.Exit(1)
    print(f"{write_tuned(task, found, out)}: tsadbench run --config takes it", file=sys.stderr)


def _show(task: Task, found: StudyResult) -> None:
    """Print the best point beside the defaults, and what became of all points."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from tsadbench.tuning.tuned_file import label_at

    best, defaults = found.best, found.at(task.defaults)
    if best is not None:
        columns: dict[str, Point] = {} if defaults is None else {"defaults": defaults}
        columns["best"] = best
        what = "mean AUPRC on planted faults" if found.maximise else "mean loss on held-out rows"
        title = Text(label_at(task, best.parameters))  # its brackets are no markup
        table = Table(what, *columns, title=title, title_justify="left", box=box.SIMPLE_HEAD)
        table.add_row("all", *(f"{point.value:.4g}" for point in columns.values()))
        for part in best.parts if found.maximise else ():
            table.add_row(part, *(f"{point.parts[part]:.4g}" for point in columns.values()))
        console = Console() if sys.stdout.isatty() else Console(width=200)
        console.print(table)
    print(f"points: {', '.join(f'{n} {state}' for state, n in sorted(found.counts.items()))}", file=sys.stderr)
    for reason in dict.fromkeys(f"{point.state}: {point.reason}" for point in found.points if point.reason):
        print(f"  {reason}", file=sys.stderr)


@app.command()
def report(
    detector: Annotated[
        list[str] | None,
        typer.Option("--detector", "-d", help="A detector. Repeat for several; else four cheap ones."),
    ] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(help="A data set. Repeat for several; skab, tep and pumploop.")
    ] = None,
    objective: Annotated[
        list[ObjectiveName] | None,
        typer.Option(help="An objective. Repeat for several; by default all that a detector offers."),
    ] = None,
    trials: Annotated[int, typer.Option(help="Points of each study.")] = 20,
    folds: Annotated[int, typer.Option(help="Blocks of each training recording; each is held out once.")] = 3,
    seeds: Annotated[int, typer.Option(help="Seeds of each run on the test recordings.")] = 5,
    jobs: _Jobs = 1,
    data: _Data = None,
    out: _Out = Path("tuning"),
    runs: Annotated[Path, typer.Option(help="Run store of what is run on the test recordings.")] = Path("runs/tuning"),
    write: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the page there, not to the screen.")] = None,
) -> None:
    """Tune several detectors on several data sets, and hold defaults, tuned and an oracle's choice side by side.

    Studies and runs are kept: the same command goes on where it was.
    """
    from rich.console import Console

    from tsadbench.base.dataset import DataOptions
    from tsadbench.cli.progress import Lines
    from tsadbench.datasets.loading import load_dataset
    from tsadbench.errors import UsageError
    from tsadbench.execution.run_store import Store
    from tsadbench.execution.runner import run_plan
    from tsadbench.studies.tuning.comparison import DATASETS, DETECTORS, compare
    from tsadbench.studies.tuning.page import page
    from tsadbench.tuning.task import Settings
    from tsadbench.utils.atomic_files import require_writable, write_file

    if seeds < 1:
        raise UsageError(f"--seeds must be at least 1, found {seeds}")
    if write is not None:
        require_writable(write)
    settings = Settings(trials=trials, folds=folds, jobs=jobs)
    store = Store.create(runs)
    console = Console(stderr=True)
    comparisons = []
    try:
        for name in dataset or DATASETS:
            loaded = load_dataset(name)(DataOptions(directory=data))
            comparisons += [
                compare(
                    one,
                    loaded,
                    settings,
                    seeds=seeds,
                    out=out,
                    run=lambda plan: run_plan(plan, store, Lines(console, len(plan.trials)), jobs=jobs),
                    watch=_Lines,
                    objectives=[one.value for one in objective or ObjectiveName],
                )
                for one in detector or DETECTORS
            ]
    except KeyboardInterrupt:
        print(f"interrupted: what had ended is kept in {out} and {runs}; run again to go on", file=sys.stderr)
        raise typer.Exit(130) from None
    text = page(comparisons, " ".join(["tsadbench", *sys.argv[1:]]))
    if write is None:
        print(text, end="")
    else:
        print(write_file(write, text), file=sys.stderr)


class _Lines:
    """A line a point, on standard error."""

    def __init__(self, task: Task) -> None:
        self._n_trials = task.settings.trials

    def step(self, number: int, done: int, of: int) -> None:
        """Say nothing: a line a point is enough."""

    def ended(self, number: int, result: StudyResult) -> None:
        """Print the point's line."""
        print(f"[{result.n_counted}/{self._n_trials}] {_line(number, result)}", file=sys.stderr)


def _line(number: int, result: StudyResult) -> str:
    from tsadbench.utils.parameters import format_value

    best = result.best
    point = next((one for one in result.points if one.number == number), None)
    if point is None:
        return f"trial {number}"
    gave = point.state if point.value is None else f"{point.value:.4g}"
    reason = f" ({' '.join(point.reason.split())})" if point.reason else ""
    where = ", ".join(f"{name}={format_value(value)}" for name, value in point.parameters.items())
    leader = "" if best is None else f"; best {best.value:.4g} (trial {best.number})"
    return f"trial {number}: {gave}{reason}{leader}: {where}"


@contextmanager
def _watching(task: Task) -> Iterator[StudyObserver]:
    """Show a search while the block runs: a bar on a terminal, a line a point elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(task)
        return
    columns = (
        TextColumn("points"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        yield _Bar(bars, task)


class _Bar:
    """A bar over points; beside it, how far the points in hand are, and the best value."""

    def __init__(self, bars: Progress, task: Task) -> None:
        self._bars = bars
        self._bar = bars.add_task("points", total=task.settings.trials, note="")
        self._running: dict[int, str] = {}
        self._lock = threading.Lock()  # points report from several threads
        self._best = ""

    def step(self, number: int, done: int, of: int) -> None:
        """Show how far a point is."""
        with self._lock:
            self._running[number] = f"trial {number}: {done}/{of}"
            self._tell()

    def ended(self, number: int, result: StudyResult) -> None:
        """Count a point, and show the best one."""
        with self._lock:
            self._running.pop(number, None)
            if result.best is not None:
                self._best = f"best {result.best.value:.4g}"
            self._bars.update(self._bar, completed=result.n_counted)
            self._tell()

    def _tell(self) -> None:
        self._bars.update(self._bar, note="  ".join([self._best, *self._running.values()]).strip())
