"""``tsadbench data``: lists, fetches and audits data sets; drafts and validates cards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from tsadbench import api
from tsadbench.cli import options, output
from tsadbench.errors import DataError, UsageError

app = typer.Typer(help="List, fetch and audit data sets; write and validate cards for your own.", no_args_is_help=True)

_DECIDE = "# Decide: "  # prefix of a card's lines that the user must decide


@app.command()
def fetch(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME...]", help="Names or suites (default: skab).", autocompletion=options.datasets),
    ] = None,
    data: options.Data = None,
) -> None:
    """Download the files that are missing or differ from the published ones, and check all of them.

    An interrupted download continues where it stopped. Files that differ are replaced.
    """
    failures: list[str] = []
    suites = {key: [one for one in suite.datasets if one in api.published()] for key, suite in api.SUITES.items()}
    for name in dict.fromkeys(one for given in names or ["skab"] for one in suites.get(given, [given])):
        try:
            with api.progress_bar(f"Fetching {name}"):
                folder, count, n_new = api.fetch(name, data)
            typer.echo(f"{name}: {count} files as published in {folder} ({n_new} downloaded)")
        except DataError as error:
            failures.append(f"{name}: {error}")
    if failures:
        raise DataError("\n".join(failures))


@app.command("list")
def list_all(data: options.Data = None, form: options.TableForm = "table") -> None:
    """List the data sets: licence, size of the files, and where they are or can be downloaded."""
    datasets = list(api.listed(data))
    if form == "json":
        output.show_json({"schema": 1, "datasets": datasets})
        return
    names = {"name": "name", "here": "here", "files": "files", "bytes": "MB", "licence": "licence", "where": "where"}
    rows = [{title: one[name] for name, title in names.items()} for one in datasets]
    output.show_table(
        "Data sets", [{**one, "MB": one["MB"] and one["MB"] / 1e6} for one in rows], {"MB": 1, "files": 0}
    )


@app.command()
def new(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder with CSV, Parquet or array files.")],
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing card.")] = False,
) -> None:
    """Draft a data set card, FOLDER/card.toml, from a folder of files.

    Files are sorted into training, test, labels and leftovers by their names and contents; the card says why. It is a
    guess, tested on the files: read it and the first rows, correct it, then validate it.
    """
    card = folder / "card.toml"
    if card.exists() and not force:
        raise UsageError(f"{card} exists already: read it, or overwrite it with --force")
    with api.progress_bar(f"Reading {folder}"):
        draft = api.draft_card(card)
    typer.echo(f"Wrote {card}: a guess from the files. How they were sorted:")
    for line in draft.text.splitlines():
        if line.startswith(("#   ", _DECIDE)):
            typer.echo(line.removeprefix("#  ").removeprefix("# "))
    if draft.problems:
        raise DataError(f"{card} was written, but does not fit its files yet; {draft.problems}")
    typer.echo(f"The first rows, as they are read:\n{draft.rows}\nRead the card, correct it, then:")
    typer.echo(f"  tsadbench data validate {quote(str(card))}\n  tsadbench {_next(card, judged=draft.judged)}")


@app.command()
def validate(card: Annotated[Path, typer.Argument(metavar="CARD", help="A data set card: a TOML file.")]) -> None:
    """Read a card and all of its files, and list everything that is wrong; exit code 2 if anything is.

    A recording in which the default protocol evaluates no row is an error, too. A card without labels or test files is
    valid: detectors can be fitted on it.
    """
    with api.progress_bar(f"Reading {card}"):
        loaded = api.card_loader(card)(api.DataOptions())
        api.require_evaluated(loaded)
    typer.echo(f"{loaded.dataset.name}: nothing is wrong")
    for line in card.read_text(encoding="utf-8").splitlines():
        if line.startswith(_DECIDE):  # until the user removes the line
            typer.echo(line.removeprefix("# "))
    for line in contents(loaded):
        typer.echo(f"  {line}")
    typer.echo(f"Next: tsadbench data audit {quote(str(card))}  or  tsadbench {_next(card, judged=not loaded.missing)}")


def _next(card: Path, *, judged: bool) -> str:
    return f"run --dataset {quote(str(card))}" if judged else f"fit --dataset {quote(str(card))} --out plant.model"


@app.command()
def audit(
    name: Annotated[
        str, typer.Argument(metavar="NAME|CARD", help="Data set, or its card.", autocompletion=options.datasets)
    ] = "skab",
    data: options.Data = None,
    runs: Annotated[
        Path | None, typer.Option(metavar="RUNS", help="A run store: also show how changed labels affect its trials.")
    ] = None,
    protocol: options.Protocol = None,
    split: options.Split = None,
    full: Annotated[bool, typer.Option("--full", help="Also print the tables behind the findings.")] = False,
    form: options.PageForm = "table",
    figure: options.Figure = None,
) -> None:
    """Audit a data set, labels included, for flaws that make results look better than they are.

    It checks repeated rows, copies, gaps, constant sensors, scaling by the test's statistics, shift between training
    and test, events that a threshold on one sensor finds, and how well a row's position, time and one-liners predict
    the label. Several entities are audited one by one, and means are shown. Labels are noisy, so the audit also shows
    how the AUPRC and the ranks of one-liners (with --runs also of stored trials) change if labels are shifted by 1, 5
    and 10 rows, and without rows that have two labels or the first 10 and 60 rows after each event.
    """
    from rich.text import Text

    with api.progress_bar(f"Reading {name}"):
        loaded = api.load_dataset(name, data)
    changes, stored = api.label_changes(loaded), None
    if runs is not None:
        with api.progress_bar("Judging"):
            trials = api.stored_trials(runs, dataset=loaded, protocol=protocol).on(split)
            about = f"trials on {loaded.dataset.name}, split {trials.split}, protocol {trials.first.rules}"
            stored = api.label_noise(about, api.fits_of(trials, loaded), changes)
    result = api.audit(loaded, changes, stored)
    if form != "table":
        typer.echo(result.text(form), nl=False)
    else:
        console = output.wide_console()
        for finding in result.findings:
            text = f"{api.MARKS[finding.grade]} {finding.about}: {finding.sentence}"
            console.print(Text(text, style={"good": "green", "note": "yellow", "fault": "red"}[finding.grade]))
        api.print_tables(console, result.tables if full else [])
    if figure is not None:
        api.draw_audit(loaded, result, figure)
        output.say([figure])


def contents(loaded: api.LabelledDataset) -> Iterator[str]:
    """Yield lines that describe a data set."""
    data, labels = loaded.dataset, loaded.labels
    n_rows = sum(recording.n_rows for recording in data.test)
    test = f"{api.counted(len(data.test), 'recording')}, {n_rows:,} rows"
    if loaded.missing:
        test = f"{test}, no {loaded.missing}: detectors can be fitted and can score files, but not be compared"
    else:
        anomalous = sum(int(rows.sum()) for rows in labels.rows.values())
        test = f"{test}, {anomalous:,} anomalous ({anomalous / n_rows:.1%})"
    sessions = list(dict.fromkeys(data.session_of[recording.id] for recording in data.test or data.train))
    role = "under test" if data.test else "to train on"
    entities = list(dict.fromkeys(data.entities.values()))
    yield f"sensors   {len(data.sensors)}: {api.first_of(data.sensors, 8)}"
    yield f"training  {api.counted(len(data.train), 'recording')}, {sum(part.n_rows for part in data.train):,} rows"
    yield f"test      {test}"
    for split, members in data.splits.items():
        yield f"split     {split}: {api.counted(len(members), 'recording')}"
    yield f"sessions  {len(sessions)} {role}: {api.first_of(sessions, 8)}"
    if len(entities) > 1:
        yield f"entities  {len(entities)}, a model for each: {api.first_of(entities, 8)}"
    yield f"prior     {'none' if data.prior is None else api.counted(len(data.prior.edges), 'edge')}"
    if labels.causes:
        yield f"causes    {api.counted(sum(map(len, labels.causes.values())), 'event')} with known causes (sensors)"
    yield f"version   {data.version}"
    for title, texts in (("licence", [data.licence]), ("citation", [data.citation]), ("note", data.notes)):
        yield from (f"{title:<9} {text}" for text in texts if text)
