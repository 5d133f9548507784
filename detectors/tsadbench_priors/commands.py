"""``tsadbench prior``: priors from documents. Commands import heavy modules when they run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from tsadbench import UsageError

if TYPE_CHECKING:
    from tsadbench.base import Prior, Sensor
    from tsadbench_priors.extract import Ballot

app = typer.Typer(
    help="Priors: which sensor physically drives which.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

_Prior: TypeAlias = Annotated[
    str, typer.Argument(metavar="PRIOR", help="The file of a prior, or the name of a data set that has one.")
]
_Dataset: TypeAlias = Annotated[
    str | None, typer.Option("--dataset", help="A data set, or a card, whose sensors the prior is about.")
]
_Data: TypeAlias = Annotated[Path | None, typer.Option("--data", help="Folder with the data sets' folders.")]


@app.command()
def extract(
    system: Annotated[list[Path], typer.Option(metavar="DOC", help="Documentation: Markdown, text, PDF; repeatable.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="File to write the prior to.")],
    dataset: _Dataset = None,
    sensors: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The sensors: one name per line, or JSON [{name, quantity, subsystem}]."),
    ] = None,
    model: Annotated[list[str], typer.Option(help="Model to ask; repeatable.")] = ["claude-sonnet-4-6"],  # noqa: B006
    votes: Annotated[int, typer.Option(min=1, help="How often each model is asked with each wording.")] = 5,
    min_votes: Annotated[
        int | None, typer.Option(help="Answers that must name an edge (default: more than half of the valid ones).")
    ] = None,
    variants: Annotated[
        int, typer.Option(min=1, max=4, help="Wordings of the prompt, to see how stable the graph is.")
    ] = 1,
    pathway: Annotated[
        list[str], typer.Option(help="A pathway to consider in addition to the usual ones: 'reaction'; repeatable.")
    ] = [],  # noqa: B006
    max_tokens: Annotated[int, typer.Option(min=1, help="Maximum length of one answer.")] = 16_000,
    timeout: Annotated[float, typer.Option(help="Time limit per request, in seconds.")] = 300.0,
    cache: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder that keeps the raw answers.")] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Send no request: use stored answers alone.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the prompt and the estimate; send no request, write nothing.")
    ] = False,
    data: _Data = None,
) -> None:
    """Ask a language model several times which sensors a system's documentation couples; keep what most answers name.

    The key is read from ANTHROPIC_API_KEY, the address from ANTHROPIC_BASE_URL if that is set.
    """
    import pooch

    from tsadbench_priors.extract import Cache, Request, collect, voted_prior
    from tsadbench_priors.prompt import read_document

    _keep_apart(out, *system, *([sensors] if sensors else []))
    known, documents = _sensors(dataset, sensors, data), tuple(map(read_document, system))
    request = Request(known, documents, tuple(dict.fromkeys(model)), votes, variants, tuple(pathway), max_tokens)
    answers = Cache(cache or Path(pooch.os_cache("tsadbench")) / "answers")
    questions = [question for _, question in request.questions()]
    new = [question for question in questions if answers.find(question) is None]
    read = sum(len(question.system) + len(question.user) for question in new) // 4  # about four characters a token
    written = max_tokens * len(new)
    typer.echo(f"to ask: {len(new)} of {len(questions)}; about {read:,} tokens read, at most {written:,}", err=True)
    if dry_run:
        for question in questions[::votes]:
            typer.echo(f"--- {question.model}, system\n{question.system}\n--- user\n{question.user}")
        return
    if offline:
        ballots = collect(request, None, answers)
    else:
        from tsadbench_priors.client import LanguageModel  # kept answers need no SDK

        ballots = collect(request, LanguageModel(timeout).ask, answers)
    _print_ballots(ballots)
    _write(out, voted_prior(request, ballots, min_votes))


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
    connected = _ends(loaded)
    typer.echo(f"{prior}: {len(loaded.edges)} edges between {len(connected)} of the {len(names)} sensors of {dataset}")
    if isolated := [name for name in names if name not in connected]:
        typer.echo(f"without an edge: {', '.join(isolated)}")


@app.command()
def perturb(
    prior: _Prior,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file to write.")],
    drop: Annotated[float, typer.Option(help="Share of the edges to remove.")] = 0.0,
    add: Annotated[float, typer.Option(help="Edges to invent, as a share of the existing ones.")] = 0.0,
    reverse: Annotated[float, typer.Option(help="Share of the edges to reverse.")] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random choice.")] = 0,
    dataset: _Dataset = None,
    data: _Data = None,
) -> None:
    """Write a prior that is worse on purpose, to measure what a correct one is worth."""
    from tsadbench.api import load_prior
    from tsadbench_priors.perturb import perturbed

    _keep_apart(out, Path(prior))
    loaded = load_prior(prior)
    sensors = _sensors(dataset, None, data) if dataset else loaded.sensors
    names = [sensor.name for sensor in sensors] or _ends(loaded)
    _write(out, perturbed(loaded, names, drop=drop, add=add, reverse=reverse, seed=seed))


def _ends(prior: Prior) -> list[str]:
    """Return the sensors that a prior couples."""
    return list(dict.fromkeys(end for edge in prior.edges for end in (edge.source, edge.target)))


def _sensors(dataset: str | None, file: Path | None, directory: Path | None) -> tuple[Sensor, ...]:
    """Return the sensors of a data set, as its prior describes them, or those listed in a file."""
    from pydantic import TypeAdapter

    from tsadbench.api import load_dataset
    from tsadbench.base import Sensor

    if (dataset is None) == (file is None):
        raise UsageError("give either --dataset or --sensors")
    if dataset is not None:
        loaded = load_dataset(dataset, directory).dataset
        described = {sensor.name: sensor for sensor in (loaded.prior.sensors if loaded.prior else ())}
        return tuple(described.get(name, Sensor(name)) for name in loaded.sensors)
    assert file is not None
    try:
        text = file.read_text(encoding="utf-8-sig")
        if text.lstrip().startswith("["):
            return TypeAdapter(tuple[Sensor, ...]).validate_json(text)
    except ValueError as error:
        raise UsageError(f"--sensors {file}: expected names, or a JSON list of objects with a name") from error
    return tuple(Sensor(line.strip()) for line in text.splitlines() if line.strip())


def _print_ballots(ballots: list[Ballot]) -> None:
    """Print the edges that answers named, what was left out, how far answers agree, and the tokens paid for."""
    from tsadbench_priors.extract import agreement, counts, grouped, valid

    voting = valid(ballots)
    models = grouped(voting, lambda one: one.model)
    for pair, count in sorted(counts(voting).items(), key=lambda item: (-item[1], item[0])):
        each = [f"  {model}: {counts(group)[pair]}/{len(group)}" for model, group in models.items()]
        _print(f"{count}/{len(voting)}  {' -> '.join(pair)}{''.join(each) if len(each) > 1 else ''}")
    for reason, count in sum((one.answer.left_out for one in ballots), Counter()).items():
        _print(f"left out: {reason} ({count})", err=True)
    for names, share in agreement(ballots):
        _print(f"agreement of {names}: Jaccard {share:.3f}", err=True)
    paid = [ballot.paid for ballot in ballots if ballot.paid]
    read, written = sum(one.input_tokens for one in paid), sum(one.output_tokens for one in paid)
    typer.echo(f"paid for now: {read:,} tokens read, {written:,} written", err=True)


def _print(text: str, *, err: bool = False) -> None:
    """Print a line of untrusted text, control characters escaped."""
    typer.echo("".join(one if one.isprintable() else ascii(one)[1:-1] for one in text), err=err)


def _keep_apart(out: Path, *read: Path) -> None:
    if any(out.exists() and file.exists() and out.samefile(file) for file in read):
        raise UsageError(f"--out {out} is read by this command; choose another file")


def _write(out: Path, prior: Prior) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(prior.to_json(), encoding="utf-8")
    typer.echo(f"{len(prior.edges)} edges are written to {out}", err=True)
