"""From documents to a prior: ask several times, and keep the edges that most answers name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import combinations
from typing import TYPE_CHECKING

from tsadbench import Prior, UsageError, __version__, progress
from tsadbench.base import Edge, Sensor
from tsadbench_priors.answers import Answer, read_answer
from tsadbench_priors.documents import Document
from tsadbench_priors.perturb import jaccard
from tsadbench_priors.prompt import VARIANTS, build_prompt
from tsadbench_priors.questions import Cache, ModelError, Question, Reply, cost

if TYPE_CHECKING:
    from tsadbench_priors.client import LanguageModel

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Request:
    """Which language models to ask, ``votes`` times with each wording."""

    sensors: tuple[Sensor, ...]
    documents: tuple[Document, ...]
    models: tuple[str, ...]
    votes: int = 5
    variants: int = 1
    pathways: tuple[str, ...] = ()
    max_tokens: int = 16_000

    def __post_init__(self) -> None:
        if not self.sensors:
            raise UsageError("expected sensors: give --dataset or --sensors")
        names = [sensor.name for sensor in self.sensors]
        if len(set(names)) != len(names):
            raise UsageError("the sensors' names must be unique")
        if self.votes < 1 or self.max_tokens < 1:
            raise UsageError("--votes and --max-tokens must be at least 1")
        if not 1 <= self.variants <= VARIANTS:
            raise UsageError(f"--variants must be from 1 to {VARIANTS}, found {self.variants}")

    def questions(self) -> list[tuple[int, Question]]:
        """Return every question with the number of its wording, ordered by model, wording and vote."""
        prompts = [
            build_prompt(self.sensors, self.documents, self.pathways, variant) for variant in range(self.variants)
        ]
        return [
            (variant, Question(model, prompt.system, prompt.user, self.max_tokens, vote))
            for model in self.models
            for variant, prompt in enumerate(prompts)
            for vote in range(self.votes)
        ]


@dataclass(slots=True)
class Ballot:
    """One answer and its origin."""

    model: str
    variant: int
    answer: Answer
    reply: Reply
    cached: bool


@dataclass(slots=True)
class Extraction:
    """All answers, and the prior that they result in."""

    request: Request
    ballots: list[Ballot] = field(default_factory=list)

    @property
    def valid(self) -> list[Ballot]:
        """The answers that count as votes."""
        return [ballot for ballot in self.ballots if ballot.answer.spoilt is None]

    def counts(self, model: str | None = None, variant: int | None = None) -> tuple[Counter[Pair], int]:
        """Return how many valid answers name each edge, and their number; of one model or wording if given."""
        ballots = [
            ballot
            for ballot in self.valid
            if (model is None or ballot.model == model) and (variant is None or ballot.variant == variant)
        ]
        named = Counter((edge.source, edge.target) for ballot in ballots for edge in ballot.answer.edges)
        return named, len(ballots)

    def graph(self, model: str | None = None, variant: int | None = None) -> set[Pair]:
        """Return the edges that more than half of the valid answers name; of one model or wording if given."""
        named, n = self.counts(model, variant)
        return {pair for pair, count in named.items() if count > n / 2}

    def agreement(self) -> dict[str, float]:
        """Return the Jaccard index between the graphs of every two models, and of every two wordings."""
        models = {model: self.graph(model) for model in self.request.models}
        wordings = {str(number + 1): self.graph(variant=number) for number in range(self.request.variants)}
        return {
            f"{prefix}{first} and {second}": jaccard(graphs[first], graphs[second])
            for prefix, graphs in (("", models), ("wordings ", wordings))
            for first, second in combinations(graphs, 2)
        }

    def rejected(self) -> Counter[str]:
        """Return the number of things left out of all answers, and of answers that did not count, by reason."""
        total: Counter[str] = Counter()
        for ballot in self.ballots:
            total.update(ballot.answer.rejected)
            if ballot.answer.spoilt is not None:
                total[f"answers without a vote: {ballot.answer.spoilt}"] += 1
        return total

    def paid(self) -> tuple[int, int, float | None]:
        """Return the tokens read and written for new answers, and their cost; None if a price is not known."""
        new = [ballot for ballot in self.ballots if not ballot.cached]
        costs = [cost(ballot.model, ballot.reply.input_tokens, ballot.reply.output_tokens) for ballot in new]
        dollars = None if None in costs else sum(dollars or 0.0 for dollars in costs)
        return (
            sum(ballot.reply.input_tokens for ballot in new),
            sum(ballot.reply.output_tokens for ballot in new),
            dollars,
        )

    def prior(self, min_votes: int | None = None) -> Prior:
        """Return the edges that enough answers name, each with its share of votes, in the sensors' order.

        By default these are the edges that more than half of the answers that count name.

        Raises
        ------
        ModelError
            If no answer counts, or no edge has enough votes.
        UsageError
            If ``min_votes`` is out of range.
        """
        named, n = self.counts()
        if n == 0:
            raise ModelError(f"none of {len(self.ballots)} answers holds a vote: {dict(self.rejected())}")
        needed = n // 2 + 1 if min_votes is None else min_votes
        if not 1 <= needed <= n:
            raise UsageError(f"--min-votes must be from 1 to {n}, the answers that count, found {needed}")
        chosen = {pair: count for pair, count in named.items() if count >= needed}
        if not chosen:
            raise ModelError(f"no edge has {needed} of {n} votes: read the document, or lower --min-votes")
        index = {sensor.name: i for i, sensor in enumerate(self.request.sensors)}
        edges = tuple(
            _voted(pair, chosen[pair] / n, self.valid)
            for pair in sorted(chosen, key=lambda pair: (index[pair[0]], index[pair[1]]))
        )
        documents = (f"{document.name} (SHA-256 {document.sha256[:16]})" for document in self.request.documents)
        provenance = {
            "made_by": f"tsadbench {__version__}, prior extract",
            "models": ", ".join(self.request.models),
            "documents": ", ".join(documents),
            "wordings": str(self.request.variants),
            "date": datetime.now(UTC).date().isoformat(),
            "votes": str(n),
            "min_votes": str(needed),
        }
        return Prior(edges, provenance=provenance, sensors=_described(self.request.sensors, edges))


def extract(request: Request, model: LanguageModel | None, cache: Cache) -> Extraction:
    """Ask every question that has no kept answer, keep each new answer at once, and read all answers.

    Raises
    ------
    ModelError
        If a question is not answered. Answers that were paid for are kept: the same request continues from them.
    UsageError
        If ``model`` is None and an answer is not kept.
    """
    questions = request.questions()
    names = [sensor.name for sensor in request.sensors]
    extraction = Extraction(request)
    for done, (variant, question) in enumerate(questions):
        progress(done, len(questions), question.model)
        reply = cache.find(question)
        cached = reply is not None
        if reply is None:
            if model is None:
                raise UsageError(
                    f"--offline: of {len(questions)} answers {done} are kept, but not vote {question.vote + 1} of "
                    f"{question.model}, wording {variant + 1}; ask for it without --offline"
                )
            try:
                reply = model.ask(question)
            except ModelError as error:
                raise ModelError(
                    f"{error}; {done} of {len(questions)} answers are kept: the same command continues from them"
                ) from error
            cache.keep(question, reply)
        answer = read_answer(reply.text, reply.stop_reason, names)
        extraction.ballots.append(Ballot(question.model, variant, answer, reply, cached))
    progress(len(questions), len(questions))
    return extraction


def _voted(pair: Pair, share: float, ballots: Sequence[Ballot]) -> Edge:
    """Return an edge with the words of the first answer that names it."""
    edges = (edge for ballot in ballots for edge in ballot.answer.edges)
    return replace(next(edge for edge in edges if (edge.source, edge.target) == pair), votes=round(share, 4))


def _described(sensors: Sequence[Sensor], edges: Sequence[Edge]) -> tuple[Sensor, ...]:
    """Return the sensors; the quantity of one without is taken from the answers."""
    quantities: dict[str, str] = {}
    for edge in edges:
        quantities.setdefault(edge.source, edge.source_quantity)
        quantities.setdefault(edge.target, edge.target_quantity)
    return tuple(replace(sensor, quantity=sensor.quantity or quantities.get(sensor.name, "")) for sensor in sensors)
