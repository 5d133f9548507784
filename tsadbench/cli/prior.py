"""``tsadbench prior``: priors from documents, and what they are worth."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tsadbench.prior import Prior

app = typer.Typer(help="Priors: which sensor physically drives which.", no_args_is_help=True)

_Prior = Annotated[str, typer.Argument(metavar="PRIOR", help="A prior's file, or the name of a data set that has one.")]
_Dataset = Annotated[str | None, typer.Option(help="A data set, or a card: its sensors are those that count.")]
_Data = Annotated[Path | None, typer.Option(help="Folder that holds the data sets' folders (skab/, ...).")]


@app.command()
def sensitivity(
    write: Annotated[Path, typer.Option(metavar="FILE", help="The page to write, Markdown.")],
    dataset: Annotated[list[str] | None, typer.Option(help="A data set with a prior. Repeat; skab, pumploop.")] = None,
    seeds: Annotated[int, typer.Option(help="Seeds 0 to N-1.")] = 5,
    jobs: Annotated[int, typer.Option(help="Trials at a time.")] = 1,
    out: Annotated[Path, typer.Option(help="Run store that keeps every trial.")] = Path("runs"),
    data: _Data = None,
) -> None:
    """Run DPR-GM under the prior, worse ones and graphs without one, and write what the prior is worth."""
    from tsadbench.cli.progress import watching
    from tsadbench.dataset import DataOptions
    from tsadbench.engine import run_plan
    from tsadbench.plan import make_plan
    from tsadbench.priors.sensitivity import page, variants
    from tsadbench.registry import load_dataset
    from tsadbench.store import Store

    names = dataset or ["skab", "pumploop"]
    store = Store.create(out)
    tables = {}
    for name in names:
        loaded = load_dataset(name)(DataOptions(directory=data))
        graphs = variants(loaded.dataset)
        plan = make_plan(
            [graph.detector for graph in graphs], dataset=loaded, seeds=seeds, floors=False, contributions=False
        )
        with watching(len(plan.trials)) as observer:
            records = run_plan(plan, store, observer, jobs=jobs)
        tables[name] = (loaded.dataset, graphs, records)
    command = "tsadbench prior sensitivity " + " ".join(f"--dataset {name}" for name in names) + f" --seeds {seeds}"
    write.parent.mkdir(parents=True, exist_ok=True)
    write.write_text(page(tables, command), encoding="utf-8")
    print(write, file=sys.stderr)


def load_prior(text: str) -> Prior:
    """Return the prior of a file, or that of a data set that ships with one.

    Raises
    ------
    UsageError
        Where it is neither.
    """
    from importlib.resources import files

    from tsadbench.errors import UsageError
    from tsadbench.prior import Prior

    if Path(text).is_file():
        return Prior.load(text)
    folder = files("tsadbench.datasets")
    shipped = sorted(
        one.name.removesuffix(".prior.json") for one in folder.iterdir() if one.name.endswith(".prior.json")
    )
    if text in shipped:
        return Prior.load(str(folder / f"{text}.prior.json"), origin=text)
    raise UsageError(f"{text}: expected a prior's file or one of {shipped}; there is no such file")
