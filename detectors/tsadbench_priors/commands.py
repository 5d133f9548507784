"""``tsadbench prior``: priors from documents. What is heavy is imported when a command runs."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from tsadbench import UsageError

if TYPE_CHECKING:
    from tsadbench.base import Sensor
    from tsadbench_priors.extract import Extraction, Request
    from tsadbench_priors.questions import Cache

app = typer.Typer(
    help="Priors: which sensor physically drives which.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

# An edge takes roughly 80 tokens, and a sensor drives two others on average.
_TOKENS_PER_SENSOR = 160

_Prior: TypeAlias = Annotated[
    str, typer.Argument(metavar="PRIOR", help="The file of a prior, or the name of a data set that has one.")
]
_Dataset: TypeAlias = Annotated[
    str | None, typer.Option("--dataset", help="A data set, or a card, whose sensors the prior is about.")
]
_Data: TypeAlias = Annotated[Path | None, typer.Option("--data", help="Folder with the data sets' folders.")]


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
    data: _Data = None,
) -> None:
    """Let a language model read how a system is built, several times, and keep the couplings that most answers name.

    The key is read from ANTHROPIC_API_KEY, the address from ANTHROPIC_BASE_URL if that is set.
    """
    import pooch

    from tsadbench_priors.documents import read_documents
    from tsadbench_priors.extract import Request
    from tsadbench_priors.extract import extract as ask
    from tsadbench_priors.questions import Cache

    _require_not_read(out, [*system, *(Path(file) for file in (sensors, dataset) if file is not None)])
    request = Request(
        sensors=_sensors(dataset, sensors, data),
        documents=read_documents(system),
        models=tuple(dict.fromkeys(model or ["claude-sonnet-4-6"])),
        votes=votes,
        variants=variants,
        pathways=tuple(pathway or ()),
        max_tokens=max_tokens,
    )
    answers = Cache(cache if cache is not None else Path(pooch.os_cache("tsadbench")) / "answers")
    _print_estimate(request, answers)
    if dry_run:
        for _, question in request.questions()[:: request.votes]:
            typer.echo(f"--- {question.model}, system\n{question.system}\n--- user\n{question.user}")
        return
    with ExitStack() as stack:
        language_model = None
        if not offline:
            from tsadbench_priors.client import LanguageModel  # kept answers need no SDK

            language_model = stack.enter_context(LanguageModel(retries, timeout))
        extraction = ask(request, language_model, answers)
    _print_extraction(extraction)
    prior = extraction.prior(min_votes)
    _write(out, prior.to_json())
    typer.echo(f"{len(prior.edges)} edges are written to {out}", err=True)


@app.command()
def show(prior: _Prior) -> None:
    """Print a prior's edges by subsystem, with votes and mechanisms."""
    from tsadbench.api import load_prior

    loaded = load_prior(prior)
    subsystem = {sensor.name: sensor.subsystem for sensor in loaded.sensors}
    for part in dict.fromkeys(subsystem.get(edge.source, "") for edge in loaded.edges):
        _print(f"{part or 'sensors'}:")
        for edge in loaded.edges:
            if subsystem.get(edge.source, "") == part:
                share = "" if edge.votes is None else f"  {edge.votes:.0%} of votes"
                _print(f"  {edge.source} -> {edge.target}{share}")
                if edge.mechanism:
                    _print(f"      {edge.mechanism}")
    for key, value in loaded.provenance.items():
        _print(f"{key}: {value}", err=True)


@app.command()
def diff(first: _Prior, second: _Prior) -> None:
    """Print the edges that two priors share, and those that only one of them has."""
    from tsadbench.api import load_prior
    from tsadbench_priors.perturb import jaccard, pairs

    one, other = pairs(load_prior(first)), pairs(load_prior(second))
    for mark, edges in ((" ", one & other), ("-", one - other), ("+", other - one)):
        for source, target in sorted(edges):
            turned = "  (reversed)" if mark == "-" and (target, source) in other - one else ""
            _print(f"{mark} {source} -> {target}{turned}")
    typer.echo(
        f"{len(one & other)} in both, {len(one - other)} in the first alone, {len(other - one)} in the second alone; "
        f"Jaccard {jaccard(one, other):.3f}",
        err=True,
    )


