"""Score files, or rows as they arrive, with a fitted model."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal, TextIO, TypeAlias

import typer

from tsadbench.base.file_format import FileFormat
from tsadbench.cli.actions.skipped import Skipped
from tsadbench.datasets.reading.arrays import ARRAYS
from tsadbench.datasets.reading.parquet import PARQUET
from tsadbench.errors import UsageError
from tsadbench.serving import Model
from tsadbench.serving.follow import follow_file, follow_input
from tsadbench.serving.scoring import score_file as score_whole_file
from tsadbench.serving.scoring import score_stream as score_as_they_arrive
from tsadbench.serving.stream import Stream
from tsadbench.serving.table import CsvTable, parquet_bytes
from tsadbench.utils.atomic_files import open_text, write_file
from tsadbench.utils.text import printable

STANDARD_INPUT = "-"
Format: TypeAlias = Literal["csv", "parquet"]


def checked_format(
    files: Sequence[str], *, streamed: bool, idle: float | None, out: Path | None, form: Format | None
) -> Format:
    """Return the format of the answers.

    Raises
    ------
    UsageError
        If options contradict each other.
    """
    chosen = form or ("parquet" if out is not None and out.suffix == ".parquet" else "csv")
    if streamed and len(files) != 1:
        raise UsageError(f"--follow and - take one input, found {len(files)}: {', '.join(files)}")
    if streamed and Path(files[0]).suffix.lower() in (*PARQUET, *ARRAYS):
        raise UsageError(f"{files[0]}: only lines of text can be followed; score the whole file, without --follow")
    if streamed and chosen == "parquet":
        raise UsageError("a Parquet file can only be written whole: use csv for rows that are scored as they arrive")
    if chosen == "parquet" and out is None:
        raise UsageError("--format parquet needs --out FILE: it is not text for standard output")
    if idle is not None and (not streamed or not idle > 0):
        raise UsageError(f"--idle is for --follow and -, in seconds above 0, found {idle}")
    return chosen


def new_layout(
    model: Model, separator: str | None, decimal: str | None, time: str | None, time_format: str | None
) -> FileFormat:
    """Return how new files are written: as the training files, except for what the options say."""
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
    if time_format is None:
        return layout
    if not layout.time:
        raise UsageError("--time-format: the model's files have no column of times; name the new files' with --time")
    return replace(layout, time_formats=(time_format,))


def score_stream(
    model: Model,
    file: str,
    idle: float | None,
    layout: FileFormat,
    out: Path | None,
    *,
    contributions: bool,
    skipped: Skipped | None,
    needs_time: bool,
) -> None:
    """Score the rows of standard input, or those that are appended to a file, as they arrive."""
    from_input = file == STANDARD_INPUT
    name = "standard input" if from_input else file
    pieces = follow_input(sys.stdin.fileno(), idle) if from_input else follow_file(Path(file), idle)
    answers = score_as_they_arrive(
        model, pieces, name, layout, contributions=contributions, on_skip=skipped, needs_time=needs_time
    )
    if Stream(model, contributions=contributions).keeps_all:
        warning = "its scores depend on all earlier rows: every row is kept, and each answer takes longer"
        note([warning], model.card.label)
    with _output(out) as stream:
        table = CsvTable(stream, model.card.sensors, contributions=contributions)
        for scored in answers:
            note(scored.notes, name)
            table.add(scored)
            stream.flush()


def score_files(
    model: Model,
    files: Sequence[str],
    layout: FileFormat,
    out: Path | None,
    form: Format,
    *,
    contributions: bool,
    skipped: Skipped | None,
    needs_time: bool,
) -> None:
    """Score whole files."""
    # All are read and scored before anything is written, so that an error leaves no partial table.
    score = partial(score_whole_file, model, contributions=contributions, on_skip=skipped, needs_time=needs_time)
    tables = [(file, score(Path(file), layout)) for file in files]
    for file, scored in tables:
        note(scored.notes, file)
    if form == "parquet" and out is not None:
        write_file(out, parquet_bytes(tables, model.card.sensors))
        return
    with _output(out) as stream:
        table = CsvTable(stream, model.card.sensors, contributions=contributions, named=len(files) > 1)
        for file, scored in tables:
            table.add(scored, file)


def note(notes: Iterable[str], about: object) -> None:
    """Print notes on standard error."""
    for text in notes:
        typer.echo(f"note: {about}: {printable(text)}", err=True)


@contextlib.contextmanager
def _output(out: Path | None) -> Iterator[TextIO]:
    """Give the stream that answers are written to."""
    if out is None:
        yield sys.stdout
        return
    with open_text(out) as stream:
        yield stream
