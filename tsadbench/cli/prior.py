"""``tsadbench prior``: priors from documents, and what they are worth."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tsadbench.base.prior import Prior, Sensor
    from tsadbench.priors.client import Cache
    from tsadbench.priors.extract import Extraction, Request

app = typer.Typer(help="Priors: which sensor physically drives which.", no_args_is_help=True)

_Prior = Annotated[str, typer.Argument(metavar="PRIOR", help="A prior's file, or the name of a data set that has one.")]
_Dataset = Annotated[str | None, typer.Option(help="A data set, or a card: its sensors are those that count.")]
_Data = Annotated[Path | None, typer.Option(help="Folder that holds the data sets' folders (skab/, ...).")]


@app.command()
def extract(
    system: Annotated[list[Path], typer.Option(metavar="DOC", help="Documentation: Markdown, text, PDF. Repeat.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The prior's file to write.")],
    dataset: _Dataset = None,
    sensors: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The sensors: a name a line, or JSON [{name, quantity, subsystem}]."),
    ] = None,
    model: Annotated[list[str] | None, typer.Option(help="Models to ask. Repeat; claude-sonnet-4-6.")] = None,
    votes: Annotated[int, typer.Option(help="How often each model is asked with each wording.")] = 5,
    min_votes: Annotated[
        int | None, typer.Option(help="Answers that must name an edge; by default more than half of those that count.")
    ] = None,
    variants: Annotated[int, typer.Option(help="Wordings of the prompt: how stable is the graph?")] = 1,
    pathway: Annotated[
        list[str] | None, typer.Option(help="A pathway to consider besides the usual ones: 'reaction'. Repeat.")
    ] = None,
    max_tokens: Annotated[int, typer.Option(help="How long one answer may be.")] = 16_000,
    retries: Annotated[int, typer.Option(help="How often a request is repeated that met a failing server.")] = 5,
    timeout: Annotated[float, typer.Option(help="Seconds that one request may take.")] = 300.0,
    cache: Annotated[Path | None, typer.Option(metavar="DIR", help="Where raw answers are kept.")] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Ask nobody: use kept answers alone.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the prompt and the estimate; ask nobody, write nothing.")
    ] = False,
    data: _Data = None,
) -> None:
    """Let a language model read how a system is built, several times, and keep the couplings that most answers name.

    The key is read from ANTHROPIC_API_KEY, the address from ANTHROPIC_BASE_URL where that is set.
    """
    from contextlib import nullcontext

    import pooch

    from tsadbench.cli.data import progress_bar
    from tsadbench.priors.client import Cache, Model
    from tsadbench.priors.documents import read_documents
    from tsadbench.priors.extract import Request
    from tsadbench.priors.extract import extract as ask
    from tsadbench.utils.atomic_files import write_file

    request = Request(
        sensors=_sensors(dataset, sensors, data),
        documents=read_documents(system),
        models=tuple(dict.fromkeys(model or ["claude-sonnet-4-6"])),
        votes=votes,
        variants=variants,
        pathways=tuple(pathway or ()),
        max_tokens=max_tokens,
    )
    request.check()
    kept = Cache(cache if cache is not None else Path(pooch.os_cache("tsadbench")) / "answers")
    _tell_estimate(request, kept)
    if dry_run:
        for _, question in request.questions()[:: request.votes]:
            print(f"--- {question.model}, system\n{question.system}\n--- user\n{question.user}")
        return
    with nullcontext() if offline else Model(retries, timeout) as whom, progress_bar("Asking"):
        found = ask(request, whom, kept)
    _tell(found)
    prior = found.prior(min_votes, _provenance(request))
    write_file(out, prior.to_json())
    print(f"{len(prior.edges)} edges are written to {out}", file=sys.stderr)


@app.command()
def show(
    prior: _Prior,
    figure: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw it as well: .svg, .png or .pdf.")] = None,
) -> None:
    """Print a prior's edges by subsystem, with votes and mechanisms."""
    from tsadbench.reporting.figures.prior import draw

    found = load_prior(prior)
    subsystem = {sensor.name: sensor.subsystem for sensor in found.sensors}
    for part in dict.fromkeys(subsystem.get(edge.source, "") for edge in found.edges):
        print(f"{part or 'sensors'}:")
        for edge in found.edges:
            if subsystem.get(edge.source, "") == part:
                share = "" if edge.votes is None else f"  {edge.votes:.0%} of votes"
                print(f"  {edge.source} -> {edge.target}{share}")
                if edge.mechanism:
                    print(f"      {edge.mechanism}")
    for key, value in found.provenance.items():
        print(f"{key}: {value}", file=sys.stderr)
    if figure is not None:
        draw(found, figure)
        print(figure, file=sys.stderr)


