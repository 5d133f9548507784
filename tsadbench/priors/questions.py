"""Questions to a language model and its replies, each kept so that it is never paid for twice."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter

from tsadbench.utils.atomic_files import write_file
from tsadbench.utils.bounded_files import read_bytes

# The environment variable that holds the key of the Messages API.
KEY = "ANTHROPIC_API_KEY"
_MOST_BYTES = 2**24
# US dollars per million tokens, read and written, as published in early 2026; other models' costs are not shown.
PRICES = {
    "claude-opus-4-6": (5.0, 25.0),
    "claude-sonnet-4-6": (3.0, 15.0),
    "claude-haiku-4-5": (1.0, 5.0),
}


@dataclass(frozen=True, slots=True)
class Question:
    """One vote to ask for; equal questions have one answer.

    Parameters
    ----------
    model
        Name of the language model.
    system, user
        The prompt.
    max_tokens
        Largest length of the answer.
    vote
        Number of the vote, counted from 0.
    """

    model: str
    system: str
    user: str
    max_tokens: int
    vote: int

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
    """What a model answered.

    Parameters
    ----------
    text, stop_reason
        The answer, and why it ended.
    model
        The model that answered, as it names itself.
    input_tokens, output_tokens
        Numbers of tokens that were paid for.
    structured
        Whether the model was held to the answer's JSON schema.
    """

    text: str
    stop_reason: str
    model: str
    input_tokens: int
    output_tokens: int
    structured: bool


def cost(model: str, input_tokens: int, output_tokens: int) -> float | None:
    """Return US dollars; None if the model's price is not known."""
    name = next((name for name in PRICES if model == name or model.startswith(f"{name}-")), None)
    if name is None:
        return None
    read, written = PRICES[name]
    return (input_tokens * read + output_tokens * written) / 1e6


@dataclass(frozen=True, slots=True)
class _Kept:
    """What of a kept answer's file is read."""

    reply: Reply


class Cache:
    """Raw answers by question, one file each.

    Parameters
    ----------
    folder
        The files' folder; made when the first answer is kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, question: Question) -> Reply | None:
        """Return the answer to a question that was asked before; None if there is none, or its file is damaged."""
        try:
            return TypeAdapter(_Kept).validate_json(read_bytes(self._file(question), _MOST_BYTES), strict=True).reply
        except (OSError, ValueError):
            return None

    def keep(self, question: Question, reply: Reply) -> None:
        """Write an answer, atomically.

        Raises
        ------
        UsageError
            If it cannot be written.
        """
        content = json.dumps({"question": asdict(question), "reply": asdict(reply)}, indent=1, ensure_ascii=False)
        write_file(self._file(question), content)

    def _file(self, question: Question) -> Path:
        return self._folder / f"{question.sha256}.json"
