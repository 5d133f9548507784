"""Shared arguments and options of commands, and shell completion of names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from tsadbench import api

_Offers = list[tuple[str, str]]


def _registered(*kinds: api.Kind) -> Callable[[str], _Offers]:
    """Return a completion callback for the registered names of these kinds; the shell completes paths."""

    def offers(incomplete: str) -> _Offers:
        found = [(one.name, f"{one.value} ({api.package_of(one)})") for kind in kinds for one in api.entries(kind)]
        return [offer for offer in found if offer[0].startswith(incomplete)]

    return offers


_detectors, protocols, datasets = _registered("detectors"), _registered("protocols"), _registered("datasets")
names = _registered("detectors", "protocols", "datasets")


def suites(incomplete: str) -> _Offers:
    """Complete the names of suites, each with its data sets."""
    return [(name, ", ".join(suite.datasets)) for name, suite in api.SUITES.items() if name.startswith(incomplete)]


_DETECTOR = "NAME, NAME[key=value,...], package.module:Class or path/file.py:Class"
_PROTOCOL, _SPLIT = "Protocol; required if there are several.", "Split, for instance overall"
_DATASET = "Data set: its name, or the path of its card"

# What is run
DetectorArgument: TypeAlias = Annotated[str, typer.Argument(help=f"{_DETECTOR}.", autocompletion=_detectors)]
_NAMED = typer.Option("--detector", "-d", help=f"{_DETECTOR}.", autocompletion=_detectors)
Detector: TypeAlias = Annotated[str | None, _NAMED]
RequiredDetector: TypeAlias = Annotated[str, _NAMED]
Detectors: TypeAlias = Annotated[
    list[str] | None, typer.Option("--detector", "-d", help=f"{_DETECTOR}; repeatable.", autocompletion=_detectors)
]
Set: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--set", help="Parameter of a detector or protocol, NAME.key=value; repeatable."),
]
Jobs: TypeAlias = Annotated[
    int | None, typer.Option(min=1, help="Trials at a time, fewer if memory is short.", show_default="cores")
]
Timeout: TypeAlias = Annotated[float | None, typer.Option(min=0, help="Time limit per trial, in seconds.")]
Memory: TypeAlias = Annotated[
    float | None, typer.Option("--memory", min=0, help="Memory limit of a trial's process and its children, in MiB.")
]
RequireSeal: TypeAlias = Annotated[
    bool | None, typer.Option("--require-seal", help="Only run detectors in boxes sealed by the kernel.")
]

# Which data
Dataset: TypeAlias = Annotated[str | None, typer.Option(help=f"{_DATASET}.", autocompletion=datasets)]
Datasets: TypeAlias = Annotated[
    list[str] | None, typer.Option(help=f"{_DATASET}; repeatable (default: all).", autocompletion=datasets)
]
Data: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder of the data sets' folders (default: TSADBENCH_DATA, else the cache)."),
]
Protocol: TypeAlias = Annotated[str | None, typer.Option(help=_PROTOCOL, autocompletion=protocols)]
Protocols: TypeAlias = Annotated[list[str] | None, typer.Option(help="Protocol; repeatable.", autocompletion=protocols)]
Split: TypeAlias = Annotated[str | None, typer.Option(help=f"{_SPLIT}.")]
Splits: TypeAlias = Annotated[list[str] | None, typer.Option("--split", help=f"{_SPLIT}; repeatable.")]

# What is read from run stores
Runs: TypeAlias = Annotated[Path, typer.Argument(metavar="RUNS", help="A run store, written by `tsadbench run`.")]
Stores: TypeAlias = Annotated[list[Path], typer.Argument(metavar="RUNS...", help="Run stores.")]
Labels: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--detector", "-d", metavar="LABEL", help="Label of a detector in tables; repeatable (default: all)."),
]
Trusted: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--detector", "-d", metavar="LABEL", help="Also load this detector from a file or module; repeatable."
    ),
]

# What is written
Figure: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Also write a figure: .svg, .png or .pdf.")
]
_FORMAT = typer.Option("--format", help="Format of standard output.")
TableForm: TypeAlias = Annotated[Literal["table", "json"], _FORMAT]
PageForm: TypeAlias = Annotated[Literal["table", "json", "markdown"], _FORMAT]
ResultForm: TypeAlias = Annotated[Literal["table", "json", "csv", "markdown", "latex"], _FORMAT]
