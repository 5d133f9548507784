"""How wide a network is if its user does not say: by ``size``, and by the number of sensors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, get_args

from tsadbench_detectors.deep.network_detector import NetworkDetector

Size: TypeAlias = Literal["default", "paper"]


@dataclass(frozen=True, slots=True)
class Width:
    """A number of a network's units, channels or rows.

    Parameters
    ----------
    least
        At size "default": this, or more if there are many sensors.
    per_sensor
        At size "default": at least so many for each sensor, rounded up; 0: no more with more sensors.
    paper
        At size "paper", for any number of sensors; None: as at size "default".

    Examples
    --------
    >>> width = Width(32, per_sensor=2, paper=300)
    >>> width.of(8), width.of(52), width.of(52, "paper")
    (32, 104, 300)
    """

    least: int
    per_sensor: float = 0.0
    paper: int | None = None

    def of(self, n_sensors: int, size: Size = "default") -> int:
        """Return the number for so many sensors."""
        if size == "paper" and self.paper is not None:
            return self.paper
        return max(self.least, math.ceil(self.per_sensor * n_sensors))


class SizedNetwork(NetworkDetector):
    """A network some of whose parameters may be None: then ``size`` and the number of sensors decide them.

    A subclass sets ``widths``, and reads these parameters by `_width`.

    Parameters
    ----------
    size
        "default", or "paper": as published. It decides only parameters that are None: a number that is given counts
        at either size. Training (epochs, batches, rate) does not depend on it.
    """

    size: Size = "default"
    # By parameter: what it is if it is None.
    widths: ClassVar[Mapping[str, Width]] = {}

    def _check(self, sensors: tuple[str, ...]) -> None:
        self._require(self.size in get_args(Size), "size", f"one of {list(get_args(Size))}")
        for parameter in self.widths:
            if getattr(self, parameter) is not None:
                self._require_integer(parameter, at_least=1)
        super()._check(sensors)

    def _width(self, parameter: str, n_sensors: int = 0) -> int:
        """Return the value of one of the parameters in ``widths``."""
        given: int | None = getattr(self, parameter)
        return self.widths[parameter].of(n_sensors, self.size) if given is None else given