@app.command()
def diff(first: _Prior, second: _Prior) -> None:
    """Print what two priors have in common and what one of them has alone."""
    from tsadbench.priors.perturb import difference

    found = difference(load_prior(first), load_prior(second))
    for mark, edges in ((" ", found.both), ("-", found.only_first), ("+", found.only_second)):
        for source, target in edges:
            turned = "  (turned round)" if mark == "-" and (source, target) in found.reversed else ""
            print(f"{mark} {source} -> {target}{turned}")
    print(
        f"{len(found.both)} in both, {len(found.only_first)} in the first alone, {len(found.only_second)} in the "
        f"second alone; Jaccard {found.jaccard:.3f}",
        file=sys.stderr,
    )


@app.command()
def validate(
    prior: _Prior,
    dataset: Annotated[str, typer.Option(help="The data set, or card, whose sensors it must name.")],
    data: _Data = None,
) -> None:
    """Check that a prior can be read and names the sensors of a data set; exit code 2 where not."""
    found = load_prior(prior)
    names = tuple(sensor.name for sensor in _sensors(dataset, None, data))
    found.check(names)
    ends = {end for edge in found.edges for end in (edge.source, edge.target)}
    print(f"{prior}: {len(found.edges)} edges between {len(ends)} of the {len(names)} sensors of {dataset}")
    alone = [name for name in names if name not in ends]
    if alone:
        print(f"without an edge: {', '.join(alone)}")


@app.command()
def perturb(
    prior: _Prior,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file to write.")],
    drop: Annotated[float, typer.Option(help="Share of the edges to leave out.")] = 0.0,
    add: Annotated[float, typer.Option(help="Edges to invent, as a share of the edges.")] = 0.0,
    reverse: Annotated[float, typer.Option(help="Share of the edges to turn round.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Of the choice.")] = 0,
    dataset: _Dataset = None,
    data: _Data = None,
) -> None:
    """Write a prior made worse on purpose: to see what a right one is worth."""
    from tsadbench.priors.perturb import perturbed
    from tsadbench.utils.atomic_files import write_file

    found = load_prior(prior)
    known = [sensor.name for sensor in found.sensors] or list(
        dict.fromkeys(end for edge in found.edges for end in (edge.source, edge.target))
    )
    names = [sensor.name for sensor in _sensors(dataset, None, data)] if dataset else known
    worse = perturbed(found, names, drop=drop, add=add, reverse=reverse, seed=seed)
    write_file(out, worse.to_json())
    print(f"{len(worse.edges)} edges are written to {out}", file=sys.stderr)


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
    from tsadbench.base.dataset import DataOptions
    from tsadbench.cli.progress import watching
    from tsadbench.datasets.loading import load_dataset
    from tsadbench.execution.plan import make_plan
    from tsadbench.execution.request import RunRequest
    from tsadbench.execution.run_store import Store
    from tsadbench.execution.runner import run_plan
    from tsadbench.studies.prior_sensitivity import page, variants
    from tsadbench.utils.atomic_files import require_writable, write_file

    require_writable(write)
    names = dataset or ["skab", "pumploop"]
    store = Store.create(out)
    tables = {}
    for name in names:
        loaded = load_dataset(name)(DataOptions(directory=data))
        graphs = variants(loaded.dataset)
        request = RunRequest(
            detectors=[graph.detector for graph in graphs],
            datasets=[loaded],
            seeds=seeds,
            jobs=jobs,
            floors=False,
            contributions=False,
        )
        plan = make_plan(request)
        with watching(len(plan.trials)) as observer:
            records = run_plan(plan, store, observer, jobs=jobs)
        tables[name] = (loaded.dataset, graphs, records)
    command = "tsadbench prior sensitivity " + " ".join(f"--dataset {name}" for name in names) + f" --seeds {seeds}"
    print(write_file(write, page(tables, command)), file=sys.stderr)


