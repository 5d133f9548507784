"""``tsadbench score``: scores, flags and contributions of new rows, from files or as they arrive."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from tsadbench.cli.options import ThreadsOption


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

    Rows that the detector cannot score are not flagged. With --on-error skip, malformed lines are reported on standard
    error and skipped; the exit code is 1 if there were any.
    """
    from tsadbench.cli.actions.hints import hints_of_new_files
    from tsadbench.cli.actions.score import STANDARD_INPUT, checked_format, new_layout, note, score_files, score_stream
    from tsadbench.cli.actions.skipped import Skipped
    from tsadbench.serving import load_model
    from tsadbench.utils.atomic_files import require_not_read
    from tsadbench.utils.threads import limit_threads

    streamed = follow or STANDARD_INPUT in files
    form = checked_format(files, streamed=streamed, idle=idle, out=out, form=form)
    require_not_read(
        1 if out is None else out, [model, *(0 if file == STANDARD_INPUT else Path(file) for file in files)]
    )
    loaded = load_model(model, detector=detector, device=device, allow_changed_code=allow_changed_code)
    limit_threads(threads)
    note(loaded.notes, model)
    layout = new_layout(loaded, separator, decimal, time, time_format)
    skipped = Skipped(loaded.detector.declared_traits()) if on_error == "skip" else None
    answer = (
        partial(score_stream, file=files[0], idle=idle) if streamed else partial(score_files, files=files, form=form)
    )
    try:
        with hints_of_new_files():
            answer(
                loaded,
                layout=layout,
                out=out,
                contributions=contributions,
                skipped=skipped,
                needs_time=time is not None,
            )
    except KeyboardInterrupt:  # the ordinary end of --follow: nothing to report
        raise typer.Exit(130) from None
    finally:
        if skipped is not None:
            skipped.report()
    if skipped is not None and skipped.count:
        raise typer.Exit(1)
