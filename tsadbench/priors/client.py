"""Asks a language model through the official SDK; every answer is kept, so that none is paid for twice."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from tsadbench.errors import MissingExtraError, ModelError, UsageError
from tsadbench.priors.prompt import Prompt

KEY = "ANTHROPIC_API_KEY"
# US dollars a million tokens, read and written, as published in early 2026; of other models no cost is told.
PRICES = {
    "claude-opus-4-6": (5.0, 25.0),
    "claude-sonnet-4-6": (3.0, 15.0),
    "claude-haiku-4-5": (1.0, 5.0),
}
# Of an answer, where the model can be held to one.
_TEXT = {"type": "string"}
_EDGE_KEYS = ("source", "source_quantity", "target", "target_quantity", "mechanism")
_SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "edges": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": dict.fromkeys(_EDGE_KEYS, _TEXT),
                "required": list(_EDGE_KEYS),
                "additionalProperties": False,
            },
        }
    },
    "required": ["edges"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Question:
    """One vote that is asked for; equal questions have one answer.

    Parameters
    ----------
    model
        Its name.
    system, user
        The prompt.
    max_tokens
        How long the answer may be.
    vote
        Number of the vote, counted from 0.
    """

    model: str
    system: str
    user: str
    max_tokens: int
    vote: int

    @classmethod
    def of(cls, model: str, prompt: Prompt, max_tokens: int, vote: int) -> Question:
        """Return the question that a prompt makes."""
        return cls(model, prompt.system, prompt.user, max_tokens, vote)

    @property
    def sha256(self) -> str:
        """Hash of all of it."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    @property
    def tokens(self) -> int:
        """About how many tokens will be read: a token is some four characters."""
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
        What was paid for.
    structured
        Whether the model was held to the answer's form.
    """

    text: str
    stop_reason: str
    model: str
    input_tokens: int
    output_tokens: int
    structured: bool


def cost(model: str, input_tokens: int, output_tokens: int) -> float | None:
    """Return US dollars, or None for a model whose price is not known."""
    name = next((name for name in PRICES if model == name or model.startswith(f"{name}-")), None)
    if name is None:
        return None
    read, written = PRICES[name]
    return (input_tokens * read + output_tokens * written) / 1e6


class Cache:
    """Raw answers by question, one file each.

    Parameters
    ----------
    folder
        Where they are kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, question: Question) -> Reply | None:
        """Return the answer to a question that has been asked before; a damaged one counts as none."""
        try:
            content = json.loads(self._file(question).read_text(encoding="utf-8"))
            return Reply(**content["reply"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, question: Question, reply: Reply) -> None:
        """Keep an answer, whole or not at all.

        Raises
        ------
        UsageError
            If it cannot be written.
        """
        content = json.dumps({"question": asdict(question), "reply": asdict(reply)}, indent=1, ensure_ascii=False)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self._folder)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(content)
            os.replace(name, self._file(question))
        except OSError as error:
            raise UsageError(f"--cache {self._folder}: cannot be written ({error.strerror or error})") from error

    def _file(self, question: Question) -> Path:
        return self._folder / f"{question.sha256}.json"


class Model:
    """Asks by the Messages API; a context manager, which closes its connections.

    The key is read from the environment and goes nowhere but into the SDK's requests.

    Parameters
    ----------
    retries
        How often a request is repeated that met a full, failing or silent server, with growing pauses.
    timeout
        Seconds that one request may take.

    Raises
    ------
    UsageError
        If there is no key.
    MissingExtraError
        If the SDK is not installed.
    """

    def __init__(self, retries: int = 5, timeout: float = 300.0) -> None:
        try:
            import anthropic
        except ImportError as error:
            raise MissingExtraError("asking a language model", "prior") from error
        key = os.environ.get(KEY)
        if not key:
            raise UsageError(f"set {KEY} in the environment, or give --offline to use kept answers alone")
        # None leaves the address to the SDK, which honours ANTHROPIC_BASE_URL.
        self._client = anthropic.Anthropic(api_key=key, max_retries=retries, timeout=timeout)
        self._key = key
        self._plain: set[str] = set()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def ask(self, question: Question) -> Reply:
        """Return the answer to a question.

        Raises
        ------
        ModelError
            If there is none after all repetitions, or the request is refused.
        """
        import anthropic

        try:
            return self._ask(question)
        except anthropic.AuthenticationError as error:
            raise ModelError(f"{question.model}: the key in {KEY} is not accepted; check it") from error
        except anthropic.PermissionDeniedError as error:
            raise ModelError(f"{question.model}: the key in {KEY} may not use this model") from error
        except anthropic.NotFoundError as error:
            raise ModelError(f"there is no model {question.model!r}; give another --model") from error
        except anthropic.APITimeoutError as error:
            raise ModelError(f"{question.model}: no answer in time, after all repetitions; try again later") from error
        except anthropic.APIConnectionError as error:
            raise ModelError(
                f"{question.model}: no connection to {self._client.base_url}, after all repetitions; check the network"
            ) from error
        except anthropic.APIStatusError as error:
            raise ModelError(
                f"{question.model}: the server answered with status {error.status_code}, after all repetitions that "
                f"such an answer allows ({self._told(error)})"
            ) from error
        except anthropic.APIError as error:
            raise ModelError(
                f"{question.model}: the answer is none of the Messages API ({self._told(error)})"
            ) from error

    def _ask(self, question: Question) -> Reply:
        import anthropic

        structured = question.model not in self._plain
        try:
            return self._send(question, structured=structured)
        except anthropic.BadRequestError as error:
            if not (structured and "output" in str(error)):
                raise
            self._plain.add(question.model)  # this model cannot be held to a form
            return self._send(question, structured=False)

    def _send(self, question: Question, *, structured: bool) -> Reply:
        options: dict[str, Any] = {"output_config": {"format": {"type": "json_schema", "schema": _SCHEMA}}}
        message = self._client.messages.create(
            model=question.model,
            max_tokens=question.max_tokens,
            system=question.system,
            messages=[{"role": "user", "content": question.user}],
            **(options if structured else {}),
        )
        try:
            return Reply(
                text="".join(cast("str", block.text) for block in message.content if block.type == "text"),
                stop_reason=str(message.stop_reason),
                model=str(message.model),
                input_tokens=int(message.usage.input_tokens),
                output_tokens=int(message.usage.output_tokens),
                structured=structured,
            )
        except (AttributeError, TypeError, ValueError) as error:  # the SDK does not check what it was sent
            raise ModelError(f"{question.model}: the answer is none of the Messages API ({error})") from error

    def _told(self, error: Exception) -> str:
        """Return an error's own words on one line, without the key should a server echo it."""
        return " ".join(str(error).split())[:300].replace(self._key, "[key]")