def load_prior(text: str) -> Prior:
    """Return the prior of a file, or that of a data set that ships with one.

    Raises
    ------
    UsageError
        If it is neither.
    """
    from importlib.resources import files

    from tsadbench.base.prior import Prior
    from tsadbench.errors import UsageError

    if Path(text).is_file():
        return Prior.load(text)
    folder = files("tsadbench.datasets")
    shipped = sorted(
        one.name.removesuffix(".prior.json") for one in folder.iterdir() if one.name.endswith(".prior.json")
    )
    if text in shipped:
        return Prior.load(str(folder / f"{text}.prior.json"), origin=text)
    raise UsageError(f"{text}: expected a prior's file or one of {shipped}; there is no such file")


def _sensors(dataset: str | None, file: Path | None, data: Path | None) -> tuple[Sensor, ...]:
    """Return the sensors of a data set, with what its prior tells of them, or those of a file."""
    from tsadbench.base.dataset import DataOptions
    from tsadbench.base.prior import Sensor
    from tsadbench.datasets.loading import load_dataset
    from tsadbench.errors import UsageError

    if (dataset is None) == (file is None):
        raise UsageError("give either --dataset or --sensors: whose sensors is the prior about?")
    if dataset is not None:
        loaded = load_dataset(dataset)(DataOptions(directory=data)).dataset
        told = {sensor.name: sensor for sensor in (loaded.prior.sensors if loaded.prior else ())}
        return tuple(told.get(name, Sensor(name)) for name in loaded.sensors)
    if file is None:
        return ()
    return _sensors_of_file(file)


def _sensors_of_file(file: Path) -> tuple[Sensor, ...]:
    import json

    from tsadbench.base.prior import Sensor
    from tsadbench.errors import UsageError

    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--sensors {file}: cannot be read as text in UTF-8 ({error})") from error
    if not text.lstrip().startswith("["):
        return tuple(Sensor(line.strip()) for line in text.splitlines() if line.strip())
    try:
        return tuple(
            Sensor(str(one["name"]), str(one.get("quantity", "")), str(one.get("subsystem", "")))
            for one in json.loads(text)
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"--sensors {file}: expected a JSON list of objects with a name ({error})") from error


def _tell_estimate(request: Request, cache: Cache) -> None:
    """Say before anything is paid for what it will about cost."""
    from tsadbench.priors.client import cost

    # An edge takes some 80 tokens, and a sensor drives two others or so.
    written = 160 * len(request.sensors)
    for model in request.models:
        questions = [question for _, question in request.questions() if question.model == model]
        new = [question for question in questions if cache.find(question) is None]
        read = sum(question.tokens for question in new)
        dollars = cost(model, read, written * len(new))
        price = "price not known" if dollars is None else f"about ${dollars:.2f}"
        print(
            f"{model}: {len(questions)} answers, {len(questions) - len(new)} of them kept; to be asked: {len(new)}, "
            f"about {read:,} tokens read and {written * len(new):,} written, {price}",
            file=sys.stderr,
        )


def _tell(found: Extraction) -> None:
    """Say what the answers held, what was left out, how far they agree, what was paid."""
    named, n = found.counts()
    models = found.request.models
    for (source, target), count in sorted(named.items(), key=lambda item: (-item[1], item[0])):
        parts = [found.counts(model) for model in models] if len(models) > 1 else []
        apart = "".join(f"  {model}: {of[source, target]}/{m}" for model, (of, m) in zip(models, parts, strict=False))
        print(f"{count}/{n}  {source} -> {target}{apart}")
    for reason, count in found.rejected().items():
        print(f"left out: {reason} ({count})", file=sys.stderr)
    for pair, jaccard in found.agreement().items():
        print(f"agreement of {pair}: Jaccard {jaccard:.3f}", file=sys.stderr)
    read, written, dollars = found.paid()
    price = "price not known" if dollars is None else f"${dollars:.4f}"
    print(f"paid for now: {read:,} tokens read, {written:,} written, {price}", file=sys.stderr)


def _provenance(request: Request) -> dict[str, str]:
    from datetime import UTC, datetime

    from tsadbench._version import __version__

    return {
        "made_by": f"tsadbench {__version__}, prior extract",
        "models": ", ".join(request.models),
        "documents": ", ".join(f"{document.name} (SHA-256 {document.sha256[:16]})" for document in request.documents),
        "wordings": str(request.variants),
        "date": datetime.now(UTC).date().isoformat(),
    }
