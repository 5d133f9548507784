"""``tsadbench data``: list, fetch and audit data sets; cards for your own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tsadbench.cli import complete
from tsadbench.cli.ending import Listing
from tsadbench.cli.live import interruptible, progress_bar
from tsadbench.cli.options import DataOption, FigureOption, StoredProtocolOption, format_option
from tsadbench.cli.output import wide_console
from tsadbench.errors import DataError, DataNotFoundError, UsageError

if TYPE_CHECKING:
    from tsadbench.base.dataset import LabelledDataset
    from tsadbench.datasets.shipped import Source

app = typer.Typer(
    cls=Listing,
    help="List, fetch and audit data sets; write and validate cards for your own.",
    no_args_is_help=True,
)

_LARGEST_CARD = 2**22
_DECIDE = "# Decide: "  # begins a line of a card that asks a person to decide


@app.command()
def fetch(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME...]",
            help="Data sets, or suites of them (default: skab).",
            autocompletion=complete.data_sets_and_suites,
        ),
    ] = None,
    data: DataOption = None,
) -> None:
    """Download the files that are missing or differ from the published ones, and check all of them.

    An interrupted download continues where it stopped. Files that differ are replaced.
    """
    from tsadbench.datasets.shipped import download, place

    failures: list[str] = []
    with interruptible("the files that are complete are kept; running it again continues from them"):
        for source in _sources_of(names or ["skab"]):
            folder = place(source.name, data)
            try:
                with progress_bar(f"Fetching {source.name}"):
                    fetched = download(source, folder)
            except DataError as error:
                failures.append(f"{source.name}: {error}")
            else:
                count = len(source.sha256)
                typer.echo(f"{source.name}: {count} files as published in {folder} ({len(fetched)} downloaded)")
    if failures:
        raise DataError("\n".join(failures))


@app.command("list")
def list_all(data: DataOption = None, form: Annotated[Literal["table", "json"], format_option] = "table") -> None:
    """List the data sets: their licences, how large their files are, and where these are or can be had."""
    datasets = list(listed(data))
    if form == "json":
        typer.echo(json.dumps({"schema": 1, "datasets": datasets}, indent=2))
        return
    import pandas as pd

    from tsadbench.leaderboard.render import Table, print_tables

    frame = pd.DataFrame(datasets)
    frame["MB"] = frame["bytes"] / 1e6
    table = frame[["name", "here", "files", "MB", "licence", "where"]].astype({"files": "Int64"})
    print_tables(wide_console(), [Table("Data sets", table, decimals={"MB": 1})])


@app.command()
def new(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder with CSV, Parquet or array files.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The card to write (default: FOLDER/card.toml).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing card.")] = False,
) -> None:
    """Draft a data set card from a folder of files.

    Files are sorted into training, test, labels and leftovers, by their names and contents; the card says why. It is a
    guess, tried on the files: read it and the first rows, correct it, then validate it.
    """
    from shlex import quote

    from tsadbench.datasets.draft import draft_card
    from tsadbench.utils.files import write_file

    card = folder / "card.toml" if out is None else out
    if card.suffix != ".toml":
        raise UsageError(f"{card}: a card's name must end in .toml")
    if card.parent.resolve() != folder.resolve():
        raise UsageError(f"{card}: expected a file in {folder}; a card lies beside its files and names them from there")
    if card.exists() and not force:
        raise UsageError(f"{card} exists already: read it, or overwrite it with --force")
    with progress_bar(f"Reading {folder}"):
        draft = draft_card(folder)
    write_file(card, draft.text)
    typer.echo(f"Wrote {card}: a guess from the files. How they were sorted:")
    for line in draft.text.splitlines():
        if line.startswith(("#   ", _DECIDE)):
            typer.echo(line.removeprefix("#  ").removeprefix("# "))
    if draft.rows:
        typer.echo("\n  ".join(["The first rows, as they are read with this card:", *draft.rows]))
    if draft.problems:
        raise DataError(f"{card} is written, but does not fit its files yet; {draft.problems}")
    typer.echo("Read it, correct it, then:")
    typer.echo(f"  tsadbench data validate {quote(str(card))}")
    typer.echo(f"  tsadbench {_next(quote(str(card)), judged=draft.judged)}")


@app.command()
def validate(
    card: Annotated[Path, typer.Argument(metavar="CARD", help="A data set card: a TOML file.")],
) -> None:
    """Read a card and all of its files, and list everything that is wrong; exit code 2 if anything is.

    A recording of which the default protocol evaluates no row is wrong as well. A card without labels, or without test
    files, is right: detectors can be fitted on it.
    """
    from tsadbench.base.dataset import DataOptions
    from tsadbench.datasets.loading import card_loader
    from tsadbench.utils.files import read_text

    with progress_bar(f"Reading {card}"):
        loaded = card_loader(card)(DataOptions())
        _require_evaluated(loaded)
    typer.echo(f"{loaded.dataset.name}: nothing is wrong")
    for line in read_text(card, _LARGEST_CARD).splitlines():
        if line.startswith(_DECIDE):  # until the person who decides removes the line
            typer.echo(line.removeprefix("# "))
    for line in _contents(loaded):
        typer.echo(f"  {line}")
    typer.echo(f"Next:  tsadbench data audit {card}   or   tsadbench {_next(str(card), judged=not loaded.missing)}")


def _require_evaluated(data: LabelledDataset) -> None:
    """Raise a DataError that names the test recordings of which the default protocol evaluates no row."""
    from tsadbench.execution.plan import make_protocol
    from tsadbench.execution.request import DEFAULT_PROTOCOL

    protocol, _ = make_protocol(DEFAULT_PROTOCOL, {})
    n_rows = {recording.id: recording.n_rows for recording in data.dataset.test}
    places = (place for episode in protocol.episodes(data.dataset) for place in protocol.places(episode, n_rows))
    unused = [place.recording for place in places if len(range(n_rows[place.recording])[place.evaluated]) == 0]
    if unused:
        found = f"the protocol {DEFAULT_PROTOCOL!r} evaluates no row of recording {', '.join(map(repr, unused))}"
        raise DataError(f"data set {data.dataset.name!r}: {found}; leave it out, or join it to its neighbour")


def _next(card: str, *, judged: bool) -> str:
    return f"run --dataset {card}" if judged else f"fit --dataset {card} --out plant.model"


@app.command()
def audit(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME|CARD", help="The data set, or the path of a card.", autocompletion=complete.datasets
        ),
    ] = "skab",
    data: DataOption = None,
    runs: Annotated[
        Path | None, typer.Option(metavar="RUNS", help="A run store: also show what other labels move of its trials.")
    ] = None,
    protocol: StoredProtocolOption = None,
    split: Annotated[
        str | None, typer.Option(help="The split of RUNS to show (default: overall).", autocompletion=complete.splits)
    ] = None,
    label_shift: Annotated[
        list[int] | None,
        typer.Option(metavar="ROWS", help="Also score with labels shifted by ±ROWS. Repeatable."),
    ] = None,
    label_margin: Annotated[
        list[int] | None,
        typer.Option(metavar="ROWS", help="Leave out so many normal rows after each event; may be repeated."),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Also print the tables behind the findings.")] = False,
    form: Annotated[Literal["table", "json", "markdown"], format_option] = "table",
    figure: FigureOption = None,
) -> None:
    """Inspect a data set, labels included: what makes every table over it worth less than it seems.

    Rows that recur, copies, gaps, constant sensors, scaling by the test's statistics, shift between training and test,
    events that a threshold on one sensor finds, and how well a row's position, time alone and one-liners predict the
    label; a verdict for each. Of several entities each is audited alone, and means are shown. Labels are noisy: the
    audit shows how the AUPRC and the ranks of one-liners, with --runs also of stored trials, move by labels that are
    shifted by a few rows (1, 5 and 10), without rows that have two labels, and without some rows after each event (10
    and 60).
    """
    from rich.text import Text

    from tsadbench.analysis.audit import MARKS
    from tsadbench.analysis.audit import audit as audit_data
    from tsadbench.analysis.audit.label_noise import fits_of, label_changes, label_noise
    from tsadbench.analysis.stored import stored_trials
    from tsadbench.base.dataset import DataOptions
    from tsadbench.datasets.loading import load_dataset
    from tsadbench.leaderboard.render import print_tables

    if runs is None and (protocol or split):
        raise UsageError("--protocol and --split choose trials of a run store: add --runs RUNS, or leave them out")
    with progress_bar(f"Reading {name}"):
        loaded = load_dataset(name)(DataOptions(directory=data))
    changes = label_changes(loaded, label_shift or None, label_margin or None)
    stored = None
    if runs is not None:
        trials = stored_trials(runs, dataset=loaded, protocol=protocol).on(split)
        with progress_bar("Judging"):
            about = f"trials on {loaded.dataset.name}, split {trials.split}, protocol {trials.first.rules}"
            stored = label_noise(about, fits_of(trials, loaded), changes)
    result = audit_data(loaded, changes, stored)
    if form != "table":
        typer.echo(result.text(form), nl=False)
    else:
        console = wide_console()
        styles = {"good": "green", "note": "yellow", "fault": "red"}
        for finding in result.findings:
            text = f"{MARKS[finding.grade]} {finding.about}: {finding.sentence}"
            console.print(Text(text, style=styles[finding.grade]))
        print_tables(console, result.tables if full else ())
    if figure is not None:
        from tsadbench.reporting.figures.audit import draw_audit

        draw_audit(loaded, result, figure)
        typer.echo(figure, err=True)


def _sources_of(names: Iterable[str]) -> Iterator[Source]:
    """Yield the sources of data sets and of suites' data sets, each once; a UsageError if files are not published."""
    from tsadbench.datasets.loading import CARD_ENDING, SUITES
    from tsadbench.datasets.shipped import BY_REQUEST, HOW, Source, published
    from tsadbench.registry import entries

    members = dict[str, None]()
    for name in names:
        suite = [one for one in SUITES[name].datasets if one in published()] if name in SUITES else []
        members |= dict.fromkeys(suite or [name])
    for name in members:
        if name in BY_REQUEST:
            raise UsageError(f"{name}: its files are not published, so they cannot be fetched; {HOW}")
        if name.endswith(CARD_ENDING):
            raise UsageError(f"{name}: the files of a card lie beside it; see  tsadbench data validate {name}")
        if name not in published() and name in {entry.name for entry in entries("datasets")}:
            raise UsageError(f"{name}: it has no files to fetch, it comes with its package")
        yield Source.load(name)


