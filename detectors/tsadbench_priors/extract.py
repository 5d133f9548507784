"""From documents to a prior: ask several times, keep every answer, and take the edges that most answers name."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import TypeAlias

from pydantic import TypeAdapter

from tsadbench import Prior, TsadbenchError, UsageError, __version__, progress
from tsadbench.base import Edge, Sensor
from tsadbench_priors.answers import Answer, read_answer
from tsadbench_priors.perturb import jaccard
from tsadbench_priors.prompt import Document, build_prompt

Pair: TypeAlias = tuple[str, str]


class ModelError(TsadbenchError, RuntimeError):
    """A language model gives no usable answer."""


@dataclass(frozen=True, slots=True)
class Question:
    """One vote to ask for; equal questions have one answer."""

    model: str
    system: str
    user: str
    max_tokens: int
    vote: int  # counted from 0


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer, why it ended, and the tokens read and written."""

    text: str
    stop_reason: str
    input_tokens: int
    output_tokens: int


Ask: TypeAlias = Callable[["Question"], "Reply"]  # asks a language model


@dataclass(frozen=True, slots=True)
class Cache:
    """Raw answers by question, one file each, so that none is paid for twice; the first one makes the folder."""

    folder: Path

    def find(self, question: Question) -> Reply | None:
        """Return the answer to a question that was asked before; None if there is none, or its file is damaged."""
        try:
            content = json.loads(self._file(question).read_bytes())
            return TypeAdapter(Reply).validate_python(content["reply"])
        except (OSError, ValueError, LookupError, TypeError):
            return None

    def keep(self, question: Question, reply: Reply) -> None:
        """Write an answer."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._file(question).write_text(json.dumps({"question": asdict(question), "reply": asdict(reply)}, indent=1))

    def _file(self, question: Question) -> Path:
        name = hashlib.sha256(json.dumps(asdict(question), sort_keys=True).encode()).hexdigest()
        return self.folder / f"{name}.json"


@dataclass(frozen=True, slots=True)
class Request:
    """Which language models to ask, ``votes`` times with each wording."""

    sensors: tuple[Sensor, ...]
    documents: tuple[Document, ...]
    models: tuple[str, ...]
    votes: int
    variants: int
    pathways: tuple[str, ...]
    max_tokens: int

    def questions(self) -> Iterator[tuple[int, Question]]:
        """Yield every question with the number of its wording, ordered by model, wording and vote."""
        for model in self.models:
            for variant in range(self.variants):
                system, user = build_prompt(self.sensors, self.documents, self.pathways, variant)
                for vote in range(self.votes):
                    yield variant, Question(model, system, user, self.max_tokens, vote)


@dataclass(frozen=True, slots=True)
class Ballot:
    """One answer and its origin: a model, and the number of a wording."""

    model: str
    variant: int
    answer: Answer
    paid: Reply | None  # None if it was kept


def collect(request: Request, ask: Ask | None, cache: Cache) -> list[Ballot]:
    """Ask every question that has no kept answer, keep each new answer at once, and read all answers.

    A UsageError if ``ask`` is None and an answer is not kept.
    """
    questions, names = list(request.questions()), [sensor.name for sensor in request.sensors]
    ballots = []
    for done, (variant, question) in enumerate(questions):
        progress(done, len(questions), question.model)
        reply, paid = cache.find(question), None
        if reply is None:
            if ask is None:
                raise UsageError(f"--offline: answer {done + 1} of {len(questions)} is not stored; run without it")
            reply = paid = ask(question)
            cache.keep(question, reply)
        ballots.append(Ballot(question.model, variant, read_answer(reply.text, reply.stop_reason, names), paid))
    progress(len(questions), len(questions))
    return ballots


def valid(ballots: Sequence[Ballot]) -> list[Ballot]:
    """Return the answers that count as votes."""
    return [ballot for ballot in ballots if ballot.answer.edges is not None]


def grouped(ballots: Sequence[Ballot], name_of: Callable[[Ballot], str]) -> dict[str, list[Ballot]]:
    """Return the ballots of each name, in their order."""
    return {name: [one for one in ballots if name_of(one) == name] for name in dict.fromkeys(map(name_of, ballots))}


def counts(ballots: Sequence[Ballot]) -> Counter[Pair]:
    """Count the answers that name each edge."""
    return Counter((edge.source, edge.target) for ballot in ballots for edge in ballot.answer.edges or ())


def agreement(ballots: Sequence[Ballot]) -> Iterator[tuple[str, float]]:
    """Yield the Jaccard index between the majorities' graphs of every two models, and of every two wordings."""
    for name_of in (lambda one: one.model, lambda one: f"wording {one.variant + 1}"):
        graphs = {}
        for name, group in grouped(valid(ballots), name_of).items():
            graphs[name] = {pair for pair, count in counts(group).items() if count > len(group) / 2}
        for first, second in combinations(graphs, 2):
            yield f"{first} and {second}", jaccard(graphs[first], graphs[second])


def voted_prior(request: Request, ballots: Sequence[Ballot], min_votes: int | None = None) -> Prior:
    """Return the edges that enough answers name (default: more than half), with their shares of votes.

    They are in the sensors' order; an edge's words are those of the first answer that names it. A ModelError if no
    answer counts or no edge has enough votes, a UsageError if ``min_votes`` is out of range.
    """
    voting = valid(ballots)
    n = len(voting)
    if n == 0:
        raise ModelError(f"none of {len(ballots)} answers holds a vote")
    needed = n // 2 + 1 if min_votes is None else min_votes
    if not 1 <= needed <= n:
        raise UsageError(f"--min-votes must be from 1 to {n}, the answers that count, found {needed}")
    named = counts(voting)
    first: dict[Pair, Edge] = {}
    for edge in (edge for ballot in voting for edge in ballot.answer.edges or ()):
        first.setdefault((edge.source, edge.target), edge)
    names = [sensor.name for sensor in request.sensors]
    edges = tuple(
        replace(first[pair], votes=round(named[pair] / n, 4))
        for pair in sorted(named, key=lambda pair: (names.index(pair[0]), names.index(pair[1])))
        if named[pair] >= needed
    )
    if not edges:
        raise ModelError(f"no edge has {needed} of {n} votes: read the document, or lower --min-votes")
    documents = [
        f"{name} (SHA-256 {hashlib.sha256(text.encode()).hexdigest()[:16]})" for name, text in request.documents
    ]
    provenance = {
        "made_by": f"tsadbench {__version__}, prior extract",
        "models": ", ".join(request.models),
        "documents": ", ".join(documents),
        "wordings": str(request.variants),
        "date": datetime.now(UTC).date().isoformat(),
        "votes": str(n),
        "min_votes": str(needed),
    }
    return Prior(edges, provenance=provenance, sensors=request.sensors)
