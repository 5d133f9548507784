"""Arguments and options that several commands take, each defined once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from tsadbench.cli import complete
from tsadbench.errors import UsageError

_DETECTOR = "NAME, NAME[key=value,...], package.module:Class or path/file.py:Class"
_RUNS = "A run store: a folder that `tsadbench run --out` has written."


# In the words of a `RunRequest`, which are the same for the command line, a configuration file and Python.
def _at_least_one(parameter: typer.CallbackParam, value: int | None) -> int | None:
    if value is not None and value < 1:
        raise UsageError(f"{parameter.name}: Input should be greater than or equal to 1, found {value}")
    return value


def _positive(parameter: typer.CallbackParam, value: float | None) -> float | None:
    if value is not None and not value > 0.0:
        raise UsageError(f"{parameter.name}: Input should be greater than 0, found {value}")
    return value


# What is run
detector_argument = typer.Argument(help=f"{_DETECTOR}.", autocompletion=complete.detectors)
detector_option = typer.Option("--detector", "-d", help=f"{_DETECTOR}.", autocompletion=complete.detectors)
detectors_option = typer.Option(
    "--detector", "-d", help=f"{_DETECTOR}; may be repeated.", autocompletion=complete.detectors
)
SettingsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--set", help="NAME.key=value: a parameter of a detector or of the protocol; may be repeated."),
]
JobsOption: TypeAlias = Annotated[
    int | None,
    typer.Option("--jobs", callback=_at_least_one, help="Trials to run at a time.", show_default="cores"),
]
ThreadsOption: TypeAlias = Annotated[
    int, typer.Option("--threads", callback=_at_least_one, help="Threads of a detector's numerical libraries.")
]
SeedsOption: TypeAlias = Annotated[
    int,
    typer.Option(
        "--seeds", callback=_at_least_one, help="Seeds 0 to N-1 for stochastic detectors; the others run once."
    ),
]
TimeoutOption: TypeAlias = Annotated[
    float | None, typer.Option("--timeout", callback=_positive, help="Time limit per trial, in seconds.")
]
MemoryOption: TypeAlias = Annotated[
    float | None,
    typer.Option("--memory", callback=_positive, help="Memory limit of a trial's process and its children, in MiB."),
]
RequireSealOption: TypeAlias = Annotated[
    bool, typer.Option("--require-seal", help="Refuse to run a detector in a box that the kernel does not seal.")
]

# Where data come from
DataOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="Folder that contains the data sets' folders, such as skab/ (default: TSADBENCH_DATA, else the cache).",
    ),
]
AllowChangedDataOption: TypeAlias = Annotated[
    bool, typer.Option("--allow-changed-data", help="Continue if files differ from the published ones.")
]
CardsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--dataset", metavar="CARD", help="Card of a data set of your own that trials were run on; may be repeated."
    ),
]

# What is read from a run store
RunsArgument: TypeAlias = Annotated[Path, typer.Argument(metavar="RUNS", help=_RUNS)]
StoredDatasetOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--dataset", help="Data set, or its card; required if the store contains several."),
]
StoredProtocolOption: TypeAlias = Annotated[
    str | None, typer.Option("--protocol", help="Protocol; required if the store contains several.")
]
SplitsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--split",
        help="Split to show, for instance overall; may be repeated (default: all).",
        autocompletion=complete.splits,
    ),
]
WideOption: TypeAlias = Annotated[
    bool, typer.Option("--wide", help="Show all columns, rows and notes, not only the most important ones.")
]
DiagnosticsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--diagnostics",
        metavar="GROUP",
        help="Diagnostics to show beside the metrics: operational (events found, delay, false alarms, speed), vus, "
        "affiliation, root-cause (whether the sensors that contributed most are to blame) or all; may be repeated, or "
        "separated by commas.",
    ),
]

# How it is shown
ColumnsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        metavar="NAME,...",
        help="Columns to show behind the names, in this order, for instance auroc,auprc,mcc (default: all).",
    ),
]
ShownOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--detector",
        "-d",
        metavar="LABEL",
        help="Detector to show, as tables label it; may be repeated (default: all). Marks stay those of all rows.",
    ),
]

# What is written
RunStoreOption: TypeAlias = Annotated[
    Path, typer.Option("--out", help="Run store that keeps every trial; trials that it has are not run again.")
]
FigureOption: TypeAlias = Annotated[
    Path | None, typer.Option("--figure", metavar="FILE", help="Also write a figure: .svg, .png or .pdf.")
]
# The formats differ from command to command: Annotated[Literal["table", "json"], format_option].
format_option = typer.Option("--format", help="Format of standard output.")


def seeds_of(text: str) -> int | list[int]:
    """Return what ``--seeds`` asks for: a number of seeds, or the seeds themselves.

    Raises
    ------
    UsageError
        If it is neither.

    Examples
    --------
    >>> seeds_of("5"), seeds_of("0,3"), seeds_of("3,")
    (5, [0, 3], [3])
    """
    try:
        if "," not in text:
            return int(text)
        return [int(seed) for seed in text.removesuffix(",").split(",")]
    except ValueError:
        raise UsageError(f"seeds: expected a number N, or seeds with commas (0,3), found {text!r}") from None
