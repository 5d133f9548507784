"""Questions about detectors, answered in boxes that hold neither data nor labels.

A question is a function of tsadbench. It runs beside the detector's code, which may do anything to it; so its answer is
JSON that is validated here, and whatever else comes back is an error of that detector.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

import numpy as np
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from tsadbench import errors
from tsadbench.errors import PluginError, TsadbenchError
from tsadbench.registry import Source
from tsadbench.sandbox.boxed_process import BoxedProcess
from tsadbench.sandbox.construction import pickled
from tsadbench.sandbox.limits import BoxFailure, Limits
from tsadbench.sandbox.replies import Answered
from tsadbench.utils.text import one_line, printable, printable_values

_Answer = TypeVar("_Answer")

# An import that takes longer than this does not end, or nobody wants to wait for it.
ANSWER_SECONDS = 60.0
ANSWER_MIB = 16 * 1024.0
# What a question may raise on purpose. Anything else is the fault of the plugin.
_REFUSALS: dict[str, type[TsadbenchError]] = {
    name: item for name, item in vars(errors).items() if isinstance(item, type) and issubclass(item, TsadbenchError)
}


class Interview:
    """Asks questions, in one box for each owner of code: what one has written cannot change the answers about another.

    A box lives until the interview ends, so that what it has imported serves all questions. Used as a context manager.
    """

    def __init__(self) -> None:
        self._boxes: dict[tuple[str, tuple[str, ...], bool], _Asked] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for box in self._boxes.values():
            box.close()

    def ask(
        self,
        source: Source,
        question: Callable[..., object],
        returns: type[_Answer],
        *arguments: object,
        seconds: float = ANSWER_SECONDS,
        gpu: bool = False,
    ) -> _Answer:
        """Return the answer to a question.

        Parameters
        ----------
        source
            Where the code is that it runs.
        question
            A function of a module of tsadbench.
        returns
            The type of its answer: JSON, and dataclasses of it.
        arguments
            Its arguments; they are pickled.
        seconds
            How long it may take.
        gpu
            Whether it may use GPUs.

        Raises
        ------
        TsadbenchError
            What the question raises on purpose.
        PluginError
            If it fails otherwise, ends or blocks its process, or its answer is not of that type.
        """
        who = source.owner, tuple(name.partition(".")[0] for name in source.modules), gpu
        if who not in self._boxes:
            self._boxes[who] = _Asked(source, gpu=gpu)
        try:
            answer = self._boxes[who].answer(question, arguments, seconds)
        except (BoxFailure, TsadbenchError) as error:
            if not isinstance(error, TsadbenchError) or isinstance(error, PluginError):
                self._boxes.pop(who).close()  # it may be gone, and what has failed halfway is not asked again
            if isinstance(error, BoxFailure):
                raise PluginError(f"{source.target} cannot be used: {one_line(error.reason)}") from error
            raise
        try:
            clean = json.dumps(printable_values(from_json(answer)))  # its docstrings are printed, for instance
            return TypeAdapter(returns).validate_json(clean, strict=True)
        except ValueError as error:
            fault = _first(error) if isinstance(error, ValidationError) else one_line(str(error), 200)
            raise PluginError(f"{source.target} cannot be used: it gave no valid answer ({fault})") from error


def ask(
    source: Source,
    question: Callable[..., object],
    returns: type[_Answer],
    *arguments: object,
    seconds: float = ANSWER_SECONDS,
) -> _Answer:
    """Return the answer to one question; parameters and errors as for `Interview.ask`."""
    with Interview() as interview:
        return interview.ask(source, question, returns, *arguments, seconds=seconds)


class _Asked(BoxedProcess):
    """A box that answers questions."""

    def __init__(self, source: Source, *, gpu: bool) -> None:
        super().__init__(source.target, modules=source.modules, gpu=gpu)
        self._opening = {"kind": "question", **self._surroundings}

    def answer(self, question: Callable[..., object], arguments: tuple[object, ...], seconds: float) -> str:
        """Return the JSON of an answer.

        Raises
        ------
        BoxFailure
            If the process fails, ends, or takes too long.
        TsadbenchError
            What the question raises on purpose.
        """
        self._watch = Limits(seconds, ANSWER_MIB).watch(self._process.pid, self._log)
        content = np.frombuffer(pickled((question, arguments), "a question"), dtype=np.uint8)
        try:
            reply, _ = self._exchange(self._opening, [content], Answered, ())
        except BoxFailure as failure:
            if failure.status == "timeout":
                raise BoxFailure("timeout", f"it gave no answer within {seconds:g} s") from failure
            raise
        self._opening = {"kind": "question"}
        if reply.refused is not None:
            raise _refusal(reply.refused, reply.text)
        return reply.answer


def _first(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_input=False)[0]
    return one_line(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}", 200)


def _refusal(name: str, text: str) -> TsadbenchError:
    refusal = _REFUSALS.get(name, PluginError)
    error: TsadbenchError = refusal.__new__(refusal)
    super(refusal, error).__init__(printable(text, lines=True))  # not its own constructor, which may write a text
    return error
