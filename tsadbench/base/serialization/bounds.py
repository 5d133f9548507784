"""Bounds for what a stranger's model file may make grow: archives that unpack, and networks that are built."""

from __future__ import annotations

import io
import sys
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from tsadbench.errors import ModelFileError

_MIB = 2**20
# A compressed archive may unpack to so many times its own size, and so much more.
_RATIO, _MORE_BYTES = 20, 64 * _MIB
# Archives inside archives inside ...
_DEPTH = 4
# A network may have so many times the numbers and tensors of its file (some are registered twice), and so many more.
_TIMES, _MORE_NUMBERS, _MORE_TENSORS = 4, 10**6, 1000


def check_unpacked_size(archive: bytes) -> None:
    """Raise a ValueError if an archive, or one inside it, would unpack to far more than its own size.

    Parameters
    ----------
    archive
        Content of a zip file. Nothing is unpacked unless all of it may be.
    """
    _check_members(archive, len(archive) * _RATIO + _MORE_BYTES, _DEPTH)


def _check_members(archive: bytes, most: int, depth: int) -> int:
    """Return how many bytes an archive unpacks to, archives in it included."""
    with zipfile.ZipFile(io.BytesIO(archive)) as members:
        total = sum(member.file_size for member in members.infolist())
        for member in members.infolist() if total <= most else ():
            with members.open(member) as content:
                if content.read(4) == b"PK\x03\x04":
                    if depth == 0:
                        raise ValueError("it holds archives inside archives")
                    total += _check_members(members.read(member), most - total, depth - 1)
    if total > most:
        raise ValueError(f"it unpacks to more than {most // _MIB} MiB")
    return total


@contextmanager
def bounded_networks(arrays: Mapping[str, np.ndarray[Any, np.dtype[np.generic]]]) -> Iterator[None]:
    """Let this thread build no network of torch that is far larger than its weights.

    Parameters
    ----------
    arrays
        The weights, and whatever else the file holds.

    Raises
    ------
    ModelFileError
        As soon as a network under construction has more tensors, or larger ones, than the file can fill.
    """
    # The core never imports torch; if no detector has, none builds a network with it.
    torch: Any = sys.modules.get("torch.nn.modules.module")
    if torch is None:
        yield
        return
    thread, found = threading.get_ident(), [0, 0]
    most_tensors = _TIMES * len(arrays) + _MORE_TENSORS
    most_numbers = _TIMES * sum(array.size for array in arrays.values()) + _MORE_NUMBERS

    def count(_module: object, _name: str, part: Any) -> None:
        if threading.get_ident() != thread or part is None:
            return
        found[0] += 1
        found[1] += part.numel() if hasattr(part, "numel") else 0
        if found[0] > most_tensors or found[1] > most_numbers:
            raise ModelFileError("its parameters ask for a network that is larger than the weights in the file")

    kinds = ("module", "parameter", "buffer")
    hooks = [getattr(torch, f"register_module_{kind}_registration_hook")(count) for kind in kinds]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
