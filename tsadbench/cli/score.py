"""``tsadbench score``: scores, flags and contributions of new rows, from files or as they arrive."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tsadbench.cli.options import MemoryOption
from tsadbench.errors import UsageError
from tsadbench.utils.text import printable

if TYPE_CHECKING:
    import pandas as pd

    from tsadbench.base.file_format import FileFormat
    from tsadbench.serving import Model

STANDARD_INPUT = "-"


def score(
    model: Annotated[Path, typer.Argument(help="A file that `tsadbench fit` has written.")],
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="CSV or Parquet files, or arrays (.mat, .rda, .pkl); - is standard input, row by row.",
        ),
    ],
    contributions: Annotated[
        bool, typer.Option("--contributions", help="Add a column for each sensor's contribution to the score.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="File to write instead of standard output: Parquet if it ends in .parquet.")
    ] = None,
    separator: Annotated[
        str | None, typer.Option(help="The character between two cells, if it differs from the training files'.")
    ] = None,
    decimal: Annotated[str | None, typer.Option(help="The decimal mark, if it differs.")] = None,
    time: Annotated[
        str | None, typer.Option(help="The column that contains the times, if it differs; it must be there.")
    ] = None,
    time_format: Annotated[
        str | None, typer.Option(help="ISO8601, seconds, milliseconds or a format of strptime, if it differs.")
    ] = None,
    memory: MemoryOption = None,
    device: Annotated[str | None, typer.Option(help="Device that a network computes on, if it differs.")] = None,
    detector: Annotated[
        str | None,
        typer.Option(help="The model's detector, if it is not registered under a name: path/file.py:Class, ..."),
    ] = None,
    allow_changed_code: Annotated[
        bool, typer.Option("--allow-changed-code", help="Continue if the detector's code has changed since the fit.")
    ] = False,
) -> None:
    """Score new rows with a fitted detector: one line per row, flagged if the score exceeds the threshold.

    A row with an empty or broken cell has no score, but a reason; the others are scored. The detector runs in a box;
    exit code 1 if it fails. To watch a file that grows: tail -n +1 -F FILE | tsadbench score MODEL -
    """
    from tsadbench.sandbox import BoxFailure
    from tsadbench.serving.model import boxed_model

    sources = [0 if file == STANDARD_INPUT else Path(file) for file in files]
    _require_not_read(1 if out is None else out, [model, *sources])
    try:
        with boxed_model(
            model, detector=detector, device=device, allow_changed_code=allow_changed_code, memory_mib=memory
        ) as loaded:
            for text in loaded.notes:
                _note(f"{model}: {text}")
            form = _layout(loaded, separator, decimal, time, time_format)
            answers = (one for source in sources for one in _answers(loaded, source, form, contributions, len(files)))
            # Only rows that arrive are written before all are scored: an error leaves no partial table.
            _write(answers if files == [STANDARD_INPUT] else list(answers), out)
    except BoxFailure as failure:
        typer.echo(f"tsadbench: {model}: {failure.status}: {failure.reason}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:  # the ordinary end of a stream: nothing to report
        raise typer.Exit(130) from None


def _layout(
    model: Model, separator: str | None, decimal: str | None, time: str | None, time_format: str | None
) -> FileFormat:
    """Return how new files are written: as the training files, except for what the options say."""
    layout = model.card.layout
    if time in model.card.sensors:
        raise UsageError(f"--time {time}: that is one of the model's sensors")
    if time_format is not None and not (layout.time or time):
        raise UsageError("--time-format: the model's files have no column of times; name the new files' with --time")
    own: dict[str, Any] = {
        "separator": "\t" if separator == "\\t" else separator,
        "decimal": decimal,
        "time": None if time is None else (time,),
        "time_formats": None if time_format is None else (time_format,),
    }
    return replace(layout, **{name: value for name, value in own.items() if value is not None})


def _answers(
    model: Model, source: Path | int, form: FileFormat, contributions: bool, n_files: int
) -> Iterator[pd.DataFrame]:
    """Yield the answers to one input; then say how many rows were flagged, and how many have no score."""
    from tsadbench.serving import score_rows

    name = str(source) if isinstance(source, Path) else "standard input"
    n_rows = n_flagged = n_unscored = 0
    reason = ""
    try:
        for answers in score_rows(
            model, source, form, contributions=contributions, note=lambda text: _note(f"{name}: {text}")
        ):
            reasons = answers["reason"]
            n_rows, n_flagged = n_rows + len(answers), n_flagged + int(answers["flagged"].sum())
            n_unscored += int((reasons != "").sum())
            reason = reason or next(filter(None, reasons), "")
            if n_files > 1:
                answers.insert(0, "file", name)
            yield answers
    finally:
        unscored = f", {n_unscored:,} without a score ({printable(reason)})" if n_unscored else ""
        if n_rows:
            typer.echo(f"{name}: {n_rows:,} rows, {n_flagged:,} flagged{unscored}", err=True)


def _write(tables: Iterable[pd.DataFrame], out: Path | None) -> None:
    """Write answers as they come; a Parquet file is written whole."""
    import io

    import pandas as pd

    from tsadbench.utils.extras import extra
    from tsadbench.utils.files import open_text, write_file

    if out is not None and out.suffix == ".parquet":
        buffer = io.BytesIO()
        with extra("writing Parquet files", "parquet"):
            pd.concat(tables, ignore_index=True).to_parquet(buffer, index=False)
        write_file(out, buffer.getvalue())
        return
    with nullcontext(sys.stdout) if out is None else open_text(out) as stream:
        columns: list[str] = []
        for table in tables:
            if columns and columns != [*table]:
                raise UsageError("some files have a column of times, some have none; score them one by one")
            table["flagged"] = table["flagged"].astype(int)
            if "time" in table:
                table["time"] = table["time"].map(pd.Timestamp.isoformat, na_action="ignore")
            table.to_csv(stream, index=False, header=not columns, lineterminator="\n")
            stream.flush()
            columns = [*table]


def _note(text: str) -> None:
    typer.echo(f"note: {printable(text)}", err=True)


def _require_not_read(written: Path | int, read: Iterable[Path | int]) -> None:
    """Raise a UsageError if a file to be written is also read, before it is opened and its content is lost.

    Files are paths or descriptors of open files; links do not matter.
    """
    for one in read:
        with suppress(OSError):  # reported where it is opened
            if os.path.isfile(one) and os.path.samestat(os.stat(one), os.stat(written)):
                name = written if isinstance(written, Path) else "standard output"
                raise UsageError(f"{name}: this file is also an input; choose another output")
