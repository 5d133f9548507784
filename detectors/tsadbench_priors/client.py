"""Asks a language model through the official SDK."""

from __future__ import annotations

import os

from tsadbench import UsageError
from tsadbench.base import extra
from tsadbench_priors.extract import ModelError, Question, Reply

with extra("asking a language model", "prior"):
    import anthropic

KEY = "ANTHROPIC_API_KEY"


class LanguageModel:
    """Asks by the Messages API, with the SDK's retries; the key is from the environment and goes only into requests."""

    def __init__(self, timeout: float) -> None:
        self._key = os.environ.get(KEY, "")
        if not self._key:
            raise UsageError(f"set {KEY} in the environment, or give --offline to use only answers that are kept")
        self._timeout = timeout

    def ask(self, question: Question) -> Reply:
        """Return the answer to a question; a ModelError if there is none after all retries."""
        try:
            # Without a base_url, the SDK takes ANTHROPIC_BASE_URL or its default.
            with anthropic.Anthropic(api_key=self._key, timeout=self._timeout) as client:
                message = client.messages.create(
                    model=question.model,
                    max_tokens=question.max_tokens,
                    system=question.system,
                    messages=[{"role": "user", "content": question.user}],
                )
            text = "".join(block.text for block in message.content if block.type == "text")
            usage = message.usage
            return Reply(text, str(message.stop_reason), usage.input_tokens, usage.output_tokens)
        except (anthropic.AuthenticationError, anthropic.PermissionDeniedError) as error:
            problem = f"{error}; check the key in {KEY}"
        except anthropic.APIError as error:
            problem = str(error)
        except (ValueError, TypeError, AttributeError) as error:  # the SDK does not validate responses
            problem = f"not an answer of the Messages API ({error})"
        # A server may echo the key.
        problem = " ".join(problem.replace(self._key, "[key]").split())[:500]
        raise ModelError(f"{question.model}: {problem}; earlier answers are kept")
