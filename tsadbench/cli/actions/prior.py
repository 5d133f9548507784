"""What `tsadbench prior extract` prints."""

from __future__ import annotations

import typer

from tsadbench.priors.extract import Extraction, Request
from tsadbench.priors.questions import Cache, cost

# An edge takes roughly 80 tokens, and a sensor drives two others on average.
_TOKENS_PER_SENSOR = 160


def print_estimate(request: Request, cache: Cache) -> None:
    """Print what the request will roughly cost, before anything is paid for."""
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


def print_extraction(extraction: Extraction) -> None:
    """Print the edges that answers named, what was left out, how far answers agree, and what was paid."""
    named, n = extraction.counts()
    models = extraction.request.models
    for (source, target), count in sorted(named.items(), key=lambda item: (-item[1], item[0])):
        counts = [extraction.counts(model) for model in models] if len(models) > 1 else []
        per_model = "".join(
            f"  {model}: {edges[source, target]}/{n_answers}"
            for model, (edges, n_answers) in zip(models, counts, strict=False)
        )
        typer.echo(f"{count}/{n}  {source} -> {target}{per_model}")
    for reason, count in extraction.rejected().items():
        typer.echo(f"left out: {reason} ({count})", err=True)
    for pair, jaccard in extraction.agreement().items():
        typer.echo(f"agreement of {pair}: Jaccard {jaccard:.3f}", err=True)
    read, written, dollars = extraction.paid()
    price = "price not known" if dollars is None else f"${dollars:.4f}"
    typer.echo(f"paid for now: {read:,} tokens read, {written:,} written, {price}", err=True)