def listed(directory: Path | None) -> Iterator[dict[str, Any]]:
    """Yield what `tsadbench data list` tells of every registered data set; nothing is downloaded or read."""
    from tsadbench.datasets.shipped import BY_REQUEST, HOW, Source, place, published
    from tsadbench.registry import entries

    for name in dict.fromkeys(entry.name for entry in entries("datasets")):
        folder = place(name, directory)
        found = {"name": name, "here": True, "where": "comes with its package", "licence": None, "files": None}
        found["bytes"] = None
        if name in published():
            source = Source.load(name)
            count, missing = len(source.sha256), len(source.missing(folder))
            where = f"{missing} of {count} files are missing: tsadbench data fetch {name}" if missing else str(folder)
            found |= {"here": not missing, "where": where, "files": count}
            found |= {"licence": source.licence, "bytes": source.n_bytes}
        elif name in BY_REQUEST:
            here = folder.is_dir()
            found |= {"here": here, "where": str(folder) if here else HOW, "licence": "by request"}
        yield found


def _load_here(name: str, directory: Path | None) -> LabelledDataset:
    """Load a data set whose files are on this machine; never download.

    A DataNotFoundError if files are missing; the message says where they are published.
    """
    from tsadbench.base.dataset import DataOptions
    from tsadbench.datasets.loading import load_dataset
    from tsadbench.datasets.shipped import find, place, published

    if name in published():
        find(name, place(name, directory).parent)  # a folder that is named is not filled
    return load_dataset(name)(DataOptions(directory=directory, allow_changed=True))


