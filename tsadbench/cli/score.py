"""``tsadbench score``: scores new rows, from files or as they arrive."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tsadbench import api
from tsadbench.cli import options, output
from tsadbench.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

_CONTRIBUTION, _VALUE = "contribution_", "value_"


def score(
    model: Annotated[Path, typer.Argument(help="A file written by `tsadbench fit`.")],
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="CSV, Parquet, .mat, .rda or .pkl files; - is standard input, by row."),
    ],
    contributions: Annotated[
        bool, typer.Option("--contributions", help="Add a column for each sensor's contribution to the score.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="File to write instead of standard output: Parquet if it ends in .parquet.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FIGURE", help="Also draw the scored file: .svg, .png or .pdf.")
    ] = None,
    fail_on_alarm: Annotated[
        bool, typer.Option("--fail-on-alarm", help="Exit code 1 if a row is flagged, as in a scheduled job.")
    ] = False,
    separator: Annotated[
        str | None, typer.Option(help="The cell separator, if it differs from the training files'.")
    ] = None,
    decimal: Annotated[str | None, typer.Option(help="The decimal mark, if it differs.")] = None,
    time: Annotated[str | None, typer.Option(help="The time column, if it differs; it must exist.")] = None,
    time_format: Annotated[
        str | None, typer.Option(help="ISO8601, seconds, milliseconds or a format of strptime, if it differs.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="Device that a network computes on, if it differs.")] = None,
    detector: options.Detector = None,
    allow_changed_code: Annotated[
        bool, typer.Option("--allow-changed-code", help="Continue if the detector's code has changed since the fit.")
    ] = False,
) -> None:
    """Score new rows with a fitted detector: one line per row, flagged if the score exceeds the threshold.

    Rows with an empty or broken cell get a reason instead of a score. Standard error lists a file's alarms, which are
    runs of flagged rows: time, highest score, and the sensor that contributed most, if known.
    The detector runs in a box; name it if it is not registered. Exit code 1 if it fails. To watch a file:
    tail -n +1 -F FILE | tsadbench score MODEL -
    """
    if api.require_figure(plot) and (len(files) > 1 or files == ["-"]):
        raise UsageError(f"it draws one file, found {' '.join(files)}", field="plot")
    sources = [0 if file == "-" else Path(file) for file in files]
    _require_not_read(1 if out is None else out, [model, *sources])
    layout = {
        "separator": "\t" if separator == "\\t" else separator,
        "decimal": decimal,
        "time": None if time is None else (time,),
        "time_formats": None if time_format is None else (time_format,),
    }
    n_flagged = 0
    with (
        output.box_failures(model),
        api.boxed_model(model, detector=detector, device=device, allow_changed_code=allow_changed_code) as loaded,
    ):
        output.say(f"note: {model}: {text}" for text in loaded.notes)
        if time in loaded.card.sensors:
            raise UsageError(f"{time} is one of the model's sensors", field="time")
        own: Any = {name: value for name, value in layout.items() if value is not None}
        form = replace(loaded.card.layout, **own)

        asked = contributions or (loaded.detector.offers_contributions() if plot else None)
        hidden = f"^{_VALUE}" if contributions else f"^({_VALUE}|{_CONTRIBUTION})"
        drawn: list[pd.DataFrame] = []

        def answers() -> Iterator[pd.DataFrame]:
            nonlocal n_flagged
            for source in sources:
                for one in _answers(loaded, source, form, asked, values=plot is not None):
                    n_flagged += int(one["flagged"].sum())
                    drawn.extend([one] if plot else [])
                    shown = one.drop(columns=one.filter(regex=hidden).columns)
                    if len(files) > 1:
                        shown.insert(0, "file", _name(source))
                    yield shown

        if files == ["-"]:
            _write(answers(), out)
        else:  # an error leaves no partial table
            tables = list(answers())
            if len({tuple(one) for one in tables}) > 1:
                raise UsageError("some files have a time column, others do not; score them one by one")
            _write(tables, out)
        if plot is not None:
            _draw(loaded, drawn, Path(files[0]).name, plot)
            output.say([plot])
    if fail_on_alarm and n_flagged:
        raise typer.Exit(1)


def _name(source: Path | int) -> str:
    return str(source) if isinstance(source, Path) else "standard input"


def _answers(
    model: api.Model, source: Path | int, form: api.FileFormat, contributions: bool | None, *, values: bool
) -> Iterator[pd.DataFrame]:
    """Yield the answers to one input; then say what was flagged and what has no score."""
    whole, name = isinstance(source, Path), _name(source)
    n_rows = n_flagged = n_unscored = 0
    reason, alarms = "", list[str]()
    try:
        for answers in api.score_rows(
            model,
            source,
            form,
            contributions=contributions if whole else bool(contributions),
            values=values,
            note=lambda text: output.say([f"note: {name}: {text}"]),
        ):
            n_rows += len(answers)
            n_flagged += int(answers["flagged"].sum())
            n_unscored += int((answers["reason"] != "").sum())
            reason = reason or next(filter(None, answers["reason"]), "")
            alarms += _alarms(answers) if whole else []
            yield answers
    finally:
        found = f", {api.counted(len(alarms), 'alarm')}" if whole else ""
        unscored = f", {n_unscored:,} without a score ({api.one_line(reason)})" if n_unscored else ""
        if n_rows:
            output.say([f"{name}: {api.counted(n_rows, 'row')}, {n_flagged:,} flagged{found}{unscored}"])
        output.say(f"  {line}" for line in output.first(alarms))


def _draw(model: api.Model, tables: list[pd.DataFrame], name: str, file: Path) -> None:
    """Draw one file's answers, which include its values."""
    import pandas as pd

    answers = pd.concat(tables, ignore_index=True)
    values = answers.filter(regex=f"^{_VALUE}").rename(columns=lambda column: column.removeprefix(_VALUE))
    if "time" in answers:
        values.index = pd.DatetimeIndex(answers["time"].ffill().bfill())
    api.plot_scores(model, values, file, answers=answers, name=name)


