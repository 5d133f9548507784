"""``tsadbench score``: scores, flags and contributions of new rows, from files or as they arrive."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TextIO, TypeAlias

import typer

from tsadbench.cli.options import MemoryOption, ThreadsOption
from tsadbench.errors import DataError, UsageError
from tsadbench.utils.text import counted, printable

if TYPE_CHECKING:
    from tsadbench.base.detector import Traits
    from tsadbench.base.file_format import FileFormat
    from tsadbench.serving import Model

STANDARD_INPUT = "-"
Format: TypeAlias = Literal["csv", "parquet"]
# So many skipped lines are shown one by one; then only how many there are, each time that they are ten times as many.
SHOWN = 20
# What the readers advise who has a card to change, and what `tsadbench score` offers in its place.
ADVICE = (
    ("; set separator", "; give it with --separator"),
    ("another decimal mark? then set decimal", "another decimal mark? then give it with --decimal"),
    ("; correct it, or set time_format", "; correct it, or give its format with --time-format"),
    ("; set encoding (often cp1252), or convert the file", "; convert the file"),
    ("; set header_line", "; correct the names"),
    ('fill it in, ignore the column, or set gaps.policy = "forward-fill" or "cut"', "fill it in"),
    (", name it in files.missing, or ignore the column", ""),
    (" (gaps.at_most)", "; fill them in, or cut the file there"),
    ("so are all others; put the column under ignore", "so are all others; the model needs some"),
    ("resample.every is ", "the model's grid is "),
    ("resample.every = ", "the model's grid of "),
    ("; set it to that or more", ""),
)


def score(
    model: Annotated[Path, typer.Argument(help="A file that `tsadbench fit` has written.")],
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="CSV or Parquet files, or arrays (.mat, .rda, .pkl); - is standard input, row by row.",
        ),
    ],
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Continue with rows that are appended to the file (CSV).")
    ] = False,
    idle: Annotated[
        float | None, typer.Option(help="With --follow or -: end after this many seconds without a new row.")
    ] = None,
    on_error: Annotated[
        Literal["stop", "skip"],
        typer.Option(
            help="At a malformed line: stop, with exit code 2; or skip it, report it, and end with exit code 1."
        ),
    ] = "stop",
    contributions: Annotated[
        bool, typer.Option("--contributions", help="Add a column for each sensor's contribution to the score.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="File to write instead of standard output.")] = None,
    form: Annotated[
        Literal["csv", "parquet"] | None,
        typer.Option("--format", help="Format of the answers (default: by the ending of --out, otherwise csv)."),
    ] = None,
    separator: Annotated[
        str | None, typer.Option(help="The character between two cells, if it differs from the training files'.")
    ] = None,
    decimal: Annotated[str | None, typer.Option(help="The decimal mark, if it differs.")] = None,
    time: Annotated[
        str | None, typer.Option(help="The column that contains the times, if it differs; it must be there.")
    ] = None,
    time_format: Annotated[
        str | None,
        typer.Option(help="ISO8601, seconds, milliseconds or a format of strptime, if it differs."),
    ] = None,
    threads: ThreadsOption = 1,
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

    Rows that the detector cannot score are not flagged; one with a missing value has the reason. With --on-error skip,
    malformed lines are reported on standard error and skipped; the exit code is 1 if there were any, or if the detector
    fails. The detector runs in a box.
    """
    from tsadbench.sandbox import BoxFailure
    from tsadbench.serving.model import boxed_model

    streamed = follow or STANDARD_INPUT in files
    form = _checked_format(files, streamed=streamed, idle=idle, out=out, form=form)
    _require_not_read(
        1 if out is None else out, [model, *(0 if file == STANDARD_INPUT else Path(file) for file in files)]
    )
    unscored: Unscored | None = None
    answer = (
        partial(_score_stream, file=files[0], idle=idle) if streamed else partial(_score_files, files=files, form=form)
    )
    try:
        box = boxed_model(
            model,
            detector=detector,
            device=device,
            allow_changed_code=allow_changed_code,
            threads=threads,
            memory_mib=memory,
        )
        with box as loaded, hints_of_new_files():
            note(loaded.notes, model)
            layout = _new_layout(loaded, separator, decimal, time, time_format)
            unscored = Unscored(loaded.detector.declared_traits(), skips=on_error == "skip")
            answer(
                loaded,
                layout=layout,
                out=out,
                contributions=contributions,
                unscored=unscored,
                needs_time=time is not None,
            )
    except BoxFailure as failure:
        typer.echo(f"tsadbench: {model}: {failure.status}: {failure.reason}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:  # the ordinary end of --follow: nothing to report
        raise typer.Exit(130) from None
    finally:
        if unscored is not None:
            unscored.report()
    if unscored is not None and unscored.n_skipped:
        raise typer.Exit(1)


def _checked_format(
    files: Sequence[str], *, streamed: bool, idle: float | None, out: Path | None, form: Format | None
) -> Format:
    """Return the format of the answers. A UsageError if options contradict each other."""
    from tsadbench.datasets.boxed import ARRAYS
    from tsadbench.datasets.formats import PARQUET

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


def _new_layout(
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


def _score_stream(
    model: Model,
    file: str,
    idle: float | None,
    layout: FileFormat,
    out: Path | None,
    *,
    contributions: bool,
    unscored: Unscored,
    needs_time: bool,
) -> None:
    """Score the rows of standard input, or those that are appended to a file, as they arrive."""
    from tsadbench.serving.follow import follow_file, follow_input
    from tsadbench.serving.scoring import score_stream
    from tsadbench.serving.stream import Stream
    from tsadbench.serving.table import CsvTable

    from_input = file == STANDARD_INPUT
    name = "standard input" if from_input else file
    pieces = follow_input(sys.stdin.fileno(), idle) if from_input else follow_file(Path(file), idle)
    answers = score_stream(
        model, pieces, name, layout, contributions=contributions, on_skip=unscored.on_skip, needs_time=needs_time
    )
    if Stream(model, contributions=contributions).keeps_all:
        warning = "its scores depend on all earlier rows: every row is kept, and each answer takes longer"
        note([warning], model.card.label)
    with _output(out) as stream:
        table = CsvTable(stream, model.card.sensors, contributions=contributions)
        for scored in answers:
            note(scored.notes, name)
            unscored.n_gaps += len(scored.reasons)
            table.add(scored)
            stream.flush()


def _score_files(
    model: Model,
    files: Sequence[str],
    layout: FileFormat,
    out: Path | None,
    form: Format,
    *,
    contributions: bool,
    unscored: Unscored,
    needs_time: bool,
) -> None:
    """Score whole files."""
    from tsadbench.serving.scoring import score_file
    from tsadbench.serving.table import CsvTable, parquet_bytes
    from tsadbench.utils.files import write_file

    # All are read and scored before anything is written, so that an error leaves no partial table.
    score = partial(score_file, model, contributions=contributions, on_skip=unscored.on_skip, needs_time=needs_time)
    tables = [(file, score(Path(file), layout)) for file in files]
    for file, scored in tables:
        note(scored.notes, file)
        unscored.n_gaps += len(scored.reasons)
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


@contextmanager
def _output(out: Path | None) -> Iterator[TextIO]:
    """Give the stream that answers are written to."""
    from tsadbench.utils.files import open_text

    if out is None:
        yield sys.stdout
        return
    with open_text(out) as stream:
        yield stream


class Unscored:
    """Counts rows without a score because a value is missing, and skipped lines, of which it reports the first.

    Parameters
    ----------
    traits
        The detector's: how far from such a row scores may differ.
    skips
        Whether malformed lines are skipped.
    """

    def __init__(self, traits: Traits, *, skips: bool) -> None:
        self.n_gaps = self.n_skipped = 0
        self.on_skip = self._skip if skips else None
        self._traits = traits
        self._next_told = 10 * SHOWN

    def _skip(self, fault: str) -> None:
        """Take a line: its place, and what is wrong with it."""
        self.n_skipped += 1
        fault = of_new_files(fault)
        if self.n_skipped <= SHOWN:
            typer.echo(f"skipped: {printable(fault)}", err=True)
        if self.n_skipped == SHOWN:
            typer.echo(f"skipped: {SHOWN} lines so far; further ones are only counted", err=True)
        if self.n_skipped == self._next_told:
            typer.echo(f"skipped: {self.n_skipped:,} lines so far, the last is {printable(fault)}", err=True)
            self._next_told *= 10

    def report(self) -> None:
        """Say how many there were, and what that means for the scores of the others."""
        from tsadbench.serving.rows import BREAK

        memory, look_ahead = self._traits.memory, self._traits.look_ahead
        after = "all rows after it" if memory is None else f"the {memory} rows after it" if memory else ""
        before = f"the {look_ahead} rows before it" if look_ahead else ""
        near = " and ".join(filter(None, (before, after)))
        meaning = f"; of each, scores of {near} may differ from those with a sound line" if near else ""
        meaning += f"; after {BREAK} in a row, a new recording begins"
        if self.n_gaps:
            typer.echo(f"{counted(self.n_gaps, 'row')} without a score: a value is missing{meaning}", err=True)
        if self.n_skipped:
            typer.echo(f"{counted(self.n_skipped, 'line')} skipped{meaning}", err=True)


def of_new_files(fault: str) -> str:
    """Return a fault of a file with the advice that helps where there is no card to change.

    Examples
    --------
    >>> of_new_files("x.csv: expected columns separated by ',', but ';' seems to be used; set separator")
    "x.csv: expected columns separated by ',', but ';' seems to be used; give it with --separator"
    """
    for of_card, of_score in ADVICE:
        fault = fault.replace(of_card, of_score)
    return fault


@contextmanager
def hints_of_new_files() -> Iterator[None]:
    """Raise a DataError from inside the block with the advice of `of_new_files`."""
    try:
        yield
    except DataError as error:
        raise DataError(of_new_files(str(error))) from error


def _require_not_read(written: Path | int, read: Iterable[Path | int]) -> None:
    """Raise a UsageError if a file to be written is also read, before it is opened and its content is lost.

    Files are paths or descriptors of open files; links do not matter.
    """
    for one in read:
        with suppress(OSError):  # reported where it is opened
            if os.path.isfile(one) and os.path.samestat(os.stat(one), os.stat(written)):
                name = written if isinstance(written, Path) else "standard output"
                raise UsageError(f"{name}: this file is also an input; choose another output")
