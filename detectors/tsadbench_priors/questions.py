"""Questions to a language model and its replies, each kept so that it is never paid for twice."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter

from tsadbench import TsadbenchError


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


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer, why it ended, and the tokens read and written."""

    text: str
    stop_reason: str
    input_tokens: int
    output_tokens: int


class Cache:
    """Raw answers by question, one file each, in a folder that is made when the first answer is kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, question: Question) -> Reply | None:
        """Return the answer to a question that was asked before; None if there is none, or its file is damaged."""
        try:
            content = json.loads(self._file(question).read_bytes())
            return TypeAdapter(Reply).validate_python(content["reply"])
        except (OSError, ValueError, LookupError, TypeError):
            return None

    def keep(self, question: Question, reply: Reply) -> None:
        """Write an answer, whole or not at all."""
        self._folder.mkdir(parents=True, exist_ok=True)
        unfinished = self._file(question).with_suffix(".unfinished")
        unfinished.write_text(json.dumps({"question": asdict(question), "reply": asdict(reply)}, indent=1))
        unfinished.replace(self._file(question))

    def _file(self, question: Question) -> Path:
        name = hashlib.sha256(json.dumps(asdict(question), sort_keys=True).encode()).hexdigest()
        return self._folder / f"{name}.json"
