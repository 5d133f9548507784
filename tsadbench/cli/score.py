"""``tsadbench score``: scores, flags and contributions of new rows, from files or as they arrive."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tsadbench.cli.options import MemoryOption
from tsadbench.errors import UsageError
from tsadbench.utils.text import counted, printable

if TYPE_CHECKING:
    import pandas as pd

    from tsadbench.base.file_format import FileFormat
    from tsadbench.serving import Model

STANDARD_INPUT = "-"
_CONTRIBUTION = "contribution_"
_MOST_ALARMS = 20  # of one file


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
    fail_on_alarm: Annotated[
        bool, typer.Option("--fail-on-alarm", help="Exit code 1 if a row is flagged, as in a scheduled job.")
    ] = False,
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

    A row with an empty or broken cell has no score, but a reason; the others are scored. Standard error lists a file's
    alarms, which are runs of flagged rows: when, how high, and which sensor contributed most, if the detector tells.
    The detector runs in a box; exit code 1 if it fails. To watch a file: tail -n +1 -F FILE | tsadbench score MODEL -
    """
    from tsadbench.sandbox import BoxFailure
    from tsadbench.serving.model import boxed_model

    flagged = Counter[str]()
    sources = [0 if file == STANDARD_INPUT else Path(file) for file in files]
    _require_not_read(1 if out is None else out, [model, *sources])
    try:
        with boxed_model(
            model, detector=detector, device=device, allow_changed_code=allow_changed_code, memory_mib=memory
        ) as loaded:
            for text in loaded.notes:
                _note(f"{model}: {text}")
            form = _layout(loaded, separator, decimal, time, time_format)
            answers = (
                one for source in sources for one in _answers(loaded, source, form, contributions, len(files), flagged)
            )
            # Only rows that arrive are written before all are scored: an error leaves no partial table.
            _write(answers if files == [STANDARD_INPUT] else list(answers), out)
    except BoxFailure as failure:
        typer.echo(f"tsadbench: {model}: {failure.status}: {failure.reason}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:  # the ordinary end of a stream: nothing to report
        raise typer.Exit(130) from None
    if fail_on_alarm and flagged.total():
        raise typer.Exit(1)


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
    model: Model, source: Path | int, form: FileFormat, contributions: bool, n_files: int, flagged: Counter[str]
) -> Iterator[pd.DataFrame]:
    """Yield the answers to one input; then say what was flagged and what has no score. ``flagged`` counts rows."""
    from tsadbench.serving import score_rows
    from tsadbench.serving.model import BoxedDetector

    whole, name = isinstance(source, Path), str(source) if isinstance(source, Path) else "standard input"
    detector = model.detector
    offered = whole and isinstance(detector, BoxedDetector) and detector.box.offers_contributions
    n_rows = n_unscored = 0
    reason, alarms = "", list[str]()
    try:
        for answers in score_rows(
            model, source, form, contributions=contributions or offered, note=lambda text: _note(f"{name}: {text}")
        ):
            n_rows += len(answers)
            flagged[name] += int(answers["flagged"].sum())
            n_unscored += int((answers["reason"] != "").sum())
            reason = reason or next(filter(None, answers["reason"]), "")
            alarms = _alarms(answers) if whole else []
            if not contributions:
                answers = answers.drop(columns=answers.filter(regex=f"^{_CONTRIBUTION}").columns)
            if n_files > 1:
                answers.insert(0, "file", name)
            yield answers
    finally:
        unscored = f", {n_unscored:,} without a score ({printable(reason)})" if n_unscored else ""
        if n_rows:
            found = f", {counted(len(alarms), 'alarm')}" if whole else ""
            typer.echo(f"{name}: {n_rows:,} rows, {flagged[name]:,} flagged{found}{unscored}", err=True)
        for line in alarms[:_MOST_ALARMS]:
            typer.echo(f"  {line}", err=True)
        if len(alarms) > _MOST_ALARMS:
            typer.echo(f"  ... and {len(alarms) - _MOST_ALARMS} more", err=True)


def _alarms(answers: pd.DataFrame) -> list[str]:
    """Return a line for each run of flagged rows: when, how high, and which sensor contributed most."""
    flagged = answers["flagged"].astype(bool)
    parts = answers.loc[:, answers.columns.str.startswith(_CONTRIBUTION)]
    lines = []
    for _, run in answers[flagged].groupby((flagged != flagged.shift()).cumsum()[flagged]):
        when = run["time"].map("{:%Y-%m-%d %H:%M:%S}".format) if "time" in run else "row " + run["row"].astype(str)
        line = f"{when.iloc[0]} to {when.iloc[-1]}: {counted(len(run), 'row')}, score up to {run['score'].max():.4g}"
        if len(parts.columns):
            shares = parts.loc[run.index].abs().sum()
            name, share = str(shares.idxmax()).removeprefix(_CONTRIBUTION), shares.max() / (shares.sum() or 1.0)
            line += f", {printable(name)} {share:.0%}"
        lines.append(line)
    return lines


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
