"""``tsadbench submit``: rows of one's own for the public leaderboards."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tsadbench.cli.options import DataOption, RunsArgument


def submit(
    runs: RunsArgument,
    name: Annotated[str, typer.Option(help="Name of the submission: small letters, digits, hyphens.")],
    detector: Annotated[
        list[str] | None,
        typer.Option("--detector", "-d", metavar="LABEL", help="Detector to submit; may be repeated (default: all)."),
    ] = None,
    pretrained_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A data set or corpus that the detectors were trained on before their fit, besides what their traits "
            "say; may be repeated.",
        ),
    ] = None,
    closed: Annotated[
        bool, typer.Option("--closed", help="Leave the detectors' code out: their rows stay below the trust rerun.")
    ] = False,
    signed_by: Annotated[
        str, typer.Option(metavar="YOU", help="Sign the statement with this name and today's date.")
    ] = "",
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder in which the submission's folder is made.")] = Path(
        "leaderboards/submissions"
    ),
    data: DataOption = None,
) -> None:
    """Write trials of a run store as a submission: scores, records, reports of checks, code, and a statement to sign.

    Scores are rounded to float32 and judged again. Command lines and paths of this machine are left out. Nothing is
    sent anywhere: look at the folder, sign statement.txt, and open a pull request with it.
    """
    from tsadbench.cli.live import progress_bar
    from tsadbench.datasets.by_name import loader
    from tsadbench.execution.run_store import Store
    from tsadbench.results.submissions.form import STATEMENT
    from tsadbench.results.submissions.making import submit as write_submission

    store = Store.open(runs)
    with progress_bar("Packing"):
        written = write_submission(
            store,
            name,
            out,
            loader([], data),
            detectors=detector or (),
            pretrained_on=pretrained_on or (),
            closed=closed,
            signed_by=signed_by,
        )
    for file in written:
        typer.echo(file)
    if not signed_by:
        typer.echo(
            f"Read {out / name / STATEMENT}, and sign it: your name and the day behind Name: and Date:", err=True
        )
    typer.echo(f"Next:  tsadbench verify {out / name}", err=True)
