"""``tsadbench score``: scores, flags and contributions of new rows, from files or as they come."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

if TYPE_CHECKING:
    from tsadbench.base.file_format import FileFormat
    from tsadbench.serving import Model
    from tsadbench.serving.follow import Piece

_INPUT = "-"


class Format(StrEnum):
    """The formats of the answers."""

    csv = "csv"
    parquet = "parquet"


def score(
    model: Annotated[Path, typer.Argument(help="What `tsadbench fit` has written.")],
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="CSV or Parquet files; - is standard input, row by row.")
    ],
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with the rows that are appended to the file (CSV).")
    ] = False,
    idle: Annotated[
        float | None, typer.Option(help="With --follow or -: end after so many seconds without a new row.")
    ] = None,
    contributions: Annotated[
        bool, typer.Option("--contributions", help="A column for each sensor's contribution to the score.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="File to write in the place of standard output.")] = None,
    form: Annotated[
        Format | None, typer.Option("--format", help="Format of the answers; by the ending of --out, else csv.")
    ] = None,
    separator: Annotated[
        str | None, typer.Option(help="The character between two cells, where it is not that of the training files.")
    ] = None,
    decimal: Annotated[str | None, typer.Option(help="The decimal mark, where it is another one.")] = None,
    time: Annotated[str | None, typer.Option(help="The column with the times, where it is another one.")] = None,
    time_format: Annotated[
        str | None,
        typer.Option(help="ISO8601, seconds, milliseconds or a format of strptime, where it is another one."),
    ] = None,
    threads: Annotated[int, typer.Option(help="Threads of the detector's libraries.")] = 1,
    device: Annotated[str | None, typer.Option(help="Where a network computes, where it is another device.")] = None,
    detector: Annotated[
        str | None,
        typer.Option(help="The model's detector, where it is registered under no name: path/file.py:Class, ..."),
    ] = None,
    allow_changed_code: Annotated[
        bool, typer.Option("--allow-changed-code", help="Go on where the detector's code has changed since the fit.")
    ] = False,
) -> None:
    """Score new rows with a fitted detector: a line for each row, flagged where the score exceeds the threshold.

    Rows without a score (too early in a recording) have none and are not flagged.
    """
    from tsadbench.serving import load_model
    from tsadbench.utils.threads import limit_threads

    streamed = follow or _INPUT in files
    form = _checked(files, streamed=streamed, idle=idle, out=out, form=form)
    loaded = load_model(model, detector=detector, device=device, allow_changed_code=allow_changed_code)
    limit_threads(threads)
    _note(loaded.notes, model)
    layout = _layout(loaded, separator, decimal, time, time_format)
    try:
        if streamed:
            _follow(loaded, files[0], idle, layout, out, contributions=contributions)
        else:
            _write(loaded, files, layout, out, form, contributions=contributions)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except BrokenPipeError:  # whoever read has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _checked(
    files: Sequence[str], *, streamed: bool, idle: float | None, out: Path | None, form: Format | None
) -> Format:
    from tsadbench.errors import UsageError

    chosen = form or (Format.parquet if out is not None and out.suffix == ".parquet" else Format.csv)
    if streamed and len(files) != 1:
        raise UsageError(f"--follow and - take one input, found {len(files)}: {', '.join(files)}")
    if streamed and chosen is Format.parquet:
        raise UsageError("a Parquet file is written whole: rows that are answered as they come are written as csv")
    if chosen is Format.parquet and out is None:
        raise UsageError("--format parquet needs --out FILE: it is no text for standard output")
    if idle is not None and (not streamed or idle <= 0):
        raise UsageError(f"--idle is for --follow and -, in seconds above 0, found {idle}")
    return chosen


def _layout(
    model: Model, separator: str | None, decimal: str | None, time: str | None, time_format: str | None
) -> FileFormat:
    """Return how new files are written: as the training files, but for what the user says."""
    from dataclasses import replace

    from tsadbench.errors import UsageError

    layout = model.card.layout
    if separator is not None:
        separator = "\t" if separator == "\\t" else separator
        if len(separator) != 1:
            raise UsageError(f"--separator takes one character, found {separator!r}")
        layout = replace(layout, separator=separator)
    if decimal is not None:
        if decimal not in (".", ","):
            raise UsageError(f"--decimal takes . or , and found {decimal!r}")
        layout = replace(layout, decimal=decimal)
    if time is not None:
        if time in model.card.sensors:
            raise UsageError(f"--time {time}: that is one of the model's sensors")
        layout = replace(layout, time=(time,), period=None)
    return layout if time_format is None else replace(layout, time_formats=(time_format,))


def _follow(
    model: Model, file: str, idle: float | None, layout: FileFormat, out: Path | None, *, contributions: bool
) -> None:
    from tsadbench.serving.scoring import answer_stream
    from tsadbench.serving.stream import Stream
    from tsadbench.serving.table import CsvTable

    if Stream(model, contributions=contributions).keeps_all:
        note = "its scores depend on all rows before a row: every row is kept, and each answer takes longer"
        _note([note], model.card.label)
    name = "standard input" if file == _INPUT else file
    with _output(out) as stream:
        table = CsvTable(stream, model.card.sensors, contributions=contributions)
        for answered in answer_stream(model, _pieces(file, idle), name, layout, contributions=contributions):
            _note(answered.notes, name)
            table.add(answered)
            stream.flush()


def _pieces(file: str, idle: float | None) -> Iterable[Piece]:
    from tsadbench.serving.follow import follow_file, follow_input

    return follow_input(sys.stdin.fileno(), idle) if file == _INPUT else follow_file(Path(file), idle)


def _write(
    model: Model, files: Sequence[str], layout: FileFormat, out: Path | None, form: Format, *, contributions: bool
) -> None:
    from tsadbench.serving.scoring import answer_file
    from tsadbench.serving.table import CsvTable, parquet_bytes
    from tsadbench.utils.atomic_files import write_file

    # All are read and scored before anything is written: a wrong file leaves no half of a table.
    answers = [(file, answer_file(model, Path(file), layout, contributions=contributions)) for file in files]
    for file, answered in answers:
        _note(answered.notes, file)
    if form is Format.parquet and out is not None:
        write_file(out, parquet_bytes(answers, model.card.sensors))
        return
    with _output(out) as stream:
        table = CsvTable(stream, model.card.sensors, contributions=contributions, named=len(files) > 1)
        for file, answered in answers:
            table.add(answered, file)


@contextlib.contextmanager
def _output(out: Path | None) -> Iterator[TextIO]:
    """Give the stream that answers go to."""
    from tsadbench.utils.atomic_files import open_text

    if out is None:
        yield sys.stdout
        return
    with open_text(out) as stream:
        yield stream


def _note(notes: Iterable[str], about: object) -> None:
    for note in notes:
        print(f"note: {about}: {note}", file=sys.stderr)
