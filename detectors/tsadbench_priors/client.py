"""Asks a language model through the official SDK."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, cast

from tsadbench import UsageError
from tsadbench.base import extra
from tsadbench_priors.questions import KEY, ModelError, Question, Reply

with extra("asking a language model", "prior"):
    import anthropic

# JSON schema of an answer, for models that can be held to one.
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


class LanguageModel:
    """Asks by the Messages API, with the SDK's retries and time limit; a context manager that closes its connections.

    The key is read from the environment and goes only into the SDK's requests.
    """

    def __init__(self, retries: int = 5, timeout: float = 300.0) -> None:
        self._key = os.environ.get(KEY, "")
        if not self._key:
            raise UsageError(f"set {KEY} in the environment, or give --offline to use only answers that are kept")
        # Without a base_url, the SDK takes ANTHROPIC_BASE_URL or its own.
        self._client = anthropic.Anthropic(api_key=self._key, max_retries=retries, timeout=timeout)
        self._plain: set[str] = set()

    def __enter__(self) -> LanguageModel:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def ask(self, question: Question) -> Reply:
        """Return the answer to a question.

        Raises
        ------
        ModelError
            If there is none after all retries, or the request is refused.
        """
        try:
            return self._ask(question)
        except anthropic.APIError as error:
            raise ModelError(f"{question.model}: {self._reason(error)}") from error
        except (ValueError, ArithmeticError, AttributeError, TypeError, RecursionError) as error:
            # The SDK does not check what it was sent: HTML, deep JSON, other types, infinite numbers of tokens.
            reason = f"not an answer of the Messages API ({self._message(error)})"
            raise ModelError(f"{question.model}: {reason}") from error

    def _reason(self, error: anthropic.APIError) -> str:
        match error:
            case anthropic.AuthenticationError():
                return f"the key in {KEY} is not accepted; check it"
            case anthropic.PermissionDeniedError():
                return f"the key in {KEY} may not use this model"
            case anthropic.NotFoundError():
                return "there is no such model; give another --model"
            case anthropic.APITimeoutError():
                return "no answer in time, after all retries; try again later"
            case anthropic.APIConnectionError():
                return f"no connection to {self._client.base_url}, after all retries; check the network"
            case anthropic.APIStatusError():
                return f"the server answered with status {error.status_code} ({self._message(error)})"
            case _:
                return f"not an answer of the Messages API ({self._message(error)})"

    def _ask(self, question: Question) -> Reply:
        structured = question.model not in self._plain
        try:
            return self._send(question, structured=structured)
        except anthropic.BadRequestError as error:
            if not (structured and "output" in str(error)):
                raise
            self._plain.add(question.model)  # this model cannot be held to a schema
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
        text = "".join(cast("str", block.text) for block in message.content if block.type == "text")
        return Reply(
            text=text.encode("utf-8", "replace").decode(),  # JSON may hold half characters, which no file can
            stop_reason=ascii(message.stop_reason)[1:-1],
            model=ascii(message.model)[1:101],
            input_tokens=int(message.usage.input_tokens),
            output_tokens=int(message.usage.output_tokens),
            structured=structured,
        )

    def _message(self, error: Exception) -> str:
        """Return an error's message on one line, without the key in case a server echoes it."""
        return " ".join(str(error).replace(self._key, "[key]").split())[:300]
