"""Asks a language model through the official SDK."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Mapping
from typing import Any, cast

from tsadbench.errors import ModelError, UsageError
from tsadbench.priors.questions import KEY, Question, Reply
from tsadbench.utils.extras import extra
from tsadbench.utils.text import one_line

with extra("asking a language model", "prior"):
    import anthropic

_MOST_BYTES = 2**24
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


class _BoundedClient(anthropic.DefaultHttpxClient):
    """Gives up an answer that is not complete after the time limit, or that is too large once it is unpacked.

    The limits of the HTTP library are for each byte that arrives, so a server that sends one now and then never ends.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    def send(self, request: Any, **options: Any) -> Any:  # of httpx or of its successor, as the SDK's version has it
        """Return the answer to a request, with its content."""
        done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        stop = threading.Event()

        def work() -> None:
            try:
                done.put(self._whole(request, options, stop))
            except BaseException as error:  # raised again where it is waited for
                done.put(error)

        # A thread that waits for a byte cannot be ended: it is left behind, and ends with the next byte.
        threading.Thread(target=work, daemon=True).start()
        try:
            answer = done.get(timeout=self._seconds)
        except queue.Empty:
            raise anthropic.APITimeoutError(request=request) from None
        finally:
            stop.set()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _whole(self, request: Any, options: Mapping[str, Any], stop: threading.Event) -> Any:
        answer = super().send(request, **{**options, "stream": True})
        body = bytearray()
        try:
            if answer.headers.get("content-encoding", "identity").lower() not in ("identity", "gzip", "deflate"):
                raise anthropic.APIError("expected a plain or gzip content", request, body=None)
            for part in answer.iter_bytes():
                body += part
                if len(body) > _MOST_BYTES or stop.is_set():
                    raise anthropic.APIError(f"it is longer than {_MOST_BYTES:,} bytes", request, body=None)
        finally:
            answer.close()
        packed = ("content-encoding", "content-length", "transfer-encoding")
        headers = [(name, value) for name, value in answer.headers.multi_items() if name.lower() not in packed]
        return type(answer)(answer.status_code, headers=headers, content=bytes(body), request=answer.request)


class LanguageModel:
    """Asks by the Messages API; a context manager that closes its connections.

    The key is read from the environment and goes only into the SDK's requests.

    Parameters
    ----------
    retries
        How often to repeat a request if the server is overloaded, fails or does not answer, with growing pauses.
    timeout
        Time limit of a request, in seconds, from its start to the last byte of the answer.

    Raises
    ------
    UsageError
        If there is no key.
    """

    def __init__(self, retries: int = 5, timeout: float = 300.0) -> None:
        key = os.environ.get(KEY)
        if not key:
            raise UsageError(f"set {KEY} in the environment, or give --offline to use only answers that are kept")
        # Without a base_url, the SDK takes ANTHROPIC_BASE_URL or its own.
        self._client = anthropic.Anthropic(
            api_key=key, max_retries=retries, timeout=timeout, http_client=_BoundedClient(timeout)
        )
        self._key = key
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
                status = f"the server answered with status {error.status_code}"
                return f"{status}, after all retries that such an answer allows ({self._message(error)})"
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
            stop_reason=one_line(str(message.stop_reason), 100),
            model=one_line(str(message.model), 100),
            input_tokens=int(message.usage.input_tokens),
            output_tokens=int(message.usage.output_tokens),
            structured=structured,
        )

    def _message(self, error: Exception) -> str:
        """Return an error's message on one line, without the key in case a server echoes it."""
        return one_line(str(error).replace(self._key, "[key]"), 300)