@app.command()
def validate(
    prior: _Prior,
    dataset: Annotated[str, typer.Option(help="The data set, or card, whose sensors it must name.")],
    data: _Data = None,
) -> None:
    """Check that a prior can be read and names the sensors of a data set; exit code 2 if not."""
    from tsadbench.api import load_prior

    loaded = load_prior(prior)
    names = tuple(sensor.name for sensor in _sensors(dataset, None, data))
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
    data: _Data = None,
) -> None:
    """Write a prior that is worse on purpose, to measure what a correct one is worth."""
    from tsadbench.api import load_prior
    from tsadbench_priors.perturb import perturbed

    _require_not_read(out, [Path(prior), *([Path(dataset)] if dataset else [])])
    loaded = load_prior(prior)
    sensors = _sensors(dataset, None, data) if dataset else loaded.sensors
    ends = dict.fromkeys(end for edge in loaded.edges for end in (edge.source, edge.target))
    names = [sensor.name for sensor in sensors] or list(ends)
    worse = perturbed(loaded, names, drop=drop, add=add, reverse=reverse, seed=seed)
    _write(out, worse.to_json())
    typer.echo(f"{len(worse.edges)} edges are written to {out}", err=True)


def _sensors(dataset: str | None, file: Path | None, directory: Path | None) -> tuple[Sensor, ...]:
    """Return the sensors of a data set, as its prior describes them, or those listed in a file."""
    from tsadbench.api import load_dataset
    from tsadbench.base import Sensor

    if (dataset is None) == (file is None):
        raise UsageError("give either --dataset or --sensors: the prior needs to know whose sensors it is about")
    if dataset is not None:
        loaded = load_dataset(dataset, directory).dataset
        described = {sensor.name: sensor for sensor in (loaded.prior.sensors if loaded.prior else ())}
        return tuple(described.get(name, Sensor(name)) for name in loaded.sensors)
    assert file is not None
    try:
        text = file.read_text(encoding="utf-8-sig")
        if not text.lstrip().startswith("["):
            return tuple(Sensor(line.strip()) for line in text.splitlines() if line.strip())
        keys = ("name", "quantity", "subsystem")
        return tuple(Sensor(**{key: str(one[key]) for key in keys if key in one}) for one in json.loads(text))
    except (ValueError, TypeError, RecursionError) as error:
        raise UsageError(f"--sensors {file}: expected names or JSON objects with a name ({error})") from error


def _print_estimate(request: Request, cache: Cache) -> None:
    """Print what the request will roughly cost, before anything is paid for."""
    from tsadbench_priors.questions import cost

    written = _TOKENS_PER_SENSOR * len(request.sensors)
    for model in request.models:
        questions = [question for _, question in request.questions() if question.model == model]
        new = [question for question in questions if cache.find(question) is None]
        read = sum(question.tokens for question in new)
        dollars = cost(model, read, written * len(new))
        price = "price not known" if dollars is None else f"about ${dollars:.2f}"
        typer.echo(
            f"{model}: {len(questions)} answers, {len(questions) - len(new)} of them stored; to be asked: {len(new)}, "
            f"about {read:,} tokens read and {written * len(new):,} written, {price}",
            err=True,
        )


def _print_extraction(extraction: Extraction) -> None:
    """Print the edges that answers named, what was left out, how far answers agree, and what was paid."""
    named, n = extraction.counts()
    models = extraction.request.models
    counts = {model: extraction.counts(model) for model in models} if len(models) > 1 else {}
    for (source, target), count in sorted(named.items(), key=lambda item: (-item[1], item[0])):
        each = (f"  {model}: {edges[source, target]}/{n_answers}" for model, (edges, n_answers) in counts.items())
        _print(f"{count}/{n}  {source} -> {target}{''.join(each)}")
    for reason, count in extraction.rejected().items():
        _print(f"left out: {reason} ({count})", err=True)
    for pair, share in extraction.agreement().items():
        _print(f"agreement of {pair}: Jaccard {share:.3f}", err=True)
    read, written, dollars = extraction.paid()
    price = "price not known" if dollars is None else f"${dollars:.4f}"
    typer.echo(f"paid for now: {read:,} tokens read, {written:,} written, {price}", err=True)


def _print(text: str, *, err: bool = False) -> None:
    """Print a line of somebody else's text, control characters escaped."""
    typer.echo("".join(one if one.isprintable() else ascii(one)[1:-1] for one in text), err=err)


def _require_not_read(out: Path, read: list[Path]) -> None:
    if out.exists() and any(file.exists() and out.samefile(file) for file in read):
        raise UsageError(f"{out}: this file is also an input; choose another output")


def _write(out: Path, text: str) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