def _alarms(answers: pd.DataFrame) -> list[str]:
    """Return a line per run of flagged rows: time, highest score, and the sensor that contributed most."""
    flagged = answers["flagged"].astype(bool)
    parts = answers.loc[:, answers.columns.str.startswith(_CONTRIBUTION)]
    lines = []
    for _, run in answers[flagged].groupby((flagged != flagged.shift()).cumsum()[flagged]):
        when = run["time"].map("{:%Y-%m-%d %H:%M:%S}".format) if "time" in run else "row " + run["row"].astype(str)
        line = (
            f"{when.iloc[0]} to {when.iloc[-1]}: {api.counted(len(run), 'row')}, score up to {run['score'].max():.4g}"
        )
        if len(parts.columns):
            shares = parts.loc[run.index].abs().sum()
            name, share = str(shares.idxmax()).removeprefix(_CONTRIBUTION), shares.max() / (shares.sum() or 1.0)
            line += f", {name} {share:.0%}"
        lines.append(line)
    return lines


def _write(tables: Iterable[pd.DataFrame], out: Path | None) -> None:
    """Write answers as they come; a Parquet file is written whole."""
    import pandas as pd

    if out is not None and out.suffix == ".parquet":
        buffer = io.BytesIO()
        with api.extra("writing Parquet files", "parquet"):
            pd.concat(tables, ignore_index=True).to_parquet(buffer, index=False)
        api.write_file(out, buffer.getvalue())
        return
    with nullcontext(sys.stdout) if out is None else api.open_text(out) as stream:
        for number, table in enumerate(tables):
            table["flagged"] = table["flagged"].astype(int)
            if "time" in table:
                table["time"] = table["time"].map(pd.Timestamp.isoformat, na_action="ignore")
            table.to_csv(stream, index=False, header=number == 0, lineterminator="\n")
            stream.flush()


def _require_not_read(written: Path | int, read: Iterable[Path | int]) -> None:
    """Raise a UsageError if the output is also an input, before opening it would erase it.

    Files are paths or descriptors of open files; links are followed.
    """
    for one in read:
        with suppress(OSError):  # reported when it is opened
            if os.path.isfile(one) and os.path.samestat(os.stat(one), os.stat(written)):
                name = written if isinstance(written, Path) else "standard output"
                raise UsageError(f"{name}: this file is also an input; choose another output")
