"""The result of a trial's replay audit: whether a row's score only depends on the rows around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

# Origins of the second copy of the fitted detector, from the strongest to the weakest: the learned state restored in a
# fresh box, a fork of the fitted process, or the same process again.
Copy: TypeAlias = Literal["restored", "forked", "same process"]

# A rank correlation below this, or a ratio beyond this, marks a table row.
MIN_CORRELATION = 0.9
MAX_RATIO = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The replay audit of one ok trial; trials whose scores do not repeat are "invalid"."""

    copy: Copy
    rows: int  # test rows that were scored again and compared
    # The smallest rank correlation of the scores of equal rows after different beginnings, from 500 rows on; None if
    # memory is bounded and ranks are equal, or recordings are too short.
    correlation: float | None = None
    # Ratios of the medians and the 99 % quantiles of training scores to fresh scores of the same rows; None unless the
    # detector is adaptive or has its own rule for training scores.
    median_ratio: float | None = None
    tail_ratio: float | None = None
    # Memory is unbounded, adaptive, or so long that only the correlation can show independence of the position.
    unbounded: bool = False

    @property
    def forgets(self) -> bool:
        """Whether the audit showed that scores do not depend on how a recording began."""
        return not self.unbounded if self.correlation is None else self.correlation >= MIN_CORRELATION

    @property
    def calibrated(self) -> bool:
        """Whether training scores are on the scale of fresh scores, if compared."""
        ratios = [ratio for ratio in (self.median_ratio, self.tail_ratio) if ratio is not None]
        return all(1.0 / MAX_RATIO <= ratio <= MAX_RATIO for ratio in ratios)

    @property
    def marks(self) -> tuple[str, ...]:
        """Marks of a table row: "unforgetting", "uncalibrated"."""
        return ("unforgetting",) * (not self.forgets) + ("uncalibrated",) * (not self.calibrated)
