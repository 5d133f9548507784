"""The calibration report on standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from rich.text import Text

from tsadbench.analysis.calibration import calibration_report
from tsadbench.base.dataset import LabelledDataset
from tsadbench.cli.live import progress_bar
from tsadbench.cli.output import BoardFormat, print_table, wide_console
from tsadbench.errors import UsageError
from tsadbench.execution.run_store import Store
from tsadbench.leaderboard.board import Leaderboard


def check_options(form: BoardFormat, others: Mapping[str, object]) -> None:
    """Raise a UsageError if the format is not the report's, or an option is given that does not concern it."""
    for option, given in others.items():
        if given:
            raise UsageError(
                f"--calibration shows the stored thresholds on normal rows, which {option} does not concern: leave "
                f"{option} out"
            )
    if form in ("latex", "html"):
        raise UsageError(f"--calibration: expected --format table, json, csv or markdown, found {form}")


def show_calibration(
    board: Leaderboard, store: Store, load: Callable[[str], LabelledDataset], form: BoardFormat
) -> None:
    """Print the calibration of a leaderboard's rows."""
    with progress_bar("Calibration"):
        report = calibration_report(board, store, load)
    if form != "table":
        texts = {"json": report.to_json, "csv": report.to_csv, "markdown": report.to_markdown}
        sys.stdout.write(texts[form]())
        for line in report.left_out if form == "csv" else ():
            sys.stderr.write(f"left out: {line}\n")
        return
    console = wide_console()
    for title, header, rows in report.tables():
        print_table(console, title, header, rows)
    console.print(Text(report.legend, style="dim"))
    for line in report.left_out:
        console.print(Text(f"left out: {line}"))