def _contents(loaded: LabelledDataset) -> Iterator[str]:
    """Yield what a data set contains, line by line."""
    data, labels = loaded.dataset, loaded.labels
    yield f"sensors   {len(data.sensors)}: {_first(data.sensors)}"
    yield f"training  {len(data.train)} recordings, {sum(part.n_rows for part in data.train):,} rows"
    yield f"test      {_test_rows(loaded)}"
    for split, members in data.splits.items():
        yield f"split     {split}: {len(members)} recordings"
    sessions = data.sessions
    names = list(dict.fromkeys(sessions[recording.id] for recording in data.test or data.train))
    role = "under test" if data.test else "to train on"
    yield f"sessions  {len(names)} {role}: {_first(names)}"
    entities = list(dict.fromkeys(data.entities.values()))
    if len(entities) > 1:
        yield f"entities  {len(entities)}, a model for each: {_first(entities)}"
    yield f"prior     {'none' if data.prior is None else f'{len(data.prior.edges)} edges'}"
    if labels.causes:
        yield f"causes    {sum(map(len, labels.causes.values()))} events with the sensors that are to blame"
    yield f"version   {data.version}"
    for title, text in (("licence", data.licence), ("citation", data.citation)):
        if text:
            yield f"{title:<9} {text}"
    for note in data.notes:
        yield f"note      {note}"


def _test_rows(loaded: LabelledDataset) -> str:
    rows = sum(recording.n_rows for recording in loaded.dataset.test)
    what = f"{len(loaded.dataset.test)} recordings, {rows:,} rows"
    if loaded.missing:
        can = "detectors can be fitted and can score files, but not be compared"
        return f"none: {can}" if loaded.missing == "test recordings" else f"{what}, no labels: {can}"
    anomalous = sum(int(rows_of_recording.sum()) for rows_of_recording in loaded.labels.rows.values())
    return f"{what}, {anomalous:,} anomalous ({anomalous / rows:.1%})"


def description(name: str, directory: Path | None) -> Iterator[str]:
    """Yield what a registered data set contains if its files are here, otherwise where they are published."""
    from tsadbench.analysis.audit.findings import shipped_note

    try:
        yield from _contents(_load_here(name, directory))
    except DataNotFoundError as error:
        yield f"files     {error}"
    note = shipped_note(name)
    if note:
        yield f"audit     {note.removeprefix(f'{name}: ')}"


def _first(names: Sequence[str], limit: int = 8) -> str:
    return ", ".join(names[:limit]) + (", ..." if len(names) > limit else "")
