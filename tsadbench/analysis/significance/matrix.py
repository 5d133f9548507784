"""One metric of every detector on every recording, or on every session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tsadbench.errors import UsageError
from tsadbench.utils.arrays import BoolArray, FloatArray, read_only

# Values that differ by rounding alone are ties.
_DECIMALS = 12


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """A metric by recording (or session) and detector.

    Parameters
    ----------
    units
        Ids of the recordings, or names of the sessions; unique.
    detectors
        Labels, unique.
    values
        [n_units, n_detectors], each a mean over seeds; NaN where undefined.

    Raises
    ------
    UsageError
        If names occur twice or the shape is wrong.
    """

    units: tuple[str, ...]
    detectors: tuple[str, ...]
    values: FloatArray

    def __post_init__(self) -> None:
        for what, names in (("units", self.units), ("detectors", self.detectors)):
            if len(set(names)) != len(names):
                raise UsageError(f"a matrix of metrics: its {what} must have different names, found {list(names)}")
        values = np.asarray(self.values, dtype=np.float64)
        if values.shape != (len(self.units), len(self.detectors)):
            raise UsageError(
                f"a matrix of metrics: expected shape [{len(self.units)}, {len(self.detectors)}], "
                f"found {list(values.shape)}"
            )
        object.__setattr__(self, "values", read_only(np.round(values, _DECIMALS)))

    @property
    def defined(self) -> BoolArray:
        """[n_units], whether every detector has a value."""
        return np.asarray(~np.isnan(self.values).any(axis=1), dtype=np.bool_)

    def column(self, detector: str) -> FloatArray:
        """Return one detector's values, [n_units]."""
        values: FloatArray = self.values[:, self.detectors.index(detector)]
        return values

    def only(self, units: Sequence[str]) -> Matrix:
        """Return the rows of these units, in this order."""
        return Matrix(tuple(units), self.detectors, self.values[[self.units.index(unit) for unit in units]])

    def to_json(self) -> dict[str, Mapping[str, float | None]]:
        """Return the values by unit and detector; None where undefined."""
        rows = [[None if np.isnan(value) else value for value in row] for row in self.values.tolist()]
        return {unit: dict(zip(self.detectors, row, strict=True)) for unit, row in zip(self.units, rows, strict=True)}
