"""The options that put diagnostics beside a leaderboard's rows: `leaderboard` and `run` take the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from tsadbench.base.dataset import LabelledDataset
    from tsadbench.execution.run_store import Store
    from tsadbench.leaderboard.board import Leaderboard

DiagnosticsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--diagnostics",
        metavar="GROUP",
        help="Diagnostics beside the metrics: operational (events found, delay, false alarms, speed), vus, affiliation "
        "or all. Repeat for several, or part them by commas.",
    ),
]
VusBufferOption: TypeAlias = Annotated[
    int | None,
    typer.Option("--vus-buffer", metavar="ROWS", help="Largest buffer of VUS-PR around an event; 100 if not given."),
]


def check_options(diagnostics: Sequence[str] | None, vus_buffer: int | None) -> None:
    """Raise a UsageError for wrong options: before the work, not after it."""
    from tsadbench.analysis.diagnostics.vus import check_buffer
    from tsadbench.errors import UsageError
    from tsadbench.leaderboard.columns import groups_of

    groups = groups_of(diagnostics or ())
    if vus_buffer is not None:
        check_buffer(vus_buffer)
        if "vus" not in groups:
            raise UsageError("--vus-buffer is of use with --diagnostics vus (or all) only; add it, or leave it out")


def add_diagnostics(
    board: Leaderboard,
    store: Store,
    load: Callable[[str], LabelledDataset],
    diagnostics: Sequence[str] | None,
    vus_buffer: int | None,
) -> Leaderboard:
    """Return the leaderboard with the diagnostics that the options ask for; as it is where they ask for none."""
    if not diagnostics:
        return board
    from tsadbench.analysis.diagnostics import VUS_BUFFER, groups_of, with_diagnostics
    from tsadbench.cli.data import progress_bar

    groups = groups_of(diagnostics)
    buffer = VUS_BUFFER if vus_buffer is None else vus_buffer
    with progress_bar("Diagnostics"):
        return with_diagnostics(board, store, load, groups, vus_buffer=buffer)
