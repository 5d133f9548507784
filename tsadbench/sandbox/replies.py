"""What a box may answer. A detector owns its process and can write anything; what is not such an answer is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tsadbench.sandbox.wire import LONGEST_REASON, LONGEST_TRACEBACK, ArrayKind, BrokenFrameError, Header

_Count: TypeAlias = Annotated[int, Field(ge=0, le=2**53)]
_Finite: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
_Integer: TypeAlias = Annotated[int, Field(gt=-(2**63), lt=2**63)]
# The largest header of an answer: enough for any text, too little to fill the memory when it is read.
MAX_REPLY_BYTES = 2 * 2**20
LONGEST_NOTE = 1000
# A model has a few parts; a forest in a forest has some hundreds.
_MOST_PARTS = 10_000
_Packages: TypeAlias = Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=5000)]
# A claim, not an allocation: the pages of an array are the system's until bytes arrive.
_MAX_PART_BYTES = 8 * 2**30


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Progress(_Strict):
    """A step of the work; the answer is still to come."""

    kind: Literal["progress"]
    done: _Count
    total: _Count
    note: Annotated[str, Field(max_length=LONGEST_NOTE)]


class Failure(_Strict):
    """The detector raised an error or broke its contract. The other ways to fail are for the harness to say."""

    kind: Literal["failure"]
    status: Literal["error", "invalid"]
    reason: Annotated[str, Field(max_length=LONGEST_REASON)]
    traceback: Annotated[str, Field(max_length=LONGEST_TRACEBACK)]


class Done(_Strict):
    """The answer to the request whose secret mark it repeats: none can be written before it was asked for."""

    kind: Literal["done"]
    request: str


class Constructed(Done):
    """The detector exists."""

    offers_contributions: bool
    scores_training_itself: bool


class Fitted(Done):
    """The detector is fitted."""

    training_facts: Annotated[
        dict[Annotated[str, Field(max_length=40)], bool | _Integer | _Finite | None], Field(max_length=32)
    ]


class HeldOutLoss(Done):
    """The loss on held-out recordings."""

    loss: _Finite


class Imported(Done):
    """The packages that were loaded since the process is the box's, and who imported them."""

    importers: Annotated[dict[Annotated[str, Field(max_length=200)], _Packages], Field(max_length=5000)]


class Learned(Done):
    """The parts of a model file follow, in this order; or why there are none."""

    parts: Annotated[list[Annotated[str, Field(max_length=1000)]], Field(max_length=_MOST_PARTS)] = []
    refused: Annotated[str, Field(max_length=LONGEST_REASON)] | None = None


class Answered(Done):
    """The answer to a question as JSON; or the error that the question raised on purpose, by its name, and its text."""

    answer: Annotated[str, Field(max_length=MAX_REPLY_BYTES)] = ""
    refused: Annotated[str, Field(max_length=100)] | None = None
    text: Annotated[str, Field(max_length=LONGEST_REASON)] = ""


Reply = TypeVar("Reply", bound=Done)


def read_reply(
    expected: type[Reply], mark: str, shapes: Sequence[tuple[int, ...]], header: Header, arrays: Sequence[ArrayKind]
) -> Reply | Progress | Failure:
    """Return what a frame says, before its arrays are received.

    Parameters
    ----------
    expected
        The kind of answer that was asked for.
    mark
        The request's mark.
    shapes
        The shapes of the float64 arrays that have to follow the answer; those of `Learned` are bytes, one for each of
        its parts.
    header
        The frame's header.
    arrays
        The kinds of arrays that are announced.

    Raises
    ------
    BrokenFrameError
        If it is not that answer, nor progress or a failure.
    """
    kinds: dict[object, type[Reply | Progress | Failure]] = {
        "done": expected,
        "progress": Progress,
        "failure": Failure,
    }
    kind = header.get("kind")
    model = kinds.get(kind) if isinstance(kind, str) else None
    if model is None:
        raise BrokenFrameError(f"a frame of the kind {kind!r:.60}")
    try:
        reply = model.model_validate(header)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise BrokenFrameError(f"{'.'.join(map(str, first['loc']))} of {kind!r}: {first['msg']}") from error
    if isinstance(reply, Done) and reply.request != mark:
        raise BrokenFrameError("an answer that nobody asked for")
    _check_arrays(reply, shapes, arrays)
    return reply


def _check_arrays(
    reply: Done | Progress | Failure, shapes: Sequence[tuple[int, ...]], arrays: Sequence[ArrayKind]
) -> None:
    if isinstance(reply, Learned):
        n_bytes = sum(sum(shape) for _, shape in arrays)
        bytes_alone = all(name == "uint8" and len(shape) == 1 for name, shape in arrays)
        if not bytes_alone or not len(set(reply.parts)) == len(reply.parts) == len(arrays) or n_bytes > _MAX_PART_BYTES:
            raise BrokenFrameError(f"{len(reply.parts)} parts of a model in {_described(arrays)}")
        return
    wanted = [("float64", tuple(shape)) for shape in shapes] if isinstance(reply, Done) else []
    if list(arrays) != wanted:
        raise BrokenFrameError(f"{_described(arrays)} where {_described(wanted)} were expected")


def _described(arrays: Sequence[ArrayKind]) -> str:
    shown = ", ".join(f"{name} {list(shape)}" for name, shape in arrays[:3])
    return f"{len(arrays)} arrays ({shown}{', ...' if len(arrays) > 3 else ''})" if arrays else "no arrays"
