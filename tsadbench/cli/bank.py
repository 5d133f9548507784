"""``tsadbench bank``: the scores of ranked rows as small, checked files."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from tsadbench.cli.options import format_option

if TYPE_CHECKING:
    from tsadbench.results.bank.index import BankEntry

app = typer.Typer(help="Scores of ranked rows as small, checked files, to judge without a fit.", no_args_is_help=True)

_Index: TypeAlias = Annotated[
    Path | None,
    typer.Option("--index", metavar="FILE", help="Index of the bank (default: that of the tables that ship)."),
]
_Datasets: TypeAlias = Annotated[
    list[str] | None, typer.Option("--dataset", help="Data set; may be repeated (default: all).")
]
_Detectors: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--detector", "-d", help="Label, or a name for all its labels; may be repeated (default: all)."),
]
_Protocols: TypeAlias = Annotated[
    list[str] | None, typer.Option("--protocol", help="Protocol; may be repeated (default: all).")
]


@app.command()
def build(
    stores: Annotated[list[Path], typer.Argument(metavar="STORE...", help="Run stores with the scores.")],
    out: Annotated[Path, typer.Option(help="Folder for the files and their index, bank.json.")],
    tables: Annotated[
        Path | None,
        typer.Option(help="Folder of committed tables: take their trials alone (default: every trial that is ok)."),
    ] = None,
    dataset: _Datasets = None,
    protocol: _Protocols = None,
    one_seed: Annotated[
        bool, typer.Option("--one-seed", help="Take the lowest seed of each row alone (default: all seeds).")
    ] = False,
    address: Annotated[
        str, typer.Option(metavar="URL", help="Where the files will lie, for the index: http(s)://...")
    ] = "",
    budget: Annotated[float, typer.Option(metavar="MB", min=0.0, help="Most megabytes of all files together.")] = 256.0,
) -> None:
    """Write the scores of run stores as files of a bank: float32 Parquet, named by their SHA-256, and an index.

    The same scores of the same trial give the same file, no matter who ran it.

    Exit code 1 if a trial that was asked for could not be written.
    """
    from tsadbench.cli.live import progress_bar
    from tsadbench.execution.run_store import Store
    from tsadbench.results.bank.build import Choice, build_bank
    from tsadbench.utils.grouping import grouped
    from tsadbench.utils.text import first_of, one_line

    with progress_bar("Writing the bank"):
        built = build_bank(
            [Store.open(store) for store in stores],
            out,
            tables=tables,
            choice=Choice(dataset or (), protocol or (), one_seed),
            address=address,
            budget=int(budget * 1e6),
        )
    for why, trials in grouped(built.left_out, built.left_out.__getitem__).items():
        typer.echo(f"left out: {one_line(first_of(trials))}: {one_line(why)}", err=True)
    typer.echo(f"{out}: {_counts(built.index.entries)}, {len(built.left_out)} trials left out")
    if built.left_out:
        raise typer.Exit(1)


@app.command("list")
def list_files(
    index: _Index = None,
    dataset: _Datasets = None,
    detector: _Detectors = None,
    protocol: _Protocols = None,
    form: Annotated[Literal["table", "json"], format_option] = "table",
) -> None:
    """List what a bank holds; --format json prints one object per file and line."""
    from tsadbench.cli.output import print_table, wide_console
    from tsadbench.results.bank.index import BankIndex, shipped_index

    entries = BankIndex.read(index or shipped_index()).chosen(dataset or (), detector or (), protocol or ())
    if form == "json":
        typer.echo("".join(f"{json.dumps({'file': one.file, **asdict(one)})}\n" for one in entries), nl=False)
    else:
        header = ["data set", "protocol", "detector", "seed", "recordings", "rows", "kB", "trust", "SHA-256"]
        print_table(wide_console(), "Score bank", header, [_cells(one) for one in entries], n_names=3)
    typer.echo(_counts(entries), err=True)


@app.command()
def fetch(
    out: Annotated[Path, typer.Option(help="Folder for the files; those that it has are not fetched again.")],
    index: _Index = None,
    dataset: _Datasets = None,
    detector: _Detectors = None,
    protocol: _Protocols = None,
    address: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="ADDRESS",
            help="Where the files lie: a folder, or http(s)://... (default: TSADBENCH_BANK_URL, else the folder bank "
            "beside the index, else the index's address).",
        ),
    ] = None,
) -> None:
    """Fetch files of the bank, each checked by its digest; `tsadbench judge` takes the folder like a run store."""
    from tsadbench.cli.live import progress_bar
    from tsadbench.results.bank.fetch import fetch_bank
    from tsadbench.results.bank.index import BankIndex, shipped_index

    file = index or shipped_index()
    bank = BankIndex.read(file)
    entries = bank.chosen(dataset or (), detector or (), protocol or ())
    with progress_bar("Fetching"):
        fetched = fetch_bank(bank, entries, out, address, beside=file)
    typer.echo(f"{out}: {_counts(entries)}; {len(fetched.new)} fetched, {fetched.n_before} were there")


def _cells(entry: BankEntry) -> list[str]:
    numbers = (entry.seed, entry.recordings, entry.rows, round(entry.size / 1000))
    return [
        *(entry.dataset, entry.protocol, entry.label),
        *(f"{number:,}" for number in numbers),
        *(entry.trust, entry.sha256[:12]),
    ]


def _counts(entries: tuple[BankEntry, ...]) -> str:
    return (
        f"{len(entries)} files, {sum(one.rows for one in entries):,} scored rows, "
        f"{sum(one.size for one in entries) / 1e6:.1f} MB"
    )
