"""From documents to a prior: ask several times, count how often each edge is named, keep what most answers name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from tsadbench.base.prior import Edge, Prior, Sensor
from tsadbench.errors import ModelError, UsageError
from tsadbench.priors.answers import Answer, read_answer
from tsadbench.priors.client import Cache, Model, Question, Reply, cost
from tsadbench.priors.documents import Document
from tsadbench.priors.perturb import difference_of
from tsadbench.priors.prompt import VARIANTS, build_prompt
from tsadbench.utils.progress import progress

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for.

    Parameters
    ----------
    sensors, documents, pathways
        What the prompt is made of.
    models
        Their names.
    votes
        How often each model is asked with each wording.
    variants
        How many wordings.
    max_tokens
        How long an answer may be.
    """

    sensors: tuple[Sensor, ...]
    documents: tuple[Document, ...]
    models: tuple[str, ...]
    votes: int = 5
    variants: int = 1
    pathways: tuple[str, ...] = ()
    max_tokens: int = 16_000

    def check(self) -> None:
        """Raise a UsageError where something is out of range."""
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
        """Return every question with the number of its wording, by model, wording, vote."""
        prompts = [
            build_prompt(self.sensors, self.documents, self.pathways, variant) for variant in range(self.variants)
        ]
        return [
            (variant, Question.of(model, prompt, self.max_tokens, vote))
            for model in self.models
            for variant, prompt in enumerate(prompts)
            for vote in range(self.votes)
        ]


@dataclass(slots=True)
class Ballot:
    """One answer with where it came from."""

    model: str
    variant: int
    answer: Answer
    reply: Reply
    cached: bool


@dataclass(slots=True)
class Extraction:
    """All answers, and what they come to.

    Parameters
    ----------
    request
        What was asked for.
    ballots
        The answers.
    """

    request: Request
    ballots: list[Ballot] = field(default_factory=list)

    @property
    def valid(self) -> list[Ballot]:
        """The answers that count as votes."""
        return [ballot for ballot in self.ballots if ballot.answer.spoilt is None]

    def counts(self, model: str | None = None, variant: int | None = None) -> tuple[Counter[Pair], int]:
        """Return how many valid answers, of one model or wording where given, name each edge, and their number."""
        ballots = [
            ballot
            for ballot in self.valid
            if (model is None or ballot.model == model) and (variant is None or ballot.variant == variant)
        ]
        named = Counter((edge.source, edge.target) for ballot in ballots for edge in ballot.answer.edges)
        return named, len(ballots)

    def graph(self, model: str | None = None, variant: int | None = None) -> set[Pair]:
        """Return the edges that more than half of the answers, of one model or wording where given, name."""
        named, n = self.counts(model, variant)
        return {pair for pair, count in named.items() if count > n / 2}

    def agreement(self) -> dict[str, float]:
        """Return the Jaccard index between the graphs of every two models, and of every two wordings."""
        found = {}
        for first, second in combinations(self.request.models, 2):
            found[f"{first} and {second}"] = difference_of(self.graph(first), self.graph(second)).jaccard
        for one, other in combinations(range(self.request.variants), 2):
            graphs = (self.graph(variant=one), self.graph(variant=other))
            found[f"wordings {one + 1} and {other + 1}"] = difference_of(*graphs).jaccard
        return found

    def rejected(self) -> Counter[str]:
        """Return what was left out of all answers, and how many did not count, by reason."""
        total: Counter[str] = Counter()
        for ballot in self.ballots:
            total.update(ballot.answer.rejected)
            if ballot.answer.spoilt is not None:
                total[f"answers without a vote: {ballot.answer.spoilt}"] += 1
        return total

    def paid(self) -> tuple[int, int, float | None]:
        """Return tokens read and written by new answers, and what they cost; None where a price is not known."""
        new = [ballot for ballot in self.ballots if not ballot.cached]
        costs = [cost(ballot.model, ballot.reply.input_tokens, ballot.reply.output_tokens) for ballot in new]
        dollars = None if any(one is None for one in costs) else sum(one or 0.0 for one in costs)
        return sum(one.reply.input_tokens for one in new), sum(one.reply.output_tokens for one in new), dollars

    def prior(self, min_votes: int | None = None, provenance: Mapping[str, str] | None = None) -> Prior:
        """Return the edges that enough answers name, each with its share of votes, by the sensors' order.

        Parameters
        ----------
        min_votes
            How many answers must name an edge; by default more than half of those that count.
        provenance
            Kept with the prior.

        Raises
        ------
        ModelError
            If no answer counts, or no edge has so many votes.
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
        place = {sensor.name: i for i, sensor in enumerate(self.request.sensors)}
        edges = tuple(
            _voted(pair, chosen[pair] / n, self.valid)
            for pair in sorted(chosen, key=lambda pair: (place[pair[0]], place[pair[1]]))
        )
        told = {**(provenance or {}), "votes": str(n), "min_votes": str(needed)}
        return Prior(edges=edges, provenance=told, sensors=_described(self.request.sensors, edges))


def extract(request: Request, model: Model | None, cache: Cache) -> Extraction:
    """Ask every question that has no kept answer, and read all answers.

    Parameters
    ----------
    request
        What to ask.
    model
        Whom; None uses kept answers alone.
    cache
        Kept answers; each new one is kept before anything else happens.

    Raises
    ------
    ModelError
        If a question is not answered. Answers that have been paid for are kept: the same request goes on from them.
    UsageError
        If answers may not be asked for and one is not kept.
    """
    request.check()
    questions = request.questions()
    names = [sensor.name for sensor in request.sensors]
    found = Extraction(request)
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
                    f"{error}; {done} of {len(questions)} answers are kept: the same command goes on from them"
                ) from error
            cache.keep(question, reply)
        answer = read_answer(reply.text, reply.stop_reason, names)
        found.ballots.append(Ballot(question.model, variant, answer, reply, cached))
    progress(len(questions), len(questions))
    return found


def _voted(pair: Pair, share: float, ballots: Sequence[Ballot]) -> Edge:
    """Return an edge with the words of the first answer that names it."""
    first = next(
        edge for ballot in ballots for edge in ballot.answer.edges if (edge.source, edge.target) == pair
    )  # fmt: skip
    return Edge(
        first.source, first.target, first.source_quantity, first.target_quantity, first.mechanism, round(share, 4)
    )


def _described(sensors: Sequence[Sensor], edges: Sequence[Edge]) -> tuple[Sensor, ...]:
    """Return the sensors; what one measures is taken from the answers where nobody has said it."""
    told: dict[str, str] = {}
    for edge in edges:
        told.setdefault(edge.source, edge.source_quantity)
        told.setdefault(edge.target, edge.target_quantity)
    return tuple(
        Sensor(sensor.name, sensor.quantity or told.get(sensor.name, ""), sensor.subsystem) for sensor in sensors
    )
