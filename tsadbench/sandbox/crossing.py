"""The disguise under which recordings enter a box: their order, ids, clocks and sensors' names say nothing in there.

A detector that knows a published data set could tell from any of them which recording it is given, and so its labels.
All of it is derived from one secret, which the trial's record keeps: the same secret gives the same disguise again.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, TypeVar

import numpy as np

from tsadbench.base.prior import Edge, Prior, Sensor
from tsadbench.base.recording import Recording
from tsadbench.errors import UsageError
from tsadbench.utils.arrays import FloatArray

# Clocks start at a whole second below this, half a year. The finest spacing that survives any such shift, 7.5
# nanoseconds, follows from it.
_SHIFTS = 2**24
_Part = TypeVar("_Part", Edge, Sensor)
_SECRET = re.compile(r"[0-9a-f]{32}")


class Crossing:
    """Disguises what enters a box, and translates what comes back.

    In the box, the named sensors are ``sensor-1`` to ``sensor-n``; None: they keep their names, as in a model that is
    fitted for use. The secret has 32 hexadecimal digits. A trial's episodes share it, and are disguised differently.
    """

    def __init__(self, sensors: tuple[str, ...] | None, secret: str | None = None, episode: int = 0) -> None:
        self.secret = secrets.token_hex(16) if secret is None else secret
        if _SECRET.fullmatch(self.secret) is None:
            raise UsageError(f"crossing: expected 32 hexadecimal digits, found {self.secret[:80]!r}")
        self._episode = episode
        names = sensors or ()
        self._inside = {name: f"sensor-{i}" for i, name in enumerate(names, start=1)}
        self._outside = {opaque: name for name, opaque in self._inside.items()}

    def generator(self, purpose: str) -> np.random.Generator:
        """Return a random generator for this purpose, the same for the same secret and episode."""
        digest = hashlib.sha256(f"{self.secret} {self._episode} {purpose}".encode()).digest()
        return np.random.default_rng(int.from_bytes(digest))

    def order(self, n_recordings: int) -> list[int]:
        """Return the order in which that many test recordings cross."""
        return [int(i) for i in self.generator("order").permutation(n_recordings)]

    def recording(self, original: Recording, purpose: str, start: int = 0, stop: int | None = None) -> Recording:
        """Return a recording, or some of its rows, under an opaque id and a clock for this purpose.

        The spacing of the rows' times is that of the whole recording's, to the bit.
        """
        generator = self.generator(f"{purpose} {original.id}")
        id_ = f"recording-{generator.bytes(4).hex()}"
        self._outside[id_] = original.id
        time = None
        if original.time is not None:
            time = _rounded(original.time)[start:stop]
            time = time - time[0] + float(generator.integers(_SHIFTS))
        sensors = tuple(self._inside.get(name, name) for name in original.sensors)
        return Recording(id_, original.values[start:stop], sensors, time)

    def arguments(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """Return a constructor's arguments with sensors renamed: in priors and parameters called like ``*sensor*``."""
        if not self._inside:
            return dict(arguments)
        return {name: self._renamed(value, within="sensor" in name) for name, value in arguments.items()}

    def restored(self, text: str) -> str:
        """Return a text from the box with the recordings' and the sensors' own names."""
        pattern = r"(?<![\w-])(?:recording-[0-9a-f]{8}|sensor-[0-9]+)(?![\w-])"
        return re.sub(pattern, lambda found: self._outside.get(found[0], found[0]), text)

    def _renamed(self, value: object, *, within: bool) -> object:
        if isinstance(value, Prior):  # without what tells where it is from
            return Prior(tuple(map(self._texts, value.edges)), "given", {}, tuple(map(self._texts, value.sensors)))
        if not within:
            return value
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return {self._renamed(key, within=True): self._renamed(one, within=True) for key, one in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return type(value)(self._renamed(one, within=True) for one in value)
        return value

    def _texts(self, of: _Part) -> _Part:
        """Return an edge or a sensor of a prior with the sensors renamed in each of its texts."""
        found = asdict(of).items()
        renamed: dict[str, Any] = {name: self._text(one) for name, one in found if isinstance(one, str)}
        return replace(of, **renamed)

    def _text(self, text: str) -> str:
        longest_first = sorted(self._inside, key=len, reverse=True)
        pattern = rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)"
        return re.sub(pattern, lambda found: self._inside[found[0]], text)


def _rounded(time: FloatArray) -> FloatArray:
    """Return times counted from the first one, so rounded that adding a clock's start rounds nothing."""
    relative = time - time[0]
    span = np.abs(relative[np.isfinite(relative)]).max(initial=0.0)
    step = np.spacing(2 * _SHIFTS + span)
    return np.asarray(np.round(relative / step) * step)
