"""Disguises recordings that enter a box: order, ids, clocks and sensor names carry no information there.

From any of these, a detector that knows a published data set could identify a recording, and so its labels. The
disguise is derived from one secret, kept in the trial's record: the same secret gives the same disguise.
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

# Clocks start at a whole second below 2^24 (194 days), so time steps down to 7.5 nanoseconds survive any shift.
_SHIFTS = 2**24
_Part = TypeVar("_Part", Edge, Sensor)
_SECRET = re.compile(r"[0-9a-f]{32}")


class Crossing:
    """Disguises what enters a box, and translates what comes back.

    In the box, the named sensors are ``sensor-1`` to ``sensor-n``. None keeps their names, as in models. The secret has
    32 hexadecimal digits. A trial's episodes share the secret but are disguised differently.
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
        """Return the order in which test recordings cross."""
        return [int(i) for i in self.generator("order").permutation(n_recordings)]

    def recording(self, original: Recording, purpose: str, start: int = 0, stop: int | None = None) -> Recording:
        """Return a recording, or some of its rows, under a random id and clock for this purpose.

        To the bit, the time steps of a part equal those of the whole recording as the box sees it.
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
        """Rename the sensors in a constructor's arguments: in priors and in parameters named ``*sensor*``."""
        if not self._inside:
            return dict(arguments)
        return {name: self._renamed(value, within="sensor" in name) for name, value in arguments.items()}

    def restored(self, text: str) -> str:
        """Restore the real names of recordings and sensors in a text from the box."""
        pattern = r"(?<![\w-])(?:recording-[0-9a-f]{8}|sensor-[0-9]+)(?![\w-])"
        return re.sub(pattern, lambda found: self._outside.get(found[0], found[0]), text)

    def _renamed(self, value: object, *, within: bool) -> object:
        if isinstance(value, Prior):  # without its origin
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
        """Rename the sensors in all texts of a prior's edge or sensor."""
        found = asdict(of).items()
        renamed: dict[str, Any] = {name: self._text(one) for name, one in found if isinstance(one, str)}
        return replace(of, **renamed)

    def _text(self, text: str) -> str:
        longest_first = sorted(self._inside, key=len, reverse=True)
        pattern = rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)"
        return re.sub(pattern, lambda found: self._inside[found[0]], text)


def _rounded(time: FloatArray) -> FloatArray:
    """Return times relative to the first, rounded so that adding a clock's start is exact."""
    relative = time - time[0]
    span = np.abs(relative[np.isfinite(relative)]).max(initial=0.0)
    step = np.spacing(2 * _SHIFTS + span)
    return np.asarray(np.round(relative / step) * step)
