"""``tsadbench prior``: priors from documents, and what they are worth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from tsadbench.cli.ending import Listing
from tsadbench.cli.live import progress_bar
from tsadbench.cli.options import DataOption, FigureOption, JobsOption, RunStoreOption, SeedsOption
from tsadbench.utils.text import printable

app = typer.Typer(cls=Listing, help="Priors: which sensor physically drives which.", no_args_is_help=True)

_Prior: TypeAlias = Annotated[
    str, typer.Argument(metavar="PRIOR", help="The file of a prior, or the name of a data set that has one.")
]
_Dataset: TypeAlias = Annotated[
    str | None, typer.Option("--dataset", help="A data set, or a card, whose sensors the prior is about.")
]


@app.command()
def extract(
    system: Annotated[
        list[Path], typer.Option(metavar="DOC", help="Documentation: Markdown, text or PDF; may be repeated.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="File to write the prior to.")],
    dataset: _Dataset = None,
    sensors: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The sensors: one name per line, or JSON [{name, quantity, subsystem}]."),
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="Model to ask; may be repeated (default: claude-sonnet-4-6).")
    ] = None,
    votes: Annotated[int, typer.Option(help="How often each model is asked with each wording.")] = 5,
    min_votes: Annotated[
        int | None,
        typer.Option(help="Answers that must name an edge (default: more than half of the valid ones)."),
    ] = None,
    variants: Annotated[int, typer.Option(help="Wordings of the prompt, to see how stable the graph is.")] = 1,
    pathway: Annotated[
        list[str] | None,
        typer.Option(help="A pathway to consider in addition to the usual ones: 'reaction'; may be repeated."),
    ] = None,
    max_tokens: Annotated[int, typer.Option(help="Maximum length of one answer.")] = 16_000,
    retries: Annotated[int, typer.Option(help="How often a request is repeated after a server error.")] = 5,
    timeout: Annotated[float, typer.Option(help="Time limit per request, in seconds.")] = 300.0,
    cache: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder that keeps the raw answers.")] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Send no request: use stored answers alone.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the prompt and the estimate; send no request, write nothing.")
    ] = False,
    data: DataOption = None,
) -> None:
    """Let a language model read how a system is built, several times, and keep the couplings that most answers name.

    The key is read from ANTHROPIC_API_KEY, the address from ANTHROPIC_BASE_URL if that is set.
    """
    from contextlib import ExitStack

    import pooch

    from tsadbench.cli.actions.loading import load_sensors
    from tsadbench.cli.actions.prior import print_estimate, print_extraction
    from tsadbench.priors.documents import read_documents
    from tsadbench.priors.extract import Request
    from tsadbench.priors.extract import extract as ask
    from tsadbench.priors.questions import Cache
    from tsadbench.utils.atomic_files import require_not_read, write_file

    require_not_read(out, [*system, *(Path(file) for file in (sensors, dataset) if file is not None)])
    request = Request(
        sensors=load_sensors(dataset, sensors, data),
        documents=read_documents(system),
        models=tuple(dict.fromkeys(model or ["claude-sonnet-4-6"])),
        votes=votes,
        variants=variants,
        pathways=tuple(pathway or ()),
        max_tokens=max_tokens,
    )
    answers = Cache(cache if cache is not None else Path(pooch.os_cache("tsadbench")) / "answers")
    print_estimate(request, answers)
    if dry_run:
        for _, question in request.questions()[:: request.votes]:
            typer.echo(f"--- {question.model}, system\n{question.system}\n--- user\n{question.user}")
        return
    with ExitStack() as stack:
        language_model = None
        if not offline:
            from tsadbench.priors.client import LanguageModel  # kept answers need no SDK

            language_model = stack.enter_context(LanguageModel(retries, timeout))
        stack.enter_context(progress_bar("Asking"))
        extraction = ask(request, language_model, answers)
    print_extraction(extraction)
    prior = extraction.prior(min_votes)
    write_file(out, prior.to_json())
    typer.echo(f"{len(prior.edges)} edges are written to {out}", err=True)


@app.command()
def show(prior: _Prior, figure: FigureOption = None) -> None:
    """Print a prior's edges by subsystem, with votes and mechanisms."""
    from tsadbench.cli.actions.loading import load_prior

    loaded = load_prior(prior)
    subsystem = {sensor.name: sensor.subsystem for sensor in loaded.sensors}
    for part in dict.fromkeys(subsystem.get(edge.source, "") for edge in loaded.edges):
        typer.echo(printable(f"{part or 'sensors'}:"))
        for edge in loaded.edges:
            if subsystem.get(edge.source, "") == part:
                share = "" if edge.votes is None else f"  {edge.votes:.0%} of votes"
                typer.echo(printable(f"  {edge.source} -> {edge.target}{share}"))
                if edge.mechanism:
                    typer.echo(printable(f"      {edge.mechanism}"))
    for key, value in loaded.provenance.items():
        typer.echo(printable(f"{key}: {value}"), err=True)
    if figure is not None:
        from tsadbench.cli.actions.figures import write_figure
        from tsadbench.reporting.figures.graph import draw_prior

        write_figure(figure, lambda page: draw_prior(loaded, page))


