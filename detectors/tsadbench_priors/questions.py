"""Questions to a language model and its replies, each kept so that it is never paid for twice."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter

from tsadbench import TsadbenchError

# The environment variable that holds the key of the Messages API.
KEY = "ANTHROPIC_API_KEY"
# US dollars per million tokens, read and written, as published in early 2026; other models' costs are not shown.
PRICES = {
    "claude-opus-4-6": (5.0, 25.0),
    "claude-sonnet-4-6": (3.0, 15.0),
    "claude-haiku-4-5": (1.0, 5.0),
}


class ModelError(TsadbenchError, RuntimeError):
    """A language model gives no answer."""


@dataclass(frozen=True, slots=True)
class Question:
    """One vote to ask for; equal questions have one answer."""

    model: str
    system: str
    user: str
    max_tokens: int
    vote: int  # counted from 0

    @property
    def sha256(self) -> str:
        """Hash of everything in the question."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    @property
    def tokens(self) -> int:
        """Estimated number of tokens that are read: about one per four characters."""
        return (len(self.system) + len(self.user)) // 4


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered."""

    text: str
    stop_reason: str
    model: str  # as it names itself
    input_tokens: int
    output_tokens: int
    structured: bool  # whether it was held to the answer's JSON schema


def cost(model: str, input_tokens: int, output_tokens: int) -> float | None:
    """Return US dollars; None if the model's price is not known."""
    name = next((name for name in PRICES if model == name or model.startswith(f"{name}-")), None)
    if name is None:
        return None
    read, written = PRICES[name]
    return (input_tokens * read + output_tokens * written) / 1e6


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is read of a kept answer's file."""

    reply: Reply


class Cache:
    """Raw answers by question, one file each, in a folder that is made when the first answer is kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, question: Question) -> Reply | None:
        """Return the answer to a question that was asked before; None if there is none, or its file is damaged."""
        try:
            return TypeAdapter(_Kept).validate_json(self._file(question).read_bytes(), strict=True).reply
        except (OSError, ValueError):
            return None

    def keep(self, question: Question, reply: Reply) -> None:
        """Write an answer, whole or not at all."""
        file = self._file(question)
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".unfinished")
        content = {"question": asdict(question), "reply": asdict(reply)}
        unfinished.write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")
        unfinished.replace(file)

    def _file(self, question: Question) -> Path:
        return self._folder / f"{question.sha256}.json"