@app.command()
def diff(first: _Prior, second: _Prior) -> None:
    """Print the edges that two priors share, and those that only one of them has."""
    from tsadbench.cli.actions.loading import load_prior
    from tsadbench.priors.perturb import difference

    result = difference(load_prior(first), load_prior(second))
    for mark, edges in ((" ", result.both), ("-", result.only_first), ("+", result.only_second)):
        for source, target in edges:
            reversed_in_second = "  (reversed)" if mark == "-" and (source, target) in result.reversed else ""
            typer.echo(printable(f"{mark} {source} -> {target}{reversed_in_second}"))
    typer.echo(
        f"{len(result.both)} in both, {len(result.only_first)} in the first alone, {len(result.only_second)} in the "
        f"second alone; Jaccard {result.jaccard:.3f}",
        err=True,
    )


@app.command()
def validate(
    prior: _Prior,
    dataset: Annotated[str, typer.Option(help="The data set, or card, whose sensors it must name.")],
    data: DataOption = None,
) -> None:
    """Check that a prior can be read and names the sensors of a data set; exit code 2 if not."""
    from tsadbench.cli.actions.loading import load_prior, load_sensors

    loaded = load_prior(prior)
    names = tuple(sensor.name for sensor in load_sensors(dataset, None, data))
    loaded.check(names)
    connected = {sensor for edge in loaded.edges for sensor in (edge.source, edge.target)}
    typer.echo(f"{prior}: {len(loaded.edges)} edges between {len(connected)} of the {len(names)} sensors of {dataset}")
    isolated = [name for name in names if name not in connected]
    if isolated:
        typer.echo(f"without an edge: {', '.join(isolated)}")


@app.command()
def perturb(
    prior: _Prior,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file to write.")],
    drop: Annotated[float, typer.Option(help="Share of the edges to remove.")] = 0.0,
    add: Annotated[float, typer.Option(help="Edges to invent, as a share of the existing ones.")] = 0.0,
    reverse: Annotated[float, typer.Option(help="Share of the edges to reverse.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Seed of the random choice.")] = 0,
    dataset: _Dataset = None,
    data: DataOption = None,
) -> None:
    """Write a prior that is worse on purpose, to measure what a correct one is worth."""
    from tsadbench.cli.actions.loading import load_prior, load_sensors
    from tsadbench.priors.perturb import perturbed
    from tsadbench.utils.atomic_files import require_not_read, write_file

    require_not_read(out, [Path(prior), *([Path(dataset)] if dataset else [])])
    loaded = load_prior(prior)
    sensors = load_sensors(dataset, None, data) if dataset else loaded.sensors
    ends = dict.fromkeys(end for edge in loaded.edges for end in (edge.source, edge.target))
    names = [sensor.name for sensor in sensors] or list(ends)
    worse = perturbed(loaded, names, drop=drop, add=add, reverse=reverse, seed=seed)
    write_file(out, worse.to_json())
    typer.echo(f"{len(worse.edges)} edges are written to {out}", err=True)


@app.command()
def sensitivity(
    write: Annotated[Path, typer.Option(metavar="FILE", help="The page to write, in Markdown.")],
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="A data set with a prior; may be repeated (default: skab and pumploop)."),
    ] = None,
    graph: Annotated[
        list[str] | None,
        typer.Option(
            help="A graph to hold against the prior: drop, add, reverse (of its edges), random, none, correlation, "
            "complete; may be repeated (default: all)."
        ),
    ] = None,
    seeds: SeedsOption = 5,
    jobs: JobsOption = 1,
    out: RunStoreOption = Path("runs"),
    data: DataOption = None,
) -> None:
    """Run DPR-GM with the prior, with worse ones and with graphs that need none, and write what the prior is worth.

    Every trial's record is written beside the page, in a file that ends in .jsonl.
    """
    from tsadbench.base.dataset import DataOptions
    from tsadbench.cli.actions.run import run_watched
    from tsadbench.datasets.loading import load_dataset
    from tsadbench.execution.run_store import Store
    from tsadbench.studies.prior_sensitivity import DATASETS, GRAPHS, measure, page
    from tsadbench.utils.atomic_files import require_not_read, require_writable, write_file

    names = dataset or DATASETS
    for file in (write, write.with_suffix(".jsonl")):
        require_not_read(file, map(Path, names))
    require_writable(write)
    store = Store.create(out)
    options = DataOptions(directory=data)
    results = [
        measure(
            load_dataset(name)(options),
            seeds=seeds,
            run=lambda plan: run_watched([plan], store, jobs=jobs)[0][0],
            graphs=graph or GRAPHS,
        )
        for name in names
    ]
    chosen = [*(f"--dataset {name}" for name in names), *(f"--graph {name}" for name in graph or ())]
    command = " ".join(["tsadbench prior sensitivity", *chosen, f"--seeds {seeds}"])
    records = write.with_suffix(".jsonl")
    trials = (record for result in results for found in result.records.values() for record in found)
    typer.echo(write_file(records, "".join(f"{record.to_json(None)}\n" for record in trials)), err=True)
    typer.echo(write_file(write, page(results, command, records.name)), err=True)
